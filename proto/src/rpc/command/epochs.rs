//! Stability timestamps and rollbacks.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, Process};
use crate::model::cut::Position;
use crate::model::ids::{BucketId, Epoch, VbucketId};
use crate::model::rollback::RollbackStep;

/// One tick of stability timestamps, for all buckets that changed. From the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromoteEpochs {
    /// The timestamps.
    pub promotions: Vec<Promotion>,
    /// Sets of buckets with commits in common: either each bucket of a set gets its timestamp, or none.
    pub joined: Vec<Vec<BucketId>>,
}

impl CommandKind for PromoteEpochs {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }
}

/// The next step of a bucket's rollback, or the first. From the leader; a step that does not follow the
/// stage at hand changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rollback {
    /// The bucket that is promoted.
    pub bucket: BucketId,
    /// The operation.
    pub step: RollbackStep,
}

impl CommandKind for Rollback {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }
}

/// `--skip-epochs`: the coordinator was restored from an older copy, so other processes know numbers that this log will
/// give again. All epochs, revisions and numbers of new objects continue above everything known, and all slices are
/// rebuilt ([`crate::model::rollback`]). The leader adds the newest numbers that are known.
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
    /// The bucket whose horizon moves.
    pub bucket: BucketId,
    /// The positions that changed since the bucket's last epoch.
    pub changes: Vec<(VbucketId, Position)>,
    /// The new horizon: no scan reads an epoch below it any more.
    pub horizon: Epoch,
}
