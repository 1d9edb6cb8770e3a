//! Background work: merges of runs, flushes, compactions, and the release of memory and log.
//!
//! There is at most one worker of each kind, so that no kind starves another: merges of runs never
//! wait for a flush, nor flushes for a compaction. A flush begins when memory exceeds a first limit
//! or the log grows too long. It picks the index with the largest `A·memory + B·log held`. Above a
//! second limit, epochs wait. Both limits leave room for the block cache.
//!
//! Counted are runs, memtables, the fragments' indexes and filters, pending log records, and memory
//! held by flushes and compactions. Not counted are the current epoch, the allocator's overhead,
//! and runs that only a stalled scan still reads.

use std::sync::Arc;
use std::time::Duration;

use proto::Result;
use proto::env::TaskPolicy;
use proto::lock::lock;
use proto::model::ids::BucketId;

use crate::index::local_index::LocalIndex;
use crate::maintain::compaction::{CompactionScope, compact_index};
use crate::maintain::flush::flush;
use crate::maintain::merge_runs::{is_worth_merging, merge_index_runs};
use crate::maintain::release::release_log;
use crate::node::background::Background;
use crate::node::context::EngineContext;

/// Interval between retries of a failed flush while epochs wait for memory.
const RETRY: Duration = Duration::from_millis(100);
/// Weight of a byte of memory in the choice of a flush.
const MEMORY_WEIGHT: u64 = 4;
/// Weight of a byte of held log.
const LOG_WEIGHT: u64 = 1;

/// Waits until memory is below the second limit.
pub async fn wait_for_room(context: &Arc<EngineContext>) {
    loop {
        let room = context.room.notified();
        if context.has_room() {
            return;
        }
        flush_in_background(context);
        // The end of a flush wakes this wait; the time-out is for a flush that failed.
        let _ = tokio::time::timeout(RETRY, room).await;
    }
}

/// The index whose flush frees most.
fn pick_flush(context: &EngineContext) -> Option<Arc<LocalIndex>> {
    let end = context.log.end();
    let weight = |index: &Arc<LocalIndex>| {
        let held = index.stats.needs_log_from().map_or(0, |lsn| end.saturating_sub(lsn));
        MEMORY_WEIGHT * index.memory_bytes() + LOG_WEIGHT * held
    };
    context.state.indexes_and_rebuilds().into_iter().max_by_key(weight)
}

fn wants_flush(context: &EngineContext) -> bool {
    // With little memory left, flushes must begin before epochs have to wait.
    context.unwritten_bytes() > context.options.flush_bytes().min(context.room_bytes() / 2)
        || context.log.held_bytes() > context.options.log_bytes
        || context.state.indexes_and_rebuilds().iter().any(|index| index.stats.is_full())
}

/// Starts a worker unless one of its kind is running.
fn work(
    context: &Arc<EngineContext>,
    flag: fn(&mut Background) -> &mut bool,
    work: impl FnOnce(&Arc<EngineContext>) -> Result<()> + Send + 'static,
) {
    if std::mem::replace(flag(&mut lock(&context.background)), true) {
        return;
    }
    let task = Arc::clone(context);
    // The worker publishes in steps: after a panic the node's lists and flags may be half changed.
    context.env.spawn_blocking("storage-upkeep", TaskPolicy::EndProcess, move || {
        if let Err(error) = work(&task) {
            note_trouble(&task, &error);
        }
        *flag(&mut lock(&task.background)) = false;
    });
}

fn note_trouble(context: &EngineContext, error: &proto::Error) {
    tracing::warn!(%error, "a flush or compaction of the slice store failed");
    lock(&context.background).trouble = Some(error.to_string());
}

/// Starts the work that an applied epoch has made worthwhile.
pub(crate) fn after_epoch(context: &Arc<EngineContext>, bucket: BucketId) {
    if context.state.indexes_of_bucket(bucket).iter().any(|index| is_worth_merging(index)) {
        work(context, |background| &mut background.is_merging, merge_runs);
    }
    if wants_flush(context) {
        flush_in_background(context);
    }
}

fn merge_runs(context: &Arc<EngineContext>) -> Result<()> {
    while let Some(index) =
        context.state.indexes_and_rebuilds().into_iter().find(|index| is_worth_merging(index))
    {
        merge_index_runs(&index)?;
    }
    Ok(())
}

fn flush_in_background(context: &Arc<EngineContext>) {
    work(
        context,
        |background| &mut background.is_flushing,
        |context| {
            let mut tried = Vec::<Arc<LocalIndex>>::new();
            while wants_flush(context) {
                let is_new =
                    |index: &Arc<LocalIndex>| !tried.iter().any(|other| Arc::ptr_eq(other, index));
                let Some(index) = pick_flush(context).filter(is_new) else { break };
                tried.push(Arc::clone(&index));
                // An index that cannot be flushed must not keep the others from it.
                match flush(&index, &context.files) {
                    Ok(_) => {
                        lock(&context.background).trouble = None;
                        context.room.notify_waiters();
                    }
                    // Epochs that wait for memory try again after a while.
                    Err(error) => note_trouble(context, &error),
                }
            }
            let release = Arc::clone(context);
            let released = async move {
                if let Err(error) = release_log(&release).await {
                    tracing::warn!(%error, "releasing the commit log failed");
                }
            };
            context.env.spawn_request("release-log", released).detach();
            work(context, |background| &mut background.is_compacting, compact);
            Ok(())
        },
    );
}

fn compact(context: &Arc<EngineContext>) -> Result<()> {
    for index in context.state.indexes_and_rebuilds() {
        loop {
            match compact_index(&index, &context.files, CompactionScope::WherePays) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    note_trouble(context, &error);
                    break;
                }
            }
        }
    }
    context.files.delete_retired();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proto::env::sim;
    use proto::model::ids::NodeId;

    use super::*;
    use crate::engine::storage_engine::StorageEngine;
    use crate::options::StoreOptions;

    /// Otherwise its flag would stay set, and no worker of its kind would run again.
    #[tokio::test]
    async fn a_panic_of_a_worker_ends_the_process() {
        let (env, _, mut ends) = sim::process(1);
        let options = StoreOptions::default();
        let store = StorageEngine::open(&env, NodeId(1), Path::new("/node"), options).unwrap();
        work(&store.context, |background| &mut background.is_compacting, |_| panic!("as told"));
        let end = tokio::time::timeout(Duration::from_secs(20), ends.recv()).await;
        let end = end.expect("the process ends").unwrap();
        assert_eq!(end, "task \"storage-upkeep\" panicked: as told");
    }
}
