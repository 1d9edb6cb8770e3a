//! The comparison of two copies of a slice: the leader plans it, and the driver carries it out.

use proto::model::ids::{Epoch, IndexId, MoveId, NodeId, SliceId};

/// Two copies to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyCheck {
    /// The index of the copies.
    pub index: IndexId,
    /// The move that requires the comparison.
    pub id: MoveId,
    /// The slice of the copies.
    pub slice: SliceId,
    /// A node with a copy that the topology names.
    pub source: NodeId,
    /// The target of the move.
    pub target: NodeId,
    /// An epoch at which both nodes can be read.
    pub epoch: Epoch,
    /// The size of the larger copy, in bytes.
    pub bytes: u64,
}

/// A checksum, and the number of entries that it covers.
pub type Checksum = (u64, u64);
