//! The commit of a large transaction in a stream that has sent its changes before, as bodies: a *marker*, in place of the mutations.
//!
//! The mutations of the commit got seqnos like any others, and the frames cover them, without key-versions. The marker is sent before the
//! first of these frames. It contains these seqnos, and the state that the node must have of the transaction: all changes up to the place,
//! with the digest of the bodies and rollbacks that the stream has sent.

use serde::{Deserialize, Serialize};

use super::bodies::BodiesDigest;
use crate::model::ids::{Seqno, TransactionId, TransactionPlace, VbucketId};

/// The commit of a transaction whose mutations are not in the frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitMarker {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The last place of the transaction.
    pub place: TransactionPlace,
    /// The digest of everything that the stream has sent of it.
    pub digest: BodiesDigest,
    /// The seqnos of its mutations, by vbucket, ascending.
    pub ranges: Vec<CommitRange>,
}

/// The seqnos `(after, to]` of a vbucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitRange {
    /// The vbucket of the range.
    pub vbucket: VbucketId,
    /// The seqno before the range.
    pub after: Seqno,
    /// The last seqno of the range.
    pub to: Seqno,
}

/// The memory of one range, in bytes.
const RANGE_BYTES: usize = size_of::<CommitRange>();
/// Bytes of a marker besides its ranges.
const MARKER_BYTES: usize = 64;

impl CommitMarker {
    /// The range of a vbucket, if the commit has changed any of its documents.
    pub fn range_of(&self, vbucket: VbucketId) -> Option<CommitRange> {
        let at = self.ranges.binary_search_by_key(&vbucket, |range| range.vbucket);
        at.ok().map(|at| self.ranges[at])
    }

    /// The approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        MARKER_BYTES + self.ranges.len() * RANGE_BYTES
    }
}
