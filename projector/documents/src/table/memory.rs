//! The newest versions, in memory.
//!
//! New versions are added to a hash table (`storage`'s memtable), where a read of one document
//! finds them. A *frozen* memtable is not changed any more. It becomes a *run*, a sorted table in
//! memory, when a walk or a flush needs its documents in order.
//!
//! ```text
//! state    := tombstone:u8 value               the memtable's state of a document; value as in `version`
//! ```

use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::ids::{Epoch, Seqno};
use proto::rpc::varint::put_varint;
use proto::{Error, Result};
use storage::layers::{BackMemtable, RowVersion, Table, TableBuilder};

use crate::table::dead::DeadList;
use crate::table::lookup::{Answer, DocumentQuery, find_in_table};
use crate::table::version::{SLICE, VersionRef, seqno_of};

/// The smallest and the largest place of some versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub first: u64,
    pub last: u64,
}

/// Versions by document, found by the hash of the id.
#[derive(Debug, Default)]
pub(super) struct Memtable {
    states: BackMemtable,
    places: Option<Places>,
    tombstones: u64,
    /// A buffer that is reused for each state.
    state: Vec<u8>,
}

impl Memtable {
    /// Smallest and largest place; `None` if there are no versions.
    pub fn places(&self) -> Option<Places> {
        self.places
    }

    /// Number of versions.
    pub fn versions(&self) -> u64 {
        self.states.states()
    }

    /// Number of deletions.
    pub fn tombstones(&self) -> u64 {
        self.tombstones
    }

    /// Number of documents that have versions.
    pub fn documents(&self) -> u64 {
        self.states.documents() as u64
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.states.size()
    }

    /// Returns true if no further version should be added.
    pub fn is_full(&self) -> bool {
        self.states.is_full()
    }

    /// Prefetches the hash entries of the next versions.
    pub fn prefetch(&self, hashes: &[u64]) {
        self.states.prefetch(hashes.iter().copied());
    }

    /// Adds a version, whose place must be larger than all earlier ones.
    pub fn put(&mut self, hash: u64, version: &VersionRef<'_>) {
        let VersionRef { place, id, seqno, document } = *version;
        self.state.clear();
        self.state.push(u8::from(document.is_none()));
        put_varint(&mut self.state, seqno.0);
        self.state.extend_from_slice(document.unwrap_or_default());
        self.states.set(hash, id.as_bytes(), SLICE, Epoch(place), &self.state);
        self.tombstones += u64::from(document.is_none());
        self.places.get_or_insert(Places { first: place, last: place }).last = place;
    }

    /// Looks a document up; `None` if there is no valid version.
    pub fn find<T>(
        &self,
        wanted: &DocumentQuery<'_>,
        dead: &DeadList,
        take: &impl Fn(Seqno, [&[u8]; 2]) -> T,
    ) -> Result<Option<Answer<T>>> {
        for version in self.states.history(wanted.hash, wanted.id) {
            let (is_tombstone, value) = split_state(version.state)?;
            let (seqno, document) = seqno_of(value)?;
            if wanted.accepts(dead, version.epoch.0, seqno) {
                let document = || take(seqno, [&[], document]);
                return Ok(Some(Answer::of(is_tombstone, seqno, document)));
            }
        }
        Ok(None)
    }

    /// All versions, sorted.
    fn sorted(&self) -> Result<Option<Table>> {
        let mut builder = TableBuilder::default();
        for version in self.states.sorted() {
            let (tombstone, value) = split_state(version.state)?;
            let epoch = version.epoch;
            let (key, id) = (version.id, &[][..]);
            builder.push(&RowVersion { slice: SLICE, key, id, value, epoch, tombstone })?;
        }
        builder.finish()
    }
}

fn split_state(state: &[u8]) -> Result<(bool, &[u8])> {
    let (flag, value) =
        state.split_first().ok_or_else(|| Error::internal("a state in memory is empty"))?;
    Ok((*flag != 0, value))
}

/// A memtable that is not changed any more.
#[derive(Debug)]
pub(super) struct FrozenMemtable {
    memtable: Memtable,
    /// The versions in sorted order, after the first sort. Locked during the sort.
    sorted: Mutex<Option<Arc<Table>>>,
}

impl FrozenMemtable {
    fn sorted(&self) -> Result<Arc<Table>> {
        let mut sorted = lock(&self.sorted);
        if let Some(table) = &*sorted {
            return Ok(Arc::clone(table));
        }
        let table = self.memtable.sorted()?;
        let table = table.ok_or_else(|| Error::internal("a frozen memtable has no versions"))?;
        Ok(Arc::clone(sorted.insert(Arc::new(table))))
    }
}

/// An immutable set of versions in memory.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// Smallest and largest place.
    pub places: Places,
    /// Number of documents that have versions.
    pub documents: u64,
    data: RunData,
}

#[derive(Clone, Debug)]
enum RunData {
    Hashed(Arc<FrozenMemtable>),
    Sorted(Arc<Table>),
}

impl Run {
    /// Makes a run of a memtable; `None` if it has no versions.
    pub fn freeze(memtable: Memtable) -> Option<Self> {
        let places = memtable.places()?;
        let documents = memtable.documents();
        let frozen = FrozenMemtable { memtable, sorted: Mutex::default() };
        Some(Self { places, documents, data: RunData::Hashed(Arc::new(frozen)) })
    }

    /// Makes a run of a sorted table in memory, which has versions of `documents` documents.
    pub fn from_table(table: Table, documents: u64) -> Self {
        let places = Places { first: table.stats.oldest.0, last: table.stats.newest.0 };
        Self { places, documents, data: RunData::Sorted(Arc::new(table)) }
    }

    /// Returns the sorted table; `None` if the run is not sorted yet.
    pub fn table(&self) -> Option<&Arc<Table>> {
        match &self.data {
            RunData::Hashed(_) => None,
            RunData::Sorted(table) => Some(table),
        }
    }

    /// Looks a document up; `None` if there is no valid version.
    pub fn find<T>(
        &self,
        wanted: &DocumentQuery<'_>,
        dead: &DeadList,
        take: &impl Fn(Seqno, [&[u8]; 2]) -> T,
    ) -> Result<Option<Answer<T>>> {
        match &self.data {
            RunData::Hashed(frozen) => frozen.memtable.find(wanted, dead, take),
            RunData::Sorted(table) => find_in_table(table, wanted, dead, take),
        }
    }

    /// Returns the sorted run and its table; sorts it if necessary. Blocks while another thread
    /// sorts.
    pub fn into_sorted(self) -> Result<(Self, Arc<Table>)> {
        let table = match &self.data {
            RunData::Hashed(frozen) => frozen.sorted()?,
            RunData::Sorted(table) => Arc::clone(table),
        };
        let data = RunData::Sorted(Arc::clone(&table));
        Ok((Self { data, ..self }, table))
    }

    /// Number of versions.
    pub fn versions(&self) -> u64 {
        match &self.data {
            RunData::Hashed(frozen) => frozen.memtable.versions(),
            RunData::Sorted(table) => table.stats.rows,
        }
    }

    /// Number of deletions.
    pub fn tombstones(&self) -> u64 {
        match &self.data {
            RunData::Hashed(frozen) => frozen.memtable.tombstones(),
            RunData::Sorted(table) => table.stats.tombstones,
        }
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match &self.data {
            RunData::Hashed(frozen) => frozen.memtable.memory_bytes(),
            RunData::Sorted(table) => table.memory_bytes(),
        }
    }
}
