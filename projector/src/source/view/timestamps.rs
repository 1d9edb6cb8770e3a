//! The stability timestamps of a bucket that a stream or a transaction may still read.

use std::sync::Arc;

use proto::model::assignment::VbucketSet;
use proto::model::bucket::BucketInfo;
use proto::model::cut::{Cut, EpochMark};
use proto::model::ids::Epoch;

use super::backlog;
use super::bucket::{Bucket, SourceState};

/// The limit of retained timestamps, whatever the age of the horizon: equal to the coordinator's
/// limit, which is more than a minute of timestamps.
const EPOCHS_MAX: usize = 4096;
/// The limit of positions in the retained timestamps: 16 MiB.
const EPOCH_POSITIONS_MAX: usize = 1 << 20;
/// The number of timestamps that are retained for any number of vbuckets: five seconds of
/// timestamps.
const EPOCHS_MIN: usize = 256;

impl Bucket {
    /// Adds a stability timestamp, unless it was added before. Drops timestamps that a rollback has
    /// removed, thins those below the horizon, and drops the oldest above a limit. A stream that
    /// begins before the retained timestamps misses some; its reader detects that from the parent
    /// of the next one. Returns false if the bucket is retired: another object may have replaced
    /// it.
    pub fn add_epoch(&self, mark: EpochMark) -> bool {
        let mut state = self.state();
        if state.serving.is_retired() {
            return false;
        }
        if state.epochs.back().is_some_and(|newest| newest.epoch >= mark.epoch) {
            return true;
        }
        while state.epochs.back().is_some_and(|newest| newest.epoch > mark.parent) {
            state.epochs.pop_back();
        }
        let horizon = mark.horizon;
        let vbuckets = usize::from(self.info.vbuckets).max(1);
        let epochs_max = (EPOCH_POSITIONS_MAX / vbuckets).clamp(EPOCHS_MIN, EPOCHS_MAX);
        let SourceState { epochs, unpublished, durable, .. } = &mut *state;
        unpublished.publish(&mark.cut, durable);
        epochs.push_back(mark);
        backlog::forget(epochs, horizon, epochs_max);
        drop(state);
        self.wake();
        true
    }

    /// Drops the stability timestamps that a rollback in the catalog has undone. The timestamp that follows the rollback would drop them
    /// too, but it may be thinned before this projector receives it.
    pub fn drop_dead_epochs(&self, info: &BucketInfo) {
        let mut state = self.state();
        let before = state.epochs.len();
        state.epochs.retain(|mark| !info.is_dead(mark.epoch));
        let has_dropped = state.epochs.len() < before;
        drop(state);
        if has_dropped {
            self.wake();
        }
    }

    /// The stability timestamps after an epoch, ascending.
    pub fn epochs_after(&self, epoch: Epoch) -> Vec<EpochMark> {
        let state = self.state();
        let from = state.epochs.partition_point(|mark| mark.epoch <= epoch);
        state.epochs.iter().skip(from).cloned().collect()
    }

    /// Returns the cut up to which a reader of some vbuckets reads the log next; `None` if no
    /// timestamp is ahead of the reader.
    pub fn next_goal(&self, vbuckets: &VbucketSet, at: &Cut) -> Option<Arc<Cut>> {
        backlog::next_goal(&self.state().epochs, vbuckets, at).map(|mark| Arc::clone(&mark.cut))
    }

    /// The bytes of mutations that no timestamp covers yet.
    pub fn unpublished_bytes(&self) -> usize {
        self.state().unpublished.bytes()
    }

    /// Returns the newest retained stability timestamp at or before an epoch.
    pub fn newest_epoch_until(&self, epoch: Epoch) -> Option<EpochMark> {
        let state = self.state();
        let after = state.epochs.partition_point(|mark| mark.epoch <= epoch);
        after.checked_sub(1).map(|at| state.epochs[at].clone())
    }

    /// Returns true if this projector stores all mutations that the newest timestamp covers, owned
    /// or not.
    pub fn has_newest_epoch(&self) -> bool {
        let state = self.state();
        state.epochs.back().is_some_and(|newest| {
            state.logs.includes_cut(&newest.cut) && state.durable.reaches(&newest.cut)
        })
    }

    /// The newest stability timestamp.
    pub fn newest_epoch(&self) -> Option<EpochMark> {
        self.state().epochs.back().cloned()
    }
}
