//! What a store has in memory: the indexes, and how far each bucket is. An epoch is applied to all indexes of its bucket,
//! and then shown.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, RwLock};

use proto::Result;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, IndexId};
use proto::plant::{self, Plant};

use super::EpochBatch;
use super::epoch::documents;
use super::log::Lsn;
use super::manifest::DeadEpochs;
use super::slot::{Slot, lock};

/// The indexes and the buckets.
#[derive(Default)]
pub(super) struct State {
    pub slots: RwLock<BTreeMap<IndexId, Arc<Slot>>>,
    /// Slices that are built anew beside those that are here (`rebuild`).
    pub rebuilds: RwLock<BTreeMap<IndexId, Arc<Slot>>>,
    pub buckets: Mutex<BTreeMap<BucketId, Progress>>,
    alone: Mutex<BTreeMap<BucketId, Arc<Mutex<()>>>>,
}

/// How far a bucket is.
#[derive(Default)]
pub(super) struct Progress {
    pub staged: Epoch,
    /// The newest epoch that scans see.
    pub applied: Option<EpochMark>,
    /// The newest epoch in the log.
    pub logged: Option<EpochMark>,
    /// Epochs in the log and where their records end, the oldest first; those that are durable are
    /// taken off when asked for.
    pub ends: VecDeque<(Epoch, Lsn)>,
    pub durable: Epoch,
    /// Where the record begins of the epoch that is being applied, or the rollback that is being made; or could not
    /// be.
    pub applying: Option<Lsn>,
    /// Epochs that rollbacks have taken back.
    pub dead: Vec<DeadEpochs>,
}

impl State {
    pub fn of_bucket(&self, bucket: BucketId) -> Vec<Arc<Slot>> {
        self.slots().into_iter().filter(|slot| slot.info.bucket == bucket).collect()
    }

    /// All that epochs are applied to and that takes memory, rebuilds too.
    pub fn slots(&self) -> Vec<Arc<Slot>> {
        let mut slots = self.indexes();
        slots.extend(self.rebuilds());
        slots
    }

    /// What is or will be the indexes that are here.
    pub fn indexes(&self) -> Vec<Arc<Slot>> {
        let slots = self.slots.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        slots.values().cloned().collect()
    }

    pub fn insert(&self, slot: Slot) -> Option<Arc<Slot>> {
        let mut slots = self.slots.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        slots.insert(slot.info.id, Arc::new(slot))
    }

    pub fn get(&self, index: IndexId) -> Option<Arc<Slot>> {
        let slots = self.slots.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        slots.get(&index).cloned()
    }

    pub fn remove(&self, index: IndexId) -> Option<Arc<Slot>> {
        let mut slots = self.slots.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        slots.remove(&index)
    }

    /// The newest epoch of each bucket that the log has, or had.
    pub fn logged(&self) -> Vec<EpochMark> {
        let buckets = lock(&self.buckets);
        buckets.values().filter_map(|progress| progress.logged.clone()).collect()
    }

    /// What the log has from here on of a bucket is not applied yet.
    pub fn needs_log_from(&self, bucket: BucketId, begin: Lsn) {
        let mut buckets = lock(&self.buckets);
        let applying = &mut buckets.entry(bucket).or_default().applying;
        *applying = Some(applying.map_or(begin, |failed| failed.min(begin)));
    }

    /// All that the log has of a bucket is applied.
    pub fn needs_no_log(&self, bucket: BucketId) {
        lock(&self.buckets).entry(bucket).or_default().applying = None;
    }

    /// Who holds it is alone with a bucket: an epoch that is applied and a rollback do not meet.
    pub fn alone(&self, bucket: BucketId) -> Arc<Mutex<()>> {
        Arc::clone(lock(&self.alone).entry(bucket).or_default())
    }

    /// Has a rollback taken an epoch back?
    pub fn is_dead(&self, bucket: BucketId, epoch: Epoch) -> bool {
        let of = |dead: &DeadEpochs| dead.above < epoch && epoch <= dead.to;
        let buckets = lock(&self.buckets);
        buckets.get(&bucket).is_some_and(|progress| progress.dead.iter().any(of))
    }

    /// Applies an epoch to all indexes of its bucket, then shows it.
    pub fn apply(&self, batch: &EpochBatch, lsn: Lsn) -> Result<()> {
        let mark = &batch.mark;
        let documents = documents(batch)?;
        let alone = self.alone(mark.bucket);
        let _alone = lock(&alone);
        if self.is_dead(mark.bucket, mark.epoch) {
            // It was on its way when the bucket went back.
            return Ok(());
        }
        let before = lock(&self.buckets)
            .get(&mark.bucket)
            .and_then(|progress| progress.applied.as_ref().map(|mark| mark.epoch));
        // A copy that did not apply the parent cannot answer for the epochs it skipped.
        let gap =
            before.is_some_and(|before| before != mark.parent) && !plant::is(Plant::GapIgnored);
        for slot in self.of_bucket(mark.bucket) {
            slot.apply(mark, &documents, gap, lsn)?;
        }
        let mut buckets = lock(&self.buckets);
        let progress = buckets.entry(mark.bucket).or_default();
        progress.dead.extend(skipped_by(mark));
        if progress.applied.as_ref().is_none_or(|applied| applied.epoch < mark.epoch) {
            progress.applied = Some(mark.clone());
        }
        // Only now: what failed is still needed from the log, also after its caller has gone.
        progress.applying = None;
        Ok(())
    }
}

/// An epoch whose number does not follow its parent's says that a rollback has taken those between back: also a
/// node that stood at the parent, and need not go back itself, refuses them.
pub(super) fn skipped_by(mark: &EpochMark) -> Option<DeadEpochs> {
    let to = Epoch(mark.epoch.0.saturating_sub(1));
    (mark.parent < to).then_some(DeadEpochs { bucket: mark.bucket, above: mark.parent, to })
}
