//! Moves of slices, and hand-overs of vbuckets.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, Process};
use crate::model::ids::{BucketId, IndexId, MoveId, NodeId, VbucketId};
use crate::model::moves::{MoveStage, PlannedMove};
use crate::model::users::Privilege;

/// Starts moves of slices, each at `start` (or at once `done`, where a copy is only removed). Moves that are no longer
/// possible are left out; the command is refused only if none is left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartMoves {
    /// The moves to start.
    pub moves: Vec<PlannedMove>,
}

impl CommandKind for StartMoves {
    const AUDITED: Option<Audited> = Some(Audited::Move);

    fn need(&self) -> Need {
        Need::Indexes(
            Privilege::Rebalance,
            self.moves.iter().map(|planned| planned.index).collect(),
        )
    }
}

/// The next stage of a move: `start` → `pending` → `catchup` → `done`, which changes the topology.
/// From the leader; nothing happens if the move is not in the stage before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdvanceMove {
    /// The index whose slice moves.
    pub index: IndexId,
    /// The move.
    pub id: MoveId,
    /// The stage that begins.
    pub stage: MoveStage,
}

impl CommandKind for AdvanceMove {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }
}

/// A move ends: from `done` it is forgotten, from any other stage it is undone. From the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndMove {
    /// The index whose move ends.
    pub index: IndexId,
    /// The move.
    pub id: MoveId,
    /// The reason why the move is undone; `None` ends a move that is `done`, and no other.
    pub undone: Option<String>,
}

impl CommandKind for EndMove {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }
}

/// CANCEL REBALANCE: undoes the moves that are not `done`, of one index or of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelMoves {
    /// The index; `None` for all.
    pub index: Option<IndexId>,
}

impl CommandKind for CancelMoves {
    const AUDITED: Option<Audited> = Some(Audited::Move);

    fn need(&self) -> Need {
        match self.index {
            Some(index) => Need::index(Privilege::Rebalance, index),
            None => Need::All(Privilege::Rebalance),
        }
    }
}

/// ALTER BUCKET … MOVE VBUCKET …: transfers vbuckets of a pushed bucket to a projector. Vbuckets that it owns already are
/// left out; a vbucket that is being transferred elsewhere is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandOver {
    /// The bucket of the vbuckets.
    pub bucket: BucketId,
    /// The vbuckets to hand over.
    pub vbuckets: Vec<VbucketId>,
    /// The projector that receives them.
    pub to: NodeId,
}

impl CommandKind for HandOver {
    const AUDITED: Option<Audited> = Some(Audited::Move);

    fn need(&self) -> Need {
        Need::Bucket(Privilege::Rebalance, self.bucket)
    }
}

/// The target of a hand-over has the whole vbucket and becomes its owner. Sent by the target; refused if the hand-over was
/// cancelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandedOver {
    /// The bucket of the vbuckets.
    pub bucket: BucketId,
    /// [`HandOver::number`](crate::model::assignment::HandOver::number).
    pub number: u64,
}

impl CommandKind for HandedOver {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Projector)
    }
}

/// ALTER BUCKET … CANCEL MOVES: cancels all transfers of a bucket's vbuckets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelHandOver {
    /// The bucket of the vbuckets.
    pub bucket: BucketId,
}

impl CommandKind for CancelHandOver {
    const AUDITED: Option<Audited> = Some(Audited::Move);

    fn need(&self) -> Need {
        Need::Bucket(Privilege::Rebalance, self.bucket)
    }
}
