//! A backfill in progress: the documents of a snapshot of the source that were taken in so far.

use std::collections::{BTreeMap, BTreeSet};

use proto::Result;
use proto::model::ids::{Generation, IndexId, SliceNo};
use proto::plant::{self, Plant};
use proto::rpc::mutation::KeyVersionsReader;

use crate::files::data_files::Written;
use crate::rows::packed::{self, PackedEntry, include_hash};
use crate::rows::row_sorter::RowSorter;

/// The documents of a backfill snapshot.
#[derive(Default)]
pub struct Bulk {
    gathered: Gathered,
    /// What the snapshot has of other slices is passed over; `None` where it has no others.
    only: Option<BTreeSet<SliceNo>>,
    /// Fragments of entries and included values, the oldest first.
    pub forward: Vec<Written>,
    /// Fragments of the back index.
    pub back: Vec<Written>,
    /// Entries by slice.
    pub entries: BTreeMap<SliceNo, u64>,
}

/// Documents that are not written yet.
#[derive(Default)]
pub struct Gathered {
    forward: RowSorter,
    back: RowSorter,
}

impl Bulk {
    /// One that takes these slices; `None` for all that come.
    pub fn of(only: Option<BTreeSet<SliceNo>>) -> Self {
        Self { only, ..Self::default() }
    }

    /// Takes in packed key-versions.
    pub fn add(&mut self, index: IndexId, generation: Generation, body: &[u8]) -> Result<()> {
        let (mut state, mut entries) = (Vec::new(), Vec::new());
        for versions in KeyVersionsReader::new(body) {
            let versions = versions?;
            let mut indexes = versions.indexes();
            let mine = indexes.find(|keys| (keys.index, keys.generation) == (index, generation));
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

    /// Bytes of documents that are not written yet.
    pub fn gathered_bytes(&self) -> usize {
        self.gathered.forward.size() + self.gathered.back.size()
    }

    /// Takes what is not written yet.
    pub fn take_gathered(&mut self) -> (RowSorter, RowSorter) {
        let Gathered { forward, back } = &self.gathered;
        // The next ones will have about as many: they need not be copied as they grow.
        let next = Gathered { forward: forward.empty_like(), back: back.empty_like() };
        let Gathered { forward, back } = std::mem::replace(&mut self.gathered, next);
        (forward, back)
    }

    /// All fragments.
    pub fn into_written(self) -> Vec<Written> {
        self.forward.into_iter().chain(self.back).collect()
    }
}
