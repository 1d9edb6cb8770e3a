//! Rewriting of rows: merges some sources into one table and drops versions that no read can need.
//! Used by merges of tables in memory, flushes and compactions.

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::read::cursor::Cursor;
use crate::read::merge::Merge;
use crate::read::source::Source;
use crate::retention::RetainedEpochs;
use crate::rows::packed;
use crate::rows::row::RowVersion;
use crate::rows::sinks::RowSink;

/// A rewrite of rows, with the rules that decide which versions are dropped.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// The epochs whose versions must be retained.
    pub retained: RetainedEpochs,
    /// True for rows of the back index, whose values are packed entries of documents.
    pub back: bool,
}

/// A version of the current entry, with the place of its value.
struct RetainedVersion {
    epoch: Epoch,
    tombstone: bool,
    value: std::ops::Range<usize>,
}

impl Rewrite {
    /// Merges the rows of one slice from `sources` and writes them to `out`. Must be called for
    /// slices in ascending order. `at_bottom` is true if no rows older than those of the sources
    /// exist (see [`crate::retention`]).
    pub fn rewrite_slice(
        &self,
        slice: SliceNo,
        sources: Vec<Source>,
        at_bottom: bool,
        out: &mut impl RowSink,
    ) -> Result<()> {
        if let [only] = &sources[..]
            && !at_bottom
            && out.takes_blocks()
            && self.keeps_all_rows(only)
        {
            return copy_blocks(only, slice, out);
        }
        let mut merge = Merge::new(sources, false)?;
        let (mut entry, mut values) = (Vec::new(), Vec::new());
        let mut versions: Vec<RetainedVersion> = Vec::new();
        loop {
            values.clear();
            versions.clear();
            let mut key_len = 0;
            let found = merge.next_versions(&mut entry, |cursor| {
                let (block, row) = cursor.block_and_row();
                key_len = block.key_len(row);
                versions.push(self.read_version(cursor, &mut values));
            })?;
            if !found {
                return Ok(());
            }
            if versions.len() > 1 {
                versions.sort_unstable_by_key(|version| std::cmp::Reverse(version.epoch));
            }
            let of = |version: &RetainedVersion| (version.epoch, version.tombstone);
            self.retained.retain(&mut versions, at_bottom, of);
            for version in &versions {
                let (key, id) = entry.split_at(key_len);
                let value = &values[version.value.clone()];
                let epoch = match at_bottom {
                    true => self.retained.rounded_down(version.epoch),
                    false => version.epoch,
                };
                let tombstone = version.tombstone;
                out.push(&RowVersion { slice, key, id, value, epoch, tombstone })?;
            }
        }
    }

    /// Returns the version at a cursor, and appends its value to `values`.
    fn read_version(&self, cursor: &Cursor, values: &mut Vec<u8>) -> RetainedVersion {
        let (block, row) = cursor.block_and_row();
        let from = values.len();
        block.put_value(row, values);
        if self.back && (cursor.keys.high.is_some() || !cursor.keys.low.is_empty()) {
            let state = values.split_off(from);
            let mut id = Vec::new();
            block.put_key(row, &mut id);
            packed::put_range(values, &state, &id, &cursor.keys);
        }
        let tombstone = block.is_tombstone(row) || self.back && values.len() == from;
        RetainedVersion { epoch: block.epoch(row), tombstone, value: from..values.len() }
    }

    /// Returns true if a merge that is not at the bottom writes all rows of a source unchanged, so
    /// that blocks can be copied. Returns false for the back index, because its filter must be
    /// built row by row.
    fn keeps_all_rows(&self, run: &Source) -> bool {
        let Source { table, range, epochs, .. } = run;
        !self.back
            && table.fragment().is_none()
            && !table.stats.versions
            && range.low.is_empty()
            && range.high.is_none()
            && epochs.contains(&table.stats.oldest)
            && epochs.contains(&table.stats.newest)
    }
}

/// Copies the blocks of a slice without reading their rows.
fn copy_blocks(run: &Source, slice: SliceNo, out: &mut impl RowSink) -> Result<()> {
    let index = &run.table.index;
    let Some(section) = index.section(run.rows_of) else { return Ok(()) };
    let section = &index.sections()[section];
    (section.first_block..section.end_block)
        .try_for_each(|block| out.push_block(slice, &run.table.block(block)?))
}
