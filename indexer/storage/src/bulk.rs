//! The bulk path of a build: the documents of a backfill snapshot are sorted in memory, as many as the
//! budget allows at a time, and go straight into fragments at the bottom of the lists, without the log.
//!
//! Meanwhile the epochs are applied to the index as to any other, above the backfill, with one
//! difference: of each document they speak of, a state is remembered in every slice it may have been
//! in, also the empty state. What the epochs say outranks the snapshot, which lies at epoch zero:
//! maintenance began at or before its cut, so they have said everything since. At the end of the build,
//! each remembered document is looked up in the backfill: the entries that it had there and has no more
//! get tombstones, which gather within the same budget as the documents before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proto::Result;
use proto::model::ids::{Epoch, Generation, IndexId, SliceNo};
use proto::plant::{self, Plant};
use proto::rpc::mutation::KeyVersionsReader;
use xxhash_rust::xxh3::xxh3_64;

use super::cursor::Source;
use super::files::{Files, Written};
use super::lookup::{Wanted, look_up};
use super::manifest::{Columns, Grouping};
use super::merge::Merge;
use super::packed::{self, PackedEntry, include_hash};
use super::rows::RowSorter;
use super::visible::Fragments;

/// So many documents are looked up together.
const LOOK_UP_DOCUMENTS: usize = 4096;

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

/// Which part of the gathered documents to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The entries.
    Forward,
    /// The back index.
    Back,
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

    /// The back index of the backfill, as look-ups want it.
    fn back_of(&self, slice: SliceNo) -> BTreeMap<SliceNo, Arc<Fragments>> {
        let back = self.back.iter().map(|new| Source::whole(&new.table, slice)).collect();
        BTreeMap::from([(slice, Arc::new(Fragments { back, ..Fragments::default() }))])
    }

    /// The tombstones for entries of the backfill that the documents in `touched`, the back index of a
    /// slice since the build began, have no more; and how many of the backfill's entries those
    /// documents had.
    pub fn corrections(
        &self,
        slice: SliceNo,
        touched: &[Source],
        out: &mut Corrections<'_>,
    ) -> Result<u64> {
        let slices = self.back_of(slice);
        let mut merge = Merge::new(touched.iter().cloned(), false)?;
        let mut batch: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut had = 0;
        loop {
            let (mut id, mut state, mut newest) = (Vec::new(), Vec::new(), None);
            let more = merge.next_versions(&mut id, |cursor| {
                let (block, row) = cursor.place();
                if newest < Some(block.epoch(row)) {
                    newest = Some(block.epoch(row));
                    state.clear();
                    block.put_value(row, &mut state);
                }
            })?;
            if more {
                batch.push((id, state));
            }
            if batch.len() == LOOK_UP_DOCUMENTS || !more {
                had += correct(slice, &slices, &batch, out)?;
                batch.clear();
            }
            if !more {
                return Ok(had);
            }
        }
    }
}

/// The same for some documents, given with their newest states.
fn correct(
    slice: SliceNo,
    slices: &BTreeMap<SliceNo, Arc<Fragments>>,
    documents: &[(Vec<u8>, Vec<u8>)],
    out: &mut Corrections<'_>,
) -> Result<u64> {
    let wanted = documents.iter().enumerate().map(|(n, (id, _))| Wanted {
        document: n as u32,
        hash: xxh3_64(id),
        slice,
        id,
    });
    let (mut found, mut states) = (Vec::new(), Vec::new());
    look_up(slices, wanted.collect(), &mut found, &mut states)?;
    let mut had = 0;
    for found in found {
        let (id, newest) = &documents[found.document as usize];
        let state = &states[found.state];
        for old in packed::entries(state) {
            had += 1;
            if !packed::entries(newest).any(|entry| entry.key == old.key) {
                out.tombstone(slice, old.key, id)?;
            }
        }
    }
    Ok(had)
}

/// Tombstones at the end of a build: written into fragments of their own whenever enough have gathered.
pub struct Corrections<'a> {
    files: &'a Files,
    groups: &'static [Columns],
    /// The epoch that they are of.
    epoch: Epoch,
    bytes_max: usize,
    /// Tells how many bytes have gathered.
    gathered_bytes: &'a AtomicU64,
    rows: RowSorter,
    written: Vec<Written>,
}

impl<'a> Corrections<'a> {
    /// None yet, of an epoch; they are written when there are `bytes_max` of them, which `gathered_bytes` counts.
    pub fn new(
        files: &'a Files,
        grouping: Grouping,
        epoch: Epoch,
        bytes_max: usize,
        gathered_bytes: &'a AtomicU64,
    ) -> Self {
        let (groups, rows, written) = (grouping.forward(), RowSorter::default(), Vec::new());
        Self { files, groups, epoch, bytes_max, gathered_bytes, rows, written }
    }

    fn tombstone(&mut self, slice: SliceNo, key: &[u8], id: &[u8]) -> Result<()> {
        self.rows.push(slice, key, id, None);
        let gathered = self.rows.size();
        self.gathered_bytes.store(gathered as u64, Ordering::Relaxed);
        if gathered >= self.bytes_max { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        let epoch = self.epoch;
        self.written.extend(self.files.write(self.groups, None, |out| rows.write(epoch, out))?);
        self.gathered_bytes.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// All of them as fragments, which are the caller's from now on.
    pub fn finish(mut self) -> Result<Vec<Written>> {
        self.write()?;
        Ok(std::mem::take(&mut self.written))
    }
}

impl Drop for Corrections<'_> {
    fn drop(&mut self) {
        self.gathered_bytes.store(0, Ordering::Relaxed);
        // After an error nobody will name them.
        self.files.discard(std::mem::take(&mut self.written));
    }
}

/// Writes one part of gathered documents into a fragment for each of its groups.
pub fn write_part(
    files: &Files,
    rows: RowSorter,
    part: Part,
    grouping: Grouping,
) -> Result<Vec<Written>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let (groups, filter) = match part {
        Part::Forward => (grouping.forward(), None),
        Part::Back => (&[Columns::BACK][..], Some(rows.len() as u64)),
    };
    files.write(groups, filter, |out| rows.write(Epoch(0), out))
}
