//! Keeps the stability timestamps of a bucket that a stream or a transaction may still read.

use std::sync::Arc;

use proto::model::assignment::VbucketSet;
use proto::model::bucket::BucketInfo;
use proto::model::cut::{Cut, EpochMark};
use proto::model::ids::Epoch;

use super::backlog;
use super::bucket::{Bucket, SourceState};

/// The maximum number of retained timestamps, even if the horizon is old. The coordinator has the
/// same limit, which is more than a minute of timestamps.
const EPOCHS_MAX: usize = 4096;
/// The maximum number of positions in all retained timestamps together: 16 MiB of memory.
const EPOCH_POSITIONS_MAX: usize = 1 << 20;
/// The number of timestamps that are retained however many vbuckets the bucket has: five seconds
/// of timestamps.
const EPOCHS_MIN: usize = 256;

impl Bucket {
    /// Adds a stability timestamp, unless it was added before. Drops the timestamps that a
    /// rollback has undone, most of those below the horizon, and the oldest above a limit. A
    /// stream that begins before the retained timestamps misses some; its reader detects that,
    /// because each timestamp names its parent. Returns false if the bucket object is retired, so
    /// that the caller must look for its successor.
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
        backlog::thin_timestamps(epochs, horizon, epochs_max);
        drop(state);
        self.wake();
        true
    }

    /// Drops the stability timestamps that a rollback in the catalog has undone. The timestamp
    /// after the rollback would cause the same, but this projector may never receive that one.
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

    /// Returns the retained stability timestamps after an epoch, ascending.
    pub fn epochs_after(&self, epoch: Epoch) -> Vec<EpochMark> {
        let state = self.state();
        let from = state.epochs.partition_point(|mark| mark.epoch <= epoch);
        state.epochs.iter().skip(from).cloned().collect()
    }

    /// Returns the cut of the timestamp up to which a reader of some vbuckets reads the log next;
    /// `None` if no timestamp is ahead of the reader.
    pub fn next_goal(&self, vbuckets: &VbucketSet, at: &Cut) -> Option<Arc<Cut>> {
        backlog::next_goal(&self.state().epochs, vbuckets, at).map(|mark| Arc::clone(&mark.cut))
    }

    /// Returns the bytes of mutations that no stability timestamp covers yet.
    pub fn unpublished_bytes(&self) -> usize {
        self.state().unpublished.bytes()
    }

    /// Returns the newest retained stability timestamp at or before an epoch.
    pub fn newest_epoch_until(&self, epoch: Epoch) -> Option<EpochMark> {
        let state = self.state();
        let after = state.epochs.partition_point(|mark| mark.epoch <= epoch);
        after.checked_sub(1).map(|at| state.epochs[at].clone())
    }

    /// Returns true if this projector stores all mutations that the newest timestamp covers, in
    /// all vbuckets, whether owned or not.
    pub fn has_newest_epoch(&self) -> bool {
        let state = self.state();
        state.epochs.back().is_some_and(|newest| {
            state.logs.includes_cut(&newest.cut) && state.durable.reaches(&newest.cut)
        })
    }

    /// Returns the newest stability timestamp; `None` if none was received.
    pub fn newest_epoch(&self) -> Option<EpochMark> {
        self.state().epochs.back().cloned()
    }
}
