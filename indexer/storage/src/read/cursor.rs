//! A cursor over the rows of one section of a table, within a range of entries, forward or in
//! reverse.
//!
//! A cursor stays inside the blocks `first..end` that can hold rows of its range, and compares rows
//! with the bounds only in the first and the last of these blocks. The first blocks are read
//! through the block cache. Further blocks are read ahead with growing reads that bypass the cache.
//! So a long scan does not wait for many small reads, and does not evict the blocks of short scans.

use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use bytes::Bytes;
use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::scan::KeyRange;

use crate::read::source::Source;
use crate::rows::block::Block;
use crate::rows::bytes::common_prefix_len;
use crate::rows::heads::Heads;
use crate::tables::table::{BlocksFrom, Table};

/// Number of blocks that a cursor reads one by one through the block cache before it begins to
/// read ahead.
const CACHED_BLOCKS: u32 = 3;
/// Maximum number of blocks that are read ahead with one read.
pub const AHEAD_BLOCKS_MAX: u32 = 32;

/// A cursor over the rows of a table's section, within a range of entries.
#[derive(Clone, Debug)]
pub struct Cursor {
    table: Arc<Table>,
    /// The slice that the cursor's rows belong to.
    pub slice: SliceNo,
    /// The epochs whose rows are read.
    pub epochs: RangeInclusive<Epoch>,
    /// In a back-index table: the range of entries that are read from each document's packed
    /// entries.
    pub keys: KeyRange,
    low: Bytes,
    high: Option<Bytes>,
    reverse: bool,
    blocks: BlocksFrom,
    section: usize,
    first: u32,
    end: u32,
    at: u32,
    block: Arc<Block>,
    row: u32,
    /// The end of the rows to visit in the current block: the row after the last one; in reverse,
    /// the last one itself.
    last_row: u32,
    heads: Heads,
    skip: usize,
    ahead: VecDeque<Arc<Block>>,
    ahead_max: u32,
    loaded: u32,
}

impl Cursor {
    /// Opens a cursor on the first row in its direction; `None` if no row is in the range.
    pub fn open(source: Source, reverse: bool) -> Result<Option<Self>> {
        let Source { table, slice, rows_of, range, epochs, keys, blocks } = source;
        let Some(section) = table.index.section(rows_of) else { return Ok(None) };
        let bounds = &table.index.sections()[section];
        let KeyRange { low, high } = range;
        let first = match low.is_empty() {
            true => bounds.first_block,
            false => {
                table.index.lower_bound(section, &low).saturating_sub(1).max(bounds.first_block)
            }
        };
        let end = match &high {
            Some(high) => table.index.lower_bound(section, high),
            None => bounds.end_block,
        };
        if first >= end {
            return Ok(None);
        }
        let at = if reverse { end - 1 } else { first };
        let block = table.block_from(at, blocks)?;
        let mut cursor = Self {
            table,
            slice,
            epochs,
            keys,
            low,
            high,
            reverse,
            blocks,
            section,
            first,
            end,
            at,
            block,
            row: 0,
            last_row: 0,
            heads: Heads::default(),
            skip: 0,
            ahead: VecDeque::new(),
            ahead_max: AHEAD_BLOCKS_MAX,
            loaded: 1,
        };
        let found = cursor.enter_block() || cursor.next_block()?;
        Ok(found.then_some(cursor))
    }

    /// Returns the prefix that all entries of the section share.
    pub fn shared_prefix(&self) -> &[u8] {
        self.table.index.beginning(self.section)
    }

    /// Limits the number of blocks that are read ahead at once; the minimum is one.
    pub fn set_ahead_max(&mut self, blocks: u32) {
        self.ahead_max = blocks.max(1);
    }

    /// Sets the length of the prefix that all entries of a merge share. The head of a row is the
    /// eight bytes after this prefix.
    pub fn set_prefix_len(&mut self, skip: usize) {
        self.skip = skip;
        self.heads = self.block.heads(skip);
    }

    /// Returns the slice number that the rows have in the table.
    pub fn rows_of(&self) -> SliceNo {
        self.table.index.sections()[self.section].slice
    }

    /// Returns the table that the cursor reads.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Returns the current block, and the range of its rows from the current one on. For forward
    /// cursors.
    pub fn rest_of_block(&self) -> (&Block, Range<u32>) {
        (&self.block, self.row..self.last_row)
    }

    /// Skips rows of the current block, but not its last row. For forward cursors.
    pub fn skip(&mut self, rows: u32) {
        self.row = (self.row + rows).min(self.last_row - 1);
    }

    /// Moves to the last row of the current block in the cursor's direction. Returns the number of
    /// rows from the row before the call to the last one, both included.
    pub fn skip_to_last(&mut self) -> u32 {
        let last = if self.reverse { self.last_row } else { self.last_row - 1 };
        let rows = self.row.abs_diff(last) + 1;
        self.row = last;
        rows
    }

    /// Returns the epoch and the tombstone flag of the current row; `None` if the row is newer
    /// than `epoch`, or if its epoch is outside of the source's range.
    #[inline]
    pub fn version_at(&self, epoch: Epoch) -> Option<(Epoch, bool)> {
        let version = self.block.epoch(self.row);
        let counts = version <= epoch && self.epochs.contains(&version);
        counts.then(|| (version, self.block.is_tombstone(self.row)))
    }

    /// Returns the current block and the number of the current row in it.
    #[inline]
    pub fn block_and_row(&self) -> (&Block, u32) {
        (&self.block, self.row)
    }

    /// Returns the head of the current row: eight bytes of its entry, for comparisons.
    #[inline]
    pub fn head(&self) -> u64 {
        self.block.head(&self.heads, self.row)
    }

    /// Moves to the next row. Returns false after the last one.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        if self.reverse {
            if self.row > self.last_row {
                self.row -= 1;
                return Ok(true);
            }
        } else if self.row + 1 < self.last_row {
            self.row += 1;
            return Ok(true);
        }
        self.next_block()
    }

    /// Moves to the first row of the current block that is in the range. Returns false if there is
    /// none.
    fn enter_block(&mut self) -> bool {
        let low = match self.at == self.first && !self.low.is_empty() {
            true => self.block.lower_bound(&self.low),
            false => 0,
        };
        let high = match &self.high {
            Some(high) if self.at + 1 == self.end => self.block.lower_bound(high),
            _ => self.block.rows(),
        };
        if low >= high {
            return false;
        }
        (self.row, self.last_row) = if self.reverse { (high - 1, low) } else { (low, high) };
        self.heads = self.block.heads(self.skip);
        true
    }

    /// Moves to the first row of a further block. Returns false after the last block.
    fn next_block(&mut self) -> Result<bool> {
        loop {
            if self.reverse && self.at > self.first {
                self.at -= 1;
            } else if !self.reverse && self.at + 1 < self.end {
                self.at += 1;
            } else {
                return Ok(false);
            }
            self.block = self.load()?;
            if self.enter_block() {
                return Ok(true);
            }
        }
    }

    /// Returns the current block: read through the cache, or from blocks that were read ahead.
    fn load(&mut self) -> Result<Arc<Block>> {
        self.loaded = self.loaded.saturating_add(1);
        let is_read_ahead = self.blocks == BlocksFrom::Anywhere && self.table.fragment().is_some();
        if self.loaded <= CACHED_BLOCKS || !is_read_ahead {
            return self.table.block_from(self.at, self.blocks);
        }
        if self.ahead.is_empty() {
            let count = (self.loaded - 1).next_power_of_two().min(self.ahead_max);
            let wanted = match self.reverse {
                true => (self.at + 1).saturating_sub(count).max(self.first)..self.at + 1,
                false => self.at..self.end.min(self.at + count),
            };
            self.table.read_ahead(wanted, &mut self.ahead)?;
        }
        let next = if self.reverse { self.ahead.pop_back() } else { self.ahead.pop_front() };
        next.map_or_else(|| self.table.block_from(self.at, self.blocks), Ok)
    }
}

/// Returns the length of the prefix that the entries of all cursors share.
pub fn shared_prefix_len(cursors: &[Cursor]) -> usize {
    let Some((first, rest)) = cursors.split_first() else { return 0 };
    let beginning = first.shared_prefix();
    rest.iter().fold(beginning.len(), |len, other| {
        common_prefix_len(&beginning[..len], other.shared_prefix())
    })
}
