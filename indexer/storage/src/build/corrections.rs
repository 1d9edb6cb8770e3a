//! The bulk path of a build. Documents of a backfill snapshot are sorted in memory, as many at a
//! time as the memory limit allows, and written into fragments that are older than all others in
//! the lists. The log does not contain them.
//!
//! Meanwhile epochs are applied to the index as usual, above the backfill, with one difference:
//! for each document of an epoch, the back index records the document's entries in every slice
//! that may have contained it, even an empty list. Epochs outrank the snapshot, which lies at
//! epoch zero: maintenance began at or before the snapshot's cut, so the epochs contain all later
//! changes. At the end of the build, each document that an epoch has changed is looked up in the
//! backfill. Entries of the backfill that the document no longer has get tombstones. These
//! *corrections* are gathered within the same memory limit as the documents before.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use xxhash_rust::xxh3::xxh3_64;

use crate::files::data_files::{DataFiles, NewFragment};
use crate::files::new_files::UnnamedFragments;
use crate::fragment::compression::Compression;
use crate::index::backfill::Backfill;
use crate::read::lookup::{StateQuery, look_up};
use crate::read::merge::Merge;
use crate::read::slice_fragments::SliceFragments;
use crate::read::source::Source;
use crate::rows::columns::{Columns, Grouping};
use crate::rows::packed;
use crate::rows::row_sorter::RowSorter;

/// Number of documents that are looked up in one batch.
const LOOK_UP_DOCUMENTS: usize = 4096;

/// The kind of rows that a backfill writes: entries and the back index have separate fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackfillRowKind {
    /// The entries.
    Forward,
    /// The back index.
    Back,
}

/// Returns the back index that the backfill has written for a slice, in the form that look-ups
/// take.
fn backfilled_back_index(
    backfill: &Backfill,
    slice: SliceNo,
) -> BTreeMap<SliceNo, Arc<SliceFragments>> {
    let back = backfill.back.iter().map(|new| Source::of_slice(&new.table, slice)).collect();
    BTreeMap::from([(slice, Arc::new(SliceFragments { back, ..SliceFragments::default() }))])
}

/// Writes tombstones for the backfilled entries that the documents of `touched` no longer have.
/// `touched` is the back index of the epochs since the build began. Returns the number of entries
/// that these documents had in the backfill.
pub fn write_corrections(
    backfill: &Backfill,
    slice: SliceNo,
    touched: &[Source],
    out: &mut Corrections<'_>,
) -> Result<u64> {
    let slices = backfilled_back_index(backfill, slice);
    let mut merge = Merge::new(touched.iter().cloned(), false)?;
    let mut batch: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut had = 0;
    loop {
        let (mut id, mut state, mut newest) = (Vec::new(), Vec::new(), None);
        let more = merge.next_versions(&mut id, |cursor| {
            let (block, row) = cursor.block_and_row();
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
            had += write_corrections_of(slice, &slices, &batch, out)?;
            batch.clear();
        }
        if !more {
            return Ok(had);
        }
    }
}

/// Writes the tombstones for `documents`, pairs of a document's id and its newest entries. Returns
/// the number of entries that the documents had in the backfill.
fn write_corrections_of(
    slice: SliceNo,
    slices: &BTreeMap<SliceNo, Arc<SliceFragments>>,
    documents: &[(Vec<u8>, Vec<u8>)],
    out: &mut Corrections<'_>,
) -> Result<u64> {
    let wanted = documents.iter().enumerate().map(|(n, (id, _))| StateQuery {
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

/// Collector of the tombstones at the end of a build; writes them into fragments when enough have
/// gathered.
pub struct Corrections<'a> {
    files: &'a DataFiles,
    compression: Compression,
    groups: &'static [Columns],
    /// Epoch of the tombstones.
    epoch: Epoch,
    bytes_max: usize,
    /// Receives the number of gathered bytes, for reports.
    gathered_bytes: &'a AtomicU64,
    rows: RowSorter,
    written: UnnamedFragments<'a>,
}

impl<'a> Corrections<'a> {
    /// Creates a collector of tombstones of an epoch. They are written when `bytes_max` have
    /// gathered; `gathered_bytes` receives the number of gathered bytes.
    pub fn new(
        files: &'a DataFiles,
        (grouping, compression): (Grouping, Compression),
        epoch: Epoch,
        bytes_max: usize,
        gathered_bytes: &'a AtomicU64,
    ) -> Self {
        let (groups, rows) = (grouping.forward(), RowSorter::default());
        let written = UnnamedFragments::new(files, Vec::new());
        Self { files, compression, groups, epoch, bytes_max, gathered_bytes, rows, written }
    }

    /// Adds a tombstone for an entry, and writes the gathered tombstones if they reach the limit.
    fn tombstone(&mut self, slice: SliceNo, key: &[u8], id: &[u8]) -> Result<()> {
        self.rows.push(slice, key, id, None);
        let gathered = self.rows.size();
        self.gathered_bytes.store(gathered as u64, Ordering::Relaxed);
        if gathered >= self.bytes_max { self.write() } else { Ok(()) }
    }

    /// Writes the gathered tombstones into fragments.
    fn write(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        let epoch = self.epoch;
        let kind = (self.compression, None);
        self.written.extend(self.files.write(self.groups, kind, |out| rows.write(epoch, out))?);
        self.gathered_bytes.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Writes the remaining tombstones and returns all fragments.
    pub fn finish(mut self) -> Result<UnnamedFragments<'a>> {
        self.write()?;
        Ok(std::mem::replace(&mut self.written, UnnamedFragments::new(self.files, Vec::new())))
    }
}

impl Drop for Corrections<'_> {
    fn drop(&mut self) {
        self.gathered_bytes.store(0, Ordering::Relaxed);
    }
}

/// Writes the gathered rows of one kind into a fragment for each column group of this kind.
pub fn write_backfill_rows(
    files: &DataFiles,
    rows: RowSorter,
    part: BackfillRowKind,
    (grouping, compression): (Grouping, Compression),
) -> Result<Vec<NewFragment>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let (groups, filter) = match part {
        BackfillRowKind::Forward => (grouping.forward(), None),
        BackfillRowKind::Back => (&[Columns::BACK][..], Some(rows.len() as u64)),
    };
    files.write(groups, (compression, filter), |out| rows.write(Epoch(0), out))
}
