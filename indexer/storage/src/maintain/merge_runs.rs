//! Merges of *runs*: tables in memory, each with the changed rows of one epoch or of several
//! merged epochs.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::index::local_index::LocalIndex;
use crate::index::writer_state::WriterState;
use crate::maintain::rewrite::Rewrite;
use crate::merge_policy::{RUNS_MIN, choose_node};
use crate::read::index_version::IndexVersion;
use crate::read::source::Source;
use crate::retention::RetainedEpochs;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

/// Largest result of a merge of tables in memory, in bytes.
const RUN_BYTES_MAX: u64 = 48 << 20;

/// Returns true if the index has tables in memory whose merge is worthwhile.
pub fn is_worth_merging(index: &LocalIndex) -> bool {
    let writer = index.writer();
    !writer.is_merging && choose_runs(index, &writer).is_some()
}

/// Chooses the tables to merge among those that no flush is writing.
fn choose_runs(index: &LocalIndex, writer: &WriterState) -> Option<Range<usize>> {
    let version = index.version.load();
    // `None` for an index that was dropped during a flush.
    let range = choose_among(version.runs.get(writer.frozen_runs..)?)?;
    Some(range.start + writer.frozen_runs..range.end + writer.frozen_runs)
}

/// Chooses the range of `runs` (tables in memory, oldest first) to merge. `None` if no merge is
/// worthwhile.
pub fn choose_among(runs: &[Arc<Table>]) -> Option<Range<usize>> {
    let sizes: Vec<_> = runs.iter().map(|run| run.bytes()).collect();
    choose_node(&sizes, RUNS_MIN, RUN_BYTES_MAX)
}

/// Merges an index's tables in memory as long as a merge is worthwhile, unless another merge of
/// the index is in progress.
pub fn merge_index_runs(index: &LocalIndex) -> Result<()> {
    loop {
        let (inputs, retained) = {
            let mut writer = index.writer();
            if writer.is_merging {
                return Ok(());
            }
            let Some(range) = choose_runs(index, &writer) else { return Ok(()) };
            writer.is_merging = true;
            let retained = writer.retained.clone();
            (index.version.load().runs[range].to_vec(), retained)
        };
        let merged = merge_tables(&inputs, &retained, Epoch(u64::MAX));
        let mut writer = index.writer();
        writer.is_merging = false;
        let merged = merged?;
        let mut next = IndexVersion::clone(&index.version.load());
        let at = next.runs.iter().position(|run| Arc::ptr_eq(run, &inputs[0]));
        let Some(at) = at.filter(|at| {
            let there = next.runs.get(*at..*at + inputs.len());
            // A flush may have taken some of the inputs meanwhile; these must not be replaced.
            *at >= writer.frozen_runs && there.is_some_and(|there| same_tables(there, &inputs))
        }) else {
            continue;
        };
        next.runs.splice(at..at + inputs.len(), merged.map(Arc::new));
        next.restrict_readable(&retained);
        index.version.store(Arc::new(next));
    }
}

/// Merges the tables that a flush has set aside into one. So reads search few tables while the
/// flush writes, and the flush can copy complete blocks.
pub fn merge_frozen(
    index: &LocalIndex,
    runs: &mut Vec<Arc<Table>>,
    retained: &RetainedEpochs,
) -> Result<()> {
    if runs.len() < 2 {
        return Ok(());
    }
    let _both = index.count_temporary(runs.iter().map(|run| run.bytes()).sum());
    let merged: Vec<_> =
        merge_tables(runs, retained, Epoch(u64::MAX))?.map(Arc::new).into_iter().collect();
    let mut writer = index.writer();
    let mut next = IndexVersion::clone(&index.version.load());
    let there = next.runs.get(..runs.len());
    if !there.is_some_and(|there| same_tables(there, runs)) {
        // The index was dropped meanwhile.
        return Ok(());
    }
    next.runs.splice(..runs.len(), merged.iter().cloned());
    next.restrict_readable(retained);
    writer.frozen_runs = merged.len();
    index.version.store(Arc::new(next));
    *runs = merged;
    Ok(())
}

/// Returns true if two lists contain the same tables, up to the length of the shorter list.
fn same_tables(left: &[Arc<Table>], right: &[Arc<Table>]) -> bool {
    left.iter().zip(right).all(|(left, right)| Arc::ptr_eq(left, right))
}

/// Merges the rows of `inputs` up to the epoch `newest` into one table in memory; `None` if no row
/// remains.
pub fn merge_tables(
    inputs: &[Arc<Table>],
    retained: &RetainedEpochs,
    newest: Epoch,
) -> Result<Option<Table>> {
    let mut out = TableBuilder::default();
    let rewrite = Rewrite { retained: retained.clone(), back: false };
    for slice in slices_of(inputs) {
        let sources = inputs
            .iter()
            .map(|table| Source { epochs: Epoch(0)..=newest, ..Source::of_slice(table, slice) });
        rewrite.rewrite_slice(slice, sources.collect(), false, &mut out)?;
    }
    out.finish()
}

/// Returns the slices that have rows in some tables, ascending.
pub fn slices_of(tables: &[Arc<Table>]) -> BTreeSet<SliceNo> {
    tables.iter().flat_map(|table| table.index.sections().iter().map(|s| s.slice)).collect()
}
