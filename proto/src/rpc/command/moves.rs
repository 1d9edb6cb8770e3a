//! Commands about moves of slices and hand-overs of vbuckets.

use serde::{Deserialize, Serialize};

use super::kind::{AuditClass, CommandKind, RequiredRights, SendingProcess};
use crate::model::ids::{BucketId, IndexId, MoveId, NodeId, VbucketId};
use crate::model::moves::{MoveStage, PlannedMove};
use crate::model::users::Privilege;

/// Starts moves of slices. Each begins in stage `start`, or in `done` if it only removes a copy.
/// Moves that have become impossible are omitted; if all are impossible, the command is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartMoves {
    /// The moves to start.
    pub moves: Vec<PlannedMove>,
}

impl CommandKind for StartMoves {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Move);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Indexes(
            Privilege::Rebalance,
            self.moves.iter().map(|planned| planned.index).collect(),
        )
    }
}

/// Begins the next stage of a move: `start` → `pending` → `catchup` → `done`. The change to
/// `done` changes the topology. Sent by the leader. If the move is not in the previous stage, the
/// command has no effect.
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
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Leader)
    }
}

/// Ends a move. A move that is `done` is removed from the record; any other move is undone. Sent
/// by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndMove {
    /// The index whose move ends.
    pub index: IndexId,
    /// The number of the move.
    pub id: MoveId,
    /// The reason for undoing the move; `None` only if the move is `done`.
    pub undone: Option<String>,
}

impl CommandKind for EndMove {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Leader)
    }
}

/// CANCEL REBALANCE: undoes the moves of one index, or of all, that are not yet `done`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelMoves {
    /// The index whose moves are undone; `None` for all indexes.
    pub index: Option<IndexId>,
}

impl CommandKind for CancelMoves {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Move);

    fn required_rights(&self) -> RequiredRights {
        match self.index {
            Some(index) => RequiredRights::index(Privilege::Rebalance, index),
            None => RequiredRights::All(Privilege::Rebalance),
        }
    }
}

/// ALTER BUCKET … MOVE VBUCKET …: begins to transfer vbuckets of a pushed bucket to a projector.
/// Vbuckets that the projector owns already are skipped. Refused if one of the vbuckets is being
/// transferred to another projector.
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
    const AUDITED: Option<AuditClass> = Some(AuditClass::Move);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Bucket(Privilege::Rebalance, self.bucket)
    }
}

/// Ends a hand-over: the target has all mutations of the vbucket and becomes its owner. Sent by
/// the target. Refused if the hand-over was cancelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishHandOver {
    /// The bucket of the vbucket.
    pub bucket: BucketId,
    /// The number of the hand-over
    /// ([`HandOver::number`](crate::model::assignment::HandOver::number)).
    pub number: u64,
}

impl CommandKind for FinishHandOver {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Projector)
    }
}

/// ALTER BUCKET … CANCEL MOVES: cancels all transfers of a bucket's vbuckets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelHandOver {
    /// The bucket of the vbuckets.
    pub bucket: BucketId,
}

impl CommandKind for CancelHandOver {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Move);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Bucket(Privilege::Rebalance, self.bucket)
    }
}
