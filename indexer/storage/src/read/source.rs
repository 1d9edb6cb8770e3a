//! The sources that cursors read: each is a table, restricted to a slice, a range of entries and a
//! range of epochs.

use std::ops::RangeInclusive;
use std::sync::Arc;

use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::scan::KeyRange;

use crate::rows::table_builder::BLOCK_BYTES;
use crate::tables::table::{BlocksFrom, Table};

/// A table with a restriction: only rows within it are read.
#[derive(Clone, Debug)]
pub struct Source {
    /// The table that the source reads.
    pub table: Arc<Table>,
    /// The slice to which the rows are attributed.
    pub slice: SliceNo,
    /// The slice number that the rows have in the table.
    pub rows_of: SliceNo,
    /// The range of the entries that are read.
    pub range: KeyRange,
    /// The epochs whose rows are read.
    pub epochs: RangeInclusive<Epoch>,
    /// In a back-index table: the range of entries that are read from each document's packed
    /// entries.
    pub keys: KeyRange,
    /// The places from which blocks may be read: memory and disk, or memory only.
    pub blocks: BlocksFrom,
}

impl Source {
    /// Creates a source that reads all rows of a slice in a table.
    pub fn of_slice(table: &Arc<Table>, slice: SliceNo) -> Self {
        Self {
            table: Arc::clone(table),
            slice,
            rows_of: slice,
            range: KeyRange::all(),
            epochs: Epoch(0)..=Epoch(u64::MAX),
            keys: KeyRange::all(),
            blocks: BlocksFrom::Anywhere,
        }
    }

    /// Returns the approximate size of one block in bytes; 0 for a table in memory.
    pub fn block_bytes(&self) -> usize {
        let index = &self.table.index;
        let Some(section) = index.section(self.rows_of) else { return 0 };
        if self.table.fragment().is_none() {
            return 0;
        }
        let section = &index.sections()[section];
        let blocks = u64::from(section.end_block - section.first_block).max(1);
        (section.bytes / blocks).max(BLOCK_BYTES as u64) as usize
    }

    /// Returns the source with another rule about the places from which blocks may be read.
    pub fn with_blocks(self, blocks: BlocksFrom) -> Self {
        Self { blocks, ..self }
    }

    /// Restricts the range of entries further, to `range`.
    pub fn restrict_to_range(mut self, range: &KeyRange) -> Self {
        if range.low > self.range.low {
            self.range.low = range.low.clone();
        }
        if let Some(high) = &range.high
            && self.range.high.as_ref().is_none_or(|own| high < own)
        {
            self.range.high = Some(high.clone());
        }
        self
    }
}
