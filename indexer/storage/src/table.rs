//! A table: a sorted, immutable sequence of rows, cut into blocks, with a sparse index over them. A run
//! is a table in memory, a fragment is a table in a file; both are built by [`TableBuilder`] and read by
//! the same cursors.
//!
//! Rows are ordered by slice, then as in a [`Block`]; no block has rows of two slices. The rows of one
//! slice are a *section*, so a slice is a restriction of a table to a section, and a slice without rows
//! costs a table nothing.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use serde::{Deserialize, Serialize};

use super::block::{BLOCK_ROWS_MAX, Block, BlockBuilder, Version};
use super::block_index::BlockIndex;
use super::fragment::Fragment;

/// A block is closed when it has about this many bytes.
pub const BLOCK_BYTES: usize = 4 << 10;

/// What a table says of all its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableStats {
    /// How many rows.
    pub rows: u64,
    /// How many of them are tombstones.
    pub tombstones: u64,
    /// The smallest epoch of a row.
    pub oldest: Epoch,
    /// The largest epoch of a row.
    pub newest: Epoch,
    /// Does any entry have more than one version here?
    pub versions: bool,
}

impl TableStats {
    /// Does every row show at an epoch, each entry once? Then nothing has to be checked per row.
    pub fn shows_whole_at(&self, epoch: Epoch) -> bool {
        self.tombstones == 0 && !self.versions && self.newest <= epoch
    }
}

/// A sorted immutable table.
#[derive(Debug)]
pub struct Table {
    /// What it says of all its rows.
    pub stats: TableStats,
    /// Its sparse index.
    pub index: BlockIndex,
    blocks: Blocks,
    bytes: u64,
}

#[derive(Debug)]
enum Blocks {
    Memory(Vec<Arc<Block>>),
    File(Arc<Fragment>),
}

impl Table {
    /// A table whose blocks are in a file.
    pub fn of_fragment(
        stats: TableStats,
        index: BlockIndex,
        bytes: u64,
        fragment: Arc<Fragment>,
    ) -> Self {
        Self { stats, index, bytes, blocks: Blocks::File(fragment) }
    }

    /// A block, from memory, from the cache, or from the file and then into the cache.
    pub fn block(&self, block: u32) -> Result<Arc<Block>> {
        match &self.blocks {
            Blocks::Memory(blocks) => Ok(Arc::clone(&blocks[block as usize])),
            Blocks::File(fragment) => fragment.block(&self.index, block),
        }
    }

    /// Neighbouring blocks, for who reads on: with one read, past the cache.
    pub fn read_ahead(&self, wanted: Range<u32>, out: &mut VecDeque<Arc<Block>>) -> Result<()> {
        match &self.blocks {
            Blocks::Memory(blocks) => {
                out.extend(blocks[wanted.start as usize..wanted.end as usize].iter().cloned());
                Ok(())
            }
            Blocks::File(fragment) => fragment.read_ahead(&self.index, wanted, out),
        }
    }

    /// The file, if it is a fragment.
    pub fn fragment(&self) -> Option<&Arc<Fragment>> {
        match &self.blocks {
            Blocks::Memory(_) => None,
            Blocks::File(fragment) => Some(fragment),
        }
    }

    /// Bytes of memory, without what the block cache holds.
    pub fn memory_bytes(&self) -> usize {
        let blocks = match &self.blocks {
            Blocks::Memory(_) => self.bytes as usize,
            Blocks::File(fragment) => fragment.memory_bytes(),
        };
        blocks + self.index.size()
    }

    /// Bytes of its blocks, in memory or in the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Takes the blocks of a table that is being built.
pub trait BlockSink {
    /// Is told of each row before its block is closed.
    fn row(&mut self, _row: &Version<'_>) {}

    /// Takes the next block; says where it is and how many bytes it has there.
    fn block(&mut self, block: Vec<u8>) -> Result<(u64, u32)>;

    /// As [`Self::block`], for a block of another table. It is not told of the rows of such a block.
    fn shared_block(&mut self, block: &Arc<Block>) -> Result<(u64, u32)>;
}

/// Keeps the blocks of a run in memory.
#[derive(Debug, Default)]
pub struct MemorySink {
    blocks: Vec<Arc<Block>>,
    bytes: u64,
}

impl BlockSink for MemorySink {
    fn block(&mut self, block: Vec<u8>) -> Result<(u64, u32)> {
        let block = Block::parse(block.into_boxed_slice())?;
        self.bytes += block.size() as u64;
        let place = (0, block.bytes().len() as u32);
        self.blocks.push(Arc::new(block));
        Ok(place)
    }

    fn shared_block(&mut self, block: &Arc<Block>) -> Result<(u64, u32)> {
        self.bytes += block.size() as u64;
        self.blocks.push(Arc::clone(block));
        Ok((0, block.bytes().len() as u32))
    }
}

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

impl Default for TableBuilder<MemorySink> {
    fn default() -> Self {
        Self::new(MemorySink::default())
    }
}

impl TableBuilder<MemorySink> {
    /// The run, `None` if it has no rows.
    pub fn finish(self) -> Result<Option<Table>> {
        let Some((sink, stats, index)) = self.finish_parts()? else { return Ok(None) };
        let MemorySink { blocks, bytes } = sink;
        Ok(Some(Table { stats, index, bytes, blocks: Blocks::Memory(blocks) }))
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
pub(super) mod tests;
