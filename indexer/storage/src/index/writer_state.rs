//! What only the writer of an index touches, under its lock, and the figures that are published whenever
//! the lock is let go: heartbeats and who waits for room ask for them on async threads, and never wait
//! for an epoch that is being applied.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use arc_swap::ArcSwap;
use proto::model::ids::{Epoch, SliceNo};

use crate::index::memtable::BackMemtable;
use crate::log::lsn::Lsn;
use crate::manifest::index_manifest::IndexManifest;
use crate::read::index_version::Visible;
use crate::retention::Protected;

/// In a figure: there is none.
const NONE: u64 = u64::MAX;

/// What only the writer touches.
#[derive(Default)]
pub struct Writer {
    /// The newest states of the back index.
    pub memtable: BackMemtable,
    /// Those that a flush is writing.
    pub frozen: Option<Arc<BackMemtable>>,
    /// So many of the oldest runs are being written by a flush.
    pub frozen_runs: usize,
    /// Entries at the newest epoch, by slice.
    pub entries: BTreeMap<SliceNo, i64>,
    /// Of these slices, which have arrived from elsewhere, the source's count is told until they are counted
    /// here: a manifest does not say it. After a crash it is not known until they are loaded.
    pub uncounted: BTreeSet<SliceNo>,
    /// The newest epoch that was applied, or is in the fragments.
    pub applied: Epoch,
    /// What merges must keep, as the newest epoch said.
    pub protected: Protected,
    /// What is in memory came with this epoch and later ones, whose records begin here in the log.
    pub unflushed: Option<(Epoch, Lsn)>,
    /// The same of what a flush is writing.
    pub frozen_unflushed: Option<(Epoch, Lsn)>,
    /// The index is being built: each document that an epoch speaks of is remembered.
    pub building: bool,
    /// A merge in the background reads some of the runs.
    pub merging: bool,
}

impl Writer {
    /// Of an index of which nothing is in memory.
    pub fn of(manifest: &IndexManifest) -> Self {
        let whole = manifest.floor.is_some();
        let unknown = |slice: &&SliceNo| whole && !manifest.entries.contains_key(slice);
        Self {
            entries: manifest.entries.iter().map(|(slice, n)| (*slice, *n as i64)).collect(),
            uncounted: manifest.slices.keys().filter(unknown).copied().collect(),
            applied: manifest.flushed,
            protected: manifest.reach().unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Where the log begins to be needed for what is in memory, and since which epoch. An index that is
    /// being built does not need it: a crash begins the build anew.
    fn needs_log(&self) -> Option<(Epoch, Lsn)> {
        match (self.frozen_unflushed, self.unflushed) {
            _ if self.building => None,
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.min(other.1))),
            (one, other) => one.or(other),
        }
    }

    /// A slice has arrived, of which its source says how many entries it has.
    pub fn tell(&mut self, slice: SliceNo, entries: u64) {
        self.entries.insert(slice, entries as i64);
        self.uncounted.insert(slice);
    }

    /// Is anything of a slice in memory?
    pub fn has(&self, slice: SliceNo, visible: &Visible) -> bool {
        visible.runs.iter().any(|run| run.index.section(slice).is_some())
            || self.memtable.has(slice)
            || self.frozen.as_ref().is_some_and(|frozen| frozen.has(slice))
    }

    /// After a flush that failed: what it was to write stays in memory, frozen, for the next one.
    pub fn thaw(&mut self) {
        self.frozen_runs = 0;
        self.unflushed = match (self.frozen_unflushed.take(), self.unflushed) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.min(other.1))),
            (one, other) => one.or(other),
        };
    }
}

/// What is known of a writer without its lock, as of the last time it was let go.
#[derive(Debug)]
pub struct Figures {
    unflushed_epoch: AtomicU64,
    unflushed_lsn: AtomicU64,
    applied: AtomicU64,
    memtable_bytes: AtomicU64,
    full: AtomicBool,
    entries: ArcSwap<BTreeMap<SliceNo, i64>>,
}

impl Figures {
    /// Those of a new writer.
    pub fn of(writer: &Writer) -> Self {
        let figures = Self {
            unflushed_epoch: AtomicU64::new(NONE),
            unflushed_lsn: AtomicU64::new(NONE),
            applied: AtomicU64::new(0),
            memtable_bytes: AtomicU64::new(0),
            full: AtomicBool::new(false),
            entries: ArcSwap::default(),
        };
        figures.publish(writer);
        figures
    }

    fn publish(&self, writer: &Writer) {
        let (epoch, lsn) = writer.needs_log().map_or((NONE, NONE), |(epoch, lsn)| (epoch.0, lsn));
        self.unflushed_epoch.store(epoch, Ordering::Release);
        self.unflushed_lsn.store(lsn, Ordering::Release);
        self.applied.store(writer.applied.0, Ordering::Release);
        let frozen = writer.frozen.as_ref().map_or(0, |frozen| frozen.size());
        let bytes = writer.memtable.size() + frozen;
        self.memtable_bytes.store(bytes as u64, Ordering::Release);
        self.full.store(writer.memtable.is_full(), Ordering::Release);
        if **self.entries.load() != writer.entries {
            self.entries.store(Arc::new(writer.entries.clone()));
        }
    }

    /// The oldest epoch whose changes are in memory and in the log alone.
    pub fn unflushed_epoch(&self) -> Option<Epoch> {
        let epoch = self.unflushed_epoch.load(Ordering::Acquire);
        (epoch != NONE).then_some(Epoch(epoch))
    }

    /// Where the log begins to be needed.
    pub fn needs_log_from(&self) -> Option<Lsn> {
        let lsn = self.unflushed_lsn.load(Ordering::Acquire);
        (lsn != NONE).then_some(lsn)
    }

    /// The newest epoch that was applied, or is in the fragments.
    pub fn applied(&self) -> Epoch {
        Epoch(self.applied.load(Ordering::Acquire))
    }

    /// Bytes of the back index in memory.
    pub fn memtable_bytes(&self) -> u64 {
        self.memtable_bytes.load(Ordering::Acquire)
    }

    /// Has it as much in memory as it can tell apart?
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Entries at the newest epoch, by slice.
    pub fn entries(&self) -> Arc<BTreeMap<SliceNo, i64>> {
        self.entries.load_full()
    }
}

/// The writer, as long as it is locked.
pub struct WriterGuard<'a> {
    writer: MutexGuard<'a, Writer>,
    figures: &'a Figures,
}

impl<'a> WriterGuard<'a> {
    /// Publishes the figures when it goes.
    pub fn new(writer: MutexGuard<'a, Writer>, figures: &'a Figures) -> Self {
        Self { writer, figures }
    }
}

impl Deref for WriterGuard<'_> {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        &self.writer
    }
}

impl DerefMut for WriterGuard<'_> {
    fn deref_mut(&mut self) -> &mut Writer {
        &mut self.writer
    }
}

impl Drop for WriterGuard<'_> {
    fn drop(&mut self) {
        self.figures.publish(&self.writer);
    }
}
