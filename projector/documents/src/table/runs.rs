//! Sorts and merges runs. A run is a frozen memtable; it is sorted when a reader needs its
//! documents in order, and merged with others when there are many.
//!
//! A walk freezes the memtable, so many walks make many small runs. Runs are merged in memory by
//! the same policy as fragments. A flush writes all runs. Runs that a flush is writing are not
//! merged with newer ones, so that the flush can remove them.

use std::ops::Range;
use std::sync::Arc;

use proto::Result;
use storage::layers::{MemorySink, RUNS_MIN, Source, Table, TableBuilder, choose_node};

use crate::table::document_table::{DocumentTable, State};
use crate::table::memory::Run;
use crate::table::rewrite::Rewrite;
use crate::table::tables::Tables;
use crate::table::version::SLICE;

/// Returns sources of all rows of `tables`, from the newest table to the oldest; `tables` begin
/// with the oldest.
pub(super) fn sources<'a>(tables: impl DoubleEndedIterator<Item = &'a Arc<Table>>) -> Vec<Source> {
    tables.rev().map(|table| Source::of_slice(table, SLICE)).collect()
}

impl DocumentTable {
    /// Converts the memtable into a run, and returns the immutable tables that then have all
    /// versions.
    pub(super) fn freeze(&self) -> Arc<Tables> {
        let mut state = self.state.write();
        state.freeze();
        Arc::clone(&state.tables)
    }

    /// Returns the sorted tables of runs. Runs that are sorted now remain sorted for later
    /// readers.
    pub(super) fn sort(&self, runs: &[Run]) -> Result<Vec<Arc<Table>>> {
        let mut tables = Vec::with_capacity(runs.len());
        for run in runs {
            let is_new = run.table().is_none();
            let (sorted, table) = run.clone().into_sorted()?;
            if is_new {
                self.replace_run(sorted);
            }
            tables.push(table);
        }
        Ok(tables)
    }

    fn replace_run(&self, sorted: Run) {
        let mut state = self.state.write();
        let is_it = |run: &Run| run.places == sorted.places;
        if let Some(at) = state.tables.runs.iter().position(is_it) {
            state.change_tables(|tables| tables.runs[at] = sorted);
        }
    }

    /// Merges runs in memory if a merge is worthwhile.
    pub(super) fn merge_runs(&self) -> Result<()> {
        let (tables, chosen) = {
            let mut state = self.state.write();
            let Some(chosen) = choose_runs(&state, self.options.memtable_bytes) else {
                return Ok(());
            };
            state.is_merging_runs = true;
            (Arc::clone(&state.tables), chosen)
        };
        let runs = &tables.runs[chosen];
        let merged = self.merged(&tables, runs);
        let mut state = self.state.write();
        state.is_merging_runs = false;
        let merged = merged?;
        let [first, ..] = runs else { return Ok(()) };
        // A flush may have taken them meanwhile.
        let at = state.tables.runs.iter().position(|run| run.places == first.places);
        if let Some(at) = at {
            state.change_tables(|tables| {
                tables.runs.splice(at..at + runs.len(), merged);
            });
        }
        Ok(())
    }

    /// Merges runs into one; `None` if no valid versions are left.
    fn merged(&self, tables: &Tables, runs: &[Run]) -> Result<Option<Run>> {
        let inputs = sources(runs.iter().filter_map(Run::table));
        let (dead, vbuckets) = (&*tables.dead, self.vbuckets);
        let rewrite = Rewrite { dead, retention: None, is_at_bottom: false, vbuckets, stop: None };
        let mut out = TableBuilder::<MemorySink>::default();
        let documents = rewrite.run(inputs, &mut out)?;
        Ok(out.finish()?.map(|table| Run::from_table(table, documents)))
    }
}

/// Chooses neighbouring sorted runs to merge, except those that a flush is writing; `None` if no
/// merge is worthwhile.
fn choose_runs(state: &State, bytes_max: usize) -> Option<Range<usize>> {
    if state.is_merging_runs {
        return None;
    }
    let behind = state.flushing.unwrap_or_default();
    let runs = &state.tables.runs;
    let is_free = |run: &Run| run.places.first >= behind && run.table().is_some();
    let busy = runs.iter().rposition(|run| !is_free(run)).map_or(0, |last| last + 1);
    let bytes: Vec<u64> = runs[busy..].iter().map(|run| run.memory_bytes() as u64).collect();
    let chosen = choose_node(&bytes, RUNS_MIN, bytes_max as u64)?;
    Some(busy + chosen.start..busy + chosen.end)
}
