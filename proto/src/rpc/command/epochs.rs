//! Commands about stability timestamps and rollbacks.

use serde::{Deserialize, Serialize};

use super::kind::{AuditClass, CommandKind, RequiredRights, SendingProcess};
use crate::model::cut::Position;
use crate::model::ids::{BucketId, Epoch, VbucketId};
use crate::model::rollback::RollbackStep;

/// Publishes the new stability timestamps of one tick, one for each bucket that has changed. Sent
/// by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromoteEpochs {
    /// The new timestamps.
    pub promotions: Vec<Promotion>,
    /// Sets of buckets with common commits. The timestamps of the buckets in a set are all
    /// accepted or all refused.
    pub joined: Vec<Vec<BucketId>>,
}

impl CommandKind for PromoteEpochs {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Leader)
    }
}

/// Takes the first or the next step of a bucket's rollback. Sent by the leader. A step that does
/// not follow the current stage has no effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rollback {
    /// The bucket to roll back.
    pub bucket: BucketId,
    /// The step to take.
    pub step: RollbackStep,
}

impl CommandKind for Rollback {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Leader)
    }
}

/// `--skip-epochs`: repairs a coordinator that was restored from an older copy. Other processes
/// then know numbers that the coordinator would assign again. After this command all epochs,
/// revisions and numbers of new objects are above every known number, and all slices are rebuilt
/// ([`crate::model::rollback`]). The leader adds the newest numbers that the nodes report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkipEpochs;

impl CommandKind for SkipEpochs {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Coordinator)
    }
}

/// The new stability timestamp of one bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promotion {
    /// The bucket of the timestamp.
    pub bucket: BucketId,
    /// The new positions, of the vbuckets that have changed since the bucket's last epoch.
    pub changes: Vec<(VbucketId, Position)>,
    /// The new horizon. From now on, scans of older epochs are refused.
    pub horizon: Epoch,
}
