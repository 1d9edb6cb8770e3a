//! The entries of some sources that are visible at an epoch.

use std::collections::BTreeSet;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::rows::RowBlockBuilder;

use crate::read::cursor::Cursor;
use crate::read::merge::Merge;
use crate::read::rows::{Bounds, Rows, WalkStep};
use crate::read::source::Source;

/// A walk over the entries that are visible at an epoch.
pub struct VisibleRows {
    merge: Merge,
    epoch: Epoch,
    with_values: bool,
    /// True if all rows of all sources are visible, and no entry is in two of the sources.
    shows_all: bool,
    /// True if there is exactly one source and all of its rows are visible.
    whole: bool,
    entry: Vec<u8>,
    value: Vec<u8>,
}

impl VisibleRows {
    /// Creates a walk over the entries of some sources that are visible at an epoch, with their
    /// values if requested.
    pub fn new(
        sources: impl IntoIterator<Item = Source>,
        epoch: Epoch,
        reverse: bool,
        with_values: bool,
    ) -> Result<Self> {
        let merge = Merge::new(sources, reverse)?;
        let is_whole = |cursor: &Cursor| {
            let stats = &cursor.table().stats;
            stats.is_all_visible_at(epoch.min(*cursor.epochs.end()))
                && *cursor.epochs.start() <= stats.oldest
        };
        // Entries of different slices are different, but two tables of a slice may have versions of one entry.
        let are_apart = |cursors: &[Cursor]| {
            let slices: BTreeSet<SliceNo> = cursors.iter().map(|cursor| cursor.slice).collect();
            slices.len() == cursors.len()
        };
        let cursors = &merge.cursors[..];
        let shows_all = cursors.iter().all(is_whole) && (cursors.len() < 2 || are_apart(cursors));
        let whole = shows_all && merge.cursors.len() == 1;
        let (entry, value) = (Vec::new(), Vec::new());
        Ok(Self { merge, epoch, with_values, shows_all, whole, entry, value })
    }

    /// Limits the number of blocks that are read at once from each source.
    pub fn with_ahead_max(mut self, blocks: u32) -> Self {
        self.merge.set_ahead_max(blocks);
        self
    }

    /// Moves to the next entry. May only be called if all rows are visible. Returns false after
    /// the last entry.
    fn next_of_all_visible(&mut self) -> Result<bool> {
        let Some((winner, _)) = self.merge.winner() else { return Ok(false) };
        let (block, row) = self.merge.cursors[winner].block_and_row();
        self.entry.clear();
        block.put_entry(row, &mut self.entry);
        if self.with_values {
            self.value.clear();
            block.put_value(row, &mut self.value);
        }
        self.merge.advance(winner)?;
        Ok(true)
    }

    /// Skips the remaining rows of a block. May only be called if all rows are visible. Returns
    /// the number of rows; `None` after the last.
    fn skip_block(&mut self) -> Result<Option<u64>> {
        let Some((winner, _)) = self.merge.winner() else { return Ok(None) };
        let rows = self.merge.cursors[winner].skip_to_last();
        self.merge.advance(winner)?;
        Ok(Some(u64::from(rows)))
    }

    /// Packs the remaining rows of a block, as many as the limits allow, in a forward walk. May
    /// only be called if all rows are visible. Returns the number of rows.
    fn pack_block(
        &mut self,
        block: &mut RowBlockBuilder,
        bytes_max: usize,
        rows_max: u64,
    ) -> Result<u64> {
        let Some((winner, _)) = self.merge.winner() else { return Ok(0) };
        let cursor = &mut self.merge.cursors[winner];
        let (from, rows) = cursor.rest_of_block();
        let row_bytes = from.entry_len(rows.start) + 2;
        let fit = (bytes_max - block.len()).div_ceil(row_bytes) as u64;
        let count = u64::from(rows.end - rows.start).min(rows_max).min(fit) as u32;
        let count = from.pack(rows.start..rows.start + count, block);
        if count > 1 {
            cursor.skip(count - 1);
        }
        if count > 0 {
            self.merge.advance(winner)?;
        }
        Ok(u64::from(count))
    }

    /// Packs the next entry, without its value. May only be called if all rows are visible.
    /// Returns false after the last entry.
    #[inline]
    fn pack_of_all_visible(&mut self, out: &mut RowBlockBuilder) -> Result<bool> {
        let Some((winner, _)) = self.merge.winner() else { return Ok(false) };
        let (block, row) = self.merge.cursors[winner].block_and_row();
        let Some(bytes) = block.put_row(row, out) else {
            let found = self.next_of_all_visible()?;
            out.push(&self.entry, &[]);
            return Ok(found);
        };
        out.add_written_rows(1, bytes);
        self.merge.advance(winner)?;
        Ok(true)
    }

    /// Packs the next entry, without its value, if it is visible. Returns true if it was visible;
    /// `None` after the last.
    #[inline]
    fn pack_entry(&mut self, out: &mut RowBlockBuilder) -> Result<Option<bool>> {
        let Self { merge, epoch, .. } = self;
        let Some((winner, head)) = merge.winner() else { return Ok(None) };
        let cursor = &merge.cursors[winner];
        let (block, row) = cursor.block_and_row();
        // The row is written at once, and committed if it turns out to be visible.
        let Some(bytes) = block.put_row(row, out) else {
            let found = self.next_entry()?;
            if found == Some(true) {
                out.push(&self.entry, &[]);
            }
            return Ok(found);
        };
        let (slice, mut best) = (cursor.slice, cursor.version_at(*epoch));
        merge.advance(winner)?;
        while let Some(next) =
            merge.next_if_same_entry(head, slice, &out.free_buffer(bytes)[1..bytes - 1])
        {
            let version = merge.cursors[next].version_at(*epoch);
            if version.map(|version| version.0) > best.map(|best| best.0) {
                best = version;
            }
            merge.advance(next)?;
        }
        let shows = matches!(best, Some((_, false)));
        if shows {
            out.add_written_rows(1, bytes);
        }
        Ok(Some(shows))
    }

    /// Moves past all versions of the next entry. Returns true if the entry is visible; `None`
    /// after the last.
    fn next_entry(&mut self) -> Result<Option<bool>> {
        let Self { merge, epoch, with_values, entry, value, .. } = self;
        let mut best: Option<(Epoch, bool)> = None;
        let found = merge.next_versions(entry, |cursor| {
            let (block, row) = cursor.block_and_row();
            let version = block.epoch(row);
            if version <= *epoch && best.is_none_or(|(newest, _)| version > newest) {
                let tombstone = block.is_tombstone(row);
                best = Some((version, tombstone));
                if *with_values && !tombstone {
                    value.clear();
                    block.put_value(row, value);
                }
            }
        })?;
        Ok(found.then_some(matches!(best, Some((_, false)))))
    }
}

impl Rows for VisibleRows {
    fn read_entry(&mut self) -> Result<Option<bool>> {
        match self.shows_all {
            true => Ok(self.next_of_all_visible()?.then_some(true)),
            false => self.next_entry(),
        }
    }

    fn entry(&self) -> &[u8] {
        &self.entry
    }

    fn include(&self) -> &[u8] {
        if self.with_values { &self.value } else { &[] }
    }

    fn put_next_entry(&self, out: &mut Vec<u8>) -> bool {
        let Some(cursor) = self.merge.next_row() else { return false };
        let (block, row) = cursor.block_and_row();
        block.put_entry(row, out);
        true
    }

    fn pack(&mut self, block: &mut RowBlockBuilder, bounds: Bounds) -> Result<WalkStep> {
        let in_blocks = self.whole && !self.with_values && !self.merge.reverse;
        let mut walked = WalkStep::default();
        while !bounds.are_reached(&walked, block.len()) {
            if in_blocks {
                let most = (bounds.rows - walked.rows).min(bounds.looks - walked.looks);
                let packed = self.pack_block(block, bounds.bytes, most)?;
                walked.rows += packed;
                walked.looks += packed;
                if packed > 0 {
                    continue;
                }
            }
            let found = match self.with_values {
                true => self.read_entry()?.inspect(|shown| {
                    if *shown {
                        block.push(&self.entry, &self.value);
                    }
                }),
                false if self.shows_all => self.pack_of_all_visible(block)?.then_some(true),
                false => self.pack_entry(block)?,
            };
            let Some(shown) = found else { return Ok(walked.to_end()) };
            walked.rows += u64::from(shown);
            walked.looks += 1;
        }
        Ok(walked)
    }

    fn count(&mut self, looks_max: u64) -> Result<WalkStep> {
        let mut walked = WalkStep::default();
        while walked.looks < looks_max {
            let shown = match self.whole {
                true => self.skip_block()?,
                false => self.next_entry()?.map(u64::from),
            };
            let Some(shown) = shown else { return Ok(walked.to_end()) };
            walked.rows += shown;
            walked.looks += 1;
        }
        Ok(walked)
    }
}

#[cfg(test)]
#[path = "visible_rows_tests.rs"]
mod tests;
