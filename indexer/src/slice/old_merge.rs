//! Merges the rows of several runs into one sequence of entries, forward or in reverse, and picks for
//! each entry the version that an epoch shows.
//!
//! A *cursor* stands on a row of one run, restricted to one slice and one key range. The cursors form
//! a binary heap ordered by (entry, slice); the first eight bytes of an entry are kept as an integer,
//! so most comparisons are one instruction. All versions of an entry come together, whatever their
//! order, and the newest at or below the epoch decides: so the direction does not matter.

use std::cmp::Ordering;
use std::sync::Arc;

use proto::ids::{Epoch, SliceNo};
use proto::scan::KeyRange;

use super::run::{Run, Version};

/// A place in one run.
struct Cursor {
    /// Which run, by its place in `Merge::runs`.
    run: u32,
    /// The row it stands on.
    row: u32,
    /// Rows left, the one it stands on included.
    left: u32,
    slice: SliceNo,
    prefix: u64,
}

/// Eight bytes as an integer of the same order; shorter entries are padded with zeros, so equal
/// prefixes decide nothing.
fn prefix_of(entry: &[u8]) -> u64 {
    match entry.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut chunk = [0; 8];
            chunk[..entry.len()].copy_from_slice(entry);
            u64::from_be_bytes(chunk)
        }
    }
}

/// The merged rows of some slices within one key range. It keeps its runs alive.
pub struct Merge {
    runs: Vec<Arc<Run>>,
    heap: Vec<Cursor>,
    reverse: bool,
    epoch: Epoch,
    /// The only cursor's run needs no look at versions.
    whole: bool,
}

/// The row that a merge found; [`Merge::entry`] and [`Merge::include`] read it.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    run: u32,
    row: u32,
}

impl Merge {
    /// A merge of the rows of `slices` in `range`, as `epoch` shows them.
    pub fn new(
        runs: &[Arc<Run>],
        slices: &[SliceNo],
        range: &KeyRange,
        epoch: Epoch,
        reverse: bool,
    ) -> Self {
        let runs: Vec<_> = runs.iter().filter(|run| run.oldest() <= epoch).cloned().collect();
        let mut heap = Vec::new();
        for (at, run) in runs.iter().enumerate() {
            for slice in slices {
                let rows = run.rows_of(*slice);
                let from = run.lower_bound(rows.clone(), &range.low);
                let to = match &range.high {
                    Some(high) => run.lower_bound(from..rows.end, high),
                    None => rows.end,
                };
                if from < to {
                    let row = if reverse { to - 1 } else { from };
                    let prefix = prefix_of(run.entry(row));
                    let (run, left) = (at as u32, to - from);
                    heap.push(Cursor { run, row, left, slice: *slice, prefix });
                }
            }
        }
        let whole = match &heap[..] {
            [only] => runs[only.run as usize].shows_whole_at(epoch),
            _ => false,
        };
        let mut merge = Self { runs, heap, reverse, epoch, whole };
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sift_down(at);
        }
        merge
    }

    /// Encoded key parts of a row, then its document id.
    pub fn entry(&self, found: Found) -> &[u8] {
        self.runs[found.run as usize].entry(found.row)
    }

    /// Encoded included values of a row.
    pub fn include(&self, found: Found) -> &[u8] {
        self.runs[found.run as usize].include(found.row)
    }

    /// The next entry that the epoch shows. (Not an `Iterator`: rows are read through the merge.)
    pub fn next_visible(&mut self) -> Option<Found> {
        if self.whole {
            let top = self.heap.first()?;
            let found = Found { run: top.run, row: top.row };
            self.advance_top();
            return Some(found);
        }
        let epoch = self.epoch;
        loop {
            let mut best: Option<(Epoch, bool, Found)> = None;
            self.next_group(|run, found| {
                let version = run.epoch(found.row);
                if version <= epoch && best.as_ref().is_none_or(|(newest, ..)| version > *newest) {
                    best = Some((version, run.is_tombstone(found.row), found));
                }
            })?;
            if let Some((_, false, found)) = best {
                return Some(found);
            }
        }
    }

    /// All versions of the next entry, in no order; for compaction of one slice.
    pub fn next_versions(
        &mut self,
        slice: SliceNo,
        mut visit: impl FnMut(Version<'_>),
    ) -> Option<()> {
        self.next_group(|run, Found { row, .. }| {
            visit(Version {
                slice,
                entry: run.entry(row),
                include: run.include(row),
                epoch: run.epoch(row),
                tombstone: run.is_tombstone(row),
            });
        })
    }

    /// Visits all rows of the entry at the top and goes past them.
    fn next_group(&mut self, mut visit: impl FnMut(&Run, Found)) -> Option<()> {
        let top = self.heap.first()?;
        let (first, slice, prefix) = (Found { run: top.run, row: top.row }, top.slice, top.prefix);
        visit(&self.runs[first.run as usize], first);
        self.advance_top();
        while let Some(top) = self.heap.first() {
            let found = Found { run: top.run, row: top.row };
            if top.prefix != prefix || top.slice != slice || self.entry(found) != self.entry(first)
            {
                break;
            }
            visit(&self.runs[found.run as usize], found);
            self.advance_top();
        }
        Some(())
    }

    fn advance_top(&mut self) {
        let top = &mut self.heap[0];
        top.left -= 1;
        if top.left == 0 {
            self.heap.swap_remove(0);
        } else {
            top.row = if self.reverse { top.row - 1 } else { top.row + 1 };
            top.prefix = prefix_of(self.runs[top.run as usize].entry(top.row));
        }
        if self.heap.len() > 1 {
            self.sift_down(0);
        }
    }

    fn before(&self, left: &Cursor, right: &Cursor) -> bool {
        let entry = |cursor: &Cursor| self.runs[cursor.run as usize].entry(cursor.row);
        let order = left
            .prefix
            .cmp(&right.prefix)
            .then_with(|| entry(left).cmp(entry(right)))
            .then_with(|| left.slice.cmp(&right.slice));
        order == if self.reverse { Ordering::Greater } else { Ordering::Less }
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut first = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.before(&self.heap[child], &self.heap[first]) {
                    first = child;
                }
            }
            if first == at {
                return;
            }
            self.heap.swap(at, first);
            at = first;
        }
    }
}

/// Merges runs into one and drops the versions that nobody can ask for (I5): of each entry stay all
/// versions above the horizon and the newest at or below it; where the merge takes in the oldest rows
/// there are, a tombstone that would be the oldest version goes as well. Slice by slice, since a run
/// is ordered by slice first.
pub fn compact(runs: &[Arc<Run>], horizon: Epoch, with_oldest: bool) -> Option<Run> {
    let mut slices: Vec<_> =
        runs.iter().flat_map(|run| run.slices().map(|(slice, _)| slice)).collect();
    slices.sort();
    slices.dedup();
    let mut builder = super::run::RunBuilder::default();
    let mut versions: Vec<OwnedVersion> = Vec::new();
    let mut bytes = Vec::new();
    for slice in slices {
        let mut merge = Merge::new(runs, &[slice], &KeyRange::all(), Epoch(u64::MAX), false);
        loop {
            versions.clear();
            bytes.clear();
            let more = merge.next_versions(slice, |version| {
                let entry_at = bytes.len();
                bytes.extend_from_slice(version.entry);
                let include_at = bytes.len();
                bytes.extend_from_slice(version.include);
                versions.push(OwnedVersion {
                    epoch: version.epoch,
                    tombstone: version.tombstone,
                    entry: entry_at..include_at,
                    include: include_at..bytes.len(),
                });
            });
            if more.is_none() {
                break;
            }
            keep_needed(&mut versions, horizon, with_oldest);
            for version in &versions {
                builder.push(Version {
                    slice,
                    entry: &bytes[version.entry.clone()],
                    include: &bytes[version.include.clone()],
                    epoch: version.epoch,
                    tombstone: version.tombstone,
                });
            }
        }
    }
    builder.finish()
}

struct OwnedVersion {
    epoch: Epoch,
    tombstone: bool,
    entry: std::ops::Range<usize>,
    include: std::ops::Range<usize>,
}

fn keep_needed(versions: &mut Vec<OwnedVersion>, horizon: Epoch, with_oldest: bool) {
    versions.sort_by_key(|version| std::cmp::Reverse(version.epoch));
    versions.dedup_by_key(|version| version.epoch);
    let above = versions.partition_point(|version| version.epoch > horizon);
    versions.truncate(above + 1);
    while with_oldest && versions.last().is_some_and(|oldest| oldest.tombstone) {
        versions.pop();
    }
}
