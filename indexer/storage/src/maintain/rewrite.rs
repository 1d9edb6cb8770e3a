//! Rewriting: merges some sources into one table, for merges of runs, flushes and compactions.

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::read::cursor::Cursor;
use crate::read::merge::Merge;
use crate::read::source::Source;
use crate::retention::RetainedEpochs;
use crate::rows::packed;
use crate::rows::row::RowVersion;
use crate::rows::sinks::RowSink;

/// The rules by which a merge rewrites rows.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// The epochs whose versions must be retained.
    pub retained: RetainedEpochs,
    /// True if the values are packed states of the back index.
    pub back: bool,
}

/// A version of the current entry that is retained.
struct RetainedVersion {
    epoch: Epoch,
    tombstone: bool,
    value: std::ops::Range<usize>,
}

impl Rewrite {
    /// Appends the rows of one slice. Must be called for slices in ascending order. `at_bottom`
    /// means that no rows older than the sources exist (see [`crate::retention`]).
    pub fn slice(
        &self,
        slice: SliceNo,
        sources: Vec<Source>,
        at_bottom: bool,
        out: &mut impl RowSink,
    ) -> Result<()> {
        if let [only] = &sources[..]
            && !at_bottom
            && out.takes_blocks()
            && self.keeps_whole(only)
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
                let (block, row) = cursor.place();
                key_len = block.key_len(row);
                versions.push(self.version(cursor, &mut values));
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

    /// The version at a cursor; appends its value to `values`.
    fn version(&self, cursor: &Cursor, values: &mut Vec<u8>) -> RetainedVersion {
        let (block, row) = cursor.place();
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

    /// Returns true if all rows of a run are retained unchanged when the merge is not at the
    /// bottom. Always false for the back index, whose filter must read each row.
    fn keeps_whole(&self, run: &Source) -> bool {
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

fn copy_blocks(run: &Source, slice: SliceNo, out: &mut impl RowSink) -> Result<()> {
    let index = &run.table.index;
    let Some(section) = index.section(run.rows_of) else { return Ok(()) };
    let section = &index.sections()[section];
    (section.first_block..section.end_block)
        .try_for_each(|block| out.push_block(slice, &run.table.block(block)?))
}
