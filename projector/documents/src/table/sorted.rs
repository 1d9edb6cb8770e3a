//! Adds sorted documents that are not in the log. They become a fragment directly, without
//! passing through memory.
//!
//! 1. The rows are written and synced, without a place in the order of versions
//!    ([`DocumentTable::write_sorted`]). Several threads may do this concurrently.
//! 2. The caller reserves a place in its log, and all rows of the fragment get that place
//!    ([`DocumentTable::prepare_sorted`]). From then on it is an ordinary change of the fragments
//!    ([`super::change`]).
//!
//! So if two files contain the same document, the document of the file that gets its place later
//! is valid, even if that file was written first.

use std::sync::Arc;

use proto::model::ids::Epoch;
use proto::rpc::varint::put_varint;
use proto::{Error, Result};
use storage::fragment::{FragmentOptions, FragmentWriter};
use storage::layers::{BlockIndex, RowVersion, TableBuilder, TableStats};

use crate::document_store::DocumentRef;
use crate::table::change::{ChangeKind, TableChange};
use crate::table::document_table::DocumentTable;
use crate::table::files::with_hint;
use crate::table::tables::FragmentTable;
use crate::table::version::SLICE;

/// A file of rows that have no place in the order of versions yet.
pub struct SortedRows {
    file: u64,
    writer: FragmentWriter,
    stats: TableStats,
    index: BlockIndex,
}

impl SortedRows {
    /// Returns the id of the file. If the caller drops the rows, it must remove the file
    /// ([`DocumentTable::discard`]).
    pub fn file(&self) -> u64 {
        self.file
    }
}

impl DocumentTable {
    /// Writes documents to a new file; `None` if there are none. They must ascend by id, with
    /// each id once.
    pub fn write_sorted<'d>(
        &self,
        documents: &mut dyn ExactSizeIterator<Item = DocumentRef<'d>>,
    ) -> Result<Option<SortedRows>> {
        if documents.len() == 0 {
            return Ok(None);
        }
        let file = self.next_file();
        let written = self.write_rows(file, documents).map_err(with_hint);
        if !matches!(written, Ok(Some(_))) {
            self.discard([file]);
        }
        written
    }

    fn write_rows<'d>(
        &self,
        file: u64,
        documents: &mut dyn ExactSizeIterator<Item = DocumentRef<'d>>,
    ) -> Result<Option<SortedRows>> {
        let options = FragmentOptions {
            compression: self.options.compression,
            filter_rows: Some(documents.len() as u64),
            is_stamped: true,
            ..FragmentOptions::default()
        };
        let writer = FragmentWriter::create(&self.blobs, file, &self.options.cache, &options)?;
        let mut out = TableBuilder::new(writer).with_block_bytes(self.options.block_bytes);
        let (mut value, mut last) = (Vec::new(), "");
        for DocumentRef { id, seqno, document } in documents {
            if id <= last {
                let what = format!("document {id:?} does not come behind {last:?}");
                return Err(Error::internal(what));
            }
            last = id;
            value.clear();
            put_varint(&mut value, seqno.0);
            value.extend_from_slice(document);
            let (key, id, epoch, tombstone) = (id.as_bytes(), &[][..], Epoch(0), false);
            out.push(&RowVersion { slice: SLICE, key, id, value: &value, epoch, tombstone })?;
        }
        let Some((mut writer, stats, index)) = out.finish_parts()? else { return Ok(None) };
        writer.sync_blocks()?;
        Ok(Some(SortedRows { file, writer, stats, index }))
    }

    /// Gives all rows of a file the place `place`, and prepares the change that adds the file as
    /// a fragment. The log continues at `covered`. The table must have no versions in memory.
    pub fn prepare_sorted(
        &self,
        rows: SortedRows,
        place: u64,
        covered: u64,
    ) -> Result<TableChange<'_>> {
        let SortedRows { file, writer, stats, index } = rows;
        if !self.begin_sorted(place, covered) {
            self.discard([file]);
            let what = "sorted documents come while others are in memory, or at an earlier place";
            return Err(Error::internal(what));
        }
        let kind = ChangeKind::Flush { covered };
        let change = TableChange { table: self, kind, written: None, may_be_named: false };
        self.finish(change, (file, writer), place, (stats, index)).map_err(with_hint)
    }

    fn begin_sorted(&self, place: u64, covered: u64) -> bool {
        let mut state = self.state.write();
        let is_free = state.flushing.is_none() && state.has_all_on_disk();
        let can_begin = is_free && place >= state.tables.covered;
        if can_begin {
            state.flushing = Some(covered);
            state.next_place = state.next_place.max(covered);
        }
        can_begin
    }

    fn finish<'a>(
        &self,
        mut change: TableChange<'a>,
        (file, writer): (u64, FragmentWriter),
        place: u64,
        (stats, index): (TableStats, BlockIndex),
    ) -> Result<TableChange<'a>> {
        let finished = writer.finish_stamped(Epoch(place), stats, index);
        let finished = finished.and_then(|open| self.sync_names().map(|()| open));
        let open = finished.inspect_err(|_| self.discard([file]))?;
        let cleaned = self.state.read().tables.dead.newest();
        let documents = open.stats.rows;
        change.written = Some(Arc::new(FragmentTable::new((file, documents, cleaned), open)));
        Ok(change)
    }
}
