//! Reports of slices for heartbeats.

use proto::lock::lock;
use proto::plant::{self, Plant};
use proto::rpc::api::SliceProgress;

use crate::node::context::EngineContext;
use crate::read::slice_size::{SliceSize, slice_size};

/// Returns the progress of each slice on this node.
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
            let size = slice_size(&version, *slice, fragments);
            progress.push(SliceProgress {
                slice: index.info.local_id().slice(*slice),
                floor,
                entries: entries.of_slice(*slice) + loaded,
                bytes: size.bytes(),
                live_bytes: entries.counted(*slice).map(|entries| live_bytes(size, entries)),
                built_percent: None,
                seconds_left: None,
                copied_from: None,
                trouble: trouble.clone().or_else(|| index.load_error()),
            });
        }
    }
    progress
}

/// Returns the bytes that the newest entries of a slice use.
fn live_bytes(size: SliceSize, entries: u64) -> u64 {
    match plant::is(Plant::SupersededCounted) {
        true => size.bytes(),
        false => size.of_entries(entries),
    }
}
