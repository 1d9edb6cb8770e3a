//! The changes of open transactions in a stream, and the digest by which sender and receiver
//! compare them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::model::ids::{TransactionId, TransactionPlace};

/// The size of a message without its body, in bytes.
const MESSAGE_BYTES: usize = 64;

/// Uncommitted changes of documents by one transaction, for one node. Only scans of the same
/// transaction see them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionBodies {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The place before the first change, which must be the node's present place in the
    /// transaction. Zero starts the transaction again: the node forgets its earlier changes.
    pub from: TransactionPlace,
    /// The place of the last change, which becomes the node's place. Places of changes that were
    /// rolled back are missing between `from` and `to`.
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

/// The digest of a stream's messages about one transaction, in their order. Sender and receiver
/// compute it independently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodiesDigest(u64);

impl BodiesDigest {
    /// Returns the digest after one more message of changes. A message from place zero starts the
    /// transaction again.
    pub fn with_bodies(self, bodies: &TransactionBodies) -> Self {
        let TransactionBodies { from, to, body, .. } = bodies;
        let before = if from.0 == 0 { 0 } else { self.0 };
        Self(xxh3_64_with_seed(body, step(before, 1, *from, *to)))
    }

    /// Returns the digest after a rollback to a place.
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
