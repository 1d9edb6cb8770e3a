//! A walk over the documents that a transaction has changed in an index, in the order of their
//! ids. For each document it returns the entries in each slice after the last change.

use std::collections::BTreeMap;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::read::merge::Merge;
use crate::read::source::Source;

/// A document that a transaction has changed, with its entries in each slice after the last
/// change.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangedDocument {
    /// The document's id.
    pub id: Vec<u8>,
    /// Packed entries by slice, ascending. The document has no entries in other slices.
    pub states: Vec<(SliceNo, Vec<u8>)>,
}

impl ChangedDocument {
    /// Returns the packed entries in a slice; empty if the document has none in it.
    pub fn state_in(&self, slice: SliceNo) -> &[u8] {
        let at = self.states.binary_search_by_key(&slice, |state| state.0);
        at.map_or(&[], |at| &self.states[at].1)
    }

    /// Returns the approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.id.len() + self.states.iter().map(|state| state.1.len()).sum::<usize>()
    }
}

/// A walk over the documents that a transaction has changed.
pub struct ChangedDocuments {
    merge: Merge,
    /// The entries of the current document by slice, with the place of the change that they come
    /// from.
    newest: BTreeMap<SliceNo, (Epoch, Vec<u8>)>,
}

impl ChangedDocuments {
    /// Creates a walk over the documents of a transaction; `back` has its entry lists of
    /// documents, by slice.
    pub fn new(back: &BTreeMap<SliceNo, Vec<Source>>) -> Result<Self> {
        // Treats all slices as one, so that the states of a document are adjacent, whatever their slices.
        let as_one = |source: &Source| Source { slice: SliceNo(0), ..source.clone() };
        let merge = Merge::new(back.values().flatten().map(as_one), false)?;
        Ok(Self { merge, newest: BTreeMap::new() })
    }

    /// Returns the next document; `None` after the last.
    pub fn next(&mut self) -> Result<Option<ChangedDocument>> {
        let mut id = Vec::new();
        while self.read_document(&mut id)? {
            // All changes of a document may be among those that were rolled back.
            if self.newest.is_empty() {
                continue;
            }
            let states = std::mem::take(&mut self.newest).into_iter();
            let states = states.map(|(slice, (_, state))| (slice, state));
            let states = states.filter(|(_, state)| !state.is_empty()).collect();
            return Ok(Some(ChangedDocument { id, states }));
        }
        Ok(None)
    }

    /// Reads all entry lists of the next document. Puts the newest of each slice into `newest`,
    /// and the id into `id`. Returns false after the last document.
    fn read_document(&mut self, id: &mut Vec<u8>) -> Result<bool> {
        let newest = &mut self.newest;
        newest.clear();
        self.merge.next_versions(id, |cursor| {
            let (block, row) = cursor.block_and_row();
            let place = block.epoch(row);
            let of = newest.entry(cursor.rows_of()).or_insert_with(|| (Epoch(0), Vec::new()));
            // Places begin at one.
            if place > of.0 {
                of.0 = place;
                of.1.clear();
                block.put_value(row, &mut of.1);
            }
        })
    }
}
