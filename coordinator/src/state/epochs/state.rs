//! The epochs of all buckets (their stability timestamps).

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::cut::{Cut, EpochMark};
use proto::model::data_set::branch_of_partition;
use proto::model::history::FailoverLogs;
use proto::model::ids::{BucketId, Epoch, VbucketId};
use proto::model::rollback::DeadEpochs;
use proto::rpc::command::Promotion;
use serde::{Deserialize, Serialize};

use crate::state::capacity::limits::{MOMENTS_EACH_MIN, MOMENTS_MAX, POSITIONS_MAX};
use crate::state::clock::CommandNumbers;
use crate::state::consequence::Consequence;
use crate::state::epochs::epoch_moments::{EpochMoments, MOMENTS_EACH_MAX};
use crate::state::epochs::history::{EPOCHS_MIN, EpochHistory};

/// The limit of epochs that a bucket keeps: more than a minute of epochs.
const EPOCHS_MAX: usize = 4096;

/// The epochs (stability timestamps) of all buckets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::state) struct EpochsState(BTreeMap<BucketId, BucketEpochs>);

/// The epochs (stability timestamps) of a bucket, and the history of its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::state) struct BucketEpochs {
    pub(in crate::state) history: EpochHistory,
    /// The failover logs that the source reported last; empty before its first report.
    pub(in crate::state) logs: Arc<FailoverLogs>,
    /// The log positions at which the epochs were published.
    pub(in crate::state) moments: EpochMoments,
    /// The epoch up to which `--skip-epochs` will make all epochs dead; `None` once the rollback
    /// has reached the stage that does so.
    pub(in crate::state) skips_to: Option<Epoch>,
}

impl EpochsState {
    pub(in crate::state) fn get(&self, bucket: BucketId) -> Option<&BucketEpochs> {
        self.0.get(&bucket)
    }

    pub(in crate::state) fn all(&self) -> &BTreeMap<BucketId, BucketEpochs> {
        &self.0
    }

    /// The newest epoch of a bucket.
    pub(in crate::state) fn newest(&self, bucket: BucketId) -> Option<Epoch> {
        self.0.get(&bucket).map(|known| known.history.last().epoch)
    }

    /// Returns the limit of epochs per bucket for the present number of vbuckets.
    fn epochs_max(&self) -> usize {
        let vbuckets = |known: &BucketEpochs| usize::from(known.history.last().cut.vbuckets());
        let vbuckets: usize = self.0.values().map(vbuckets).sum();
        (POSITIONS_MAX / vbuckets.max(1)).clamp(EPOCHS_MIN, EPOCHS_MAX)
    }

    /// Returns the limit of moments per bucket for the present number of buckets.
    fn moments_each_max(&self) -> usize {
        (MOMENTS_MAX / self.0.len().max(1)).clamp(MOMENTS_EACH_MIN, MOMENTS_EACH_MAX)
    }

    /// Publishes the next epoch of each bucket whose promotion advances a position. Returns the
    /// marks of the new epochs.
    pub(super) fn promote<'p>(
        &mut self,
        promotions: impl IntoIterator<Item = &'p Promotion>,
        now: CommandNumbers,
    ) -> Vec<EpochMark> {
        // One command may promote thousands of buckets, so their number is counted once.
        let (epochs_max, each_max) = (self.epochs_max(), self.moments_each_max());
        let mut marks = Vec::new();
        for promotion in promotions {
            // The bucket may have been dropped meanwhile.
            let Some(known) = self.0.get_mut(&promotion.bucket) else { continue };
            let promoted = known.history.promote(promotion, now.steady_ms, epochs_max);
            let Some(mark) = promoted.cloned() else { continue };
            known.moments.publish(mark.epoch, now.position, known.history.oldest());
            known.moments.thin(each_max);
            marks.push(mark);
        }
        marks
    }

    /// Records new branches of the history of a bucket's source.
    pub(super) fn adopt(&mut self, bucket: BucketId, logs: &Arc<FailoverLogs>) {
        if let Some(known) = self.0.get_mut(&bucket) {
            known.logs = Arc::clone(logs);
        }
    }

    /// Makes a range of epochs dead, and publishes the next epoch, which contains the surviving
    /// mutations.
    pub(super) fn roll_back(
        &mut self,
        bucket: BucketId,
        (dead, survived): (&DeadEpochs, Arc<Cut>),
        now: CommandNumbers,
    ) -> Option<EpochMark> {
        let known = self.0.get_mut(&bucket)?;
        let mark = known.history.roll_back(dead, survived, now.steady_ms);
        known.moments = EpochMoments::new(mark.epoch, now.position);
        known.skips_to = None;
        Some(mark)
    }

    /// Lets the next rollback of a bucket make all epochs up to `to` dead.
    pub(super) fn set_skips_to(&mut self, bucket: BucketId, to: Epoch) {
        if let Some(known) = self.0.get_mut(&bucket) {
            known.skips_to = Some(to);
        }
    }

    #[cfg(test)]
    pub(in crate::state) fn all_mut(&mut self) -> &mut BTreeMap<BucketId, BucketEpochs> {
        &mut self.0
    }

    /// Applies a consequence to the epochs. Returns the epoch that is published by it, if any.
    pub(in crate::state) fn on(
        &mut self,
        consequence: &Consequence,
        now: CommandNumbers,
    ) -> Option<EpochMark> {
        match consequence {
            Consequence::BucketMade { info, .. } => {
                let history = EpochHistory::new(info.id, info.vbuckets, now.steady_ms);
                let first = history.last().clone();
                let moments = EpochMoments::new(first.epoch, now.position);
                let known = BucketEpochs { history, logs: Arc::default(), moments, skips_to: None };
                self.0.insert(info.id, known);
                self.drop_surplus_epochs();
                return Some(first);
            }
            Consequence::BucketDropped(bucket) => drop(self.0.remove(bucket)),
            Consequence::HistoryAdopted { bucket, logs }
            | Consequence::RollbackBegun { bucket, logs: Some(logs), .. } => {
                self.adopt(*bucket, logs);
            }
            Consequence::VersionLoaded { bucket, ends } => {
                let vbuckets = self.0.get(bucket)?.history.last().cut.vbuckets();
                let branch = |partition| vec![(branch_of_partition(*bucket, partition), 0)];
                let branches = (0..vbuckets).map(VbucketId).map(branch).collect();
                self.adopt(*bucket, &Arc::new(FailoverLogs::new(branches)));
                let (changes, horizon) = (ends.clone(), Epoch(1));
                let promotion = Promotion { bucket: *bucket, changes, horizon };
                return self.promote([&promotion], now).pop();
            }
            _ => {}
        }
        None
    }

    /// Drops old epochs and moments of all buckets, so that those of a new bucket fit.
    fn drop_surplus_epochs(&mut self) {
        let (epochs_max, each_max) = (self.epochs_max(), self.moments_each_max());
        for known in self.0.values_mut() {
            known.history.thin(epochs_max);
            known.moments.thin(each_max);
        }
    }
}
