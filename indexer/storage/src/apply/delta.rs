//! What one epoch changes in one index: each document's entries before, which the back index knows,
//! are compared with those from now on; the differences are sorted once and become a run.
//!
//! Where a document's id alone decides its slice, that slice is asked. Elsewhere (partitioned by
//! expressions, or split) a document may have had entries in any slice of the node, and all are asked.
//! Memory is asked document by document, fragments for all documents together, in the order of ids.

use std::collections::BTreeMap;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::mutation::IndexKeys;

use crate::apply::documents::Document;
use crate::index::local_index::Slot;
use crate::index::writer_state::Writer;
use crate::read::index_version::Visible;
use crate::read::lookup::{Found, Wanted, look_up};
use crate::rows::packed::{self, PackedEntry, include_hash};
use crate::rows::row_sorter::RowSorter;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

/// The memtable's places for so many documents are loaded at a time.
const PREFETCHED: usize = 64;

/// The documents of an epoch that concern one index, with what they had before.
pub struct Changes<'a> {
    documents: Vec<(&'a Document<'a>, IndexKeys<'a>)>,
    /// What they had, by document and slice; a state of no bytes is "nothing".
    before: Vec<Found>,
    states: Vec<u8>,
    /// For each document the one slice it can have entries in, if its id decides that.
    only_slice: Vec<Option<SliceNo>>,
    all_slices: Vec<SliceNo>,
}

impl<'a> Changes<'a> {
    /// Finds what the documents had before.
    pub fn of(
        slot: &Slot,
        writer: &Writer,
        visible: &Visible,
        documents: &'a [Document<'a>],
    ) -> Result<Self> {
        let (id, generation) = (slot.info.id, slot.info.generation);
        let mut changes = Self {
            documents: Vec::with_capacity(documents.len()),
            before: Vec::with_capacity(documents.len()),
            states: Vec::new(),
            only_slice: Vec::with_capacity(documents.len()),
            all_slices: visible.slices.keys().copied().collect(),
        };
        let by_id = slot.is_by_id(visible);
        let mut wanted = Vec::with_capacity(documents.len());
        for document in documents {
            let mut indexes = document.versions.indexes();
            let mine = indexes.find(|keys| (keys.index, keys.generation) == (id, generation));
            let Some(keys) = mine else { continue };
            let only = by_id.then(|| slot.slice_of_id(document.versions.id));
            // A slice that has left the node, or is to come, is fed for a while too.
            if only.is_some_and(|slice| !visible.slices.contains_key(&slice)) {
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
            wanted.extend(asked.iter().map(|slice| Wanted { document, hash, slice: *slice, id }));
        }
        // Each table is asked for all documents in a loop of its own: the processor then loads what
        // several of them need side by side.
        for memtable in [Some(&writer.memtable), writer.frozen.as_deref()].into_iter().flatten() {
            wanted.retain(|Wanted { document, hash, slice, id }| {
                let Some(state) = memtable.newest(*hash, id, *slice) else { return true };
                let from = changes.states.len();
                changes.states.extend_from_slice(state.state);
                let state = from..changes.states.len();
                changes.before.push(Found { document: *document, slice: *slice, state });
                false
            });
        }
        // A build's backfill lies below all that the epochs have said so far.
        look_up(&visible.slices, wanted, &mut changes.before, &mut changes.states)?;
        changes.before.sort_unstable_by_key(|found| (found.document, found.slice));
        Ok(changes)
    }

    /// The run that the changes make, `None` if nothing changed; remembers the new states.
    pub fn into_run(self, writer: &mut Writer, epoch: Epoch) -> Result<Option<Table>> {
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
            // A slice in which the document has nothing now, and had something, remembers that too; in
            // a build every slice does, for what the backfill may still bring.
            let mut remember = |slice: SliceNo| {
                state.clear();
                let mine = new.iter().filter(|entry| entry.0 == slice);
                mine.for_each(|entry| packed::put(&mut state, entry.1));
                writer.memtable.set(document.hash, id, slice, epoch, &state);
            };
            match self.only_slice[n] {
                Some(slice) if writer.building || !old.is_empty() || !new.is_empty() => {
                    remember(slice);
                }
                Some(_) => {}
                None => {
                    let touched = |slice: &SliceNo| {
                        writer.building
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

/// Walks what a document had and what it has from now on, both in order.
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
