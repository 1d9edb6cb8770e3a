//! Builder of tables from sorted rows. The sink decides whether the table is a run in memory or a
//! fragment.

use std::sync::Arc;

use proto::Result;
use proto::model::ids::SliceNo;

use crate::rows::block::Block;
use crate::rows::block_builder::BlockBuilder;
use crate::rows::block_format::BLOCK_ROWS_MAX;
use crate::rows::block_index::BlockIndex;
use crate::rows::row::RowVersion;
use crate::rows::sinks::{BlockSink, RowSink};
use crate::rows::stats::TableStats;

/// Target size of a block in bytes.
pub const BLOCK_BYTES: usize = 4 << 10;

/// Builds a table from rows in table order.
#[derive(Debug)]
pub struct TableBuilder<S> {
    sink: S,
    stats: TableStats,
    index: BlockIndex,
    block: BlockBuilder,
    slice: SliceNo,
    bytes: u64,
    block_bytes: usize,
}

impl<S: BlockSink> TableBuilder<S> {
    /// Creates a builder that writes its blocks to a sink.
    pub fn new(sink: S) -> Self {
        Self {
            sink,
            stats: TableStats::default(),
            index: BlockIndex::default(),
            block: BlockBuilder::default(),
            slice: SliceNo(0),
            bytes: 0,
            block_bytes: BLOCK_BYTES,
        }
    }

    /// Sets the size in bytes at which blocks are closed, instead of `BLOCK_BYTES`.
    pub fn with_block_bytes(mut self, bytes: usize) -> Self {
        self.block_bytes = bytes;
        self
    }

    /// Appends a row.
    pub fn push(&mut self, row: &RowVersion<'_>) -> Result<()> {
        let stats = &mut self.stats;
        if stats.rows == 0 {
            (stats.oldest, stats.newest) = (row.epoch, row.epoch);
        } else if self.slice == row.slice && self.block.rows() > 0 {
            // A block is closed only when the next row is added, so there is always a last entry.
            let [key, id] = self.block.last_entry();
            debug_assert!((key, id) <= (row.key, row.id), "rows are sorted");
            stats.versions |= equal_from_end(key, row.key) && equal_from_end(id, row.id);
        }
        stats.rows += 1;
        stats.tombstones += u64::from(row.tombstone);
        stats.oldest = stats.oldest.min(row.epoch);
        stats.newest = stats.newest.max(row.epoch);
        let full = self.block.size() >= self.block_bytes || self.block.rows() == BLOCK_ROWS_MAX;
        if full || self.slice != row.slice {
            self.close_block()?;
        }
        if self.block.rows() == 0 {
            self.open_block(row.slice, &[row.key, row.id]);
        }
        self.block.push(row);
        self.sink.row(row);
        Ok(())
    }

    /// Appends a block of another table unchanged. No entry may have two versions in the block,
    /// and the block must follow all rows so far.
    pub fn push_block(&mut self, slice: SliceNo, block: &Arc<Block>) -> Result<()> {
        self.push_block_with(slice, block, |sink| sink.shared_block(block))
    }

    /// Appends a block of another table, which the function `put` writes to the sink. The block
    /// must follow all rows so far; its entries may have several versions. The sink's
    /// [`BlockSink::row`] is not called for its rows.
    pub fn push_stored(
        &mut self,
        slice: SliceNo,
        block: &Block,
        put: impl FnOnce(&mut S) -> Result<(u64, u32)>,
    ) -> Result<()> {
        self.close_block()?;
        if !self.stats.versions {
            // Versions of one entry can lie in two neighbouring blocks.
            let before = self.index.sections().last().filter(|section| section.slice == slice);
            let goes_on = before.is_some_and(|section| block.compare(0, &section.last).is_eq());
            self.stats.versions = goes_on || block.has_versions();
        }
        self.push_block_with(slice, block, put)
    }

    /// Closes the open block, writes a complete block with the function `put`, and records its
    /// statistics.
    fn push_block_with(
        &mut self,
        slice: SliceNo,
        block: &Block,
        put: impl FnOnce(&mut S) -> Result<(u64, u32)>,
    ) -> Result<()> {
        self.close_block()?;
        let stats = &mut self.stats;
        if stats.rows == 0 {
            (stats.oldest, stats.newest) = (block.epoch(0), block.epoch(0));
        }
        stats.rows += u64::from(block.rows());
        for row in 0..block.rows() {
            let epoch = block.epoch(row);
            stats.oldest = stats.oldest.min(epoch);
            stats.newest = stats.newest.max(epoch);
            stats.tombstones += u64::from(block.is_tombstone(row));
        }
        let (mut first, mut last) = (Vec::new(), Vec::new());
        block.put_entry(0, &mut first);
        block.put_entry(block.rows() - 1, &mut last);
        self.open_block(slice, &[&first]);
        let place = put(&mut self.sink)?;
        self.note_block(place, u64::from(block.rows()), last);
        Ok(())
    }

    /// Returns the sink that receives the blocks.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Returns the bytes of the blocks closed so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of rows so far.
    pub fn rows(&self) -> u64 {
        self.stats.rows
    }

    /// Begins a block of a slice. `first` is the first entry of the block, in parts to be
    /// concatenated.
    fn open_block(&mut self, slice: SliceNo, first: &[&[u8]]) {
        self.slice = slice;
        self.index.open_block(slice, first);
    }

    /// Closes the block in progress, if there is one.
    fn close_block(&mut self) -> Result<()> {
        let rows = self.block.rows() as u64;
        if rows > 0 {
            let last = self.block.last_entry().concat();
            let place = self.sink.block(self.block.finish())?;
            self.note_block(place, rows, last);
        }
        Ok(())
    }

    /// Records a written block in the sparse index.
    fn note_block(&mut self, place: (u64, u32), rows: u64, last: Vec<u8>) {
        self.bytes += u64::from(place.1);
        self.index.close_block(place, rows, last);
    }

    /// Ends the table. Returns the sink, the statistics and the sparse index; `None` if the table
    /// has no rows.
    pub fn finish_parts(mut self) -> Result<Option<(S, TableStats, BlockIndex)>> {
        if self.stats.rows == 0 {
            return Ok(None);
        }
        self.close_block()?;
        self.index.prepare();
        Ok(Some((self.sink, self.stats, self.index)))
    }
}

/// Returns true if two strings are equal. Neighbouring strings of a table usually differ in their
/// last bytes, so the last bytes are compared first.
fn equal_from_end(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.last() == right.last() && left == right
}

impl<S: BlockSink> RowSink for TableBuilder<S> {
    #[inline]
    fn push(&mut self, row: &RowVersion<'_>) -> Result<()> {
        TableBuilder::push(self, row)
    }

    fn takes_blocks(&self) -> bool {
        true
    }

    fn push_block(&mut self, slice: SliceNo, block: &Arc<Block>) -> Result<()> {
        TableBuilder::push_block(self, slice, block)
    }
}
