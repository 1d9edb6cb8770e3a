//! One index on this node: what its writer keeps, what readers see of it, and its lists of fragments.
//!
//! Readers take an `Arc` of what is visible and are never waited for. Two locks order the rest:
//! `structure` is held while lists of fragments change, until the manifest is synced; `writer` only for
//! changes of memory (an epoch, the end of a flush). Who takes both takes `structure` first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use arc_swap::{ArcSwap, ArcSwapOption};
use proto::Result;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, SliceNo};
use proto::model::index::{IndexInfo, PartitionBy};
use proto::model::topology::{PartitionKey, TopologyProvider};
use tokio::sync::watch;

use super::bulk::Bulk;
use super::changes::Changes;
use super::compaction;
use super::cursor::Source;
use super::edits::grouping_of;
use super::epoch::Document;
use super::files::Files;
use super::load_state::{Answer, LoadEvent, LoadRequest, LoadState};
use super::loading;
use super::log::Lsn;
use super::manifest::{FileId, Grouping, IndexManifest, SliceLists};
use super::rewrite::Rewrite;
use super::table::{Table, TableBuilder};
use super::versions::Protected;
use super::visible::{Visible, fragments};
use super::writer::{Figures, Writer, WriterGuard};

/// Runs in memory are merged up to this size.
const RUN_BYTES_MAX: u64 = 48 << 20;

/// One index.
pub struct Slot {
    /// Its definition when its slices were made.
    pub info: Arc<IndexInfo>,
    /// The lists of fragments.
    pub structure: Mutex<Structure>,
    /// What only the writer of the bucket, and the ends of flushes and merges, touch.
    writer: Mutex<Writer>,
    /// What of it anybody may know at any time.
    pub figures: Figures,
    /// What readers see.
    pub visible: ArcSwap<Visible>,
    /// One flush at a time.
    pub flush: Mutex<()>,
    /// A backfill goes on,
    pub backfilling: AtomicBool,
    /// of which so many bytes wait to be written.
    pub bulk_bytes: AtomicU64,
    /// Bytes of the fragments' indexes and filters.
    fragment_bytes: AtomicU64,
    /// A slice is being given away: its files are not replaced by compactions.
    pub keeps_files: AtomicBool,
    /// How many fragments its longest list has.
    pub lists_max: AtomicUsize,
    /// Where it is in its life on this node.
    pub load: watch::Sender<LoadState>,
    /// What keeps it from being loaded.
    pub load_trouble: ArcSwapOption<String>,
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

/// Locks; what a panicking holder left is still whole enough to be read.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Slot {
    /// Some slices of an index, which are to be built.
    pub fn begin(info: Arc<IndexInfo>, slices: &[SliceNo], grouping: Grouping) -> Self {
        let groups = grouping_of(&info, grouping).groups();
        let lists = |slice: &SliceNo| (*slice, SliceLists::new(groups));
        let manifest = IndexManifest {
            info,
            floor: None,
            points: Vec::new(),
            arrived: BTreeMap::new(),
            flushed: Epoch(0),
            slices: slices.iter().map(lists).collect(),
            entries: BTreeMap::new(),
        };
        let slices = manifest.slices.keys().map(|slice| (*slice, Arc::default())).collect();
        let visible = Visible { slices, ..Visible::default() };
        let writer = Writer { building: true, ..Writer::default() };
        Self::with(manifest, BTreeMap::new(), writer, visible, LoadState::Active)
    }

    /// An index as its manifest says, with the fragments that a replay of the log asks open.
    pub fn open(manifest: IndexManifest, files: &Files) -> Result<Self> {
        let mut load = LoadState::default().after(LoadEvent::Load)?;
        let tables = loading::open_back(&manifest, files)?;
        load = load.after(LoadEvent::ManifestRead)?;
        let (visible, writer) = (Visible::of(&manifest, &tables, load)?, Writer::of(&manifest));
        Ok(Self::with(manifest, tables, writer, visible, load))
    }

    /// An index as its manifest says, with all fragments that it names.
    pub fn whole(manifest: IndexManifest, tables: BTreeMap<FileId, Arc<Table>>) -> Result<Self> {
        let load = LoadState::Active;
        let (visible, writer) = (Visible::of(&manifest, &tables, load)?, Writer::of(&manifest));
        Ok(Self::with(manifest, tables, writer, visible, load))
    }

    fn with(
        manifest: IndexManifest,
        tables: BTreeMap<FileId, Arc<Table>>,
        writer: Writer,
        visible: Visible,
        load: LoadState,
    ) -> Self {
        let resident: usize = tables.values().map(|table| table.memory_bytes()).sum();
        let figures = Figures::of(&writer);
        Self {
            info: Arc::clone(&manifest.info),
            structure: Mutex::new(Structure { manifest, tables, bulk: None, dropped: false }),
            writer: Mutex::new(writer),
            figures,
            visible: ArcSwap::from_pointee(visible),
            flush: Mutex::default(),
            backfilling: AtomicBool::new(false),
            bulk_bytes: AtomicU64::new(0),
            fragment_bytes: AtomicU64::new(resident as u64),
            keeps_files: AtomicBool::new(false),
            lists_max: AtomicUsize::new(0),
            load: watch::Sender::new(load),
            load_trouble: ArcSwapOption::empty(),
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
        if self.load_state().answer(LoadRequest::Write) == Answer::Refuse {
            // It is being dropped.
            return Ok(());
        }
        let mut writer = self.writer();
        if mark.epoch <= writer.applied {
            // A crash took the end of the log, but this index had it in fragments already.
            return Ok(());
        }
        let visible = self.visible.load_full();
        let changes = Changes::of(self, &writer, &visible, documents)?;
        let run = changes.into_run(&mut writer, mark.epoch)?;
        if mark.horizon >= writer.protected.horizon {
            writer.protected = Protected::of(mark);
        }
        let before = std::mem::replace(&mut writer.applied, mark.epoch);
        if run.is_some() || !writer.memtable.is_empty() || gap {
            writer.unflushed.get_or_insert((mark.epoch, lsn));
        }
        if run.is_some() || gap {
            let mut next = Visible::clone(&visible);
            next.runs.extend(run.map(Arc::new));
            if gap {
                let mut kept = Protected::of(mark);
                kept.points.retain(|point| *point <= before);
                next.narrow(&Protected { horizon: mark.epoch, ..kept });
            }
            self.visible.store(Arc::new(next));
        }
        Ok(())
    }

    /// The slices that are here, or are being built, ascending.
    pub fn slices(&self) -> Vec<SliceNo> {
        self.visible.load().slices.keys().copied().collect()
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

    /// Takes the writer's lock.
    pub fn writer(&self) -> WriterGuard<'_> {
        WriterGuard::new(lock(&self.writer), &self.figures)
    }

    /// Bytes of memory that wait to be written to fragments.
    pub fn memory_bytes(&self) -> u64 {
        let visible = self.visible.load();
        let runs: usize = visible.runs.iter().map(|run| run.memory_bytes()).sum();
        runs as u64 + self.figures.memtable_bytes()
    }

    /// Is there a merge of runs to make?
    pub fn is_worth_merging(&self) -> bool {
        let writer = self.writer();
        !writer.merging && self.choose_runs(&writer).is_some()
    }

    fn choose_runs(&self, writer: &Writer) -> Option<std::ops::Range<usize>> {
        let visible = self.visible.load();
        // An index that was dropped in the midst of a flush has none.
        let sizes: Vec<_> =
            visible.runs.get(writer.frozen_runs..)?.iter().map(|run| run.bytes()).collect();
        let range = compaction::choose(&sizes, compaction::RUNS_MIN, RUN_BYTES_MAX)?;
        Some(range.start + writer.frozen_runs..range.end + writer.frozen_runs)
    }

    /// Merges runs where that pays, until it does not, unless somebody does already.
    pub fn merge_runs(&self) -> Result<()> {
        loop {
            let (inputs, protected) = {
                let mut writer = self.writer();
                if writer.merging {
                    return Ok(());
                }
                let Some(range) = self.choose_runs(&writer) else { return Ok(()) };
                writer.merging = true;
                let protected = writer.protected.clone();
                (self.visible.load().runs[range].to_vec(), protected)
            };
            let merged = merge_tables(&inputs, &protected, Epoch(u64::MAX));
            let mut writer = self.writer();
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
            next.narrow(&protected);
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
        next.narrow(protected);
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
        let slices = fragments(&structure.manifest, &structure.tables, self.load_state())?;
        let resident: usize = structure.tables.values().map(|table| table.memory_bytes()).sum();
        self.fragment_bytes.store(resident as u64, Ordering::Relaxed);
        let longest = slices.values().map(|fragments| fragments.longest()).max();
        self.lists_max.store(longest.unwrap_or(0), Ordering::Relaxed);
        let mut next = Visible::clone(&self.visible.load());
        next.slices = slices;
        next.arrived = structure.manifest.arrived.clone();
        change(&mut next);
        // A compaction may have raised the floor of the lists while what changes here was prepared.
        if let Some(reach) = structure.manifest.reach() {
            next.narrow(&reach);
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
