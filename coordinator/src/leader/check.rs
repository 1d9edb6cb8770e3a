//! The comparison of two copies, which the leader orders and its driver makes.

use proto::model::ids::{Epoch, IndexId, MoveId, NodeId, SliceId};

/// Two copies to be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The index.
    pub index: IndexId,
    /// The move.
    pub id: MoveId,
    /// The slice.
    pub slice: SliceId,
    /// A node with a copy that counts.
    pub source: NodeId,
    /// The target of the move.
    pub target: NodeId,
    /// An epoch that both can answer.
    pub epoch: Epoch,
    /// How large the larger copy is.
    pub bytes: u64,
}

/// A checksum and how many entries it is of.
pub type Checksum = (u64, u64);
