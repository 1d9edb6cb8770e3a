//! The part of a transaction in one index: its changes in this index, stored as a small separate
//! index. The epochs of its rows are the transaction's *places*, the numbers of its changes.
//!
//! A part consists of its spilled pieces (changes on disk), oldest first, and the newest changes
//! in memory. One caller at a time changes the part. At the same time one spill may write the
//! changes that were in memory when it began. Like a flush, a spill sets the memory aside, writes
//! it without any lock, and then replaces it by the new piece in one step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock};

use arc_swap::ArcSwap;
use proto::Result;
use proto::lock::{read, write};
use proto::model::ids::{Epoch, SliceNo, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::plant::{self, Plant};
use xxhash_rust::xxh3::xxh3_64;

use crate::apply::delta::{BackIndexScope, EpochDelta, StagedEpoch};
use crate::apply::documents::EpochDocuments;
use crate::files::data_files::DataFiles;
use crate::index::memtable::BackMemtable;
use crate::index::writer_state::WriterState;
use crate::late_commit::changes::piece::SpilledPiece;
use crate::late_commit::changes::usage::Usage;
use crate::maintain::flush::put_states;
use crate::maintain::merge_runs::{choose_among, merge_tables, slices_of};
use crate::read::index_version::{IndexVersion, slice_of_id};
use crate::read::lookup::{FoundState, StateQuery, look_up};
use crate::read::source::Source;
use crate::retention::RetainedEpochs;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::{BlocksFrom, Table};

/// Fixed memory of a part in bytes, without its rows and its records of documents.
const PART_BYTES: u64 = 1 << 10;

/// Returns the epoch that rows of a change at a place get.
pub fn epoch_of(place: TransactionPlace) -> Epoch {
    Epoch(place.0)
}

/// The changes of a transaction in one index.
pub struct TransactionChanges {
    info: Arc<IndexInfo>,
    /// Records in memory of the documents that the transaction has changed, with their entries. No
    /// file is read or written under the lock.
    writer: RwLock<WriterState>,
    /// The visible rows. Replaced only by a caller that has locked `writer`.
    version: ArcSwap<PartVersion>,
}

/// The rows of a part, in memory and on disk, as readers see them.
#[derive(Clone, Default)]
pub struct PartVersion {
    /// The tables in memory, and the fragments of the pieces. The slices are those in which
    /// documents of the transaction may have entries so far.
    pub index: IndexVersion,
    /// The changes that were written to disk, oldest first.
    pieces: Vec<SpilledPiece>,
}

/// Everything in a part by slice, as a commit reads it.
#[derive(Default)]
pub struct PartSources {
    /// Rows of entries, one for each change of an entry.
    pub forward: BTreeMap<SliceNo, Vec<Source>>,
    /// Entry lists of documents, one for each change of a document.
    pub back: BTreeMap<SliceNo, Vec<Source>>,
}

impl PartSources {
    /// Returns the memory use in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let tables = self.forward.values().chain(self.back.values()).flatten();
        let in_memory = tables.filter(|source| source.table.fragment().is_none());
        // A table of several slices counts once for each: too much rather than too little.
        in_memory.map(|source| source.table.memory_bytes() as u64).sum()
    }
}

/// The memory of a part that a spill is writing.
struct FrozenChanges {
    runs: Vec<Arc<Table>>,
    memtable: Arc<BackMemtable>,
}

impl TransactionChanges {
    /// Creates a part without changes.
    pub fn new(info: Arc<IndexInfo>) -> Self {
        Self { info, writer: RwLock::default(), version: ArcSwap::default() }
    }

    /// Adds the changes of a segment (changes of different documents). All of their places are
    /// above `from`. Must not be called concurrently.
    pub fn add_changes(
        &self,
        documents: &EpochDocuments<'_>,
        from: TransactionPlace,
    ) -> Result<()> {
        let (version, slices, (delta, wanted)) = {
            let writer = read(&self.writer);
            let mut version = self.version.load().index.clone();
            let slices = self.slices_of(documents, &version);
            for slice in &slices {
                version.slices.entry(*slice).or_default();
            }
            let in_memory = EpochDelta::look_up_in_memory(&self.info, &writer, &version, documents);
            (version, slices, in_memory)
        };
        let delta = delta.look_up_in_fragments(&version, wanted)?;
        // The earlier entries of the documents are not known here, so each document is recorded, even without entries.
        let staged = delta.stage(BackIndexScope::EveryDocument, epoch_of(from))?;
        self.publish(staged, &slices, from);
        self.merge_runs()
    }

    /// Returns the slices in which the changed documents may have entries.
    fn slices_of(
        &self,
        documents: &EpochDocuments<'_>,
        version: &IndexVersion,
    ) -> BTreeSet<SliceNo> {
        let concerned = documents.of_index(self.info.local_id());
        if version.is_by_id(&self.info) {
            return concerned
                .map(|(document, _)| slice_of_id(&self.info, document.versions.id))
                .collect();
        }
        // A document without entries is recorded in the first slice, because it must be in some slice. Views check only whether a document
        // was changed, not in which slice.
        let entries = concerned.flat_map(|(_, keys)| keys.entries().map(|entry| entry.slice));
        entries.chain([SliceNo(0)]).collect()
    }

    /// Adds computed changes to the part and makes their rows visible.
    fn publish(&self, staged: StagedEpoch<'_>, slices: &BTreeSet<SliceNo>, from: TransactionPlace) {
        let mut writer = write(&self.writer);
        let run = staged.publish(&mut writer, epoch_of(from));
        let mut next = PartVersion::clone(&self.version.load());
        for slice in slices {
            next.index.slices.entry(*slice).or_default();
        }
        next.index.runs.extend(run.map(Arc::new));
        self.version.store(Arc::new(next));
    }

    /// Merges tables in memory as long as a merge is worthwhile. Tables that a spill is writing
    /// are not merged.
    fn merge_runs(&self) -> Result<()> {
        loop {
            let inputs = {
                let writer = read(&self.writer);
                let version = self.version.load();
                let free = &version.index.runs[writer.frozen_runs..];
                choose_among(free).map(|range| free[range].to_vec())
            };
            let Some(inputs) = inputs else { return Ok(()) };
            // Every place can be read, so all versions stay.
            let merged = merge_tables(&inputs, &RetainedEpochs::default(), Epoch(u64::MAX))?;
            let writer = write(&self.writer);
            let mut next = PartVersion::clone(&self.version.load());
            let runs = &mut next.index.runs;
            let at = runs.iter().position(|run| Arc::ptr_eq(run, &inputs[0]));
            let Some(at) = at.filter(|at| *at >= writer.frozen_runs) else {
                // A spill has set all runs aside meanwhile.
                return Ok(());
            };
            runs.splice(at..at + inputs.len(), merged.map(Arc::new));
            self.version.store(Arc::new(next));
        }
    }

    /// Writes the changes in memory to disk, as a piece. Must not be called concurrently. After an
    /// error all changes are still in memory, and no later call writes them. Blocks the thread.
    pub fn spill(&self, files: &Arc<DataFiles>, usage: &Arc<Usage>) -> Result<()> {
        let Some(FrozenChanges { runs, memtable }) = self.freeze_changes() else { return Ok(()) };
        let compression = self.info.spec.compression;
        let piece = SpilledPiece::write(files, usage, compression, &runs, &memtable)?;
        let mut writer = write(&self.writer);
        let mut next = PartVersion::clone(&self.version.load());
        next.index.runs.drain(..writer.frozen_runs);
        piece.add_to(&mut next.index.slices);
        next.pieces.push(piece);
        // The piece is there before the states leave memory, so a view that finds a document in neither looks for it in both.
        self.version.store(Arc::new(next));
        (writer.frozen, writer.frozen_runs) = (None, 0);
        Ok(())
    }

    /// Sets the memory aside for a spill; `None` if it is empty or is set aside already.
    fn freeze_changes(&self) -> Option<FrozenChanges> {
        let mut writer = write(&self.writer);
        if writer.frozen.is_some() || writer.memtable.is_empty() {
            return None;
        }
        let memtable = Arc::new(std::mem::take(&mut writer.memtable));
        let runs = self.version.load().index.runs.clone();
        writer.frozen = Some(Arc::clone(&memtable));
        writer.frozen_runs = runs.len();
        Some(FrozenChanges { runs, memtable })
    }

    /// Returns the part as it was at an earlier place, for a rollback. No file is rewritten.
    pub fn rolled_back_to(&self, place: TransactionPlace) -> Result<Self> {
        let place = epoch_of(place);
        let mut memtable = BackMemtable::default();
        let version = {
            let writer = read(&self.writer);
            for states in writer.frozen.as_deref().into_iter().chain([&writer.memtable]) {
                memtable.append(states, place);
            }
            self.version.load_full()
        };
        let run = merge_tables(&version.index.runs, &RetainedEpochs::default(), place)?;
        let mut slices =
            version.index.slices.keys().map(|slice| (*slice, Arc::default())).collect();
        let pieces: Vec<_> =
            version.pieces.iter().filter_map(|piece| piece.restricted_to(place)).collect();
        pieces.iter().for_each(|piece| piece.add_to(&mut slices));
        let runs = run.map(Arc::new).into_iter().collect();
        let index = IndexVersion { slices, runs, ..IndexVersion::default() };
        Ok(Self {
            info: Arc::clone(&self.info),
            writer: RwLock::new(WriterState { memtable, ..WriterState::default() }),
            version: ArcSwap::from_pointee(PartVersion { index, pieces }),
        })
    }

    /// Returns all rows, and all entry lists of documents. Lists in memory are copied into tables.
    pub fn sources(&self) -> Result<PartSources> {
        let every = RetainedEpochs::default();
        let mut tables = Vec::new();
        let version = {
            let writer = read(&self.writer);
            for memtable in writer.frozen.as_deref().into_iter().chain([&writer.memtable]) {
                let mut out = TableBuilder::default();
                put_states(memtable, &every, &mut out)?;
                tables.extend(out.finish()?.map(Arc::new));
            }
            // Under the lock, so that a spill that ends now leaves nothing in neither.
            self.version.load_full()
        };
        let mut sources = PartSources::default();
        let on_disk = version.index.slices.iter();
        for (slice, lists) in on_disk.filter(|_| !plant::is(Plant::HalfSpilledShown)) {
            sources.forward.entry(*slice).or_default().extend(lists.rows(true).iter().cloned());
            sources.back.entry(*slice).or_default().extend(lists.back.iter().cloned());
        }
        let mut add = |lists: fn(&mut PartSources) -> &mut BTreeMap<_, Vec<_>>, tables: &[_]| {
            for slice in slices_of(tables) {
                let of_slice = lists(&mut sources).entry(slice).or_default();
                of_slice.extend(tables.iter().map(|table| Source::of_slice(table, slice)));
            }
        };
        add(|sources| &mut sources.forward, &version.index.runs);
        add(|sources| &mut sources.back, &tables);
        Ok(sources)
    }

    /// Returns the memory use in bytes.
    pub fn bytes(&self) -> u64 {
        let writer = read(&self.writer);
        let version = self.version.load();
        let pieces: usize = version.pieces.iter().map(SpilledPiece::memory_bytes).sum();
        PART_BYTES + (memory_of(&writer, &version) + pieces) as u64
    }

    /// Returns the bytes of memory that a spill frees; 0 while a spill is writing.
    pub fn spillable_bytes(&self) -> u64 {
        let writer = read(&self.writer);
        match writer.frozen.is_some() || writer.memtable.is_empty() {
            true => 0,
            false => memory_of(&writer, &self.version.load()) as u64,
        }
    }

    /// Returns the bytes on disk of the pieces' files.
    pub fn disk_bytes(&self) -> u64 {
        self.version.load().pieces.iter().map(SpilledPiece::disk_bytes).sum()
    }

    /// Returns true if the records of documents in memory have reached their maximum number of
    /// chunks, so that no more changes should be added.
    pub fn is_full(&self) -> bool {
        read(&self.writer).memtable.is_full()
    }

    /// Returns the present rows.
    pub fn version(&self) -> Arc<PartVersion> {
        self.version.load_full()
    }

    /// Looks up the newest entry lists of some documents, like [`look_up`]. May read files.
    pub fn look_up(
        &self,
        mut wanted: Vec<StateQuery<'_>>,
        found: &mut Vec<FoundState>,
        states: &mut Vec<u8>,
    ) -> Result<()> {
        let version = {
            let writer = read(&self.writer);
            let memtables = [Some(&writer.memtable), writer.frozen.as_deref()];
            for memtable in memtables.into_iter().flatten() {
                wanted.retain(|StateQuery { document, hash, slice, id }| {
                    let Some(state) = memtable.newest_state(*hash, id, *slice) else { return true };
                    found.push(FoundState::put(*document, *slice, state.state, states));
                    false
                });
            }
            self.version.load_full()
        };
        look_up(&version.index.slices, wanted, found, states)
    }

    /// Returns true if the transaction has changed a document at or before a place. The answer for
    /// a place never changes, because new changes have later places. `blocks` says whether files
    /// may be read.
    pub fn has_changed(&self, id: &[u8], place: Epoch, blocks: BlocksFrom) -> Result<bool> {
        let hash = xxh3_64(id);
        let version = {
            let writer = read(&self.writer);
            let memtables = [Some(&writer.memtable), writer.frozen.as_deref()];
            let mut states = memtables.into_iter().flatten().flat_map(|of| of.states_of(hash, id));
            if states.any(|state| state.epoch <= place) {
                return Ok(true);
            }
            self.version.load()
        };
        for piece in version.pieces.iter().rev() {
            if piece.has_changed(id, hash, place, blocks)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns the bytes of memory of the rows and the records of documents.
fn memory_of(writer: &WriterState, version: &PartVersion) -> usize {
    let runs: usize = version.index.runs.iter().map(|run| run.memory_bytes()).sum();
    runs + writer.memtable.size() + writer.frozen.as_ref().map_or(0, |frozen| frozen.size())
}
