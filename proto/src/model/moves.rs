//! Moves of slices from node to node: what the StateContext keeps of them, what is asked for, and what the
//! two ends tell each other.
//!
//! A move passes the stages of the index-manager design (`index rebalance`):
//!
//! | stage | what happens | who moves it on |
//! |---|---|---|
//! | `start` | it waits for its turn: each node takes part in a bounded number of moves | the leader |
//! | `pending` | the target copies the fragments of a copy, byte for byte | the leader, when the target says that it has them |
//! | `catchup` | the slice's mutations go to the target too; at an epoch that it has applied it takes what is missing up to that epoch, and shows the slice | the leader, when both ends have shown one checksum at one epoch |
//! | `done` | the topology names the target; the source can still be read | the leader, when no scan can ask for an epoch from before |
//!
//! Until `done` the source is what counts: whoever fails, the move is begun again where it stands, or undone,
//! and then nothing has changed.

use serde::{Deserialize, Serialize};

use crate::model::ids::{Epoch, Generation, IndexId, MoveId, NodeId, SliceNo};

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MoveStage {
    /// It waits for its turn.
    Start,
    /// Fragments are copied.
    Pending,
    /// The target takes part in the maintenance stream and comes to an epoch.
    Catchup,
    /// The topology has changed; the source's copy is kept for scans that began before.
    Done,
}

impl MoveStage {
    /// Its name in SHOW MOVES and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Pending => "pending",
            Self::Catchup => "catchup",
            Self::Done => "done",
        }
    }
}

/// A move of one slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceMove {
    /// Its number.
    pub id: MoveId,
    /// The slice.
    pub slice: SliceNo,
    /// The copy that goes; `None` where the target's is one more.
    pub from: Option<NodeId>,
    /// The node that gets a copy; `None` where one only goes, which is at once `done`.
    pub to: Option<NodeId>,
    /// How far it is.
    pub stage: MoveStage,
    /// The bucket's newest epoch when the stage began; for `pending` that is the rebalance timestamp.
    pub epoch: Epoch,
}

impl SliceMove {
    /// Is the node one of its ends?
    pub fn concerns(&self, node: NodeId) -> bool {
        self.from == Some(node) || self.to == Some(node)
    }

    /// Does it make the node get the slice's mutations?
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
    /// The index.
    pub index: IndexId,
    /// The move, in the stage that it was in.
    pub was: SliceMove,
    /// Why it was undone; `None` where it was carried out.
    pub undone: Option<String>,
}

/// A move to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedMove {
    /// The index.
    pub index: IndexId,
    /// Its generation.
    pub generation: Generation,
    /// The slice.
    pub slice: SliceNo,
    /// The copy that goes.
    pub from: Option<NodeId>,
    /// The node that gets a copy.
    pub to: Option<NodeId>,
    /// What it is good for, in words.
    pub reason: String,
}

/// What a rebalance is to come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebalanceRequest {
    /// Only this index; all without.
    pub index: Option<String>,
    /// Say what would be done, and do nothing.
    pub dry_run: bool,
}

/// What a rebalance does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebalancePlan {
    /// The moves, in their order.
    pub moves: Vec<PlannedMove>,
    /// What each node has before and would have afterwards.
    pub loads: Vec<PlannedLoad>,
}

/// What a node has before a rebalance and would have afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedLoad {
    /// The node.
    pub node: NodeId,
    /// Copies of slices before and after.
    pub copies: (u64, u64),
    /// Their bytes before and after.
    pub bytes: (u64, u64),
}

/// What the target of a move says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveProgress {
    /// The index.
    pub index: IndexId,
    /// The move.
    pub id: MoveId,
    /// How far the target is.
    pub phase: MovePhase,
    /// Bytes copied.
    pub bytes: u64,
    /// Bytes to copy in all, as far as is known.
    pub bytes_total: u64,
    /// Bytes copied in the last second or so.
    pub bytes_per_s: u64,
    /// What went wrong last; it is tried again.
    pub trouble: Option<String>,
}

/// How far the target of a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MovePhase {
    /// It copies.
    Copying,
    /// It has a copy as of the rebalance timestamp or later, and waits to take part in the stream.
    Copied,
    /// It shows the slice.
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
