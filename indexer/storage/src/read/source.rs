//! The sources that cursors read: the rows of a table within a slice, a range of entries and a
//! range of epochs.

use std::ops::RangeInclusive;
use std::sync::Arc;

use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::scan::KeyRange;

use crate::rows::table_builder::BLOCK_BYTES;
use crate::tables::table::{BlocksFrom, Table};

/// A restriction of a table, which a cursor reads.
#[derive(Clone, Debug)]
pub struct Source {
    /// The table that the source reads.
    pub table: Arc<Table>,
    /// The slice to which the rows are attributed.
    pub slice: SliceNo,
    /// Slice number of the rows in the table.
    pub rows_of: SliceNo,
    /// The range of the entries that are read.
    pub range: KeyRange,
    /// The epochs whose rows are read.
    pub epochs: RangeInclusive<Epoch>,
    /// In a back table: the range of the entries that are read from the packed states.
    pub keys: KeyRange,
    /// The origin of blocks: disk too, or memory only.
    pub blocks: BlocksFrom,
}

impl Source {
    /// Creates a source with all rows of a slice in a table.
    pub fn whole(table: &Arc<Table>, slice: SliceNo) -> Self {
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

    /// Returns the source with another rule for reads from disk.
    pub fn with_blocks(self, blocks: BlocksFrom) -> Self {
        Self { blocks, ..self }
    }

    /// Restricts the range of entries further, to `range`.
    pub fn clip(mut self, range: &KeyRange) -> Self {
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
