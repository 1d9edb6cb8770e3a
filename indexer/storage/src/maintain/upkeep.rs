//! What goes on behind the epochs: merges of runs, flushes, compactions, and giving back memory and log.
//!
//! There is at most one worker of each kind, so that none starves the others: merges of runs never wait
//! behind a flush, nor flushes behind a compaction. A flush begins when memory is above a first bound
//! (or too much of the log is held), and picks the index with the largest `A·memory + B·log held`;
//! above a second bound epochs wait until there is room again. Both bounds leave room for the block
//! cache. Counted are runs and memtables, the fragments' indexes and filters, what the log has yet to
//! write, and what flushes and compactions hold for a while; not counted is the epoch at hand, what the
//! allocator loses, and runs that only a stalled scan still reads.

use std::sync::Arc;
use std::time::Duration;

use proto::Result;
use proto::model::ids::BucketId;

use crate::index::local_index::Slot;
use crate::lock::lock;
use crate::maintain::compaction::{Extent, compact_index};
use crate::maintain::flush::flush;
use crate::maintain::merge_runs::{is_worth_merging, merge_index_runs};
use crate::maintain::release::release_log;
use crate::node::background::Background;
use crate::node::context::Inner;

/// How often a failed flush is tried again while epochs wait for room.
const RETRY: Duration = Duration::from_millis(100);
/// What a byte of memory weighs when a flush is picked.
const MEMORY_WEIGHT: u64 = 4;
/// What a byte of held log weighs.
const LOG_WEIGHT: u64 = 1;

/// Waits until memory is below the second bound.
pub async fn wait_for_room(context: &Arc<Inner>) {
    loop {
        let room = context.room.notified();
        if context.has_room() {
            return;
        }
        flush_in_background(context);
        // Woken by the end of a flush; the time-out is for one that failed.
        let _ = tokio::time::timeout(RETRY, room).await;
    }
}

/// The index whose flush gives back most.
fn pick_flush(context: &Inner) -> Option<Arc<Slot>> {
    let end = context.log.end();
    let weight = |slot: &Arc<Slot>| {
        let held = slot.figures.needs_log_from().map_or(0, |lsn| end.saturating_sub(lsn));
        MEMORY_WEIGHT * slot.memory_bytes() + LOG_WEIGHT * held
    };
    context.state.slots().into_iter().max_by_key(weight)
}

fn wants_flush(context: &Inner) -> bool {
    // Flushes begin before epochs must wait, also where little is left of the budget.
    context.unwritten_bytes() > context.options.flush_bytes().min(context.room_bytes() / 2)
        || context.log.held_bytes() > context.options.log_bytes
        || context.state.slots().iter().any(|slot| slot.figures.is_full())
}

/// Runs one kind of worker, unless one runs already.
fn work(
    context: &Arc<Inner>,
    flag: fn(&mut Background) -> &mut bool,
    work: impl FnOnce(&Arc<Inner>) -> Result<()> + Send + 'static,
) {
    if std::mem::replace(flag(&mut lock(&context.background)), true) {
        return;
    }
    let inner = Arc::clone(context);
    context.env.spawner.spawn_blocking(Box::new(move || {
        let ended = Ended { inner: &inner, flag };
        if let Err(error) = work(&inner) {
            note_trouble(&inner, &error);
        }
        drop(ended);
    }));
}

fn note_trouble(context: &Inner, error: &proto::Error) {
    tracing::warn!(%error, "the slice store's upkeep");
    lock(&context.background).trouble = Some(error.to_string());
}

/// A worker ends, however it does.
struct Ended<'a> {
    inner: &'a Inner,
    flag: fn(&mut Background) -> &mut bool,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        *(self.flag)(&mut lock(&self.inner.background)) = false;
    }
}

/// Starts what an applied epoch has made worth doing.
pub(crate) fn after_epoch(inner: &Arc<Inner>, bucket: BucketId) {
    if inner.state.of_bucket(bucket).iter().any(|slot| is_worth_merging(slot)) {
        work(inner, |background| &mut background.merging, merge_runs);
    }
    if wants_flush(inner) {
        flush_in_background(inner);
    }
}

fn merge_runs(inner: &Arc<Inner>) -> Result<()> {
    while let Some(slot) = inner.state.slots().into_iter().find(|slot| is_worth_merging(slot)) {
        merge_index_runs(&slot)?;
    }
    Ok(())
}

fn flush_in_background(inner: &Arc<Inner>) {
    work(
        inner,
        |background| &mut background.flushing,
        |inner| {
            let mut tried = Vec::<Arc<Slot>>::new();
            while wants_flush(inner) {
                let is_new = |slot: &Arc<Slot>| !tried.iter().any(|other| Arc::ptr_eq(other, slot));
                let Some(slot) = pick_flush(inner).filter(is_new) else { break };
                tried.push(Arc::clone(&slot));
                // One index that cannot be flushed does not keep the others from it.
                match flush(&slot, &inner.files) {
                    Ok(_) => {
                        lock(&inner.background).trouble = None;
                        inner.room.notify_waiters();
                    }
                    // Who waits for room tries again after a while.
                    Err(error) => note_trouble(inner, &error),
                }
            }
            let release = Arc::clone(inner);
            let released = async move {
                if let Err(error) = release_log(&release).await {
                    tracing::warn!(%error, "releasing the commit log");
                }
            };
            inner.env.spawn("release-log", released).detach();
            work(inner, |background| &mut background.compacting, compact);
            Ok(())
        },
    );
}

fn compact(inner: &Arc<Inner>) -> Result<()> {
    for slot in inner.state.slots() {
        loop {
            match compact_index(&slot, &inner.files, Extent::WherePays) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    note_trouble(inner, &error);
                    break;
                }
            }
        }
    }
    inner.files.collect();
    Ok(())
}
