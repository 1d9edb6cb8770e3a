//! The bulk path of a build. Documents of a backfill snapshot are sorted in memory, as many at a
//! time as the memory limit allows, and written into fragments at the bottom of the lists, without
//! the log.
//!
//! Meanwhile epochs are applied to the index as usual, above the backfill, with one difference: for
//! each document of an epoch, a state is remembered in every slice that the document may have been
//! in, even an empty state. Epochs outrank the snapshot, which lies at epoch zero: maintenance
//! began at or before the snapshot's cut, so the epochs contain all later changes. At the end of
//! the build, each remembered document is looked up in the backfill. The entries that it had there and no longer has
//! get tombstones. These *corrections* gather within the same limit as the documents before.

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

/// The two kinds of rows that a backfill writes into separate fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackfillPart {
    /// The entries.
    Forward,
    /// The back index.
    Back,
}

/// Returns the back index of the backfill, in the form that look-ups take.
fn back_of(backfill: &Backfill, slice: SliceNo) -> BTreeMap<SliceNo, Arc<SliceFragments>> {
    let back = backfill.back.iter().map(|new| Source::whole(&new.table, slice)).collect();
    BTreeMap::from([(slice, Arc::new(SliceFragments { back, ..SliceFragments::default() }))])
}

/// Writes tombstones for the backfilled entries that documents of `touched` no longer have.
/// `touched` contains the back index of a slice since the build began. Returns the number of
/// entries that these documents had in the backfill.
pub fn corrections(
    backfill: &Backfill,
    slice: SliceNo,
    touched: &[Source],
    out: &mut Corrections<'_>,
) -> Result<u64> {
    let slices = back_of(backfill, slice);
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

/// Writes the corrections of `documents`, pairs of id and newest state. Returns the number of
/// entries that they had in the backfill.
fn correct(
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

/// Tombstones at the end of a build, written into fragments whenever enough have gathered.
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

/// Writes one kind of rows of the gathered documents into a fragment for each of its groups.
pub fn write_part(
    files: &DataFiles,
    rows: RowSorter,
    part: BackfillPart,
    (grouping, compression): (Grouping, Compression),
) -> Result<Vec<NewFragment>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let (groups, filter) = match part {
        BackfillPart::Forward => (grouping.forward(), None),
        BackfillPart::Back => (&[Columns::BACK][..], Some(rows.len() as u64)),
    };
    files.write(groups, (compression, filter), |out| rows.write(Epoch(0), out))
}
