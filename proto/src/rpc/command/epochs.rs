//! Commands about stability timestamps and rollbacks.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, Process};
use crate::model::cut::Position;
use crate::model::ids::{BucketId, Epoch, VbucketId};
use crate::model::rollback::RollbackStep;

/// The new stability timestamps of one tick, one for each bucket that changed. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromoteEpochs {
    /// The new timestamps.
    pub promotions: Vec<Promotion>,
    /// Sets of buckets whose commits include each other: the timestamps of a set's buckets are all
    /// accepted or all refused.
    pub joined: Vec<Vec<BucketId>>,
}

impl CommandKind for PromoteEpochs {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }
}

/// The first or the next step of a bucket's rollback. Sent by the leader; a step that does not
/// follow the current stage has no effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rollback {
    /// The bucket to roll back.
    pub bucket: BucketId,
    /// The step to take.
    pub step: RollbackStep,
}

impl CommandKind for Rollback {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }
}

/// `--skip-epochs`: repairs a coordinator that was restored from an older copy, so that other
/// processes know numbers that its log would assign again. All epochs, revisions and numbers of new
/// objects continue above every known number, and all slices are rebuilt
/// ([`crate::model::rollback`]). The leader adds the newest numbers that the nodes report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkipEpochs;

impl CommandKind for SkipEpochs {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Coordinator)
    }
}

/// A new stability timestamp of one bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promotion {
    /// The bucket of the timestamp.
    pub bucket: BucketId,
    /// The new position of each vbucket that has changed since the bucket's last epoch.
    pub changes: Vec<(VbucketId, Position)>,
    /// The new horizon: scans below this epoch are refused from now on.
    pub horizon: Epoch,
}
