//! The commit of a large transaction in a stream that has sent its changes before, as bodies: a *marker*, in place of the mutations.
//!
//! The mutations of the commit got seqnos like any others, and the frames cover them, without key-versions. The marker comes before
//! the first of these frames. It says which seqnos they are, and what the node must have of the transaction: everything up to the
//! place, and in it the bodies and rollbacks that the stream has sent, as their digest tells.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::messages::TransactionBodies;
use crate::model::ids::{Seqno, TransactionId, TransactionPlace, VbucketId};

/// The commit of a transaction whose mutations are not in the frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitMarker {
    /// The transaction.
    pub transaction: TransactionId,
    /// Its last place.
    pub place: TransactionPlace,
    /// The digest of everything that the stream has sent of it.
    pub digest: BodiesDigest,
    /// The seqnos of its mutations, by vbucket, ascending.
    pub ranges: Vec<CommitRange>,
}

/// The seqnos `(after, to]` of a vbucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitRange {
    /// The vbucket.
    pub vbucket: VbucketId,
    /// The seqno before the first one.
    pub after: Seqno,
    /// The last one.
    pub to: Seqno,
}

/// Bytes of one range in memory.
const RANGE_BYTES: usize = size_of::<CommitRange>();
/// Bytes of a marker besides its ranges.
const MARKER_BYTES: usize = 64;

impl CommitMarker {
    /// The range of a vbucket, if the commit has changed any of its documents.
    pub fn range_of(&self, vbucket: VbucketId) -> Option<CommitRange> {
        let at = self.ranges.binary_search_by_key(&vbucket, |range| range.vbucket);
        at.ok().map(|at| self.ranges[at])
    }

    /// Bytes in memory, about.
    pub fn bytes(&self) -> usize {
        MARKER_BYTES + self.ranges.len() * RANGE_BYTES
    }
}

/// Digest of the messages about one transaction in a stream, in their order. Sender and receiver each make their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodiesDigest(u64);

impl BodiesDigest {
    /// The digest with a further message of changes. One from place zero begins the transaction anew.
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
