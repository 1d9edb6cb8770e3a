//! The changes that one epoch makes in one index. The entries that each document had before are
//! read from the back index and compared with its new entries. The differences are sorted once and
//! become a *run*, a sorted table in memory. In this module, the *state* of a document in a slice
//! is the list of its entries in that slice.
//!
//! If a document's id alone decides its slice, only that slice is looked up. Otherwise (partition
//! by expressions, split slices) a document may have entries in any slice of the node, and all
//! slices are looked up. Memory is searched document by document; fragments are searched for all
//! documents together, in the order of ids.
//!
//! An epoch is *staged*, then *published*. Staging computes the run, the new states and the new
//! entry counts; it can fail, and changes nothing. Publication puts them into the writer's state;
//! it cannot fail. So a retry after an error compares the documents with their true previous
//! states.

use std::collections::BTreeMap;
use std::ops::Range;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::mutation::IndexKeys;

use crate::apply::documents::{Document, EpochDocuments};
use crate::index::writer_state::WriterState;
use crate::read::index_version::{IndexVersion, slice_of_id};
use crate::read::lookup::{FoundState, StateQuery, look_up};
use crate::rows::packed::{self, PackedEntry, include_hash};
use crate::rows::row_sorter::RowSorter;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

/// Number of states whose slots in the memtable's hash table are prefetched together.
const PREFETCHED: usize = 64;

/// The rule that selects the documents of an epoch whose entries are recorded in the back index,
/// and the slices in which they are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackIndexScope {
    /// The documents that have entries in the epoch or had entries before it.
    Changes,
    /// All documents, in every slice that could contain their entries. A build uses this rule,
    /// because its backfill may contain entries of the documents in any slice.
    EverySlice,
    /// All documents, each in at least one slice. An open transaction uses this rule, because only
    /// the back index of its changes records which documents it has changed.
    EveryDocument,
}

/// The documents of an epoch that concern one index, with the entries that they had before.
pub struct EpochDelta<'a> {
    documents: Vec<(&'a Document<'a>, IndexKeys<'a>)>,
    /// The entries before the epoch, by document and slice; an empty state means that the document
    /// had no entries.
    before: Vec<FoundState>,
    states: Vec<u8>,
    /// For each document, the only slice that can contain its entries, if the id alone decides the
    /// slice.
    only_slice: Vec<Option<SliceNo>>,
    all_slices: Vec<SliceNo>,
}

impl<'a> EpochDelta<'a> {
    /// Looks up the entries that the documents had before the epoch.
    pub fn look_up(
        info: &IndexInfo,
        writer: &WriterState,
        version: &IndexVersion,
        documents: &'a EpochDocuments<'a>,
    ) -> Result<Self> {
        let (delta, wanted) = Self::look_up_in_memory(info, writer, version, documents);
        delta.look_up_in_fragments(version, wanted)
    }

    /// Looks up the previous entries of the documents in memory. Returns queries for the documents
    /// that are not found in memory.
    pub fn look_up_in_memory(
        info: &IndexInfo,
        writer: &WriterState,
        version: &IndexVersion,
        documents: &'a EpochDocuments<'a>,
    ) -> (Self, Vec<StateQuery<'a>>) {
        let count = documents.count_of_index(info.local_id());
        let mut delta = Self {
            documents: Vec::with_capacity(count),
            before: Vec::with_capacity(count),
            states: Vec::new(),
            only_slice: Vec::with_capacity(count),
            all_slices: version.slices.keys().copied().collect(),
        };
        let mut wanted = delta.select_documents(info, version, documents);
        // Each table is searched for all documents in one loop, so that the processor loads the
        // memory of several documents in parallel.
        for memtable in [Some(&writer.memtable), writer.frozen.as_deref()].into_iter().flatten() {
            wanted.retain(|StateQuery { document, hash, slice, id }| {
                let Some(state) = memtable.newest_state(*hash, id, *slice) else { return true };
                let found = FoundState::put(*document, *slice, state.state, &mut delta.states);
                delta.before.push(found);
                false
            });
        }
        (delta, wanted)
    }

    /// Looks up the remaining documents in the fragments of `version`, the version with which
    /// [`Self::look_up_in_memory`] was called.
    pub fn look_up_in_fragments(
        mut self,
        version: &IndexVersion,
        wanted: Vec<StateQuery<'a>>,
    ) -> Result<Self> {
        // During a build, the backfill lies below all epochs applied so far.
        look_up(&version.slices, wanted, &mut self.before, &mut self.states)?;
        self.before.sort_unstable_by_key(|found| (found.document, found.slice));
        Ok(self)
    }

    /// Selects the documents that concern the index's slices on this node, and returns queries for
    /// their previous entries.
    fn select_documents(
        &mut self,
        info: &IndexInfo,
        version: &IndexVersion,
        documents: &'a EpochDocuments<'a>,
    ) -> Vec<StateQuery<'a>> {
        let by_id = version.is_by_id(info);
        let mut wanted = Vec::with_capacity(self.documents.capacity());
        for (document, keys) in documents.of_index(info.local_id()) {
            let only = by_id.then(|| slice_of_id(info, document.versions.id));
            // The source also feeds slices that have just left the node or are about to come.
            if only.is_some_and(|slice| !version.slices.contains_key(&slice)) {
                continue;
            }
            let n = self.documents.len() as u32;
            self.documents.push((document, keys));
            self.only_slice.push(only);
            let asked = match &only {
                Some(slice) => std::slice::from_ref(slice),
                None => &self.all_slices[..],
            };
            let id = document.versions.id.as_bytes();
            let (document, hash) = (n, document.hash);
            let query = |slice: &SliceNo| StateQuery { document, hash, slice: *slice, id };
            wanted.extend(asked.iter().map(query));
        }
        wanted
    }

    /// Computes the changed rows, the new states of the documents and the changed entry counts,
    /// without changing the index.
    pub fn stage(self, remembered: BackIndexScope, epoch: Epoch) -> Result<StagedEpoch<'a>> {
        let mut staged = StagedEpoch::default();
        let mut rows = RowSorter::default();
        let (mut old, mut new) = (Vec::new(), Vec::new());
        let mut before = &self.before[..];
        for (n, (document, keys)) in self.documents.iter().enumerate() {
            let mine = before.partition_point(|found| found.document <= n as u32);
            let (had, rest) = before.split_at(mine);
            before = rest;
            old.clear();
            for found in had {
                let entries = packed::entries(&self.states[found.state.clone()]);
                old.extend(entries.map(|entry| (found.slice, entry)));
            }
            new.clear();
            let here = |slice: &SliceNo| self.all_slices.binary_search(slice).is_ok();
            new.extend(keys.entries().filter(|entry| here(&entry.slice)).map(|entry| {
                let include_hash = include_hash(entry.include);
                (entry.slice, PackedEntry { key: entry.key, include_hash }, entry.include)
            }));
            if old.len() > 1 {
                old.sort_unstable();
            }
            if new.len() > 1 {
                new.sort_unstable();
            }
            push_differences(document, &old, &new, &mut rows, &mut staged.counts);
            self.stage_document(n, remembered, &old, &new, &mut staged);
        }
        let mut out = TableBuilder::default();
        rows.write(epoch, &mut out)?;
        staged.run = out.finish()?;
        Ok(staged)
    }

    /// Stages the new entries of document number `n`, in the slices that the rule `remembered`
    /// selects.
    fn stage_document(
        &self,
        n: usize,
        remembered: BackIndexScope,
        old: &[OldEntry<'_>],
        new: &[NewEntry<'_>],
        staged: &mut StagedEpoch<'a>,
    ) {
        let (document, _) = self.documents[n];
        let has_changed = !old.is_empty() || !new.is_empty();
        if let Some(slice) = self.only_slice[n] {
            if has_changed || remembered != BackIndexScope::Changes {
                staged.push(document, slice, new);
            }
            return;
        }
        // A slice that loses the document remembers that too.
        let remembers = |slice: &&SliceNo| {
            remembered == BackIndexScope::EverySlice
                || old.iter().any(|entry| entry.0 == **slice)
                || new.iter().any(|entry| entry.0 == **slice)
        };
        for slice in self.all_slices.iter().filter(remembers) {
            staged.push(document, *slice, new);
        }
        if let (BackIndexScope::EveryDocument, false, Some(slice)) =
            (remembered, has_changed, self.all_slices.first())
        {
            staged.push(document, *slice, new);
        }
    }
}

/// The changes of an epoch in one index, computed but not published yet.
#[derive(Default)]
pub struct StagedEpoch<'a> {
    /// The changed rows; `None` if nothing changed.
    run: Option<Table>,
    /// The new entries of documents, as byte ranges of `bytes`.
    states: Vec<NewState<'a>>,
    bytes: Vec<u8>,
    /// Changes of the entry counts, by slice.
    counts: BTreeMap<SliceNo, i64>,
}

/// The entries of a document in a slice from the staged epoch on.
struct NewState<'a> {
    hash: u64,
    later: u32,
    id: &'a [u8],
    slice: SliceNo,
    state: Range<usize>,
}

impl<'a> StagedEpoch<'a> {
    /// Stages the new entries of a document in one slice.
    fn push(&mut self, document: &'a Document<'a>, slice: SliceNo, new: &[NewEntry<'_>]) {
        let from = self.bytes.len();
        let mine = new.iter().filter(|entry| entry.0 == slice);
        mine.for_each(|entry| packed::put(&mut self.bytes, entry.1));
        let Document { hash, later, versions } = *document;
        let (id, state) = (versions.id.as_bytes(), from..self.bytes.len());
        self.states.push(NewState { hash, later, id, slice, state });
    }

    /// Puts the new states and entry counts into the writer's state, and returns the table of
    /// changed rows. Cannot fail.
    pub fn publish(self, writer: &mut WriterState, epoch: Epoch) -> Option<Table> {
        for states in self.states.chunks(PREFETCHED) {
            writer.memtable.prefetch(states.iter().map(|state| state.hash));
            for NewState { hash, later, id, slice, state } in states {
                let (epoch, state) = (Epoch(epoch.0 + u64::from(*later)), state.clone());
                writer.memtable.add_state(*hash, id, *slice, epoch, &self.bytes[state]);
            }
        }
        for (slice, change) in self.counts {
            *writer.entries.entry(slice).or_default() += change;
        }
        self.run
    }
}

/// An entry that a document had before the epoch, with its slice.
type OldEntry<'a> = (SliceNo, PackedEntry<'a>);
/// An entry that a document has from the epoch on: its slice, its key and hash, its included
/// values.
type NewEntry<'a> = (SliceNo, PackedEntry<'a>, &'a [u8]);

/// Compares the previous and the new entries of a document, both sorted. Adds a row for each
/// difference to `rows`.
fn push_differences(
    document: &Document<'_>,
    old: &[OldEntry<'_>],
    new: &[NewEntry<'_>],
    rows: &mut RowSorter,
    counts: &mut BTreeMap<SliceNo, i64>,
) {
    let (id, later) = (document.versions.id.as_bytes(), document.later);
    let mut old = old.iter().peekable();
    let mut count = |slice: SliceNo, change: i64| *counts.entry(slice).or_default() += change;
    for (slice, entry, include) in new {
        let place = (*slice, entry.key);
        while let Some(entry) = old.next_if(|(slice, old)| (*slice, old.key) < place) {
            rows.push_later(entry.0, entry.1.key, id, None, later);
            count(entry.0, -1);
        }
        match old.next_if(|(slice, old)| (*slice, old.key) == place) {
            Some((_, same)) if same.include_hash == entry.include_hash => continue,
            Some(_) => {}
            None => count(*slice, 1),
        }
        rows.push_later(*slice, entry.key, id, Some(include), later);
    }
    for (slice, gone) in old {
        rows.push_later(*slice, gone.key, id, None, later);
        count(*slice, -1);
    }
}
