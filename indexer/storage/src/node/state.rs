//! What a store has in memory: the indexes, and how far each bucket is. An epoch is applied to all indexes of its bucket,
//! and then shown.

use proto::model::ids::Generation;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use proto::Result;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, IndexId};

use crate::index::load_state::LoadEvent;
use crate::index::local_index::Slot;
use crate::lock::lock;
use crate::log::lsn::Lsn;
use crate::manifest::node_manifest::DeadEpochs;

/// The indexes and the buckets.
#[derive(Default)]
pub(crate) struct State {
    slots: RwLock<BTreeMap<IndexId, Arc<Slot>>>,
    /// Slices that are built anew beside those that are here (`rebuild`).
    rebuilds: RwLock<BTreeMap<IndexId, Arc<Slot>>>,
    pub buckets: Mutex<BTreeMap<BucketId, Progress>>,
    alone: Mutex<BTreeMap<BucketId, Arc<Mutex<()>>>>,
}

/// How far a bucket is.
#[derive(Default)]
pub(crate) struct Progress {
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

    /// The rebuilds.
    pub fn rebuilds(&self) -> Vec<Arc<Slot>> {
        let rebuilds = self.rebuilds.read().unwrap_or_else(PoisonError::into_inner);
        rebuilds.values().cloned().collect()
    }

    /// The rebuild of an index.
    pub fn rebuild(&self, index: IndexId, generation: Generation) -> Option<Arc<Slot>> {
        let rebuilds = self.rebuilds.read().unwrap_or_else(PoisonError::into_inner);
        rebuilds.get(&index).filter(|slot| slot.info.generation == generation).cloned()
    }

    pub fn take_rebuild(&self, index: IndexId) -> Option<Arc<Slot>> {
        self.rebuilds.write().unwrap_or_else(PoisonError::into_inner).remove(&index)
    }

    /// Puts a rebuild in.
    pub fn insert_rebuild(&self, slot: Arc<Slot>) {
        let mut rebuilds = self.rebuilds.write().unwrap_or_else(PoisonError::into_inner);
        rebuilds.insert(slot.info.id, slot);
    }

    /// From here on no scan asks for what goes: before the first index has gone back.
    pub fn go_back(&self, mark: &EpochMark, dead: DeadEpochs) {
        if let Some(progress) = lock(&self.buckets).get_mut(&mark.bucket) {
            progress.staged = mark.epoch;
            progress.applied = Some(mark.clone());
            progress.logged = Some(mark.clone());
            progress.durable = progress.durable.min(mark.epoch);
            progress.ends.retain(|(epoch, _)| *epoch <= mark.epoch);
            progress.dead.push(dead);
        }
    }

    /// An event moves all indexes on.
    pub fn advance_all(&self, event: LoadEvent) -> Result<()> {
        self.slots().iter().try_for_each(|slot| slot.advance(event))
    }
}

/// An epoch whose number does not follow its parent's says that a rollback has taken those between back: also a
/// node that stood at the parent, and need not go back itself, refuses them.
pub(crate) fn skipped_by(mark: &EpochMark) -> Option<DeadEpochs> {
    let to = Epoch(mark.epoch.0.saturating_sub(1));
    (mark.parent < to).then_some(DeadEpochs { bucket: mark.bucket, above: mark.parent, to })
}
