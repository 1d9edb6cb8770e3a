//! Commands about moves of slices and hand-overs of vbuckets.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, Process};
use crate::model::ids::{BucketId, IndexId, MoveId, NodeId, VbucketId};
use crate::model::moves::{MoveStage, PlannedMove};
use crate::model::users::Privilege;

/// Starts moves of slices, each in stage `start`, or in `done` if it only removes a copy. Moves
/// that have become impossible are left out; the command is refused if all are impossible.
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

/// Begins the next stage of a move: `start` → `pending` → `catchup` → `done`; the last one changes
/// the topology. Sent by the leader; without effect if the move is not in the previous stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdvanceMove {
    /// The index whose slice moves.
    pub index: IndexId,
    /// The number of the move.
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

/// Ends a move: a move that is `done` is forgotten, any other is undone. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndMove {
    /// The index whose move ends.
    pub index: IndexId,
    /// The number of the move.
    pub id: MoveId,
    /// The reason for undoing the move; `None` only for a move that is `done`.
    pub undone: Option<String>,
}

impl CommandKind for EndMove {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }
}

/// CANCEL REBALANCE: undoes the moves of one index, or of all, that are not yet `done`.
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

/// ALTER BUCKET … MOVE VBUCKET …: begins to transfer vbuckets of a pushed bucket to a projector.
/// Vbuckets that the projector owns already are left out. Refused if a vbucket is being transferred
/// to another projector.
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

/// The end of a hand-over: the target has all mutations of the vbucket and becomes the owner. Sent
/// by the target; refused if the hand-over was cancelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandedOver {
    /// The bucket of the vbuckets.
    pub bucket: BucketId,
    /// The number of the hand-over
    /// ([`HandOver::number`](crate::model::assignment::HandOver::number)).
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
