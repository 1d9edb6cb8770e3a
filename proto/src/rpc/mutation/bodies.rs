//! Messages with the uncommitted changes of open transactions in a stream (*bodies*), and the
//! digest by which sender and receiver compare them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::model::ids::{TransactionId, TransactionPlace};

/// The size of a message without its changes, in bytes.
const MESSAGE_BYTES: usize = 64;

/// Uncommitted changes of documents by one transaction, as sent to one node. Only scans of the
/// same transaction see them. A *place* is the number of the transaction's changes and rollbacks
/// so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncommittedChanges {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The place before the first change, which must be the place that the node has reached. Zero
    /// begins the transaction again: the node forgets its earlier changes.
    pub from: TransactionPlace,
    /// The place after the last change, which the node has then reached. Places of changes that
    /// were rolled back are missing between `from` and `to`.
    pub to: TransactionPlace,
    /// The changes as packed key-versions, with places relative to `from` as seqnos.
    pub body: Bytes,
}

impl UncommittedChanges {
    /// Returns the approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.body.len() + MESSAGE_BYTES
    }
}

/// A digest of the messages that a stream has sent about one transaction, in their order. Sender
/// and receiver compute it independently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesDigest(u64);

impl ChangesDigest {
    /// Returns the digest after one more message of changes. A message from place zero begins the
    /// transaction again.
    pub fn with_changes(self, bodies: &UncommittedChanges) -> Self {
        let UncommittedChanges { from, to, body, .. } = bodies;
        let before = if from.0 == 0 { 0 } else { self.0 };
        Self(xxh3_64_with_seed(body, digest_step(before, 1, *from, *to)))
    }

    /// Returns the digest after a rollback to a place.
    pub fn with_rollback(self, to: TransactionPlace) -> Self {
        Self(digest_step(self.0, 2, to, to))
    }
}

fn digest_step(before: u64, kind: u8, from: TransactionPlace, to: TransactionPlace) -> u64 {
    let mut bytes = [kind; 17];
    bytes[..8].copy_from_slice(&from.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&to.0.to_le_bytes());
    xxh3_64_with_seed(&bytes, before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_depends_on_order_and_contents() {
        let bodies = |from, to, body: &'static [u8]| UncommittedChanges {
            transaction: TransactionId(1),
            from: TransactionPlace(from),
            to: TransactionPlace(to),
            body: bytes::Bytes::from_static(body),
        };
        let begun = ChangesDigest::default().with_changes(&bodies(0, 2, b"ab"));
        let longer = begun.with_changes(&bodies(2, 3, b"c"));
        let others = [
            ChangesDigest::default().with_changes(&bodies(0, 3, b"abc")),
            begun.with_changes(&bodies(2, 3, b"d")),
            begun.with_changes(&bodies(2, 4, b"c")),
            begun,
            longer.with_rollback(TransactionPlace(2)),
            longer.with_rollback(TransactionPlace(1)),
        ];
        for (n, other) in others.iter().enumerate() {
            assert_ne!(longer, *other, "{n}");
        }
        assert_eq!(longer.with_changes(&bodies(0, 2, b"ab")), begun);
    }
}
