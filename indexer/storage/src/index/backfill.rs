//! A backfill in progress: documents of a snapshot of the source.

use std::collections::{BTreeMap, BTreeSet};

use proto::Result;
use proto::model::ids::{LocalIndexId, SliceNo};
use proto::plant::{self, Plant};
use proto::rpc::mutation::KeyVersionsReader;

use crate::files::data_files::NewFragment;
use crate::rows::packed::{self, PackedEntry, include_hash};
use crate::rows::row_sorter::RowSorter;

/// A backfill in progress: the documents received so far, partly in memory and partly in
/// fragments.
#[derive(Default)]
pub struct Backfill {
    gathered: GatheredRows,
    /// The slices that are loaded; `None` means all slices.
    only: Option<BTreeSet<SliceNo>>,
    /// Fragments of entries and included values, oldest first.
    pub forward: Vec<NewFragment>,
    /// Fragments of the back index.
    pub back: Vec<NewFragment>,
    /// Number of entries of each slice.
    pub entries: BTreeMap<SliceNo, u64>,
}

/// Rows of documents that are gathered in memory and not written yet.
#[derive(Default)]
pub struct GatheredRows {
    forward: RowSorter,
    back: RowSorter,
}

impl Backfill {
    /// Creates an empty backfill that loads only the slices in `only`; `None` loads all.
    pub fn for_slices(only: Option<BTreeSet<SliceNo>>) -> Self {
        Self { only, ..Self::default() }
    }

    /// Adds documents in the form of packed key-versions.
    pub fn add(&mut self, index: LocalIndexId, body: &[u8]) -> Result<()> {
        let (mut state, mut entries) = (Vec::new(), Vec::new());
        for versions in KeyVersionsReader::new(body) {
            let versions = versions?;
            let mut indexes = versions.indexes();
            let mine = indexes.find(|keys| keys.index == index);
            let Some(keys) = mine else { continue };
            let id = versions.id.as_bytes();
            entries.clear();
            let wanted = |slice| self.only.as_ref().is_none_or(|only| only.contains(&slice));
            entries.extend(keys.entries().filter(|entry| wanted(entry.slice)));
            entries.sort_unstable_by_key(|entry| (entry.slice, entry.key));
            for of_slice in entries.chunk_by(|left, right| left.slice == right.slice) {
                let Some(slice) = of_slice.first().map(|entry| entry.slice) else { continue };
                state.clear();
                for entry in of_slice {
                    self.gathered.forward.push(slice, entry.key, id, Some(entry.include));
                    let include_hash = include_hash(entry.include);
                    packed::put(&mut state, PackedEntry { key: entry.key, include_hash });
                }
                *self.entries.entry(slice).or_default() += of_slice.len() as u64;
                if !plant::is(Plant::BuildSkipsBackIndex) {
                    self.gathered.back.push(slice, id, &[], Some(&state));
                }
            }
        }
        Ok(())
    }

    /// Returns the number of bytes of the documents that are gathered in memory.
    pub fn gathered_bytes(&self) -> usize {
        self.gathered.forward.size() + self.gathered.back.size()
    }

    /// Removes and returns the documents gathered in memory: the rows of entries, and the rows of
    /// the back index.
    pub fn take_gathered(&mut self) -> (RowSorter, RowSorter) {
        let GatheredRows { forward, back } = &self.gathered;
        // The next batch will have about the same size, so its buffers are allocated at once.
        let next = GatheredRows { forward: forward.empty_like(), back: back.empty_like() };
        let GatheredRows { forward, back } = std::mem::replace(&mut self.gathered, next);
        (forward, back)
    }

    /// Returns all written fragments.
    pub fn into_written(self) -> Vec<NewFragment> {
        self.forward.into_iter().chain(self.back).collect()
    }
}
