//! The bulk path of a build: the documents of a backfill snapshot are sorted in memory, as many as the
//! budget allows at a time, and go straight into fragments at the bottom of the lists, without the log.
//!
//! Meanwhile the epochs are applied to the index as to any other, above the backfill, with one
//! difference: of each document they speak of, a state is remembered in every slice it may have been
//! in, also the empty state. What the epochs say outranks the snapshot, which lies at epoch zero:
//! maintenance began at or before its cut, so they have said everything since. At the end of the build,
//! each remembered document is looked up in the backfill: the entries that it had there and has no more
//! get tombstones, which gather within the same budget as the documents before.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use xxhash_rust::xxh3::xxh3_64;

use crate::files::data_files::{Files, Written};
use crate::index::backfill::Bulk;
use crate::read::lookup::{Wanted, look_up};
use crate::read::merge::Merge;
use crate::read::slice_fragments::Fragments;
use crate::read::source::Source;
use crate::rows::columns::{Columns, Grouping};
use crate::rows::packed::{self};
use crate::rows::row_sorter::RowSorter;

/// So many documents are looked up together.
const LOOK_UP_DOCUMENTS: usize = 4096;

/// Which part of the gathered documents to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The entries.
    Forward,
    /// The back index.
    Back,
}

/// The back index of the backfill, as look-ups want it.
fn back_of(bulk: &Bulk, slice: SliceNo) -> BTreeMap<SliceNo, Arc<Fragments>> {
    let back = bulk.back.iter().map(|new| Source::whole(&new.table, slice)).collect();
    BTreeMap::from([(slice, Arc::new(Fragments { back, ..Fragments::default() }))])
}

/// The tombstones for entries of the backfill that the documents in `touched`, the back index of a
/// slice since the build began, have no more; and how many of the backfill's entries those
/// documents had.
pub fn corrections(
    bulk: &Bulk,
    slice: SliceNo,
    touched: &[Source],
    out: &mut Corrections<'_>,
) -> Result<u64> {
    let slices = back_of(bulk, slice);
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
