//! The part of a transaction in one index: a small index of its own, in memory, whose epochs are the transaction's places.

use std::collections::BTreeSet;
use std::sync::{Arc, RwLock, RwLockReadGuard};

use arc_swap::ArcSwap;
use proto::Result;
use proto::lock::{read, write};
use proto::model::ids::{Epoch, SliceNo, TransactionPlace};
use proto::model::index::IndexInfo;

use crate::apply::delta::{EpochDelta, Remembered};
use crate::apply::documents::EpochDocuments;
use crate::edit::rollback::memory_up_to;
use crate::index::writer_state::WriterState;
use crate::maintain::merge_runs::{choose_of, merge_tables};
use crate::read::index_version::{IndexVersion, slice_of_id};
use crate::retention::RetainedEpochs;
use crate::tables::table::Table;

/// Bytes of a part besides its rows and states.
const PART_BYTES: u64 = 1 << 10;

/// The epoch that stands for a place.
pub fn epoch_of(place: TransactionPlace) -> Epoch {
    Epoch(place.0)
}

/// The part of a transaction in one index.
pub struct OwnPart {
    info: Arc<IndexInfo>,
    /// States of the documents that the transaction has changed. Views read them, so they are locked for writing only while
    /// states are added.
    writer: RwLock<WriterState>,
    /// The runs. The slices are those that a document of the transaction could have entries in so far.
    version: ArcSwap<IndexVersion>,
}

impl OwnPart {
    /// A part without changes.
    pub fn new(info: Arc<IndexInfo>) -> Self {
        Self { info, writer: RwLock::default(), version: ArcSwap::default() }
    }

    /// Adds the changes of a segment that concern the index, all of places above `from`. One caller at a time.
    pub fn take(&self, documents: &EpochDocuments<'_>, from: TransactionPlace) -> Result<()> {
        let mut version = IndexVersion::clone(&self.version.load());
        for slice in self.slices_of(documents, &version) {
            version.slices.entry(slice).or_default();
        }
        let staged = {
            let writer = read(&self.writer);
            let delta = EpochDelta::look_up(&self.info, &writer, &version, documents)?;
            // The earlier entries of the documents are not known here, so each document is remembered, also one without entries.
            delta.stage(Remembered::EveryDocument, epoch_of(from))?
        };
        let run = staged.publish(&mut write(&self.writer), epoch_of(from));
        version.runs.extend(run.map(Arc::new));
        while let Some(range) = choose_of(&version.runs) {
            // Every place can be asked for, so all versions stay.
            let every = RetainedEpochs::default();
            let merged = merge_tables(&version.runs[range.clone()], &every, Epoch(u64::MAX))?;
            version.runs.splice(range, merged.map(Arc::new));
        }
        self.version.store(Arc::new(version));
        Ok(())
    }

    /// The slices that documents may have entries in.
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
        // A document without entries is remembered in the first slice: one must be there. Views ask only whether a document was
        // changed, not in which slice.
        let entries = concerned.flat_map(|(_, keys)| keys.entries().map(|entry| entry.slice));
        entries.chain([SliceNo(0)]).collect()
    }

    /// The part as it was at a place.
    pub fn up_to(&self, place: TransactionPlace) -> Result<Self> {
        let version = self.version.load();
        let memtable = &read(&self.writer).memtable;
        let (run, memtable) = memory_up_to(&version.runs, [memtable], epoch_of(place))?;
        let (slices, runs) = (version.slices.clone(), run.map(Arc::new).into_iter().collect());
        let next = IndexVersion { slices, runs, ..IndexVersion::default() };
        Ok(Self {
            info: Arc::clone(&self.info),
            writer: RwLock::new(WriterState { memtable, ..WriterState::default() }),
            version: ArcSwap::from_pointee(next),
        })
    }

    /// Memory in use, in bytes.
    pub fn bytes(&self) -> u64 {
        let runs: usize = self.version.load().runs.iter().map(|run| run.memory_bytes()).sum();
        PART_BYTES + (runs + read(&self.writer).memtable.size()) as u64
    }

    /// True if the part can take no further changes.
    pub fn is_full(&self) -> bool {
        read(&self.writer).memtable.is_full()
    }

    /// The present runs.
    pub fn runs(&self) -> Vec<Arc<Table>> {
        self.version.load().runs.clone()
    }

    /// The changed documents, locked for reading.
    pub fn changed(&self) -> ChangedDocuments<'_> {
        ChangedDocuments(read(&self.writer))
    }
}

/// The documents that a transaction has changed in one index.
pub struct ChangedDocuments<'a>(RwLockReadGuard<'a, WriterState>);

impl ChangedDocuments<'_> {
    /// True if a document was changed at or before a place.
    pub fn has(&self, id: &[u8], place: Epoch) -> bool {
        let hash = xxhash_rust::xxh3::xxh3_64(id);
        let mut states = self.0.memtable.history(hash, id);
        states.any(|state| state.epoch <= place)
    }
}
