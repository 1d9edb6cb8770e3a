//! One index on this node: what its writer keeps, what readers see of it, and its lists of fragments.
//!
//! Readers take an `Arc` of what is visible and are never waited for. Two locks order the rest:
//! `structure` is held while lists of fragments change, until the manifest is synced; `writer` only for
//! changes of memory (an epoch, the end of a flush). Who takes both takes `structure` first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use arc_swap::ArcSwap;
use proto::cut::EpochMark;
use proto::ids::{Epoch, SliceNo};
use proto::index::{IndexInfo, PartitionBy};
use proto::scan::KeyRange;
use proto::topology::{PartitionKey, TopologyProvider};
use proto::{Error, ErrorCode, Result};

use super::bulk::Bulk;
use super::changes::Changes;
use super::compaction;
use super::cursor::Source;
use super::epoch::Document;
use super::log::Lsn;
use super::manifest::{Columns, FileId, IndexManifest, ListItem};
use super::memtable::BackMemtable;
use super::merge::Visible as VisibleRows;
use super::rewrite::Rewrite;
use super::table::{Table, TableBuilder};
use super::versions::Protected;
use super::{Rows, Snapshot};

/// The forward column group: entries and included values.
pub const FORWARD: Columns = Columns(!(1 << 63));
/// Runs in memory are merged up to this size.
const RUN_BYTES_MAX: u64 = 48 << 20;

/// One index.
pub struct Slot {
    /// Its definition when its slices were made.
    pub info: Arc<IndexInfo>,
    /// The lists of fragments.
    pub structure: Mutex<Structure>,
    /// What only the writer of the bucket, and the ends of flushes and merges, touch.
    pub writer: Mutex<Writer>,
    /// What readers see.
    pub visible: ArcSwap<Visible>,
    /// One flush at a time.
    pub flush: Mutex<()>,
    /// Bytes of a backfill that wait to be written.
    pub bulk_bytes: AtomicU64,
    /// Bytes of the fragments' indexes and filters.
    fragment_bytes: AtomicU64,
    /// Bytes that work under way holds for a while.
    held_bytes: AtomicU64,
}

/// Memory that is counted until this is dropped.
pub struct Held<'a> {
    counter: &'a AtomicU64,
    bytes: u64,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The lists of fragments as they are on disk, and a build's.
pub struct Structure {
    /// As it is on disk, unless the index is being built.
    pub manifest: IndexManifest,
    /// The tables that the lists name.
    pub tables: BTreeMap<FileId, Arc<Table>>,
    /// A build in progress.
    pub bulk: Option<Bulk>,
    /// The index was dropped: nothing may be written any more.
    pub dropped: bool,
}

/// What readers see of an index.
#[derive(Clone, Default)]
pub struct Visible {
    /// In memory, the oldest first.
    pub runs: Vec<Arc<Table>>,
    /// The slices that are here, with their fragments.
    pub slices: BTreeMap<SliceNo, Arc<Fragments>>,
    /// The oldest epoch that can be answered; `None` while the index is being built.
    pub floor: Option<Epoch>,
}

/// The fragments of a slice, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    /// Of entries.
    pub forward: Vec<Source>,
    /// Of the back index.
    pub back: Vec<Source>,
}

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
    /// The newest epoch that was applied, or is in the fragments.
    pub applied: Epoch,
    /// The newest horizon that an epoch brought.
    pub horizon: Epoch,
    /// What is in memory came with this epoch and later ones, whose records begin here in the log.
    pub unflushed: Option<(Epoch, Lsn)>,
    /// The same of what a flush is writing.
    pub frozen_unflushed: Option<(Epoch, Lsn)>,
    /// The index is being built: each document that an epoch speaks of is remembered.
    pub building: bool,
    /// The floor was raised and no manifest says so yet.
    pub floor_raised: bool,
    /// A merge in the background reads some of the runs.
    merging: bool,
}

/// Locks; what a panicking holder left is still whole enough to be read.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Slot {
    /// An index that is being built.
    pub fn new(manifest: IndexManifest) -> Self {
        let slices = manifest.slices.keys().map(|slice| (*slice, Arc::default())).collect();
        let visible = Visible { slices, ..Visible::default() };
        let writer = Writer { building: true, ..Writer::default() };
        Self::with(manifest, BTreeMap::new(), writer, visible)
    }

    /// An index as its manifest says.
    pub fn open(manifest: IndexManifest, tables: BTreeMap<FileId, Arc<Table>>) -> Result<Self> {
        let visible = Visible {
            runs: Vec::new(),
            slices: fragments(&manifest, &tables)?,
            floor: manifest.floor,
        };
        let writer = Writer {
            entries: manifest.entries.iter().map(|(slice, n)| (*slice, *n as i64)).collect(),
            applied: manifest.flushed,
            horizon: manifest.floor.unwrap_or_default(),
            ..Writer::default()
        };
        Ok(Self::with(manifest, tables, writer, visible))
    }

    fn with(
        manifest: IndexManifest,
        tables: BTreeMap<FileId, Arc<Table>>,
        writer: Writer,
        visible: Visible,
    ) -> Self {
        let resident: usize = tables.values().map(|table| table.memory_bytes()).sum();
        Self {
            info: Arc::clone(&manifest.info),
            structure: Mutex::new(Structure { manifest, tables, bulk: None, dropped: false }),
            writer: Mutex::new(writer),
            visible: ArcSwap::from_pointee(visible),
            flush: Mutex::default(),
            bulk_bytes: AtomicU64::new(0),
            fragment_bytes: AtomicU64::new(resident as u64),
            held_bytes: AtomicU64::new(0),
        }
    }

    /// Applies the last states of an epoch's documents; `gap` raises the floor. `lsn` is where the
    /// epoch's record begins in the log.
    pub fn apply(
        &self,
        mark: &EpochMark,
        documents: &[Document<'_>],
        gap: bool,
        lsn: Lsn,
    ) -> Result<()> {
        let mut writer = lock(&self.writer);
        if mark.epoch <= writer.applied {
            // A crash took the end of the log, but this index had it in fragments already.
            return Ok(());
        }
        let visible = self.visible.load_full();
        let changes = Changes::of(self, &writer, &visible, documents)?;
        let run = changes.into_run(&mut writer, mark.epoch)?;
        writer.horizon = writer.horizon.max(mark.horizon);
        writer.applied = mark.epoch;
        writer.floor_raised |= gap;
        if run.is_some() || !writer.memtable.is_empty() || gap {
            writer.unflushed.get_or_insert((mark.epoch, lsn));
        }
        if run.is_some() || gap {
            let mut next = Visible::clone(&visible);
            next.runs.extend(run.map(Arc::new));
            if gap {
                next.floor = next.floor.map(|floor| floor.max(mark.epoch));
            }
            self.visible.store(Arc::new(next));
        }
        Ok(())
    }

    /// Does the id of a document alone decide which slice it is in? Not where slices were split or
    /// cloned: these have numbers that the topology does not know.
    pub fn is_by_id(&self, visible: &Visible) -> bool {
        let by_id = matches!(self.info.spec.partition, PartitionBy::DocumentId);
        let last = visible.slices.last_key_value().map(|(slice, _)| slice.0);
        by_id && last.is_none_or(|last| last < self.info.topology.slices())
    }

    /// The slice that a document belongs to, where its id alone decides that.
    pub fn slice_of_id(&self, id: &str) -> SliceNo {
        self.info.topology.partition(PartitionKey::Id(id))
    }

    /// Bytes of memory that a flush does not give back.
    pub fn resident_bytes(&self) -> u64 {
        self.fragment_bytes.load(Ordering::Relaxed) + self.held_bytes.load(Ordering::Relaxed)
    }

    /// Counts what work under way needs of memory.
    pub fn hold(&self, bytes: u64) -> Held<'_> {
        self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        Held { counter: &self.held_bytes, bytes }
    }

    /// Bytes of memory that wait to be written to fragments.
    pub fn memory_bytes(&self) -> u64 {
        let visible = self.visible.load();
        let runs: usize = visible.runs.iter().map(|run| run.memory_bytes()).sum();
        let writer = lock(&self.writer);
        let frozen = writer.frozen.as_ref().map_or(0, |frozen| frozen.size());
        (runs + writer.memtable.size() + frozen) as u64
    }

    /// Has it as much in memory as it can tell apart?
    pub fn is_full(&self) -> bool {
        lock(&self.writer).memtable.is_full()
    }

    /// Where the log begins to be needed for what is in memory, and since which epoch. An index that is
    /// being built does not need it: a crash begins the build anew.
    pub fn needs_log(&self) -> Option<(Epoch, Lsn)> {
        let writer = lock(&self.writer);
        match (writer.frozen_unflushed, writer.unflushed) {
            _ if writer.building => None,
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.min(other.1))),
            (one, other) => one.or(other),
        }
    }

    /// Is there a merge of runs to make?
    pub fn is_worth_merging(&self) -> bool {
        let writer = lock(&self.writer);
        !writer.merging && self.choose_runs(&writer).is_some()
    }

    fn choose_runs(&self, writer: &Writer) -> Option<std::ops::Range<usize>> {
        let visible = self.visible.load();
        let sizes: Vec<_> =
            visible.runs[writer.frozen_runs..].iter().map(|run| run.bytes()).collect();
        let range = compaction::choose(&sizes, compaction::RUNS_MIN, RUN_BYTES_MAX)?;
        Some(range.start + writer.frozen_runs..range.end + writer.frozen_runs)
    }

    /// Merges runs where that pays, until it does not, unless somebody does already.
    pub fn merge_runs(&self) -> Result<()> {
        loop {
            let (inputs, protected) = {
                let mut writer = lock(&self.writer);
                if writer.merging {
                    return Ok(());
                }
                let Some(range) = self.choose_runs(&writer) else { return Ok(()) };
                writer.merging = true;
                let protected = Protected { horizon: writer.horizon, points: Vec::new() };
                (self.visible.load().runs[range].to_vec(), protected)
            };
            let merged = merge_tables(&inputs, &protected, Epoch(u64::MAX));
            let mut writer = lock(&self.writer);
            writer.merging = false;
            let merged = merged?;
            let mut next = Visible::clone(&self.visible.load());
            let at = next.runs.iter().position(|run| Arc::ptr_eq(run, &inputs[0]));
            let Some(at) = at.filter(|at| {
                let there = next.runs.get(*at..*at + inputs.len());
                // A flush may have taken some of them meanwhile: then they are no more to be replaced.
                *at >= writer.frozen_runs && there.is_some_and(|there| same_tables(there, &inputs))
            }) else {
                continue;
            };
            next.runs.splice(at..at + inputs.len(), merged.map(Arc::new));
            next.floor = next.floor.map(|floor| floor.max(protected.horizon));
            self.visible.store(Arc::new(next));
        }
    }

    /// Merges the runs that a flush has set aside into one: reads meet few sources while the flush writes
    /// it, and its blocks are written as they are.
    pub fn merge_frozen(&self, runs: &mut Vec<Arc<Table>>, protected: &Protected) -> Result<()> {
        if runs.len() < 2 {
            return Ok(());
        }
        let _both = self.hold(runs.iter().map(|run| run.bytes()).sum());
        let merged: Vec<_> =
            merge_tables(runs, protected, Epoch(u64::MAX))?.map(Arc::new).into_iter().collect();
        let mut writer = lock(&self.writer);
        let mut next = Visible::clone(&self.visible.load());
        let there = next.runs.get(..runs.len());
        if !there.is_some_and(|there| same_tables(there, runs)) {
            // The index was dropped meanwhile.
            return Ok(());
        }
        next.runs.splice(..runs.len(), merged.iter().cloned());
        next.floor = next.floor.map(|floor| floor.max(protected.horizon));
        writer.frozen_runs = merged.len();
        self.visible.store(Arc::new(next));
        *runs = merged;
        Ok(())
    }

    /// What readers see after a change of the lists; `change` may edit the rest.
    /// The writer's lock is held, so that no epoch is published meanwhile and lost.
    pub fn publish(
        &self,
        structure: &Structure,
        _writer: &mut Writer,
        change: impl FnOnce(&mut Visible),
    ) -> Result<()> {
        let slices = fragments(&structure.manifest, &structure.tables)?;
        let resident: usize = structure.tables.values().map(|table| table.memory_bytes()).sum();
        self.fragment_bytes.store(resident as u64, Ordering::Relaxed);
        let mut next = Visible::clone(&self.visible.load());
        next.slices = slices;
        change(&mut next);
        // A compaction may have raised the floor of the lists while what changes here was prepared.
        if next.floor.is_some() {
            next.floor = next.floor.max(structure.manifest.floor);
        }
        self.visible.store(Arc::new(next));
        Ok(())
    }
}

impl Structure {
    /// Forgets the tables that no list names any more, and returns them.
    pub fn take_unnamed(&mut self) -> Vec<(FileId, Arc<Table>)> {
        let named: BTreeSet<FileId> = self.manifest.files();
        let unnamed: Vec<FileId> =
            self.tables.keys().filter(|file| !named.contains(file)).copied().collect();
        unnamed.into_iter().filter_map(|file| Some((file, self.tables.remove(&file)?))).collect()
    }
}

fn same_tables(left: &[Arc<Table>], right: &[Arc<Table>]) -> bool {
    left.iter().zip(right).all(|(left, right)| Arc::ptr_eq(left, right))
}

/// One run of several, with the rows up to an epoch.
pub fn merge_tables(
    inputs: &[Arc<Table>],
    protected: &Protected,
    newest: Epoch,
) -> Result<Option<Table>> {
    let mut out = TableBuilder::default();
    let rewrite = Rewrite { protected: protected.clone(), back: false };
    for slice in slices_of(inputs) {
        let sources = inputs
            .iter()
            .map(|table| Source { epochs: Epoch(0)..=newest, ..Source::whole(table, slice) });
        rewrite.slice(slice, sources.collect(), false, &mut out)?;
    }
    out.finish()
}

/// The slices that have rows in some tables, ascending.
pub fn slices_of(tables: &[Arc<Table>]) -> BTreeSet<SliceNo> {
    tables.iter().flat_map(|table| table.index.sections().iter().map(|s| s.slice)).collect()
}

/// The sources that the lists of a manifest mean.
pub fn fragments(
    manifest: &IndexManifest,
    tables: &BTreeMap<FileId, Arc<Table>>,
) -> Result<BTreeMap<SliceNo, Arc<Fragments>>> {
    let mut slices = BTreeMap::new();
    for (slice, lists) in &manifest.slices {
        let mut fragments = Fragments::default();
        for group in &lists.groups {
            for item in &group.items {
                let table = tables.get(&item.file).ok_or_else(|| {
                    let text =
                        format!("a manifest names fragment {}, which is not here", item.file);
                    Error::new(ErrorCode::Corrupt, text)
                })?;
                let source = source_of(table, *slice, item);
                match item.columns.contains(Columns::BACK) {
                    true => fragments.back.push(source),
                    false => fragments.forward.push(source),
                }
            }
        }
        slices.insert(*slice, Arc::new(fragments));
    }
    Ok(slices)
}

/// What an item of a slice's list means.
pub fn source_of(table: &Arc<Table>, slice: SliceNo, item: &ListItem) -> Source {
    // The range of a back fragment restricts the entries inside the states, not the documents.
    let (range, keys) = match item.columns.contains(Columns::BACK) {
        true => (KeyRange::all(), item.range.clone()),
        false => (item.range.clone(), KeyRange::all()),
    };
    let epochs = item.epochs.from..=item.epochs.to;
    Source { table: Arc::clone(table), slice, rows_of: item.rows_of, range, epochs, keys }
}

/// An index at one epoch.
pub struct SlotSnapshot {
    info: Arc<IndexInfo>,
    epoch: Epoch,
    visible: Arc<Visible>,
}

impl SlotSnapshot {
    /// A snapshot of what is visible.
    pub fn new(info: Arc<IndexInfo>, epoch: Epoch, visible: Arc<Visible>) -> Self {
        Self { info, epoch, visible }
    }
}

impl Snapshot for SlotSnapshot {
    fn info(&self) -> &Arc<IndexInfo> {
        &self.info
    }

    fn is_in_memory(&self) -> bool {
        self.visible.slices.values().all(|fragments| fragments.forward.is_empty())
    }

    fn rows(
        &self,
        slices: &[SliceNo],
        range: &KeyRange,
        reverse: bool,
        include: bool,
    ) -> Result<Box<dyn Rows>> {
        let mut sources = Vec::new();
        for slice in slices {
            let Some(fragments) = self.visible.slices.get(slice) else {
                let message = format!("slice {slice} of index {} is not here", self.info.id);
                return Err(Error::new(ErrorCode::SliceMoved, message));
            };
            sources.extend(fragments.forward.iter().cloned());
            sources.extend(self.visible.runs.iter().map(|run| Source::whole(run, *slice)));
        }
        sources.retain(|source| source.table.stats.oldest <= self.epoch);
        let sources = sources.into_iter().map(|source| source.clip(range));
        Ok(Box::new(VisibleRows::new(sources, self.epoch, reverse, include)?))
    }
}
