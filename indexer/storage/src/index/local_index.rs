//! One index on this node: the writer's state, the version that readers see, and the lists of
//! fragments.
//!
//! Readers take an `Arc` of the newest version and never block a writer. Two locks order the
//! writers: `fragment_lists` is held while lists change, until the manifest is synced; `writer` is
//! held only for changes in memory (an epoch, the end of a flush). A thread that takes both takes
//! `fragment_lists` first. A flush takes the lock `flush` before both.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::{ArcSwap, ArcSwapOption};
use proto::lock::lock;
use proto::model::ids::{Epoch, SliceNo};
use proto::model::index::IndexInfo;
use proto::{Error, ErrorCode, Result};
use tokio::sync::watch;

use crate::file_id::FileId;
use crate::files::data_files::DataFiles;
use crate::index::fragment_lists::{FragmentLists, open_back};
use crate::index::load_state::{Answer, LoadEvent, LoadRequest, LoadState};
use crate::index::writer_state::{IndexStats, WriterGuard, WriterState};
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::lists::SliceLists;
use crate::read::index_version::IndexVersion;
use crate::read::slice_fragments::slice_fragments;
use crate::rows::columns::Grouping;
use crate::tables::table::Table;

/// One index on this node.
pub struct LocalIndex {
    /// The definition of the index, and its topology at the time when its slices were created.
    pub info: Arc<IndexInfo>,
    /// Lists of fragments; locked during a change, until the manifest is synced.
    pub fragment_lists: Mutex<FragmentLists>,
    /// The writer's state. The bucket's writer changes it, and so does each flush or merge when it
    /// ends.
    writer: Mutex<WriterState>,
    /// Lock-free statistics of the writer.
    pub stats: IndexStats,
    /// The version that readers use.
    pub version: ArcSwap<IndexVersion>,
    /// Locked during a flush, so that only one flush of the index runs at a time.
    pub flush: Mutex<()>,
    /// True during a backfill.
    pub is_backfilling: AtomicBool,
    /// Number of bytes of the backfill that are gathered in memory.
    pub backfill_bytes: AtomicU64,
    /// Number of the backfill's entries so far, by slice. Reports read it without a lock.
    pub backfill_entries: ArcSwap<BTreeMap<SliceNo, u64>>,
    /// Memory of the fragments' sparse indexes and filters, in bytes.
    fragment_bytes: AtomicU64,
    /// True while a slice is being sent to another node; compactions then leave the index's files
    /// alone.
    pub keeps_files: AtomicBool,
    /// Number of fragments in the longest list.
    pub longest_list: AtomicUsize,
    /// The present load state, for waiting readers.
    pub load: watch::Sender<LoadState>,
    /// Error message of the last load, if it failed.
    pub load_trouble: ArcSwapOption<String>,
    /// Temporary memory of work in progress, in bytes.
    held_bytes: AtomicU64,
}

/// A guard that counts temporary memory as used until the guard is dropped.
pub struct TemporaryMemory<'a> {
    counter: &'a AtomicU64,
    bytes: u64,
}

impl Drop for TemporaryMemory<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl LocalIndex {
    /// Creates an index whose slices will be built from the source.
    pub fn building(info: Arc<IndexInfo>, slices: &[SliceNo], grouping: Grouping) -> Self {
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
        let version = IndexVersion { slices, ..IndexVersion::default() };
        let writer = WriterState { is_building: true, ..WriterState::default() };
        Self::from_parts(manifest, BTreeMap::new(), writer, version, LoadState::Active)
    }

    /// Creates an index from its manifest, and opens the fragments that a replay of the log needs.
    pub fn open(manifest: IndexManifest, files: &DataFiles) -> Result<Self> {
        let mut load = LoadState::default().state_after(LoadEvent::Load)?;
        let tables = open_back(&manifest, files)?;
        load = load.state_after(LoadEvent::ManifestRead)?;
        let (version, writer) = (
            IndexVersion::from_manifest(&manifest, &tables, load.unopened_policy())?,
            WriterState::from_manifest(&manifest),
        );
        Ok(Self::from_parts(manifest, tables, writer, version, load))
    }

    /// Creates an index from its manifest and the tables of all fragments that the manifest names.
    pub fn from_tables(
        manifest: IndexManifest,
        tables: BTreeMap<FileId, Arc<Table>>,
    ) -> Result<Self> {
        let load = LoadState::Active;
        let (version, writer) = (
            IndexVersion::from_manifest(&manifest, &tables, load.unopened_policy())?,
            WriterState::from_manifest(&manifest),
        );
        Ok(Self::from_parts(manifest, tables, writer, version, load))
    }

    /// Creates an index from its manifest, its open tables, and the version that readers see.
    fn from_parts(
        manifest: IndexManifest,
        tables: BTreeMap<FileId, Arc<Table>>,
        writer: WriterState,
        version: IndexVersion,
        load: LoadState,
    ) -> Self {
        let resident: usize = tables.values().map(|table| table.memory_bytes()).sum();
        let stats = IndexStats::from_writer(&writer);
        Self {
            info: Arc::clone(&manifest.info),
            fragment_lists: Mutex::new(FragmentLists {
                manifest,
                tables,
                backfill: None,
                is_dropped: false,
            }),
            writer: Mutex::new(writer),
            stats,
            version: ArcSwap::from_pointee(version),
            flush: Mutex::default(),
            is_backfilling: AtomicBool::new(false),
            backfill_bytes: AtomicU64::new(0),
            backfill_entries: ArcSwap::default(),
            fragment_bytes: AtomicU64::new(resident as u64),
            keeps_files: AtomicBool::new(false),
            longest_list: AtomicUsize::new(0),
            load: watch::Sender::new(load),
            load_trouble: ArcSwapOption::empty(),
            held_bytes: AtomicU64::new(0),
        }
    }

    /// Returns the slices on this node, including those being built, ascending.
    pub fn slices(&self) -> Vec<SliceNo> {
        self.version.load().slices.keys().copied().collect()
    }

    /// Returns the bytes of memory that a flush does not free.
    pub fn resident_bytes(&self) -> u64 {
        self.fragment_bytes.load(Ordering::Relaxed) + self.held_bytes.load(Ordering::Relaxed)
    }

    /// Counts temporary memory of work in progress as used, until the guard is dropped.
    pub fn count_temporary(&self, bytes: u64) -> TemporaryMemory<'_> {
        self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        TemporaryMemory { counter: &self.held_bytes, bytes }
    }

    /// Locks the writer's state.
    pub fn writer(&self) -> WriterGuard<'_> {
        WriterGuard::new(lock(&self.writer), &self.stats)
    }

    /// Returns the bytes of memory that a flush frees.
    pub fn memory_bytes(&self) -> u64 {
        let version = self.version.load();
        let runs: usize = version.runs.iter().map(|run| run.memory_bytes()).sum();
        runs as u64 + self.stats.memtable_bytes()
    }

    /// Publishes a new version for readers after a change of the lists. `change` may edit the new
    /// version before it is published. The caller holds the writer's lock: otherwise an epoch that
    /// is published at the same time would be lost.
    pub fn publish(
        &self,
        fragment_lists: &FragmentLists,
        _writer: &mut WriterState,
        change: impl FnOnce(&mut IndexVersion),
    ) -> Result<()> {
        let slices = slice_fragments(
            &fragment_lists.manifest,
            &fragment_lists.tables,
            self.load_state().unopened_policy(),
        )?;
        let resident: usize =
            fragment_lists.tables.values().map(|table| table.memory_bytes()).sum();
        self.fragment_bytes.store(resident as u64, Ordering::Relaxed);
        let longest = slices.values().map(|fragments| fragments.longest()).max();
        self.longest_list.store(longest.unwrap_or(0), Ordering::Relaxed);
        let mut next = IndexVersion::clone(&self.version.load());
        next.slices = slices;
        next.arrived = fragment_lists.manifest.arrived.clone();
        change(&mut next);
        // A compaction may have raised the floor of the lists while this change was prepared.
        if let Some(reach) = fragment_lists.manifest.readable_epochs() {
            next.restrict_readable(&reach);
        }
        self.version.store(Arc::new(next));
        Ok(())
    }

    /// Returns the error message of the last load, if it failed.
    pub fn load_error(&self) -> Option<String> {
        self.load_trouble.load().as_ref().map(|trouble| trouble.to_string())
    }

    /// Returns the present load state of the index.
    pub fn load_state(&self) -> LoadState {
        *self.load.borrow()
    }

    /// Moves the load state on after an event.
    pub fn advance(&self, event: LoadEvent) -> Result<()> {
        let next = self.load_state().state_after(event)?;
        self.load.send_replace(next);
        Ok(())
    }

    /// Moves the load state on after an event, if the event is possible in the present state.
    pub fn advance_if_possible(&self, event: LoadEvent) {
        if let Ok(next) = self.load_state().state_after(event) {
            self.load.send_replace(next);
        }
    }

    /// Returns an error unless the load state allows reads.
    pub fn check_readable(&self) -> Result<()> {
        let index = self.info.local_id();
        match self.load_state().answer(LoadRequest::Read) {
            Answer::Serve => Ok(()),
            Answer::Defer => {
                Err(Error::unavailable(format!("index {index} is being loaded on this node")))
            }
            Answer::Refuse => Err(Error::new(
                ErrorCode::SliceMoved,
                format!("index {index} is no longer on this node"),
            )),
        }
    }
}
