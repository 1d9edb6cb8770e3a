//! The changes of open transactions in a stream, and what sender and receiver know of them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::model::ids::{TransactionId, TransactionPlace};

/// Bytes of a message besides its body.
const MESSAGE_BYTES: usize = 64;

/// Changes of documents that a transaction has made and not committed, for one node. Only the transaction itself sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionBodies {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The place before the first change. The node must be at this place in the transaction. Zero restarts the transaction, and the node
    /// forgets its earlier changes.
    pub from: TransactionPlace,
    /// The place of the last change, which becomes the node's place. The range has gaps where changes were rolled back.
    pub to: TransactionPlace,
    /// Packed key-versions, whose seqnos are places relative to `from`.
    pub body: Bytes,
}

impl TransactionBodies {
    /// The approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.body.len() + MESSAGE_BYTES
    }
}

/// Digest of the messages about one transaction in a stream, in their order. Sender and receiver each compute it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodiesDigest(u64);

impl BodiesDigest {
    /// The digest with a further message of changes. A message from place zero restarts the transaction.
    pub fn with_bodies(self, bodies: &TransactionBodies) -> Self {
        let TransactionBodies { from, to, body, .. } = bodies;
        let before = if from.0 == 0 { 0 } else { self.0 };
        Self(xxh3_64_with_seed(body, step(before, 1, *from, *to)))
    }

    /// The digest with a rollback to a place.
    pub fn with_back(self, to: TransactionPlace) -> Self {
        Self(step(self.0, 2, to, to))
    }
}

fn step(before: u64, kind: u8, from: TransactionPlace, to: TransactionPlace) -> u64 {
    let mut bytes = [kind; 17];
    bytes[..8].copy_from_slice(&from.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&to.0.to_le_bytes());
    xxh3_64_with_seed(&bytes, before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_tells_order_contents_and_rollbacks_and_begins_anew_from_place_zero() {
        let bodies = |from, to, body: &'static [u8]| TransactionBodies {
            transaction: TransactionId(1),
            from: TransactionPlace(from),
            to: TransactionPlace(to),
            body: bytes::Bytes::from_static(body),
        };
        let begun = BodiesDigest::default().with_bodies(&bodies(0, 2, b"ab"));
        let longer = begun.with_bodies(&bodies(2, 3, b"c"));
        let others = [
            BodiesDigest::default().with_bodies(&bodies(0, 3, b"abc")),
            begun.with_bodies(&bodies(2, 3, b"d")),
            begun.with_bodies(&bodies(2, 4, b"c")),
            begun,
            longer.with_back(TransactionPlace(2)),
            longer.with_back(TransactionPlace(1)),
        ];
        for (n, other) in others.iter().enumerate() {
            assert_ne!(longer, *other, "{n}");
        }
        assert_eq!(longer.with_bodies(&bodies(0, 2, b"ab")), begun);
    }
}
