//! The indexes of a node, and the progress of its buckets.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, RwLock};

use proto::Result;
use proto::lock::{lock, read, write};
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, LocalIndexId};

use crate::index::load_state::LoadEvent;
use crate::index::local_index::LocalIndex;
use crate::log::lsn::Lsn;
use crate::manifest::node_manifest::DeadEpochs;

/// The indexes and the progress of the buckets of a node.
#[derive(Default)]
pub(crate) struct NodeState {
    /// The indexes of this node; each generation has its own entry.
    indexes: RwLock<BTreeMap<LocalIndexId, Arc<LocalIndex>>>,
    /// Rebuilds by index: each builds slices of an index whose other slices are readable.
    rebuilds: RwLock<BTreeMap<LocalIndexId, Arc<LocalIndex>>>,
    pub buckets: Mutex<BTreeMap<BucketId, BucketProgress>>,
    bucket_locks: Mutex<BTreeMap<BucketId, Arc<Mutex<()>>>>,
}

/// Progress of a bucket.
#[derive(Default)]
pub(crate) struct BucketProgress {
    pub staged: Epoch,
    /// The newest epoch that scans see.
    pub applied: Option<EpochMark>,
    /// Newest epoch in the log.
    pub logged: Option<EpochMark>,
    /// Epochs in the log, oldest first, each with the LSN of its record's end. Durable epochs are
    /// removed when the counters are read.
    pub ends: VecDeque<(Epoch, Lsn)>,
    pub durable: Epoch,
    /// LSN of the first log record whose epoch or rollback is not applied: it is in progress or
    /// has failed.
    pub unapplied_from: Option<Lsn>,
    /// Epochs that rollbacks have undone.
    pub dead: Vec<DeadEpochs>,
}

impl NodeState {
    pub fn indexes_of_bucket(&self, bucket: BucketId) -> Vec<Arc<LocalIndex>> {
        self.indexes_and_rebuilds()
            .into_iter()
            .filter(|index| index.info.bucket == bucket)
            .collect()
    }

    /// Returns all indexes that epochs are applied to, rebuilds included.
    pub fn indexes_and_rebuilds(&self) -> Vec<Arc<LocalIndex>> {
        let mut indexes = self.indexes();
        indexes.extend(self.rebuilds());
        indexes
    }

    /// Returns the indexes on this node, including those being built. Rebuilds of single slices
    /// are not included.
    pub fn indexes(&self) -> Vec<Arc<LocalIndex>> {
        let indexes = read(&self.indexes);
        indexes.values().cloned().collect()
    }

    pub fn insert(&self, index: LocalIndex) -> Option<Arc<LocalIndex>> {
        let mut indexes = write(&self.indexes);
        indexes.insert(index.info.local_id(), Arc::new(index))
    }

    pub fn get(&self, index: LocalIndexId) -> Option<Arc<LocalIndex>> {
        let indexes = read(&self.indexes);
        indexes.get(&index).cloned()
    }

    pub fn remove(&self, index: LocalIndexId) -> Option<Arc<LocalIndex>> {
        let mut indexes = write(&self.indexes);
        indexes.remove(&index)
    }

    /// Returns the newest logged epoch of each bucket.
    pub fn logged(&self) -> Vec<EpochMark> {
        let buckets = lock(&self.buckets);
        buckets.values().filter_map(|progress| progress.logged.clone()).collect()
    }

    /// Records that the bucket's log records from the LSN `begin` on are not applied yet.
    pub fn mark_unapplied_from(&self, bucket: BucketId, begin: Lsn) {
        let mut buckets = lock(&self.buckets);
        let unapplied_from = &mut buckets.entry(bucket).or_default().unapplied_from;
        *unapplied_from = Some(unapplied_from.map_or(begin, |failed| failed.min(begin)));
    }

    /// Records that all log records of a bucket are applied.
    pub fn clear_unapplied(&self, bucket: BucketId) {
        lock(&self.buckets).entry(bucket).or_default().unapplied_from = None;
    }

    /// Returns the lock of a bucket, which each change of its indexes must hold. An epoch and a
    /// rollback must not overlap.
    pub fn bucket_lock(&self, bucket: BucketId) -> Arc<Mutex<()>> {
        Arc::clone(lock(&self.bucket_locks).entry(bucket).or_default())
    }

    /// Returns true if a rollback has undone an epoch of the bucket.
    pub fn is_dead(&self, bucket: BucketId, epoch: Epoch) -> bool {
        let buckets = lock(&self.buckets);
        let mut dead = buckets.get(&bucket).into_iter().flat_map(|progress| &progress.dead);
        dead.any(|dead| dead.contains(bucket, epoch))
    }

    /// Returns all rebuilds in progress.
    pub fn rebuilds(&self) -> Vec<Arc<LocalIndex>> {
        let rebuilds = read(&self.rebuilds);
        rebuilds.values().cloned().collect()
    }

    /// Returns the rebuild of an index, if there is one.
    pub fn rebuild(&self, index: LocalIndexId) -> Option<Arc<LocalIndex>> {
        read(&self.rebuilds).get(&index).cloned()
    }

    /// Removes and returns the rebuild of an index.
    pub fn take_rebuild(&self, index: LocalIndexId) -> Option<Arc<LocalIndex>> {
        write(&self.rebuilds).remove(&index)
    }

    /// Adds a rebuild.
    pub fn insert_rebuild(&self, index: Arc<LocalIndex>) {
        let mut rebuilds = write(&self.rebuilds);
        rebuilds.insert(index.info.local_id(), index);
    }

    /// Makes epochs above `mark` invisible and records them as undone. Must be called before the
    /// first index is rolled back, so that no scan reads a half-removed epoch.
    pub fn roll_back_to(&self, mark: &EpochMark, dead: DeadEpochs) {
        if let Some(progress) = lock(&self.buckets).get_mut(&mark.bucket) {
            progress.staged = mark.epoch;
            progress.applied = Some(mark.clone());
            progress.logged = Some(mark.clone());
            progress.durable = progress.durable.min(mark.epoch);
            progress.ends.retain(|(epoch, _)| *epoch <= mark.epoch);
            progress.dead.push(dead);
        }
    }

    /// Moves the load state of all indexes on after an event.
    pub fn advance_all(&self, event: LoadEvent) -> Result<()> {
        self.indexes_and_rebuilds().iter().try_for_each(|index| index.advance(event))
    }
}

/// Returns the epochs between an epoch and its parent, which a rollback has undone; `None` if
/// there are none. A node whose newest epoch is the parent need not roll back, but must refuse
/// these epochs from now on.
pub(crate) fn epochs_skipped_by(mark: &EpochMark) -> Option<DeadEpochs> {
    let to = Epoch(mark.epoch.0.saturating_sub(1));
    (mark.parent < to).then_some(DeadEpochs { bucket: mark.bucket, above: mark.parent, to })
}
