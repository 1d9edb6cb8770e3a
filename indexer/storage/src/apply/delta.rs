//! The changes of one epoch in one index. The entries that each document had, known from the back
//! index, are compared with the entries that it has from now on. The differences are sorted once
//! and become a run.
//!
//! If a document's id alone decides its slice, only that slice is looked up. Otherwise (partition
//! by expressions, split slices) a document may have entries in any slice of the node, and all are
//! looked up. Memory is searched document by document, fragments for all documents together in the
//! order of ids.

use std::collections::BTreeMap;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::mutation::IndexKeys;

use crate::apply::documents::Document;
use crate::index::local_index::LocalIndex;
use crate::index::writer_state::WriterState;
use crate::read::index_version::IndexVersion;
use crate::read::lookup::{FoundState, StateQuery, look_up};
use crate::rows::packed::{self, PackedEntry, include_hash};
use crate::rows::row_sorter::RowSorter;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

/// Number of documents whose places in the memtable are loaded at a time.
const PREFETCHED: usize = 64;

/// Documents of an epoch that concern one index, with their previous states.
pub struct EpochDelta<'a> {
    documents: Vec<(&'a Document<'a>, IndexKeys<'a>)>,
    /// Previous states by document and slice; an empty state means "no entries".
    before: Vec<FoundState>,
    states: Vec<u8>,
    /// For each document the only slice that it can have entries in, if its id decides.
    only_slice: Vec<Option<SliceNo>>,
    all_slices: Vec<SliceNo>,
}

impl<'a> EpochDelta<'a> {
    /// Looks up the previous states of the documents.
    pub fn look_up(
        index: &LocalIndex,
        writer: &WriterState,
        version: &IndexVersion,
        documents: &'a [Document<'a>],
    ) -> Result<Self> {
        let (id, generation) = (index.info.id, index.info.generation);
        let mut changes = Self {
            documents: Vec::with_capacity(documents.len()),
            before: Vec::with_capacity(documents.len()),
            states: Vec::new(),
            only_slice: Vec::with_capacity(documents.len()),
            all_slices: version.slices.keys().copied().collect(),
        };
        let by_id = index.is_by_id(version);
        let mut wanted = Vec::with_capacity(documents.len());
        for document in documents {
            let mut indexes = document.versions.indexes();
            let mine = indexes.find(|keys| (keys.index, keys.generation) == (id, generation));
            let Some(keys) = mine else { continue };
            let only = by_id.then(|| index.slice_of_id(document.versions.id));
            // The source also feeds slices that have just left the node or are about to come.
            if only.is_some_and(|slice| !version.slices.contains_key(&slice)) {
                continue;
            }
            let n = changes.documents.len() as u32;
            changes.documents.push((document, keys));
            changes.only_slice.push(only);
            let asked = match &only {
                Some(slice) => std::slice::from_ref(slice),
                None => &changes.all_slices[..],
            };
            let id = document.versions.id.as_bytes();
            let (document, hash) = (n, document.hash);
            wanted.extend(asked.iter().map(|slice| StateQuery {
                document,
                hash,
                slice: *slice,
                id,
            }));
        }
        // Each table is searched for all documents in one loop, so that the processor loads the
        // memory of several documents in parallel.
        for memtable in [Some(&writer.memtable), writer.frozen.as_deref()].into_iter().flatten() {
            wanted.retain(|StateQuery { document, hash, slice, id }| {
                let Some(state) = memtable.newest(*hash, id, *slice) else { return true };
                let from = changes.states.len();
                changes.states.extend_from_slice(state.state);
                let state = from..changes.states.len();
                changes.before.push(FoundState { document: *document, slice: *slice, state });
                false
            });
        }
        // During a build, the backfill lies below everything that the epochs have said so far.
        look_up(&version.slices, wanted, &mut changes.before, &mut changes.states)?;
        changes.before.sort_unstable_by_key(|found| (found.document, found.slice));
        Ok(changes)
    }

    /// Returns the run of the changes, `None` if nothing changed, and remembers the new states.
    pub fn into_run(self, writer: &mut WriterState, epoch: Epoch) -> Result<Option<Table>> {
        let mut rows = RowSorter::default();
        let (mut old, mut new, mut state) = (Vec::new(), Vec::new(), Vec::new());
        let mut before = &self.before[..];
        for (n, (document, keys)) in self.documents.iter().enumerate() {
            if n.is_multiple_of(PREFETCHED) {
                let next = self.documents[n..].iter().take(PREFETCHED);
                writer.memtable.prefetch(next.map(|(document, _)| document.hash));
            }
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
            let id = document.versions.id.as_bytes();
            compare(id, &old, &new, &mut rows, &mut writer.entries);
            // A slice that loses the document remembers that too. During a build every slice does,
            // because the backfill may still bring the document.
            let mut remember = |slice: SliceNo| {
                state.clear();
                let mine = new.iter().filter(|entry| entry.0 == slice);
                mine.for_each(|entry| packed::put(&mut state, entry.1));
                writer.memtable.set(document.hash, id, slice, epoch, &state);
            };
            match self.only_slice[n] {
                Some(slice) if writer.is_building || !old.is_empty() || !new.is_empty() => {
                    remember(slice);
                }
                Some(_) => {}
                None => {
                    let touched = |slice: &SliceNo| {
                        writer.is_building
                            || old.iter().any(|entry| entry.0 == *slice)
                            || new.iter().any(|entry| entry.0 == *slice)
                    };
                    self.all_slices.iter().copied().filter(touched).for_each(remember);
                }
            }
        }
        let mut out = TableBuilder::default();
        rows.write(epoch, &mut out)?;
        out.finish()
    }
}

type OldEntry<'a> = (SliceNo, PackedEntry<'a>);
type NewEntry<'a> = (SliceNo, PackedEntry<'a>, &'a [u8]);

/// Merges previous and new entries of a document, both sorted, into changed rows.
fn compare(
    id: &[u8],
    old: &[OldEntry<'_>],
    new: &[NewEntry<'_>],
    rows: &mut RowSorter,
    entries: &mut BTreeMap<SliceNo, i64>,
) {
    let mut old = old.iter().peekable();
    let mut count = |slice: SliceNo, change: i64| *entries.entry(slice).or_default() += change;
    for (slice, entry, include) in new {
        let place = (*slice, entry.key);
        while let Some(entry) = old.next_if(|(slice, old)| (*slice, old.key) < place) {
            rows.push(entry.0, entry.1.key, id, None);
            count(entry.0, -1);
        }
        match old.next_if(|(slice, old)| (*slice, old.key) == place) {
            Some((_, same)) if same.include_hash == entry.include_hash => continue,
            Some(_) => {}
            None => count(*slice, 1),
        }
        rows.push(*slice, entry.key, id, Some(include));
    }
    for (slice, gone) in old {
        rows.push(*slice, gone.key, id, None);
        count(*slice, -1);
    }
}
