//! What a node tells of its slices.

use proto::model::ids::{SliceId, SliceNo};
use proto::rpc::api::SliceProgress;

use crate::lock::lock;
use crate::node::context::Inner;
use crate::tables::table::Table;

/// What there is of each slice.
pub fn progress(context: &Inner) -> Vec<SliceProgress> {
    let failed = context.log.durable().borrow().failed.as_ref().map(ToString::to_string);
    let trouble = failed.or_else(|| lock(&context.background).trouble.clone());
    let mut progress = Vec::new();
    for slot in context.state.slots() {
        let visible = slot.visible.load_full();
        let entries = slot.figures.entries();
        for (slice, fragments) in &visible.slices {
            let section = |table: &Table, slice: SliceNo| {
                let index = &table.index;
                index.section(slice).map_or(0, |section| index.sections()[section].bytes)
            };
            let files: u64 = fragments.all().map(|s| section(&s.table, s.rows_of)).sum();
            let runs: u64 = visible.runs.iter().map(|run| section(run, *slice)).sum();
            let (index, generation) = (slot.info.id, slot.info.generation);
            progress.push(SliceProgress {
                slice: SliceId { index, generation, slice: *slice },
                floor: visible.floor_of(*slice),
                entries: entries.get(slice).copied().unwrap_or(0).max(0) as u64,
                bytes: files + runs,
                copied_from: None,
                trouble: trouble.clone().or_else(|| slot.load_trouble()),
            });
        }
    }
    progress
}
