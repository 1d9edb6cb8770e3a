//! The comparison of two copies: the leader plans it, and the driver carries it out.

use proto::model::ids::{Epoch, IndexId, MoveId, NodeId, SliceId};

/// Two copies to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyCheck {
    /// The index whose copies differ.
    pub index: IndexId,
    /// The move.
    pub id: MoveId,
    /// The slice whose copies differ.
    pub slice: SliceId,
    /// A node with a copy that the topology names.
    pub source: NodeId,
    /// The target of the move.
    pub target: NodeId,
    /// An epoch that both nodes can answer.
    pub epoch: Epoch,
    /// The size of the larger copy.
    pub bytes: u64,
}

/// A checksum, and the number of entries that it covers.
pub type Checksum = (u64, u64);
