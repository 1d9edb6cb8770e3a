//! Reports of slices for heartbeats.

use proto::lock::lock;
use proto::rpc::api::SliceProgress;

use crate::node::context::EngineContext;
use crate::read::slice_size::slice_bytes;

/// Progress of each slice.
pub fn progress(context: &EngineContext) -> Vec<SliceProgress> {
    let failed = context.log.durable().borrow().failed.as_ref().map(ToString::to_string);
    let trouble = failed.or_else(|| lock(&context.background).trouble.clone());
    let mut progress = Vec::new();
    for index in context.state.indexes_and_rebuilds() {
        let version = index.version.load_full();
        let (entries, of_backfill) = (index.stats.entries(), index.backfill_entries.load());
        for (slice, fragments) in &version.slices {
            let floor = version.floor_of(*slice);
            // The entries of a backfill count as entries when it ends.
            let loaded = match floor {
                Some(_) => 0,
                None => of_backfill.get(slice).copied().unwrap_or(0),
            };
            let counted = entries.get(slice).copied().unwrap_or(0).max(0) as u64;
            progress.push(SliceProgress {
                slice: index.info.local_id().slice(*slice),
                floor,
                entries: counted + loaded,
                bytes: slice_bytes(&version, *slice, fragments),
                built_percent: None,
                seconds_left: None,
                copied_from: None,
                trouble: trouble.clone().or_else(|| index.load_trouble()),
            });
        }
    }
    progress
}
