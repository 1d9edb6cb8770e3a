//! State of an index's writer, and statistics of it that are read without a lock.
//!
//! The statistics are published whenever the writer's lock is released. Heartbeats, and epochs
//! that wait for memory, read them on async threads. So they never wait for an epoch in progress.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use arc_swap::ArcSwap;
use proto::model::ids::{Epoch, SliceNo};

use crate::index::memtable::BackMemtable;
use crate::log::lsn::Lsn;
use crate::manifest::index_manifest::IndexManifest;
use crate::read::index_version::IndexVersion;
use crate::retention::RetainedEpochs;

/// The value of an atomic statistic that means "none".
const NONE: u64 = u64::MAX;

/// The part of an index's state that only writers change, under the writer's lock.
#[derive(Default)]
pub struct WriterState {
    /// Newest records of the back index.
    pub memtable: BackMemtable,
    /// Memtable that a flush is writing.
    pub frozen: Option<Arc<BackMemtable>>,
    /// The number of tables in memory that a flush is writing; they are the oldest ones.
    pub frozen_runs: usize,
    /// Number of entries at the newest epoch, by slice.
    pub entries: BTreeMap<SliceNo, i64>,
    /// Slices from another node or a rebuild whose entries were not counted yet. Their number of
    /// entries is the number that the source has reported. A manifest does not contain it, so
    /// after a crash it is unknown until the slice is loaded.
    pub uncounted: BTreeSet<SliceNo>,
    /// Newest epoch that was applied or is in the fragments.
    pub applied: Epoch,
    /// The epochs whose versions merges must retain, according to the newest applied epoch.
    pub retained: RetainedEpochs,
    /// Oldest epoch that only memory has, and the LSN of its log record.
    pub unflushed: Option<(Epoch, Lsn)>,
    /// Oldest epoch in the memory that a flush is writing, and the LSN of its log record.
    pub frozen_unflushed: Option<(Epoch, Lsn)>,
    /// True during a build, when every document of an epoch is added to the back index.
    pub is_building: bool,
    /// True while a background merge reads some of the tables in memory.
    pub is_merging: bool,
}

impl WriterState {
    /// Creates the writer's state of an index that has nothing in memory.
    pub fn from_manifest(manifest: &IndexManifest) -> Self {
        let whole = manifest.floor.is_some();
        let unknown = |slice: &&SliceNo| whole && !manifest.entries.contains_key(slice);
        Self {
            entries: manifest.entries.iter().map(|(slice, n)| (*slice, *n as i64)).collect(),
            uncounted: manifest.slices.keys().filter(unknown).copied().collect(),
            applied: manifest.flushed,
            retained: manifest.readable_epochs().unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Returns the oldest epoch that is not in fragments, and the LSN from which the log is needed
    /// for it. A build needs no log, because it restarts after a crash.
    fn needs_log(&self) -> Option<(Epoch, Lsn)> {
        match (self.frozen_unflushed, self.unflushed) {
            _ if self.is_building => None,
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.min(other.1))),
            (one, other) => one.or(other),
        }
    }

    /// Sets the number of entries that the source of a new slice has reported.
    pub fn set_reported_entries(&mut self, slice: SliceNo, entries: u64) {
        self.entries.insert(slice, entries as i64);
        self.uncounted.insert(slice);
    }

    /// Returns true if the index has rows or back-index records of a slice in memory.
    pub fn has_in_memory(&self, slice: SliceNo, version: &IndexVersion) -> bool {
        version.runs.iter().any(|run| run.index.section(slice).is_some())
            || self.memtable.has(slice)
            || self.frozen.as_ref().is_some_and(|frozen| frozen.has(slice))
    }

    /// Returns the memory that a failed flush has set aside to the writer, for the next flush.
    pub fn restore_frozen(&mut self) {
        self.frozen_runs = 0;
        self.unflushed = match (self.frozen_unflushed.take(), self.unflushed) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.min(other.1))),
            (one, other) => one.or(other),
        };
    }
}

/// Lock-free statistics of one index, as of the last release of the writer's lock.
///
/// Values are stored before the writer's lock is released, so two writers never store at the same
/// time. A reader may see some new and some old values, so each decision reads one value only.
/// Where two values are compared, the order of the reads errs on the safe side: the committed
/// epoch is read before the oldest unflushed one (`node/durability.rs`), and the start of
/// unapplied records before the log that is needed (`maintain/release.rs`).
#[derive(Debug)]
pub struct IndexStats {
    unflushed_epoch: AtomicU64,
    unflushed_lsn: AtomicU64,
    applied: AtomicU64,
    memtable_bytes: AtomicU64,
    full: AtomicBool,
    counted: ArcSwap<EntryCounts>,
}

/// Numbers of entries of an index at its newest epoch, by slice.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EntryCounts {
    entries: BTreeMap<SliceNo, i64>,
    uncounted: BTreeSet<SliceNo>,
}

impl EntryCounts {
    /// Returns the number of entries of a slice. For a slice that was not counted yet, returns the
    /// number that its source has reported.
    pub fn of_slice(&self, slice: SliceNo) -> u64 {
        self.entries.get(&slice).copied().unwrap_or(0).max(0) as u64
    }

    /// Returns the number of entries of a slice; `None` if the slice was not counted yet.
    pub fn counted(&self, slice: SliceNo) -> Option<u64> {
        (!self.uncounted.contains(&slice)).then(|| self.of_slice(slice))
    }
}

impl IndexStats {
    /// Creates the statistics of a writer's state.
    pub fn from_writer(writer: &WriterState) -> Self {
        let stats = Self {
            unflushed_epoch: AtomicU64::new(NONE),
            unflushed_lsn: AtomicU64::new(NONE),
            applied: AtomicU64::new(0),
            memtable_bytes: AtomicU64::new(0),
            full: AtomicBool::new(false),
            counted: ArcSwap::default(),
        };
        stats.publish(writer);
        stats
    }

    /// Stores the present values of the writer's state.
    fn publish(&self, writer: &WriterState) {
        let (epoch, lsn) = writer.needs_log().map_or((NONE, NONE), |(epoch, lsn)| (epoch.0, lsn));
        self.unflushed_epoch.store(epoch, Ordering::Release);
        self.unflushed_lsn.store(lsn, Ordering::Release);
        self.applied.store(writer.applied.0, Ordering::Release);
        let frozen = writer.frozen.as_ref().map_or(0, |frozen| frozen.size());
        let bytes = writer.memtable.size() + frozen;
        self.memtable_bytes.store(bytes as u64, Ordering::Release);
        self.full.store(writer.memtable.is_full(), Ordering::Release);
        let counted = self.counted.load();
        if counted.entries != writer.entries || counted.uncounted != writer.uncounted {
            let (entries, uncounted) = (writer.entries.clone(), writer.uncounted.clone());
            self.counted.store(Arc::new(EntryCounts { entries, uncounted }));
        }
    }

    /// Returns the oldest epoch whose changes are only in memory and in the log.
    pub fn unflushed_epoch(&self) -> Option<Epoch> {
        let epoch = self.unflushed_epoch.load(Ordering::Acquire);
        (epoch != NONE).then_some(Epoch(epoch))
    }

    /// Returns the LSN from which the log is needed.
    pub fn needs_log_from(&self) -> Option<Lsn> {
        let lsn = self.unflushed_lsn.load(Ordering::Acquire);
        (lsn != NONE).then_some(lsn)
    }

    /// Returns the newest epoch that was applied or is in the fragments.
    pub fn applied(&self) -> Epoch {
        Epoch(self.applied.load(Ordering::Acquire))
    }

    /// Returns the memory use of the memtable, in bytes.
    pub fn memtable_bytes(&self) -> u64 {
        self.memtable_bytes.load(Ordering::Acquire)
    }

    /// Returns true if the memtable is full, so that the next epoch should wait for a flush.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Returns the numbers of entries at the newest epoch, by slice.
    pub fn entries(&self) -> Arc<EntryCounts> {
        self.counted.load_full()
    }
}

/// The locked state of an index's writer. Dropping the guard publishes the statistics.
pub struct WriterGuard<'a> {
    writer: MutexGuard<'a, WriterState>,
    stats: &'a IndexStats,
}

impl<'a> WriterGuard<'a> {
    /// Wraps the writer's locked state, so that its statistics are published at the end.
    pub fn new(writer: MutexGuard<'a, WriterState>, stats: &'a IndexStats) -> Self {
        Self { writer, stats }
    }
}

impl Deref for WriterGuard<'_> {
    type Target = WriterState;

    fn deref(&self) -> &WriterState {
        &self.writer
    }
}

impl DerefMut for WriterGuard<'_> {
    fn deref_mut(&mut self) -> &mut WriterState {
        &mut self.writer
    }
}

impl Drop for WriterGuard<'_> {
    fn drop(&mut self) {
        self.stats.publish(&self.writer);
    }
}
