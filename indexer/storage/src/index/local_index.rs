//! One index on this node: what its writer keeps, what readers see of it, and its lists of fragments.
//!
//! Readers take an `Arc` of what is visible and are never waited for. Two locks order the rest:
//! `structure` is held while lists of fragments change, until the manifest is synced; `writer` only for
//! changes of memory (an epoch, the end of a flush). Who takes both takes `structure` first.

use proto::Error;
use proto::ErrorCode;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::{ArcSwap, ArcSwapOption};
use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use proto::model::index::{IndexInfo, PartitionBy};
use proto::model::topology::{PartitionKey, TopologyProvider};
use tokio::sync::watch;

use crate::file_id::FileId;
use crate::files::data_files::Files;
use crate::index::fragment_lists::{Structure, open_back};
use crate::index::load_state::{Answer, LoadEvent, LoadRequest, LoadState};
use crate::index::writer_state::{Figures, Writer, WriterGuard};
use crate::lock::lock;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::lists::SliceLists;
use crate::read::index_version::Visible;
use crate::read::slice_fragments::fragments;
use crate::rows::columns::Grouping;
use crate::tables::table::Table;

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

impl Slot {
    /// Some slices of an index, which are to be built.
    pub fn begin(info: Arc<IndexInfo>, slices: &[SliceNo], grouping: Grouping) -> Self {
        let groups = grouping.possible_for(&info).groups();
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
        let tables = open_back(&manifest, files)?;
        load = load.after(LoadEvent::ManifestRead)?;
        let (visible, writer) =
            (Visible::of(&manifest, &tables, load.unopened())?, Writer::of(&manifest));
        Ok(Self::with(manifest, tables, writer, visible, load))
    }

    /// An index as its manifest says, with all fragments that it names.
    pub fn whole(manifest: IndexManifest, tables: BTreeMap<FileId, Arc<Table>>) -> Result<Self> {
        let load = LoadState::Active;
        let (visible, writer) =
            (Visible::of(&manifest, &tables, load.unopened())?, Writer::of(&manifest));
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

    /// What readers see after a change of the lists; `change` may edit the rest.
    /// The writer's lock is held, so that no epoch is published meanwhile and lost.
    pub fn publish(
        &self,
        structure: &Structure,
        _writer: &mut Writer,
        change: impl FnOnce(&mut Visible),
    ) -> Result<()> {
        let slices =
            fragments(&structure.manifest, &structure.tables, self.load_state().unopened())?;
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

    /// What keeps it from being loaded.
    pub fn load_trouble(&self) -> Option<String> {
        self.load_trouble.load().as_ref().map(|trouble| trouble.to_string())
    }

    /// Where it is in its life.
    pub fn load_state(&self) -> LoadState {
        *self.load.borrow()
    }

    /// An event moves it on.
    pub fn advance(&self, event: LoadEvent) -> Result<()> {
        let next = self.load_state().after(event)?;
        self.load.send_replace(next);
        Ok(())
    }

    /// The same, if the event can happen at all.
    pub fn go_on(&self, event: LoadEvent) {
        if let Ok(next) = self.load_state().after(event) {
            self.load.send_replace(next);
        }
    }

    /// An error, unless reads are served.
    pub fn check_readable(&self) -> Result<()> {
        let index = self.info.id;
        match self.load_state().answer(LoadRequest::Read) {
            Answer::Serve => Ok(()),
            Answer::Defer => Err(Error::unavailable(format!("index {index} is being loaded"))),
            Answer::Refuse => Err(Error::new(
                ErrorCode::SliceMoved,
                format!("index {index} is not here any more"),
            )),
        }
    }
}
