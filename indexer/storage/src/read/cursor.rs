//! A cursor: walks the rows of one section of one table, within a range of entries, forward or in
//! reverse.
//!
//! A cursor never leaves the blocks `first..end` that can hold rows of its range; only in the first and
//! the last of them it looks at the bounds. The first blocks come through the block cache; who reads on
//! gets the following ones with ever larger reads past the cache, so that a long scan neither waits for
//! many small reads nor drives out what short scans need.

use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use bytes::Bytes;
use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::scan::KeyRange;

use crate::read::source::Source;
use crate::rows::block::Block;
use crate::rows::bytes::common;
use crate::rows::heads::Heads;
use crate::tables::table::Table;

/// So many blocks come through the cache before a cursor reads ahead.
const CACHED_BLOCKS: u32 = 3;
/// The most blocks of one read.
pub const AHEAD_BLOCKS_MAX: u32 = 32;

/// A place in a section.
#[derive(Debug)]
pub struct Cursor {
    table: Arc<Table>,
    /// The slice that the rows count for.
    pub slice: SliceNo,
    /// The epochs that count.
    pub epochs: RangeInclusive<Epoch>,
    /// In a back table: the entries that count.
    pub keys: KeyRange,
    low: Bytes,
    high: Option<Bytes>,
    reverse: bool,
    section: usize,
    first: u32,
    end: u32,
    at: u32,
    block: Arc<Block>,
    row: u32,
    /// The row of the block at which to leave it: behind the last, or the first in reverse.
    last_row: u32,
    heads: Heads,
    skip: usize,
    ahead: VecDeque<Arc<Block>>,
    ahead_max: u32,
    loaded: u32,
}

impl Cursor {
    /// A cursor on the first row (in its direction); `None` if there is none.
    pub fn open(source: Source, reverse: bool) -> Result<Option<Self>> {
        let Source { table, slice, rows_of, range, epochs, keys } = source;
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
        let block = table.block(at)?;
        let mut cursor = Self {
            table,
            slice,
            epochs,
            keys,
            low,
            high,
            reverse,
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
        let found = cursor.enter() || cursor.next_block()?;
        Ok(found.then_some(cursor))
    }

    /// What all entries of the section share at their beginning.
    pub fn beginning(&self) -> &[u8] {
        self.table.index.beginning(self.section)
    }

    /// From now on at most so many blocks are read at once, at least one.
    pub fn set_ahead_max(&mut self, blocks: u32) {
        self.ahead_max = blocks.max(1);
    }

    /// From now on heads are read behind so many bytes, which all entries of a merge must share.
    pub fn set_skip(&mut self, skip: usize) {
        self.skip = skip;
        self.heads = self.block.heads(skip);
    }

    /// The table that it reads.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The rows of the block at hand from the one that it stands on, forward.
    pub fn rest_of_block(&self) -> (&Block, Range<u32>) {
        (&self.block, self.row..self.last_row)
    }

    /// Goes past some of the rows of the block at hand, forward, but not past the last.
    pub fn skip(&mut self, rows: u32) {
        self.row = (self.row + rows).min(self.last_row - 1);
    }

    /// The epoch of the row that it stands on, and whether it is a tombstone, if the row counts and an
    /// epoch sees it.
    #[inline]
    pub fn version_at(&self, epoch: Epoch) -> Option<(Epoch, bool)> {
        let version = self.block.epoch(self.row);
        let counts = version <= epoch && self.epochs.contains(&version);
        counts.then(|| (version, self.block.is_tombstone(self.row)))
    }

    /// The block that it stands in, and the row.
    #[inline]
    pub fn place(&self) -> (&Block, u32) {
        (&self.block, self.row)
    }

    /// The head of the row that it stands on.
    #[inline]
    pub fn head(&self) -> u64 {
        self.block.head(&self.heads, self.row)
    }

    /// Goes to the next row; false behind the last.
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

    /// Begins with the block at hand; false if none of its rows is in the range.
    fn enter(&mut self) -> bool {
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
            if self.enter() {
                return Ok(true);
            }
        }
    }

    fn load(&mut self) -> Result<Arc<Block>> {
        self.loaded = self.loaded.saturating_add(1);
        if self.loaded <= CACHED_BLOCKS || self.table.fragment().is_none() {
            return self.table.block(self.at);
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
        next.map_or_else(|| self.table.block(self.at), Ok)
    }
}

/// How many bytes the entries of all cursors share at their beginning.
pub fn shared_beginning(cursors: &[Cursor]) -> usize {
    let Some((first, rest)) = cursors.split_first() else { return 0 };
    let beginning = first.beginning();
    rest.iter().fold(beginning.len(), |len, other| common(&beginning[..len], other.beginning()))
}
