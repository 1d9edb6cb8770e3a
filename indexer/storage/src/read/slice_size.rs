//! The size of a slice, and the value that divides it into halves. Both are computed from the
//! sparse indexes of its tables, without reading a block.
//!
//! The tables also contain superseded versions and tombstones, until compactions drop them, and
//! versions for rollback points. The *live* bytes are the bytes that only the entries of the
//! newest epoch use: their number, which the writer counts, times the mean size of a row.
//! Tombstones count as rows in this mean, so the figure is too low rather than too high if entries
//! are larger than tombstones. A figure that is too low is safer, since a slice that was split
//! without need is not joined again.
//!
//! A slice that was split shares fragments with its other half, and only the blocks of its range
//! are counted. A fragment of the back index is ordered by document, so the slice's share of its
//! bytes is assumed to be the same as of the entries.

use std::ops::Range;
use std::sync::Arc;

use proto::model::ids::SliceNo;
use proto::rpc::scan::KeyRange;
use proto::value::key::{skip_part, successor};

use crate::read::index_version::IndexVersion;
use crate::read::slice_fragments::SliceFragments;
use crate::read::source::Source;
use crate::rows::block_index::BlockIndex;

/// The minimum number of blocks from which a split point is taken: fewer blocks are too small a
/// sample.
const BLOCKS_MIN: u32 = 8;
/// On each side of a split point there must be at least the number of blocks divided by this
/// number. So if one value has almost all entries, there is no split point.
const SIDE_SHARE: u32 = 8;

/// The blocks of a table's section, and those of them that are in a range of entries.
struct RangeBlocks<'a> {
    index: &'a BlockIndex,
    section: usize,
    /// The numbers of the blocks in the range. A block that lies on the bound between two ranges
    /// belongs to the lower range.
    own: Range<u32>,
    /// The number of blocks of the complete section; in the next fields their bytes and their
    /// rows.
    all: u32,
    bytes: u64,
    rows: u64,
}

impl<'a> RangeBlocks<'a> {
    /// Finds the blocks of a section that are in a range; `None` if the table has no rows of the
    /// slice.
    fn in_range(index: &'a BlockIndex, rows_of: SliceNo, range: &KeyRange) -> Option<Self> {
        let section = index.section(rows_of)?;
        let known = &index.sections()[section];
        let from = match range.low.is_empty() {
            true => known.first_block,
            false => index.lower_bound(section, &range.low),
        };
        let high = range.high.as_ref();
        let to = high.map_or(known.end_block, |high| index.lower_bound(section, high));
        let all = known.end_block - known.first_block;
        Some(Self {
            index,
            section,
            own: from..to.max(from),
            all,
            bytes: known.bytes,
            rows: known.rows,
        })
    }

    /// Returns the number of blocks in the range.
    fn len(&self) -> u32 {
        self.own.end - self.own.start
    }

    /// Returns the approximate bytes of the range's blocks.
    fn range_bytes(&self) -> u64 {
        fraction_of(self.bytes, self.len().into(), self.all.into())
    }

    /// Returns the approximate number of rows in the range's blocks.
    fn range_rows(&self) -> u64 {
        fraction_of(self.rows, self.len().into(), self.all.into())
    }

    /// Returns the leading key part of a block's first entry, in ascending encoding.
    fn leading_part(&self, block: u32) -> Option<&'a [u8]> {
        let entry = self.index.first_entry(block);
        entry.get(..skip_part(entry, false).ok()?)
    }

    /// Returns how many of the range's blocks begin with a first key part that is less than
    /// `bytes`.
    fn blocks_before(&self, bytes: &[u8]) -> u32 {
        self.index.lower_bound(self.section, bytes).clamp(self.own.start, self.own.end)
            - self.own.start
    }

    /// Returns the leading key part that has about half of the range's blocks before it; `None` if
    /// there is no good split point. Entries with an equal key part are all on one side of it.
    fn split_point(&self) -> Option<&'a [u8]> {
        let (len, side) = (self.len(), self.len() / SIDE_SHARE);
        if len < BLOCKS_MIN {
            return None;
        }
        let divides = |part: &[u8]| (side.max(1)..=len - side).contains(&self.blocks_before(part));
        let part = self.leading_part(self.own.start + len / 2)?;
        if divides(part) {
            return Some(part);
        }
        let next = self.own.start + self.blocks_before(&successor(part)?);
        let part = (next < self.own.end).then(|| self.leading_part(next))??;
        divides(part).then_some(part)
    }
}

/// Returns the blocks that a source reads.
fn blocks_of(source: &Source) -> Option<RangeBlocks<'_>> {
    RangeBlocks::in_range(&source.table.index, source.rows_of, &source.range)
}

/// Returns the fraction `own / all` of `number`.
fn fraction_of(number: u64, own: u64, all: u64) -> u64 {
    (u128::from(number) * u128::from(own) / u128::from(all.max(1))) as u64
}

/// The number and the bytes of a slice's rows, in memory and on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceSize {
    /// Number of versions and tombstones of entries; in the next field their bytes, with those of
    /// the included values.
    rows: u64,
    row_bytes: u64,
    /// Number of versions in the back index; in the next field their bytes.
    states: u64,
    state_bytes: u64,
}

impl SliceSize {
    /// Returns the bytes of the slice.
    pub fn bytes(self) -> u64 {
        self.row_bytes + self.state_bytes
    }

    /// Returns the size in bytes that `entries` entries would have, with their records in the back
    /// index, at most one document per entry.
    pub fn of_entries(self, entries: u64) -> u64 {
        let (of_rows, of_states) = (self.rows, self.rows.max(self.states));
        fraction_of(self.row_bytes, entries.min(of_rows), of_rows)
            + fraction_of(self.state_bytes, entries.min(of_states), of_states)
    }
}

/// Returns the size of a slice.
pub fn slice_size(version: &IndexVersion, slice: SliceNo, fragments: &SliceFragments) -> SliceSize {
    let is_back = |source: &Source| {
        fragments.back.iter().any(|other| Arc::ptr_eq(&other.table, &source.table))
    };
    let entries = fragments.all().filter(|source| !is_back(source));
    let runs = version.runs.iter();
    let runs: Vec<_> =
        runs.filter_map(|run| RangeBlocks::in_range(&run.index, slice, &KeyRange::all())).collect();
    let rows = fragments.forward.iter().filter_map(blocks_of).map(|blocks| blocks.range_rows());
    let mut size = SliceSize {
        rows: rows.chain(runs.iter().map(|blocks| blocks.rows)).sum(),
        row_bytes: entries.filter_map(blocks_of).map(|blocks| blocks.range_bytes()).sum::<u64>()
            + runs.iter().map(|blocks| blocks.bytes).sum::<u64>(),
        ..SliceSize::default()
    };
    let share = share_of_entries(fragments);
    for source in &fragments.back {
        let Some(blocks) =
            RangeBlocks::in_range(&source.table.index, source.rows_of, &KeyRange::all())
        else {
            continue;
        };
        let is_whole = source.keys == KeyRange::all();
        let own = |all: u64| if is_whole { all } else { (all as f64 * share) as u64 };
        size.states += own(blocks.rows);
        size.state_bytes += own(blocks.bytes);
    }
    size
}

/// Returns the fraction of the blocks of a slice's entry fragments that are in the slice's ranges,
/// from 0 to 1.
fn share_of_entries(fragments: &SliceFragments) -> f64 {
    let blocks = || fragments.forward.iter().filter_map(blocks_of);
    share(blocks().map(|blocks| blocks.len()).sum(), blocks().map(|blocks| blocks.all).sum())
}

/// Returns the fraction `own / all`, from 0 to 1.
fn share(own: u32, all: u32) -> f64 {
    if all == 0 { 1.0 } else { f64::from(own) / f64::from(all) }
}

/// Returns the fraction of the blocks of some sources that are in `range`, from 0 to 1.
pub fn share_in(sources: &[Source], range: &KeyRange) -> f64 {
    let before = sources.iter().filter_map(blocks_of).map(|blocks| blocks.len()).sum();
    let clipped: Vec<Source> =
        sources.iter().map(|source| source.clone().restrict_to_range(range)).collect();
    share(clipped.iter().filter_map(blocks_of).map(|blocks| blocks.len()).sum(), before)
}

/// Returns the leading key part, in ascending encoding, that has about half of a slice's entries
/// before it, according to the largest table; `None` if no value divides the table well.
pub fn slice_split_point(version: &IndexVersion, slice: SliceNo) -> Option<Vec<u8>> {
    let fragments = version.slices.get(&slice)?;
    let runs = version.runs.iter();
    let runs = runs.filter_map(|run| RangeBlocks::in_range(&run.index, slice, &KeyRange::all()));
    let all = fragments.forward.iter().filter_map(blocks_of).chain(runs);
    all.max_by_key(RangeBlocks::range_bytes)?.split_point().map(<[u8]>::to_vec)
}

#[cfg(test)]
#[path = "slice_size_tests.rs"]
mod tests;
