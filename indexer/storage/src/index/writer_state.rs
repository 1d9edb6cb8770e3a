//! State of an index's writer, and its lock-free statistics.
//!
//! The statistics are published whenever the writer's lock is released. Heartbeats and waiters for
//! memory read them on async threads, so they never wait for an epoch in progress.

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

/// State that only the writer changes, under its lock.
#[derive(Default)]
pub struct WriterState {
    /// Newest states of the back index.
    pub memtable: BackMemtable,
    /// States that a flush is writing.
    pub frozen: Option<Arc<BackMemtable>>,
    /// The number of runs that a flush is writing; they are the oldest.
    pub frozen_runs: usize,
    /// Number of entries at the newest epoch, by slice.
    pub entries: BTreeMap<SliceNo, i64>,
    /// Arrived slices whose entries were not counted yet. Their number of entries is the one that
    /// the source reported; a manifest does not contain it. After a crash it is unknown until the
    /// slice is loaded.
    pub uncounted: BTreeSet<SliceNo>,
    /// Newest epoch that was applied or is in the fragments.
    pub applied: Epoch,
    /// The epochs whose versions merges must retain, as of the newest epoch.
    pub retained: RetainedEpochs,
    /// Oldest epoch in memory, and the LSN of its log record.
    pub unflushed: Option<(Epoch, Lsn)>,
    /// The oldest epoch that a flush is writing, and the LSN of its log record.
    pub frozen_unflushed: Option<(Epoch, Lsn)>,
    /// True during a build, when every document of an epoch is added to the back index.
    pub is_building: bool,
    /// True while a background merge reads some of the runs.
    pub is_merging: bool,
}

impl WriterState {
    /// Creates the state of an index that has nothing in memory.
    pub fn from_manifest(manifest: &IndexManifest) -> Self {
        let whole = manifest.floor.is_some();
        let unknown = |slice: &&SliceNo| whole && !manifest.entries.contains_key(slice);
        Self {
            entries: manifest.entries.iter().map(|(slice, n)| (*slice, *n as i64)).collect(),
            uncounted: manifest.slices.keys().filter(unknown).copied().collect(),
            applied: manifest.flushed,
            retained: manifest.reach().unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Returns the oldest epoch in memory and the LSN from which the log is needed. A build needs
    /// no log, because it restarts after a crash.
    fn needs_log(&self) -> Option<(Epoch, Lsn)> {
        match (self.frozen_unflushed, self.unflushed) {
            _ if self.is_building => None,
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.min(other.1))),
            (one, other) => one.or(other),
        }
    }

    /// Sets the number of entries that the source of an arrived slice reported.
    pub fn set_reported_entries(&mut self, slice: SliceNo, entries: u64) {
        self.entries.insert(slice, entries as i64);
        self.uncounted.insert(slice);
    }

    /// Returns true if the memory has rows or states of a slice.
    pub fn has(&self, slice: SliceNo, version: &IndexVersion) -> bool {
        version.runs.iter().any(|run| run.index.section(slice).is_some())
            || self.memtable.has(slice)
            || self.frozen.as_ref().is_some_and(|frozen| frozen.has(slice))
    }

    /// Ends a failed flush: the rows that it froze stay in memory for the next flush.
    pub fn thaw(&mut self) {
        self.frozen_runs = 0;
        self.unflushed = match (self.frozen_unflushed.take(), self.unflushed) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.min(other.1))),
            (one, other) => one.or(other),
        };
    }
}

/// Lock-free statistics of one index, as of the last release of the writer's lock.
///
/// Values are stored before the writer's lock is released, so two publications never mix. A reader may see one value of a
/// publication and not yet another one, therefore each decision reads one value only. Where two values are compared, the order of the reads
/// errs on the safe side: the committed epoch is read before the oldest unflushed one (`node/durability.rs`), and the start of unapplied
/// records before the log that is needed (`maintain/release.rs`).
#[derive(Debug)]
pub struct IndexStats {
    unflushed_epoch: AtomicU64,
    unflushed_lsn: AtomicU64,
    applied: AtomicU64,
    memtable_bytes: AtomicU64,
    full: AtomicBool,
    counted: ArcSwap<EntryCounts>,
}

/// Numbers of entries at the newest epoch, by slice.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EntryCounts {
    entries: BTreeMap<SliceNo, i64>,
    uncounted: BTreeSet<SliceNo>,
}

impl EntryCounts {
    /// Returns the number of entries of a slice. For an arrived slice that was not counted yet it
    /// is the number that the source reported.
    pub fn of(&self, slice: SliceNo) -> u64 {
        self.entries.get(&slice).copied().unwrap_or(0).max(0) as u64
    }

    /// The number of entries of a slice; `None` if the slice was not counted yet.
    pub fn counted(&self, slice: SliceNo) -> Option<u64> {
        (!self.uncounted.contains(&slice)).then(|| self.of(slice))
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

    /// Oldest epoch whose changes are only in memory and in the log.
    pub fn unflushed_epoch(&self) -> Option<Epoch> {
        let epoch = self.unflushed_epoch.load(Ordering::Acquire);
        (epoch != NONE).then_some(Epoch(epoch))
    }

    /// LSN from which the log is needed.
    pub fn needs_log_from(&self) -> Option<Lsn> {
        let lsn = self.unflushed_lsn.load(Ordering::Acquire);
        (lsn != NONE).then_some(lsn)
    }

    /// Newest epoch that was applied or is in the fragments.
    pub fn applied(&self) -> Epoch {
        Epoch(self.applied.load(Ordering::Acquire))
    }

    /// Bytes of the back index in memory.
    pub fn memtable_bytes(&self) -> u64 {
        self.memtable_bytes.load(Ordering::Acquire)
    }

    /// Returns true if no further epoch should be added to the memtable.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Numbers of entries at the newest epoch, by slice.
    pub fn entries(&self) -> Arc<EntryCounts> {
        self.counted.load_full()
    }
}

/// The locked writer; publishes the statistics when dropped.
pub struct WriterGuard<'a> {
    writer: MutexGuard<'a, WriterState>,
    stats: &'a IndexStats,
}

impl<'a> WriterGuard<'a> {
    /// Wraps the locked state.
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
