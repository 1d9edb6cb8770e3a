//! Merges of runs: tables in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::index::local_index::Slot;
use crate::index::writer_state::Writer;
use crate::maintain::rewrite::Rewrite;
use crate::merge_policy::{RUNS_MIN, choose};
use crate::read::index_version::Visible;
use crate::read::source::Source;
use crate::retention::Protected;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

/// Runs in memory are merged up to this size.
const RUN_BYTES_MAX: u64 = 48 << 20;

/// Is there a merge of runs to make?
pub fn is_worth_merging(index: &Slot) -> bool {
    let writer = index.writer();
    !writer.merging && choose_runs(index, &writer).is_some()
}

fn choose_runs(index: &Slot, writer: &Writer) -> Option<std::ops::Range<usize>> {
    let visible = index.visible.load();
    // An index that was dropped in the midst of a flush has none.
    let sizes: Vec<_> =
        visible.runs.get(writer.frozen_runs..)?.iter().map(|run| run.bytes()).collect();
    let range = choose(&sizes, RUNS_MIN, RUN_BYTES_MAX)?;
    Some(range.start + writer.frozen_runs..range.end + writer.frozen_runs)
}

/// Merges runs where that pays, until it does not, unless somebody does already.
pub fn merge_index_runs(index: &Slot) -> Result<()> {
    loop {
        let (inputs, protected) = {
            let mut writer = index.writer();
            if writer.merging {
                return Ok(());
            }
            let Some(range) = choose_runs(index, &writer) else { return Ok(()) };
            writer.merging = true;
            let protected = writer.protected.clone();
            (index.visible.load().runs[range].to_vec(), protected)
        };
        let merged = merge_tables(&inputs, &protected, Epoch(u64::MAX));
        let mut writer = index.writer();
        writer.merging = false;
        let merged = merged?;
        let mut next = Visible::clone(&index.visible.load());
        let at = next.runs.iter().position(|run| Arc::ptr_eq(run, &inputs[0]));
        let Some(at) = at.filter(|at| {
            let there = next.runs.get(*at..*at + inputs.len());
            // A flush may have taken some of them meanwhile: then they are no more to be replaced.
            *at >= writer.frozen_runs && there.is_some_and(|there| same_tables(there, &inputs))
        }) else {
            continue;
        };
        next.runs.splice(at..at + inputs.len(), merged.map(Arc::new));
        next.narrow(&protected);
        index.visible.store(Arc::new(next));
    }
}

/// Merges the runs that a flush has set aside into one: reads meet few sources while the flush writes
/// it, and its blocks are written as they are.
pub fn merge_frozen(index: &Slot, runs: &mut Vec<Arc<Table>>, protected: &Protected) -> Result<()> {
    if runs.len() < 2 {
        return Ok(());
    }
    let _both = index.hold(runs.iter().map(|run| run.bytes()).sum());
    let merged: Vec<_> =
        merge_tables(runs, protected, Epoch(u64::MAX))?.map(Arc::new).into_iter().collect();
    let mut writer = index.writer();
    let mut next = Visible::clone(&index.visible.load());
    let there = next.runs.get(..runs.len());
    if !there.is_some_and(|there| same_tables(there, runs)) {
        // The index was dropped meanwhile.
        return Ok(());
    }
    next.runs.splice(..runs.len(), merged.iter().cloned());
    next.narrow(protected);
    writer.frozen_runs = merged.len();
    index.visible.store(Arc::new(next));
    *runs = merged;
    Ok(())
}

fn same_tables(left: &[Arc<Table>], right: &[Arc<Table>]) -> bool {
    left.iter().zip(right).all(|(left, right)| Arc::ptr_eq(left, right))
}

/// One run of several, with the rows up to an epoch.
pub fn merge_tables(
    inputs: &[Arc<Table>],
    protected: &Protected,
    newest: Epoch,
) -> Result<Option<Table>> {
    let mut out = TableBuilder::default();
    let rewrite = Rewrite { protected: protected.clone(), back: false };
    for slice in slices_of(inputs) {
        let sources = inputs
            .iter()
            .map(|table| Source { epochs: Epoch(0)..=newest, ..Source::whole(table, slice) });
        rewrite.slice(slice, sources.collect(), false, &mut out)?;
    }
    out.finish()
}

/// The slices that have rows in some tables, ascending.
pub fn slices_of(tables: &[Arc<Table>]) -> BTreeSet<SliceNo> {
    tables.iter().flat_map(|table| table.index.sections().iter().map(|s| s.slice)).collect()
}
