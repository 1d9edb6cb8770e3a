//! The size of a slice, and the value that divides it into halves: both from the sparse indexes of its tables, without reading a block.
//!
//! The tables have superseded versions and tombstones too, until compactions drop them, and those that rollback points keep for longer.
//! The *live* bytes are the part of the size that the entries of the newest epoch use: their number, which the writer counts, times the
//! mean size of a row. Tombstones count as rows here, so the figure is rather too low, where entries are larger than tombstones, than too
//! high: a slice that was split without need is not joined again.
//!
//! A slice that was split shares fragments with its other half, and only its range of their blocks counts. A fragment of the back
//! index is ordered by document: of it the same share counts as of the entries.

use std::ops::Range;
use std::sync::Arc;

use proto::model::ids::SliceNo;
use proto::rpc::scan::KeyRange;
use proto::value::key::{skip_part, successor};

use crate::read::index_version::IndexVersion;
use crate::read::slice_fragments::SliceFragments;
use crate::read::source::Source;
use crate::rows::block_index::BlockIndex;

/// The blocks of a table from which a split point may be taken: fewer blocks are too small a sample of the values.
const BLOCKS_MIN: u32 = 8;
/// On each side of a split point there must be at least one in this many of the blocks. A value with more entries than the rest is not
/// divided by any split point.
const SIDE_SHARE: u32 = 8;

/// Blocks of a table.
struct Blocks<'a> {
    index: &'a BlockIndex,
    section: usize,
    /// The blocks with entries of the range. Of two neighbouring ranges, the block with the bound counts for the lower one.
    own: Range<u32>,
    /// The blocks of the whole section, their bytes and their rows.
    all: u32,
    bytes: u64,
    rows: u64,
}

impl<'a> Blocks<'a> {
    fn of(index: &'a BlockIndex, rows_of: SliceNo, range: &KeyRange) -> Option<Self> {
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

    fn len(&self) -> u32 {
        self.own.end - self.own.start
    }

    /// The bytes of the blocks of the range.
    fn own_bytes(&self) -> u64 {
        share_of(self.bytes, self.len().into(), self.all.into())
    }

    /// The number of rows in these blocks.
    fn own_rows(&self) -> u64 {
        share_of(self.rows, self.len().into(), self.all.into())
    }

    /// The leading key part, ascending, of a block's first entry.
    fn part(&self, block: u32) -> Option<&'a [u8]> {
        let entry = self.index.first_entry(block);
        entry.get(..skip_part(entry, false).ok()?)
    }

    /// The number of blocks of the range that begin before some bytes.
    fn before(&self, bytes: &[u8]) -> u32 {
        self.index.lower_bound(self.section, bytes).clamp(self.own.start, self.own.end)
            - self.own.start
    }

    /// A leading key part that has about half of the blocks before it. If the value in the middle has many entries, they are on one side
    /// as a whole.
    fn middle(&self) -> Option<&'a [u8]> {
        let (len, side) = (self.len(), self.len() / SIDE_SHARE);
        if len < BLOCKS_MIN {
            return None;
        }
        let divides = |part: &[u8]| (side.max(1)..=len - side).contains(&self.before(part));
        let part = self.part(self.own.start + len / 2)?;
        if divides(part) {
            return Some(part);
        }
        let next = self.own.start + self.before(&successor(part)?);
        let part = (next < self.own.end).then(|| self.part(next))??;
        divides(part).then_some(part)
    }
}

fn blocks_of(source: &Source) -> Option<Blocks<'_>> {
    Blocks::of(&source.table.index, source.rows_of, &source.range)
}

/// The part of a number that `own` of `all` have.
fn share_of(number: u64, own: u64, all: u64) -> u64 {
    (u128::from(number) * u128::from(own) / u128::from(all.max(1))) as u64
}

/// The size of a slice, in memory and on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceSize {
    /// Versions and tombstones of entries, and their bytes with those of the included values.
    rows: u64,
    row_bytes: u64,
    /// Versions in the back index, and their bytes.
    states: u64,
    state_bytes: u64,
}

impl SliceSize {
    /// The bytes of the slice.
    pub fn bytes(self) -> u64 {
        self.row_bytes + self.state_bytes
    }

    /// The size of this many entries, and of their documents in the back index, at most one for each entry.
    pub fn of_entries(self, entries: u64) -> u64 {
        let (of_rows, of_states) = (self.rows, self.rows.max(self.states));
        share_of(self.row_bytes, entries.min(of_rows), of_rows)
            + share_of(self.state_bytes, entries.min(of_states), of_states)
    }
}

/// The size of a slice.
pub fn slice_size(version: &IndexVersion, slice: SliceNo, fragments: &SliceFragments) -> SliceSize {
    let is_back = |source: &Source| {
        fragments.back.iter().any(|other| Arc::ptr_eq(&other.table, &source.table))
    };
    let entries = fragments.all().filter(|source| !is_back(source));
    let runs = version.runs.iter();
    let runs: Vec<_> =
        runs.filter_map(|run| Blocks::of(&run.index, slice, &KeyRange::all())).collect();
    let rows = fragments.forward.iter().filter_map(blocks_of).map(|blocks| blocks.own_rows());
    let mut size = SliceSize {
        rows: rows.chain(runs.iter().map(|blocks| blocks.rows)).sum(),
        row_bytes: entries.filter_map(blocks_of).map(|blocks| blocks.own_bytes()).sum::<u64>()
            + runs.iter().map(|blocks| blocks.bytes).sum::<u64>(),
        ..SliceSize::default()
    };
    let share = own_share(fragments);
    for source in &fragments.back {
        let Some(blocks) = Blocks::of(&source.table.index, source.rows_of, &KeyRange::all()) else {
            continue;
        };
        let is_whole = source.keys == KeyRange::all();
        let own = |all: u64| if is_whole { all } else { (all as f64 * share) as u64 };
        size.states += own(blocks.rows);
        size.state_bytes += own(blocks.bytes);
    }
    size
}

/// The share of the entries' fragments that a slice has.
fn own_share(fragments: &SliceFragments) -> f64 {
    let blocks = || fragments.forward.iter().filter_map(blocks_of);
    share(blocks().map(|blocks| blocks.len()).sum(), blocks().map(|blocks| blocks.all).sum())
}

fn share(own: u32, all: u32) -> f64 {
    if all == 0 { 1.0 } else { f64::from(own) / f64::from(all) }
}

/// The share of the blocks of some sources that a further restriction leaves.
pub fn share_in(sources: &[Source], range: &KeyRange) -> f64 {
    let before = sources.iter().filter_map(blocks_of).map(|blocks| blocks.len()).sum();
    let clipped: Vec<Source> = sources.iter().map(|source| source.clone().clip(range)).collect();
    share(clipped.iter().filter_map(blocks_of).map(|blocks| blocks.len()).sum(), before)
}

/// The leading key part, ascending, that has about half of a slice's entries before it, by the largest of its tables; `None` if none divides it
/// well.
pub fn middle(version: &IndexVersion, slice: SliceNo) -> Option<Vec<u8>> {
    let fragments = version.slices.get(&slice)?;
    let runs = version.runs.iter();
    let runs = runs.filter_map(|run| Blocks::of(&run.index, slice, &KeyRange::all()));
    let all = fragments.forward.iter().filter_map(blocks_of).chain(runs);
    all.max_by_key(Blocks::own_bytes)?.middle().map(<[u8]>::to_vec)
}

#[cfg(test)]
#[path = "slice_size_tests.rs"]
mod tests;
