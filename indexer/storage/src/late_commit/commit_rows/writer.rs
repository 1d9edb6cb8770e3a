//! Writer of a transaction's changes of one index into fragments, in bounded memory. The rows get
//! the commit's epoch later, when the fragments are stamped.
//!
//! The writer makes two walks over the transaction's changes:
//!
//! - *By document.* Some thousand documents at a time are looked up in the back index. Their new
//!   entry lists gather in a sorter, together with tombstones for the entries that they no longer
//!   have. A full sorter becomes a fragment.
//! - *By entry.* The newest row of each entry that exists after the transaction is written
//!   directly into a fragment.
//!
//! No entry has both a row and a tombstone, so the order of the fragments does not matter. An
//! unchanged entry gets a row too, which has no visible effect.
//!
//! Both walks skip a document that a later mutation of the commit's epoch changes.
//!
//! Rows that were written before all preceding changes were known can be corrected (`correction`).

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::ids::{Epoch, SliceNo};
use proto::model::index::IndexInfo;
use proto::{Error, ErrorCode, Result};

use crate::files::data_files::DataFiles;
use crate::files::group_writer::GroupWriter;
use crate::files::new_files::UnnamedFragments;
use crate::files::unstamped::UnstampedFragment;
use crate::late_commit::changes::part::PartSources;
use crate::late_commit::commit_rows::changed_documents::{ChangedDocument, ChangedDocuments};
use crate::late_commit::commit_rows::states::{FoundStates, SlicesOfDocument, keys, keys_not_in};
use crate::read::index_version::{IndexVersion, slice_of_id};
use crate::read::merge::Merge;
use crate::read::source::Source;
use crate::rows::columns::{Columns, Grouping};
use crate::rows::row::RowVersion;
use crate::rows::row_sorter::RowSorter;
use crate::rows::sinks::RowSink;

/// Number of documents that are looked up together.
const LOOK_UP_DOCUMENTS: usize = 4096;
/// Maximum number of bytes of ids and entries that are looked up together.
const LOOK_UP_BYTES: usize = 1 << 20;

/// A function that returns true if a document is changed after the transaction in the same epoch.
pub type IsLater<'a> = dyn Fn(&[u8]) -> Result<bool> + 'a;

/// The placeholder epoch of rows that get their epoch later.
const UNKNOWN: Epoch = Epoch(0);

/// The index that a commit's rows are written for. Its memory must have been flushed, and is not
/// read.
pub struct Target<'a> {
    pub info: &'a IndexInfo,
    pub version: &'a IndexVersion,
    pub files: &'a Arc<DataFiles>,
    pub grouping: Grouping,
    /// True during a build. Then each document is recorded in every slice of the back index.
    pub is_building: bool,
    /// Maximum number of bytes of rows that gather in memory.
    pub bytes_max: usize,
}

/// The rows of commits in one index, before their epoch is known.
#[derive(Default)]
pub struct CommitRows {
    fragments: Vec<UnstampedFragment>,
    /// For each slice, the change of its number of entries.
    counts: BTreeMap<SliceNo, i64>,
}

impl CommitRows {
    /// Gives all rows the commits' epoch, durably. Returns the fragments, and the change of the
    /// number of entries of each slice.
    pub fn stamp(
        self,
        epoch: Epoch,
        files: &DataFiles,
    ) -> Result<(UnnamedFragments<'_>, BTreeMap<SliceNo, i64>)> {
        let mut stamped = UnnamedFragments::new(files, Vec::new());
        for fragment in self.fragments {
            stamped.extend(fragment.stamp(epoch)?.into_iter().collect());
        }
        Ok((stamped, self.counts))
    }
}

/// A writer of the changes of commits in one index.
pub struct CommitWriter<'a> {
    target: &'a Target<'a>,
    /// True if the id alone decides the slice of a document.
    is_by_id: bool,
    back: RowSorter,
    tombstones: RowSorter,
    rows: CommitRows,
}

impl<'a> CommitWriter<'a> {
    /// Creates a writer for an index.
    pub fn new(target: &'a Target<'a>) -> Self {
        Self::continuing(target, CommitRows::default())
    }

    /// Creates a writer that adds to rows that were written earlier.
    pub fn continuing(target: &'a Target<'a>, rows: CommitRows) -> Self {
        Self {
            target,
            is_by_id: target.version.is_by_id(target.info),
            back: RowSorter::default(),
            tombstones: RowSorter::default(),
            rows,
        }
    }

    /// Writes all changes of a transaction in this index, except those of documents for which
    /// `is_later` is true.
    pub fn write_transaction(&mut self, part: &PartSources, is_later: &IsLater<'_>) -> Result<()> {
        self.write_documents(&part.back, is_later)?;
        self.write_entries(&part.forward, is_later)
    }

    /// Writes the new entry lists of the changed documents, and tombstones for the entries that
    /// they have lost.
    fn write_documents(
        &mut self,
        back: &BTreeMap<SliceNo, Vec<Source>>,
        is_later: &IsLater<'_>,
    ) -> Result<()> {
        let mut walk = ChangedDocuments::new(back)?;
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(document) = walk.next()? {
            if is_later(&document.id)? {
                continue;
            }
            bytes += document.bytes();
            batch.push(document);
            if batch.len() == LOOK_UP_DOCUMENTS || bytes >= LOOK_UP_BYTES {
                self.replace_entries(&batch)?;
                batch.clear();
                bytes = 0;
            }
        }
        self.replace_entries(&batch)
    }

    /// Records the new entries of documents, with tombstones for the entries that they no longer
    /// have.
    fn replace_entries(&mut self, documents: &[ChangedDocument]) -> Result<()> {
        let mut asked = Vec::with_capacity(documents.len());
        for document in documents {
            asked.push(self.slices_to_look_up(&document.id)?);
        }
        let before = FoundStates::look_up(&self.target.version.slices, &asked)?;
        for ((n, document), (id, slices)) in documents.iter().enumerate().zip(asked) {
            for slice in slices {
                self.replace_in_slice(
                    slice,
                    id,
                    before.state_of(n, slice),
                    document.state_in(slice),
                );
            }
        }
        self.write_if_full()
    }

    /// Returns a document's id with the slices of this node in which it may have entries.
    pub fn slices_to_look_up<'d>(&self, id: &'d [u8]) -> Result<SlicesOfDocument<'d>> {
        let slices = &self.target.version.slices;
        if !self.is_by_id {
            return Ok((id, slices.keys().copied().collect()));
        }
        let not_text = |_| Error::new(ErrorCode::Corrupt, "the id of a document is not UTF-8");
        let slice = slice_of_id(self.target.info, std::str::from_utf8(id).map_err(not_text)?);
        // The source also feeds slices that have just left the node or are about to come.
        Ok((id, if slices.contains_key(&slice) { vec![slice] } else { Vec::new() }))
    }

    /// Records the change of a document in one slice, from the entries `had` to the entries `has`.
    fn replace_in_slice(&mut self, slice: SliceNo, id: &[u8], had: &[u8], has: &[u8]) {
        if had.is_empty() && has.is_empty() && !self.target.is_building {
            return;
        }
        self.back.push(slice, id, &[], (!has.is_empty()).then_some(has));
        for gone in keys_not_in(keys(had), has) {
            self.add_tombstone(slice, gone, id);
        }
        self.change_entry_count(slice, keys(had).count(), keys(has).count());
    }

    /// Adds a tombstone for an entry that a document has lost.
    pub fn add_tombstone(&mut self, slice: SliceNo, key: &[u8], id: &[u8]) {
        self.tombstones.push(slice, key, id, None);
    }

    /// Records in the back index that a document has no entries in a slice any more.
    pub fn record_no_entries(&mut self, slice: SliceNo, id: &[u8]) {
        self.back.push(slice, id, &[], None);
    }

    /// Changes the number of entries of a slice by `more` minus `less`.
    pub fn change_entry_count(&mut self, slice: SliceNo, less: usize, more: usize) {
        *self.rows.counts.entry(slice).or_default() += more as i64 - less as i64;
    }

    /// Writes the rows gathered in memory if they exceed the limit.
    pub fn write_if_full(&mut self) -> Result<()> {
        let gathered = self.back.size() + self.tombstones.size();
        if gathered >= self.target.bytes_max { self.write_gathered() } else { Ok(()) }
    }

    /// Writes the rows gathered in memory into new fragments.
    fn write_gathered(&mut self) -> Result<()> {
        let Target { files, grouping, info, .. } = *self.target;
        let (back, tombstones) =
            (std::mem::take(&mut self.back), std::mem::take(&mut self.tombstones));
        if !back.is_empty() {
            let options = (info.spec.compression, Some(back.len() as u64));
            let put = |out: &mut GroupWriter| back.write(UNKNOWN, out);
            self.rows.fragments.extend(files.write_unstamped(&[Columns::BACK], options, put)?);
        }
        if !tombstones.is_empty() {
            let options = (info.spec.compression, None);
            let put = |out: &mut GroupWriter| tombstones.write(UNKNOWN, out);
            self.rows.fragments.extend(files.write_unstamped(grouping.forward(), options, put)?);
        }
        Ok(())
    }

    /// Writes the entries of the slices on this node that exist after the transaction.
    fn write_entries(
        &mut self,
        forward: &BTreeMap<SliceNo, Vec<Source>>,
        is_later: &IsLater<'_>,
    ) -> Result<()> {
        let Target { files, grouping, info, version, .. } = *self.target;
        let here = forward.iter().filter(|(slice, _)| version.slices.contains_key(slice));
        let put = |out: &mut GroupWriter| {
            here.into_iter()
                .try_for_each(|(slice, sources)| put_entries((*slice, sources), is_later, out))
        };
        let options = (info.spec.compression, None);
        self.rows.fragments.extend(files.write_unstamped(grouping.forward(), options, put)?);
        Ok(())
    }

    /// Writes the rows gathered in memory, and returns all rows.
    pub fn finish(mut self) -> Result<CommitRows> {
        self.write_gathered()?;
        Ok(self.rows)
    }
}

/// Writes the entries of a slice that exist after a transaction, except those of documents for
/// which `is_later` is true.
fn put_entries(
    (slice, sources): (SliceNo, &[Source]),
    is_later: &IsLater<'_>,
    out: &mut impl RowSink,
) -> Result<()> {
    let mut merge = Merge::new(sources.iter().cloned(), false)?;
    let (mut entry, mut value) = (Vec::new(), Vec::new());
    loop {
        let (mut newest, mut key_len, mut is_left) = (Epoch(0), 0, false);
        let found = merge.next_versions(&mut entry, |cursor| {
            let (block, row) = cursor.block_and_row();
            if block.epoch(row) > newest {
                (newest, key_len) = (block.epoch(row), block.key_len(row));
                is_left = !block.is_tombstone(row);
                value.clear();
                block.put_value(row, &mut value);
            }
        })?;
        if !found {
            return Ok(());
        }
        let (key, id) = entry.split_at(key_len);
        if is_left && !is_later(id)? {
            let epoch = UNKNOWN;
            out.push(&RowVersion { slice, key, id, value: &value, epoch, tombstone: false })?;
        }
    }
}
