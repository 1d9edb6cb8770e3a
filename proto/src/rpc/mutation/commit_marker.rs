//! The commit of a large transaction in a stream that has already sent the transaction's changes
//! ([`UncommittedChanges`](super::TransactionBodies)). The stream then sends a *marker* in place
//! of the mutations.
//!
//! The mutations of the commit have seqnos like any others, and the frames cover them, but
//! without their key-versions. The marker is sent before the first of these frames. It contains
//! these seqnos, and what the node must have of the transaction: the place of its last change,
//! and the digest of the changes and rollbacks that the stream has sent.

use serde::{Deserialize, Serialize};

use super::bodies::ChangesDigest;
use crate::model::ids::{Seqno, TransactionId, TransactionPlace, VbucketId};

/// The commit of a transaction whose changes the stream has sent before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitMarker {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The place of the transaction's last change.
    pub place: TransactionPlace,
    /// The digest of all messages that the stream has sent about the transaction.
    pub digest: ChangesDigest,
    /// The seqnos of the transaction's mutations, in ascending order of their vbuckets.
    pub ranges: Vec<CommitRange>,
}

/// The range of seqnos `(after, to]` of one vbucket.
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
/// The memory of a marker without its ranges, in bytes.
const MARKER_BYTES: usize = 64;

impl CommitMarker {
    /// Returns the committed range of a vbucket; `None` if the commit has changed none of its
    /// documents.
    pub fn range_of(&self, vbucket: VbucketId) -> Option<CommitRange> {
        let at = self.ranges.binary_search_by_key(&vbucket, |range| range.vbucket);
        at.ok().map(|at| self.ranges[at])
    }

    /// Returns the approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        MARKER_BYTES + self.ranges.len() * RANGE_BYTES
    }
}
