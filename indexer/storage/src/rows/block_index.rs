//! The sparse index of a table: the first entry and the file offset of each block.
//!
//! Versions of one entry can be in two neighbouring blocks. So a search for an entry begins at the
//! last block whose first entry is *less* than the searched entry.

use std::cmp::Ordering;

use proto::model::ids::SliceNo;
use serde::{Deserialize, Serialize};

use crate::rows::bytes::{common_prefix_len, head_of};

/// The rows of one slice in a table, as a range of blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// The slice of the section.
    pub slice: SliceNo,
    /// The number of the section's first block.
    pub first_block: u32,
    /// The number of the first block after the section.
    pub end_block: u32,
    /// Number of rows.
    pub rows: u64,
    /// Bytes of the section's blocks.
    pub bytes: u64,
    /// Last entry of the section.
    pub last: Vec<u8>,
}

/// The sparse index of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockIndex {
    /// Sections by slice, ascending.
    sections: Vec<Section>,
    /// First entries of the blocks, concatenated.
    entries: Vec<u8>,
    /// End of each first entry in `entries`.
    ends: Vec<u32>,
    /// Place of each block in the file: its offset and its stored bytes. All are zero for a table
    /// in memory.
    places: Vec<(u64, u32)>,
    /// Length of the prefix that the entries of each section share.
    #[serde(skip)]
    shared: Vec<u32>,
    /// Head of each block's first entry: the eight bytes after the prefix that its section shares.
    #[serde(skip)]
    heads: Vec<u64>,
}

impl BlockIndex {
    /// Returns the sections by slice, ascending.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Returns the position of a slice's section; `None` if the table has no rows of the slice.
    pub fn section(&self, slice: SliceNo) -> Option<usize> {
        self.sections.binary_search_by_key(&slice, |section| section.slice).ok()
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Returns the place of a block in its file: offset and stored bytes.
    pub fn place(&self, block: u32) -> Option<(u64, u32)> {
        self.places.get(block as usize).copied()
    }

    /// Returns the first entry of a block.
    pub fn first_entry(&self, block: u32) -> &[u8] {
        let n = block as usize;
        let from = if n == 0 { 0 } else { self.ends[n - 1] as usize };
        &self.entries[from..self.ends[n] as usize]
    }

    /// Returns the prefix that all entries of a section share.
    pub fn beginning(&self, section: usize) -> &[u8] {
        match self.shared[section] as usize {
            0 => &[],
            shared => &self.first_entry(self.sections[section].first_block)[..shared],
        }
    }

    /// Returns the first block of a section whose first entry is at or after `bound`, or the block
    /// after the section.
    pub fn lower_bound(&self, section: usize, bound: &[u8]) -> u32 {
        let Section { first_block, end_block, .. } = self.sections[section];
        let shared = self.shared[section] as usize;
        let len = shared.min(bound.len());
        match bound[..len].cmp(&self.beginning(section)[..len]) {
            Ordering::Less => return first_block,
            Ordering::Greater => return end_block,
            Ordering::Equal if bound.len() <= shared => return first_block,
            Ordering::Equal => {}
        }
        let head = head_of(&[&bound[shared..]]);
        let heads = &self.heads[first_block as usize..end_block as usize];
        let mut at = first_block + heads.partition_point(|other| *other < head) as u32;
        // Equal heads decide nothing: compare whole entries.
        if at < end_block && self.heads[at as usize] == head {
            let same = &self.heads[at as usize..end_block as usize];
            let (mut low, mut high) =
                (at, at + same.partition_point(|other| *other == head) as u32);
            while low < high {
                let middle = low + (high - low) / 2;
                if self.first_entry(middle) < bound {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            at = low;
        }
        at
    }

    /// Returns the memory use in bytes.
    pub fn size(&self) -> usize {
        self.entries.len() + 28 * self.ends.len() + 96 * self.sections.len()
    }

    /// Computes the fields that are not stored in the file. Returns false if the stored fields
    /// contradict each other.
    pub fn prepare(&mut self) -> bool {
        let blocks = self.ends.len();
        let ascending = self.ends.windows(2).all(|pair| pair[0] <= pair[1]);
        let whole = self.ends.last().map_or(0, |end| *end as usize) == self.entries.len();
        let mut next = 0;
        let mut slices = self.sections.windows(2);
        let contiguous = self.sections.iter().all(|section| {
            let fits = section.first_block == next && section.end_block > next;
            next = section.end_block;
            fits
        });
        let ordered = slices.all(|pair| pair[0].slice < pair[1].slice);
        if !(ascending && whole && contiguous && ordered)
            || next as usize != blocks
            || self.places.len() != blocks
        {
            return false;
        }
        self.heads.clear();
        self.shared.clear();
        for n in 0..self.sections.len() {
            let Section { first_block, end_block, ref last, .. } = self.sections[n];
            let shared = common_prefix_len(self.first_entry(first_block), last);
            for block in first_block..end_block {
                let entry = self.first_entry(block);
                let rest = &entry[shared.min(entry.len())..];
                self.heads.push(head_of(&[rest]));
            }
            self.shared.push(shared as u32);
        }
        true
    }

    /// Begins a block of a slice. `first` is the first entry of the block, in parts to be
    /// concatenated.
    pub(crate) fn open_block(&mut self, slice: SliceNo, first: &[&[u8]]) {
        let block = self.ends.len() as u32;
        if self.sections.last().is_none_or(|section| section.slice != slice) {
            self.sections.push(Section {
                slice,
                first_block: block,
                end_block: block,
                rows: 0,
                bytes: 0,
                last: Vec::new(),
            });
        }
        first.iter().for_each(|piece| self.entries.extend_from_slice(piece));
        self.ends.push(self.entries.len() as u32);
    }

    /// Ends a block: records the place to which it was written, its number of rows, and its last
    /// entry.
    pub(crate) fn close_block(&mut self, place: (u64, u32), rows: u64, last: Vec<u8>) {
        self.places.push(place);
        if let Some(section) = self.sections.last_mut() {
            section.end_block += 1;
            section.rows += rows;
            section.bytes += u64::from(place.1);
            section.last = last;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tables::table::tests::table;

    use super::*;

    #[test]
    fn a_contradictory_index_is_refused() {
        let rows: Vec<_> = (0..5000).map(|n| (1, n << 32)).collect();
        let good = table(&rows).index;
        assert!(good.clone().prepare());
        let damaged = |change: fn(&mut BlockIndex)| {
            let mut index = good.clone();
            change(&mut index);
            !index.prepare()
        };
        assert!(damaged(|index| index.sections[0].end_block += 1));
        assert!(damaged(|index| index.ends[1] = 0));
        assert!(damaged(|index| index.entries.truncate(3)));
        assert!(damaged(|index| index.places.truncate(1)));
        assert!(damaged(|index| index.sections[0].first_block = index.sections[0].end_block));
    }
}
