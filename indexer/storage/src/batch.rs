//! The mutations of one epoch.

use bytes::Bytes;
use proto::model::cut::EpochMark;
use proto::model::ids::Seqno;
use proto::rpc::mutation::CommitMarker;

/// All changes of one epoch on this node, as they are applied and logged.
#[derive(Clone, Debug)]
pub struct EpochBatch {
    /// The epoch.
    pub mark: EpochMark,
    /// The mutations of the epoch, in the order of their seqnos within each vbucket.
    pub pieces: Vec<VbucketMutations>,
    /// Markers of the epoch's commits whose mutations are stored in the late-commit store, in log
    /// order. The commit log does not contain these mutations, so they are written into fragments
    /// before the epoch is logged.
    pub commits: Vec<CommitMarker>,
}

/// Packed key-versions of one vbucket. Only the mutations with a seqno above `after` and up to
/// `to` belong to the epoch.
#[derive(Clone, Debug)]
pub struct VbucketMutations {
    /// Packed key-versions.
    pub body: Bytes,
    /// The seqno to which the seqnos in `body` are relative.
    pub base: Seqno,
    /// Mutations at or below this seqno do not belong to the epoch, but to an earlier one.
    pub after: Seqno,
    /// Mutations above this seqno do not belong to the epoch, but to a later one.
    pub to: Seqno,
}
