//! Background work: merges of runs, flushes, compactions, and the release of memory and log.
//!
//! Each kind has its own workers, so that no kind starves another: merges of runs never wait for a
//! flush, nor flushes for a compaction. An index has at most one worker of a kind. Up to
//! [`StoreOptions::workers_max`] indexes are flushed or compacted concurrently; a second flush
//! begins only if the indexes without a worker exceed the limits too.
//!
//! A flush begins when memory exceeds a first limit or the log grows too long. It picks the index
//! with the largest weighted sum of its memory and of the bytes of log that are retained for it.
//! Above a second limit, epochs wait. Both limits leave memory for the block cache.
//!
//! The memory in use is the sum of runs, memtables, the fragments' indexes and filters, pending log
//! records, the memory of flushes and compactions in progress, and the changes of open
//! transactions. It does not include the current epoch, the allocator's overhead, and data that
//! only a stalled scan or a waiting commit still reads.
//!
//! [`StoreOptions::workers_max`]: crate::options::StoreOptions::workers_max

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
use crate::node::background::{WorkKind, Workers};
use crate::node::context::EngineContext;

/// Interval between retries of a failed flush while epochs wait for memory.
const RETRY: Duration = Duration::from_millis(100);
/// Weight of a byte of memory in the choice of the index to flush.
const MEMORY_WEIGHT: u64 = 4;
/// Weight of a byte of retained log in the choice of the index to flush.
const LOG_WEIGHT: u64 = 1;

/// Waits until there is memory for another epoch, and starts flushes meanwhile.
pub async fn wait_for_memory(context: &Arc<EngineContext>) {
    loop {
        let room = context.room.notified();
        if context.has_memory() {
            return;
        }
        flush_if_wanted(context);
        // The end of a flush wakes this wait; the time-out is for a flush that failed.
        let _ = tokio::time::timeout(RETRY, room).await;
    }
}

/// A worker's exclusive use of an index for one kind of background work, until this value is
/// dropped.
struct Turn<'a> {
    context: &'a EngineContext,
    kind: WorkKind,
    index: Arc<LocalIndex>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        lock(&self.context.background).workers(self.kind).release(&self.index);
    }
}

/// Reserves the index that `choose` returns for a worker of this kind; `choose` must return an
/// index without such a worker.
fn reserve_index(
    context: &EngineContext,
    kind: WorkKind,
    choose: impl FnOnce(&Workers) -> Option<Arc<LocalIndex>>,
) -> Option<Turn<'_>> {
    let mut background = lock(&context.background);
    let workers = background.workers(kind);
    let index = choose(workers)?;
    workers.reserve(&index);
    Some(Turn { context, kind, index })
}

/// Returns the index whose flush frees the most memory and log. Only indexes without a running
/// flush that are not in `tried` are considered; the flushes of the others are in progress or have
/// failed. Returns `None` if the considered indexes alone are no reason for a flush.
fn pick_flush(
    context: &EngineContext,
    flushes: &Workers,
    tried: &[Arc<LocalIndex>],
) -> Option<Arc<LocalIndex>> {
    let is_tried = |index: &Arc<LocalIndex>| tried.iter().any(|one| Arc::ptr_eq(one, index));
    let mut free = context.state.indexes_and_rebuilds();
    free.retain(|index| !flushes.has(index) && !is_tried(index));
    let (end, is_log_long) = (context.log.end(), context.is_log_long());
    let held = |index: &Arc<LocalIndex>| {
        index.stats.needs_log_from().map_or(0, |lsn| end.saturating_sub(lsn))
    };
    let unwritten: u64 = free.iter().map(|index| index.memory_bytes()).sum();
    // With little memory left, flushes must begin before epochs have to wait. When they wait, less is worth a flush.
    let much = context.options.flush_bytes().min(context.unflushed_bytes_max() / 2);
    let is_much = unwritten > if context.has_memory() { much } else { much / 8 };
    // The first flush may be of any index that holds a part of a long log. A further index must hold much of it: otherwise it was
    // flushed not long ago, or would be flushed again and again while the first flush lasts.
    let is_first = tried.is_empty() && flushes.has_no_reservation();
    let holds_least = if is_first { 0 } else { context.options.log_bytes / 2 };
    let is_urgent =
        |index: &Arc<LocalIndex>| index.stats.is_full() || is_log_long && held(index) > holds_least;
    if !is_much && !free.iter().any(is_urgent) {
        return None;
    }
    let weight =
        |index: &Arc<LocalIndex>| MEMORY_WEIGHT * index.memory_bytes() + LOG_WEIGHT * held(index);
    free.into_iter().max_by_key(weight)
}

/// Starts a worker for one kind of background work. If the maximum number of workers is running,
/// one of them looks for more work before it ends.
fn start(
    context: &Arc<EngineContext>,
    kind: WorkKind,
    work: fn(&Arc<EngineContext>) -> Result<()>,
) {
    let workers_max = match kind {
        // The output of a merge of runs is not counted.
        WorkKind::MergeRuns => 1,
        WorkKind::Flush | WorkKind::Compact => context.options.workers_max,
    };
    if !lock(&context.background).workers(kind).begin(workers_max) {
        return;
    }
    let task = Arc::clone(context);
    // The worker publishes in steps: after a panic the node's lists and flags may be half changed.
    context.env.spawn_blocking("storage-upkeep", TaskPolicy::EndProcess, move || {
        loop {
            if let Err(error) = work(&task) {
                note_error(&task, &error);
            }
            if lock(&task.background).workers(kind).end() {
                break;
            }
        }
    });
}

/// Logs an error of background work and stores it for reports.
fn note_error(context: &EngineContext, error: &proto::Error) {
    tracing::warn!(%error, "a flush or compaction of the slice store failed");
    lock(&context.background).trouble = Some(error.to_string());
}

/// Starts the background work that an applied epoch has made worthwhile.
pub(crate) fn start_after_epoch(context: &Arc<EngineContext>, bucket: BucketId) {
    if context.state.indexes_of_bucket(bucket).iter().any(|index| is_worth_merging(index)) {
        start(context, WorkKind::MergeRuns, merge_runs);
    }
    flush_if_wanted(context);
}

/// Starts the compactions that large commits have made worthwhile. The rows of large commits are
/// written without flushes, which otherwise start compactions.
pub(crate) fn start_after_commits(context: &Arc<EngineContext>) {
    start(context, WorkKind::Compact, compact);
}

/// Starts a flush if one is needed in addition to those in progress.
fn flush_if_wanted(context: &Arc<EngineContext>) {
    let wants_flush = {
        let mut background = lock(&context.background);
        let flushes = background.workers(WorkKind::Flush);
        // Without a flush, a log that is long only waits for its release.
        pick_flush(context, flushes, &[]).is_some() || flushes.is_idle() && context.is_log_long()
    };
    if wants_flush {
        start(context, WorkKind::Flush, flush_where_needed);
    }
}

/// Merges tables in memory, as long as a merge is worthwhile in any index.
fn merge_runs(context: &Arc<EngineContext>) -> Result<()> {
    while let Some(index) =
        context.state.indexes_and_rebuilds().into_iter().find(|index| is_worth_merging(index))
    {
        merge_index_runs(&index)?;
    }
    Ok(())
}

/// Flushes indexes as long as a flush is worthwhile, then releases the log and starts compactions.
fn flush_where_needed(context: &Arc<EngineContext>) -> Result<()> {
    let mut tried = Vec::<Arc<LocalIndex>>::new();
    loop {
        let pick = |flushes: &Workers| pick_flush(context, flushes, &tried);
        let Some(turn) = reserve_index(context, WorkKind::Flush, pick) else { break };
        tried.push(Arc::clone(&turn.index));
        // An index that cannot be flushed must not keep the others from it.
        match flush(&turn.index, &context.files) {
            Ok(_) => {
                lock(&context.background).trouble = None;
                context.room.notify_waiters();
            }
            // Epochs that wait for memory try again after a while.
            Err(error) => note_error(context, &error),
        }
    }
    if tried.is_empty() && !context.is_log_long() {
        return Ok(());
    }
    let release = Arc::clone(context);
    let released = async move {
        if let Err(error) = release_log(&release).await {
            tracing::warn!(%error, "releasing the commit log failed");
        }
    };
    context.env.spawn_request("release-log", released).detach();
    // One for each index that was flushed; those that find no work end at once.
    let workers = tried.len().clamp(1, context.options.workers_max);
    (0..workers).for_each(|_| start(context, WorkKind::Compact, compact));
    Ok(())
}

/// Compacts all indexes that no other worker compacts.
fn compact(context: &Arc<EngineContext>) -> Result<()> {
    for index in context.state.indexes_and_rebuilds() {
        let free = |compactions: &Workers| (!compactions.has(&index)).then(|| Arc::clone(&index));
        let Some(turn) = reserve_index(context, WorkKind::Compact, free) else { continue };
        loop {
            match compact_index(&turn.index, &context.files, CompactionScope::WherePays) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    note_error(context, &error);
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

    /// A panic of a worker must end the process: otherwise the worker's place would remain
    /// occupied, and finally no worker of its kind could run.
    #[tokio::test]
    async fn a_panic_of_a_worker_ends_the_process() {
        let (env, _, mut ends) = sim::real_env_with_sim_fs(1);
        let options = StoreOptions::default();
        let store = StorageEngine::open(&env, NodeId(1), Path::new("/node"), options).unwrap();
        start(&store.context, WorkKind::Compact, |_| panic!("as told"));
        let end = tokio::time::timeout(Duration::from_secs(20), ends.recv()).await;
        let end = end.expect("the process ends").unwrap();
        assert_eq!(end, "task \"storage-upkeep\" panicked: as told");
    }
}
