//! Commands about the copies of embedded buckets.

use serde::{Deserialize, Serialize};

use super::kind::{AuditClass, CommandKind, RequiredRights, SendingProcess};
use crate::model::copies::CopiesChange;
use crate::model::history::SourceHistory;
use crate::model::ids::{BucketId, Epoch, NodeId};
use crate::model::node::Role;
use crate::model::users::Privilege;

/// ALTER BUCKET … SET (copies = n): sets the number of copies of an embedded bucket. The leading
/// coordinator then makes or removes copies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetCopies {
    /// The bucket to change.
    pub bucket: BucketId,
    /// The number of copies.
    pub copies: u8,
}

impl CommandKind for SetCopies {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Definition);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Bucket(Privilege::Define, self.bucket)
    }
}

/// ALTER BUCKET … MOVE TO 'n': gives a projector a copy of an embedded bucket, and then makes
/// this copy the leading one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveBucket {
    /// The bucket that moves.
    pub bucket: BucketId,
    /// The projector that will lead the bucket.
    pub to: NodeId,
}

impl CommandKind for MoveBucket {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Move);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Bucket(Privilege::Rebalance, self.bucket)
    }
}

/// Changes a bucket's copies, if their revision is the expected one. The answer is
/// `Outcome::Copies` with the present copies, whether the change was made or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeCopies {
    /// The bucket whose copies change.
    pub bucket: BucketId,
    /// The expected `Copies::revision`. If the actual revision differs, the change is not made.
    pub revision: u64,
    /// The change of the copies.
    pub change: CopiesChange,
}

impl CommandKind for ChangeCopies {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Projector)
    }
}

/// Requests that a projector, after its start, may serve its vbuckets of an embedded bucket. If
/// its files lack mutations that the last epoch covers, the outcome is `Outcome::Lacks`. No other
/// node has these mutations, so the bucket is rolled back only after an operator has accepted the
/// loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenSource {
    /// The bucket to serve.
    pub bucket: BucketId,
    /// The projector that requests to serve.
    pub projector: NodeId,
    /// The history of the vbuckets in the projector's files.
    pub history: Box<SourceHistory>,
    /// The epoch of an earlier `Outcome::Lacks`, if an operator has accepted that loss.
    pub accepted: Option<Epoch>,
}

impl CommandKind for OpenSource {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Node(self.projector, Some(Role::Projector)))
    }
}
