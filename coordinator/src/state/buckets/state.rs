//! The records of buckets.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::assignment::VbucketAssignment;
use proto::model::bucket::BucketInfo;
use proto::model::identity::UniqueId;
use proto::model::ids::{BucketId, Epoch};
use proto::model::rollback::{DEAD_MAX, DeadEpochs, Rollback, RollbackStage};
use serde::{Deserialize, Serialize};

use crate::state::capacity::limits::DROPPED_BUCKETS_MAX;
use crate::state::consequence::Consequence;

/// The records of buckets. Ids are never reused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::state) struct BucketsState {
    /// The last id that was assigned.
    last: u64,
    infos: BTreeMap<BucketId, Arc<BucketInfo>>,
    /// The random id of each bucket.
    unique: BTreeMap<BucketId, UniqueId>,
    /// The last dropped buckets, the newest last. Projectors remove their documents.
    dropped: Vec<(BucketId, UniqueId)>,
}

impl BucketsState {
    pub(in crate::state) fn get(&self, id: BucketId) -> Option<&Arc<BucketInfo>> {
        self.infos.get(&id)
    }

    pub(in crate::state) fn all(&self) -> &BTreeMap<BucketId, Arc<BucketInfo>> {
        &self.infos
    }

    pub(in crate::state) fn unique_ids(&self) -> &BTreeMap<BucketId, UniqueId> {
        &self.unique
    }

    pub(in crate::state) fn dropped(&self) -> &[(BucketId, UniqueId)] {
        &self.dropped
    }

    pub(in crate::state) fn last(&self) -> BucketId {
        BucketId(self.last)
    }

    /// The id of the next bucket.
    pub(in crate::state) fn next(&self) -> BucketId {
        BucketId(self.last + 1)
    }

    /// Returns the name of a bucket; empty for an unknown bucket.
    pub(in crate::state) fn name(&self, id: BucketId) -> &str {
        self.infos.get(&id).map_or("", |info| &info.name)
    }

    /// Finds a bucket by name, including the buckets of versions.
    pub(in crate::state) fn named(&self, name: &str) -> Option<BucketId> {
        self.infos.values().find(|info| info.name == name).map(|info| info.id)
    }

    /// Returns the random id of a bucket.
    pub(in crate::state) fn unique_id(&self, id: BucketId) -> UniqueId {
        self.unique.get(&id).copied().unwrap_or_default()
    }

    pub(in crate::state) fn is_rolling_back(&self, id: BucketId) -> bool {
        self.infos.get(&id).is_some_and(|info| info.rollback.is_some())
    }

    #[cfg(test)]
    pub(in crate::state) fn all_mut(&mut self) -> &mut BTreeMap<BucketId, Arc<BucketInfo>> {
        &mut self.infos
    }

    pub(in crate::state) fn on(&mut self, consequence: &Consequence) {
        match consequence {
            Consequence::BucketMade { info, unique, .. } => {
                self.last = info.id.0;
                self.infos.insert(info.id, Arc::clone(info));
                self.unique.insert(info.id, *unique);
            }
            Consequence::BucketDropped(bucket) => self.drop_bucket(*bucket),
            Consequence::Assigned { bucket, assignment } => self.assign(*bucket, assignment),
            Consequence::RollbackBegun { bucket, failover, .. } => {
                let rollback = Rollback {
                    stage: RollbackStage::Started,
                    failover: failover.clone(),
                    point: Epoch(0),
                    restart: None,
                    resumes: None,
                };
                self.roll_back(*bucket, Some(rollback), None);
            }
            Consequence::RollbackChanged { bucket, rollback, dead } => {
                self.roll_back(*bucket, rollback.clone(), dead.clone());
            }
            Consequence::NumbersSkipped(above) => self.last = *above,
            _ => {}
        }
    }

    fn drop_bucket(&mut self, bucket: BucketId) {
        if self.infos.remove(&bucket).is_none() {
            return;
        }
        self.dropped.push((bucket, self.unique.remove(&bucket).unwrap_or_default()));
        let too_many = self.dropped.len().saturating_sub(DROPPED_BUCKETS_MAX);
        self.dropped.drain(..too_many);
    }

    fn assign(&mut self, bucket: BucketId, assignment: &VbucketAssignment) {
        if let Some(info) = self.infos.get_mut(&bucket) {
            Arc::make_mut(info).assignment = Arc::new(assignment.clone());
        }
    }

    fn roll_back(
        &mut self,
        bucket: BucketId,
        rollback: Option<Rollback>,
        dead: Option<DeadEpochs>,
    ) {
        let Some(info) = self.infos.get_mut(&bucket).map(Arc::make_mut) else { return };
        info.rollback = rollback.map(Arc::new);
        if let Some(dead) = dead {
            let ranges = Arc::make_mut(&mut info.dead);
            // A rollback to an older point includes the ranges of earlier rollbacks above that point.
            ranges.retain(|earlier| earlier.to <= dead.below_range());
            ranges.push(dead);
            let surplus = ranges.len().saturating_sub(DEAD_MAX);
            ranges.drain(..surplus);
        }
    }
}
