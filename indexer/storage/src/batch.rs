//! The mutations of one epoch.

use bytes::Bytes;
use proto::model::cut::EpochMark;
use proto::model::ids::Seqno;
use proto::rpc::mutation::CommitMarker;

/// All changes of one epoch on this node.
#[derive(Clone, Debug)]
pub struct EpochBatch {
    /// The epoch.
    pub mark: EpochMark,
    /// The mutations of the epoch, in the order of their seqnos within each vbucket.
    pub pieces: Vec<Piece>,
    /// The commits of the epoch whose mutations are in the late-commit store instead, in the order of the log. The commit log does not
    /// have them: before the epoch is logged, the fragments have what they have changed.
    pub commits: Vec<CommitMarker>,
}

/// Packed key-versions of one vbucket; only the seqnos in `(after, to]` count.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Packed key-versions.
    pub body: Bytes,
    /// Base that the seqnos in `body` are relative to.
    pub base: Seqno,
    /// Mutations at or below this seqno belong to an earlier epoch.
    pub after: Seqno,
    /// Mutations above this seqno belong to a later epoch.
    pub to: Seqno,
}
