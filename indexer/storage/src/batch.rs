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
    /// Markers of the epoch's commits whose mutations are stored in the late-commit store, in log
    /// order. The commit log lacks these mutations, so they are written into fragments before the
    /// epoch is logged.
    pub commits: Vec<CommitMarker>,
}

/// Packed key-versions of one vbucket; only the seqnos in `(after, to]` count.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Packed key-versions.
    pub body: Bytes,
    /// The seqno to which the seqnos in `body` are relative.
    pub base: Seqno,
    /// Mutations at or below this seqno belong to an earlier epoch.
    pub after: Seqno,
    /// Mutations above this seqno belong to a later epoch.
    pub to: Seqno,
}
