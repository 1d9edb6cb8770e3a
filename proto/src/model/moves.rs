//! Moves of slices between nodes: their records, plans, and progress reports.
//!
//! A move passes these stages:
//!
//! | stage | meaning | the leader ends the stage when |
//! |---|---|---|
//! | `start` | the move waits, because the number of moves at each node is bounded | both nodes may begin another move |
//! | `pending` | the target copies the slice's blocks from the fragments of an existing copy | the target reports that it has them |
//! | `catchup` | the target receives the slice's mutations too; between two epochs it fetches the changes up to the epoch that it has applied, and then serves the slice | both nodes report equal checksums at one epoch |
//! | `done` | the topology names the target; the source can still be read | no scan can read an epoch from before |
//!
//! Until `done` the source has the authoritative copy. After a failure of either node, the move
//! continues from its stage, or it is undone without an effect.

use serde::{Deserialize, Serialize};

use crate::model::ids::{Epoch, Generation, IndexId, LocalIndexId, MoveId, NodeId, SliceNo};

/// The stage of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MoveStage {
    /// The move waits until both nodes may begin another move.
    Start,
    /// The target copies fragments.
    Pending,
    /// The target receives the maintenance stream and catches up to an epoch.
    Catchup,
    /// The topology has changed. The source keeps its copy for scans that began before.
    Done,
}

impl MoveStage {
    /// Returns the name of the stage in SHOW MOVES and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Pending => "pending",
            Self::Catchup => "catchup",
            Self::Done => "done",
        }
    }
}

/// A move of one slice from one node to another, or the addition or removal of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceMove {
    /// The number of the move.
    pub id: MoveId,
    /// The slice that moves.
    pub slice: SliceNo,
    /// The node whose copy is removed; `None` if the move adds a copy.
    pub from: Option<NodeId>,
    /// The node that receives a copy. `None` if the move only removes a copy; it is then `done`
    /// immediately.
    pub to: Option<NodeId>,
    /// The current stage.
    pub stage: MoveStage,
    /// The bucket's newest epoch at the beginning of the stage. In `pending`, operators know it
    /// as the rebalance timestamp.
    pub epoch: Epoch,
}

impl SliceMove {
    /// Returns true if the node is the source or the target.
    pub fn concerns(&self, node: NodeId) -> bool {
        self.from == Some(node) || self.to == Some(node)
    }

    /// Returns true if the node must receive the slice's mutations because of this move.
    pub fn feeds(&self, node: NodeId) -> bool {
        match self.stage {
            MoveStage::Start | MoveStage::Pending => false,
            MoveStage::Catchup => self.to == Some(node),
            MoveStage::Done => self.from == Some(node),
        }
    }
}

/// A move that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedMove {
    /// The index whose slices move.
    pub index: IndexId,
    /// The move as it was in its last stage.
    pub was: SliceMove,
    /// The reason why the move was undone; `None` if it was completed.
    pub undone: Option<String>,
}

/// A move that the planner proposes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedMove {
    /// The index that the slice belongs to.
    pub index: IndexId,
    /// The generation that the slice belongs to.
    pub generation: Generation,
    /// The slice that moves.
    pub slice: SliceNo,
    /// The node whose copy is removed, if any.
    pub from: Option<NodeId>,
    /// The node that receives a copy, if any.
    pub to: Option<NodeId>,
    /// The reason for the move, as text for the operator.
    pub reason: String,
}

/// A request for a rebalance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebalanceRequest {
    /// The only index to move; `None` moves slices of all indexes.
    pub index: Option<IndexId>,
    /// True if the plan is only returned, and not carried out.
    pub dry_run: bool,
}

/// The plan of a rebalance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebalancePlan {
    /// The moves, in their order.
    pub moves: Vec<PlannedMove>,
    /// The load of each node before and after the plan.
    pub loads: Vec<PlannedLoad>,
}

/// The load of a node before and after a planned rebalance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedLoad {
    /// The node whose load this is.
    pub node: NodeId,
    /// Number of copies of slices, before and after the plan.
    pub copies: (u64, u64),
    /// Bytes of the slices, before and after the plan.
    pub bytes: (u64, u64),
}

/// The progress of a move, as its target reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveProgress {
    /// The index and its generation.
    pub index: LocalIndexId,
    /// The number of the move.
    pub id: MoveId,
    /// The present activity of the target.
    pub phase: MovePhase,
    /// The number of bytes copied so far.
    pub bytes: u64,
    /// Number of bytes to copy, according to the source's last description.
    pub bytes_total: u64,
    /// The number of bytes copied in about the last second.
    pub bytes_per_s: u64,
    /// The last error of the target, which repeats the attempt.
    pub trouble: Option<String>,
}

/// The phase of the target of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MovePhase {
    /// The target copies files.
    Copying,
    /// The target has a copy as of the rebalance timestamp or later. It waits until its stream
    /// carries the slice's mutations.
    Copied,
    /// The target serves the slice.
    Installed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_go_to_the_target_while_it_catches_up_and_to_the_source_while_it_is_read() {
        let at = |stage| SliceMove {
            id: MoveId(1),
            slice: SliceNo(0),
            from: Some(NodeId(1)),
            to: Some(NodeId(2)),
            stage,
            epoch: Epoch(9),
        };
        let fed = |stage| [NodeId(1), NodeId(2)].map(|node| at(stage).feeds(node));
        assert_eq!(fed(MoveStage::Start), [false, false], "the topology feeds the source");
        assert_eq!(fed(MoveStage::Pending), [false, false]);
        assert_eq!(fed(MoveStage::Catchup), [false, true]);
        assert_eq!(fed(MoveStage::Done), [true, false], "the topology feeds the target");
    }
}
