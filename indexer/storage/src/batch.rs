//! The mutations of one epoch, as the engine takes them.

use bytes::Bytes;
use proto::model::cut::EpochMark;
use proto::model::ids::Seqno;

/// All that one epoch changes on this node.
#[derive(Clone, Debug)]
pub struct EpochBatch {
    /// The epoch.
    pub mark: EpochMark,
    /// The mutations that belong to it, in the order of their seqnos within each vbucket.
    pub pieces: Vec<Piece>,
}

/// Packed key-versions of one vbucket, of which the seqnos in `(after, to]` count.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Packed key-versions.
    pub body: Bytes,
    /// What their seqnos are relative to.
    pub base: Seqno,
    /// Mutations up to here belong to an earlier epoch.
    pub after: Seqno,
    /// Mutations above here belong to a later epoch.
    pub to: Seqno,
}
