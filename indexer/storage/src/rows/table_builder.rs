//! Builds a table from rows in its order: a run in memory or a fragment, as its sink decides.

use std::sync::Arc;

use proto::Result;
use proto::model::ids::SliceNo;

use crate::rows::block::Block;
use crate::rows::block_builder::BlockBuilder;
use crate::rows::block_format::BLOCK_ROWS_MAX;
use crate::rows::block_index::BlockIndex;
use crate::rows::row::Version;
use crate::rows::sinks::{BlockSink, RowSink};
use crate::rows::stats::TableStats;

/// A block is closed when it has about this many bytes.
pub const BLOCK_BYTES: usize = 4 << 10;

/// Builds a table from rows in its order.
#[derive(Debug)]
pub struct TableBuilder<S> {
    sink: S,
    stats: TableStats,
    index: BlockIndex,
    block: BlockBuilder,
    slice: SliceNo,
    bytes: u64,
}

impl<S: BlockSink> TableBuilder<S> {
    /// A builder that gives its blocks to a sink.
    pub fn new(sink: S) -> Self {
        Self {
            sink,
            stats: TableStats::default(),
            index: BlockIndex::default(),
            block: BlockBuilder::default(),
            slice: SliceNo(0),
            bytes: 0,
        }
    }

    /// Appends a row.
    pub fn push(&mut self, row: &Version<'_>) -> Result<()> {
        let stats = &mut self.stats;
        if stats.rows == 0 {
            (stats.oldest, stats.newest) = (row.epoch, row.epoch);
        } else if self.slice == row.slice && self.block.rows() > 0 {
            // A block is closed only when the next row comes, so that there is always a last one.
            let [key, id] = self.block.last_entry();
            debug_assert!((key, id) <= (row.key, row.id), "rows are sorted");
            stats.versions |= same(key, row.key) && same(id, row.id);
        }
        stats.rows += 1;
        stats.tombstones += u64::from(row.tombstone);
        stats.oldest = stats.oldest.min(row.epoch);
        stats.newest = stats.newest.max(row.epoch);
        let full = self.block.size() >= BLOCK_BYTES || self.block.rows() == BLOCK_ROWS_MAX;
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

    /// Appends all rows of a block of another table, as they are. Its entries have one version each, and
    /// come after all that is here and before all that comes.
    pub fn push_block(&mut self, slice: SliceNo, block: &Arc<Block>) -> Result<()> {
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
        let place = self.sink.shared_block(block)?;
        self.note_block(place, u64::from(block.rows()), last);
        Ok(())
    }

    /// Where the blocks go.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Bytes of closed blocks.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many rows.
    pub fn rows(&self) -> u64 {
        self.stats.rows
    }

    /// A block begins, with an entry given in pieces.
    fn open_block(&mut self, slice: SliceNo, first: &[&[u8]]) {
        self.slice = slice;
        self.index.open_block(slice, first);
    }

    /// Ends the block at hand, if there is one.
    fn close_block(&mut self) -> Result<()> {
        let rows = self.block.rows() as u64;
        if rows > 0 {
            let last = self.block.last_entry().concat();
            let place = self.sink.block(self.block.finish())?;
            self.note_block(place, rows, last);
        }
        Ok(())
    }

    fn note_block(&mut self, place: (u64, u32), rows: u64, last: Vec<u8>) {
        self.bytes += u64::from(place.1);
        self.index.close_block(place, rows, last);
    }

    /// The sink and what is known of the table; `None` if it has no rows.
    pub fn finish_parts(mut self) -> Result<Option<(S, TableStats, BlockIndex)>> {
        if self.stats.rows == 0 {
            return Ok(None);
        }
        self.close_block()?;
        self.index.prepare();
        Ok(Some((self.sink, self.stats, self.index)))
    }
}

/// Are two strings the same? Neighbours in a table mostly differ in their last bytes.
fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.last() == right.last() && left == right
}

impl<S: BlockSink> RowSink for TableBuilder<S> {
    #[inline]
    fn push(&mut self, row: &Version<'_>) -> Result<()> {
        TableBuilder::push(self, row)
    }

    fn takes_blocks(&self) -> bool {
        true
    }

    fn push_block(&mut self, slice: SliceNo, block: &Arc<Block>) -> Result<()> {
        TableBuilder::push_block(self, slice, block)
    }
}
