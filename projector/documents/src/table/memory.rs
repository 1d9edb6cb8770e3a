//! The versions of documents that are in memory, which are the newest ones.
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
use crate::table::lookup::{DocumentQuery, FoundVersion, find_in_table};
use crate::table::version::{SLICE, VersionRef, seqno_of};

/// The range of places, in the order of versions, that some versions have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub first: u64,
    pub last: u64,
}

/// A hash table of versions, which finds the versions of a document by the hash of its id.
#[derive(Debug, Default)]
pub(super) struct Memtable {
    states: BackMemtable,
    places: Option<Places>,
    tombstones: u64,
    /// A buffer for the encoding of a version, which is reused for each one.
    state: Vec<u8>,
}

impl Memtable {
    /// Returns the range of places of the versions; `None` if there are no versions.
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

    /// Loads the hash table's entries for the next versions into the processor's cache.
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
        self.states.add_state(hash, id.as_bytes(), SLICE, Epoch(place), &self.state);
        self.tombstones += u64::from(document.is_none());
        self.places.get_or_insert(Places { first: place, last: place }).last = place;
    }

    /// Looks up a document; `None` if the memtable has no valid version of it.
    pub fn find<T>(
        &self,
        wanted: &DocumentQuery<'_>,
        dead: &DeadList,
        take: &impl Fn(Seqno, [&[u8]; 2]) -> T,
    ) -> Result<Option<FoundVersion<T>>> {
        for version in self.states.states_of(wanted.hash, wanted.id) {
            let (is_tombstone, value) = split_state(version.state)?;
            let (seqno, document) = seqno_of(value)?;
            if wanted.accepts(dead, version.epoch.0, seqno) {
                let document = || take(seqno, [&[], document]);
                return Ok(Some(FoundVersion::of(is_tombstone, seqno, document)));
            }
        }
        Ok(None)
    }

    /// Returns all versions as a sorted table.
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

/// An immutable set of versions in memory: a frozen memtable, or a sorted table.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// The range of places of the versions.
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
    /// Creates a run from a memtable, which then cannot change any more; `None` if it has no
    /// versions.
    pub fn freeze(memtable: Memtable) -> Option<Self> {
        let places = memtable.places()?;
        let documents = memtable.documents();
        let frozen = FrozenMemtable { memtable, sorted: Mutex::default() };
        Some(Self { places, documents, data: RunData::Hashed(Arc::new(frozen)) })
    }

    /// Creates a run from a sorted table in memory with versions of `documents` documents.
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

    /// Looks up a document; `None` if the run has no valid version of it.
    pub fn find<T>(
        &self,
        wanted: &DocumentQuery<'_>,
        dead: &DeadList,
        take: &impl Fn(Seqno, [&[u8]; 2]) -> T,
    ) -> Result<Option<FoundVersion<T>>> {
        match &self.data {
            RunData::Hashed(frozen) => frozen.memtable.find(wanted, dead, take),
            RunData::Sorted(table) => find_in_table(table, wanted, dead, take),
        }
    }

    /// Returns the run in sorted form, and its sorted table. Sorts the versions if necessary, or
    /// waits while another thread sorts them.
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
