//! What goes on behind the epochs: merges of runs, flushes, compactions, and giving back memory and log.
//!
//! There is at most one worker of each kind, so that none starves the others: merges of runs never wait
//! behind a flush, nor flushes behind a compaction. A flush begins when memory is above a first bound
//! (or too much of the log is held), and picks the index with the largest `A·memory + B·log held`;
//! above a second bound epochs wait until there is room again. Both bounds leave room for the block
//! cache. Counted are runs and memtables, the fragments' indexes and filters, what the log has yet to
//! write, and what flushes and compactions hold for a while; not counted is the epoch at hand, what the
//! allocator loses, and runs that only a stalled scan still reads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::Result;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, SliceId, SliceNo};
use proto::plant::{self, Plant};
use proto::rpc::api::SliceProgress;

use super::Counters;
use super::compact::Extent;
use super::log::Lsn;
use super::manifest::{DeadEpochs, FileId, NodeManifest};
use super::slot::{Slot, lock};
use super::store::{Inner, StoreOptions};

/// How often a failed flush is tried again while epochs wait for room.
const RETRY: Duration = Duration::from_millis(100);
/// What a byte of memory weighs when a flush is picked.
const MEMORY_WEIGHT: u64 = 4;
/// What a byte of held log weighs.
const LOG_WEIGHT: u64 = 1;

/// Which workers run.
#[derive(Default)]
pub struct Background {
    merging: bool,
    flushing: bool,
    compacting: bool,
    /// Why the last flush or compaction failed.
    trouble: Option<String>,
}

/// What the order of the log decides.
#[derive(Default)]
pub struct Order {
    /// Places in the log with the buckets' newest epochs before them, the oldest first.
    pub checkpoints: VecDeque<(Lsn, Vec<EpochMark>)>,
    /// The marks of the last node manifest.
    pub marks: Vec<EpochMark>,
    /// Epochs that a rollback has taken back on all indexes.
    pub dead: Arc<Mutex<Vec<DeadEpochs>>>,
}

impl Order {
    /// A bucket goes back to an epoch.
    pub fn go_back(&mut self, mark: &EpochMark) {
        let of_checkpoints = self.checkpoints.iter_mut().flat_map(|(_, marks)| marks);
        for known in self.marks.iter_mut().chain(of_checkpoints) {
            if known.bucket == mark.bucket && known.epoch > mark.epoch {
                *known = mark.clone();
            }
        }
    }

    /// The node manifest as of now.
    pub fn node_manifest(&self, next_file: FileId) -> NodeManifest {
        let dead = lock(&self.dead).clone();
        NodeManifest { next_file, marks: self.marks.clone(), dead }
    }
}

impl StoreOptions {
    /// What the block cache may hold.
    pub fn cache_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// Above this, flushes run.
    pub fn flush_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// What the cursors of one walk may hold of fragments' blocks; they read fewer blocks at once where there are
    /// many of them.
    pub fn walk_bytes(&self) -> usize {
        usize::try_from(self.memory_bytes / 64).unwrap_or(usize::MAX)
    }

    /// Above this, epochs wait.
    pub fn stop_bytes(&self) -> u64 {
        self.memory_bytes / 16 * 7
    }
}

impl Inner {
    /// Bytes of memory that wait to be written to fragments.
    fn unwritten_bytes(&self) -> u64 {
        self.state.slots().iter().map(|slot| slot.memory_bytes()).sum()
    }

    /// Bytes of backfills that wait to be written.
    fn bulk_bytes(&self) -> u64 {
        let bytes = |slot: &Arc<Slot>| slot.bulk_bytes.load(std::sync::atomic::Ordering::Relaxed);
        self.state.slots().iter().map(bytes).sum()
    }

    /// Bytes of the fragments' indexes and filters, and of work under way.
    fn resident_bytes(&self) -> u64 {
        self.state.slots().iter().map(|slot| slot.resident_bytes()).sum()
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        let written = self.resident_bytes() + self.files.cache_bytes();
        self.unwritten_bytes() + self.bulk_bytes() + written
    }

    /// Above this, epochs wait. What stays resident, what work under way holds, and what the log has yet
    /// to write leave less, but never so little that nothing goes on.
    fn room_bytes(&self) -> u64 {
        let stop = self.options.stop_bytes();
        let taken = self.resident_bytes() + self.log.pending_bytes();
        stop.saturating_sub(taken).max(stop / 4)
    }

    /// Is there room for an epoch?
    fn has_room(&self) -> bool {
        self.unwritten_bytes() < self.room_bytes()
            && !self.state.slots().iter().any(|slot| slot.figures.is_full())
    }

    /// Waits until memory is below the second bound.
    pub async fn wait_for_room(self: &Arc<Self>) {
        loop {
            let room = self.room.notified();
            if self.has_room() {
                return;
            }
            flush_in_background(self);
            // Woken by the end of a flush; the time-out is for one that failed.
            let _ = tokio::time::timeout(RETRY, room).await;
        }
    }

    pub fn committed(&self, bucket: BucketId) -> Epoch {
        let buckets = lock(&self.state.buckets);
        let applied = buckets.get(&bucket).and_then(|progress| progress.applied.as_ref());
        applied.map_or(Epoch(0), |mark| mark.epoch)
    }

    pub fn counters(&self, bucket: BucketId) -> Counters {
        let durable_lsn = self.log.durable().borrow().lsn;
        let (staged, committed, durable) = {
            let mut buckets = lock(&self.state.buckets);
            let Some(progress) = buckets.get_mut(&bucket) else { return Counters::default() };
            while let Some((epoch, _)) =
                progress.ends.front().filter(|(_, lsn)| *lsn <= durable_lsn)
            {
                progress.durable = *epoch;
                progress.ends.pop_front();
            }
            let committed = progress.applied.as_ref().map_or(Epoch(0), |mark| mark.epoch);
            (progress.staged, committed, progress.durable)
        };
        // Asked after what is committed: that is in fragments by now or among what is not flushed.
        let slots = self.state.of_bucket(bucket);
        let oldest = slots.iter().filter_map(|slot| slot.figures.unflushed_epoch()).min();
        let stable = oldest.map_or(committed, |oldest| Epoch(oldest.0.saturating_sub(1)));
        // That an epoch was applied is known from its record alone, also where fragments have its rows.
        let durable = if plant::is(Plant::DurableEarly) { committed } else { durable };
        let durable = durable.min(committed);
        Counters { staged: staged.max(committed), committed, durable, stable: stable.min(durable) }
    }

    pub async fn wait_durable(&self, bucket: BucketId, epoch: Epoch) -> Result<()> {
        loop {
            if self.counters(bucket).durable >= epoch {
                return Ok(());
            }
            let end = {
                let buckets = lock(&self.state.buckets);
                let ends = buckets.get(&bucket).map(|progress| &progress.ends);
                ends.and_then(|ends| ends.iter().find(|(other, _)| *other >= epoch).copied())
            };
            // It may have become durable, and been taken off, in between.
            if end.is_none() && self.counters(bucket).durable >= epoch {
                return Ok(());
            }
            match end {
                Some((_, lsn)) => self.log.wait_durable(lsn).await?,
                None => {
                    let message = format!("epoch {epoch} of bucket {bucket} was not applied");
                    return Err(proto::Error::unavailable(message));
                }
            }
        }
    }

    pub fn progress(&self) -> Vec<SliceProgress> {
        let failed = self.log.durable().borrow().failed.as_ref().map(ToString::to_string);
        let trouble = failed.or_else(|| lock(&self.background).trouble.clone());
        let mut progress = Vec::new();
        for slot in self.state.slots() {
            let visible = slot.visible.load_full();
            let entries = slot.figures.entries();
            for (slice, fragments) in &visible.slices {
                let section = |table: &super::table::Table, slice: SliceNo| {
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

    /// Remembers the buckets' newest epochs at the end of the log, unless that was done a little
    /// before.
    pub fn checkpoint(&self, order: &mut Order, at_least_bytes: u64) {
        let end = self.log.end();
        if order.checkpoints.back().is_some_and(|(last, _)| end < last + at_least_bytes) {
            return;
        }
        order.checkpoints.push_back((end, self.state.logged()));
    }

    /// Lets go of the log as far as the fragments have what is in it.
    pub async fn release_log(self: &Arc<Self>) -> Result<()> {
        let inner = Arc::clone(self);
        self.env.blocking(move || inner.settle_doubts()).await;
        let mut order = self.order.lock().await;
        self.checkpoint(&mut order, 1);
        let slots = self.state.slots();
        let unflushed = slots.iter().filter_map(|slot| slot.figures.needs_log_from());
        // Read before the indexes are asked, which `chain` does last: an epoch is in one or the other.
        let applying: Vec<Lsn> = lock(&self.state.buckets)
            .iter()
            .filter(|(bucket, _)| slots.iter().any(|slot| slot.info.bucket == **bucket))
            .filter_map(|(_, progress)| progress.applying)
            .collect();
        let doubts = self.files.doubts().into_iter().map(|(.., doubt)| doubt.lsn);
        let needed = unflushed.chain(applying).chain(doubts).min().unwrap_or(u64::MAX);
        let needed = if plant::is(Plant::LogReleasedEarly) { u64::MAX } else { needed };
        let passed = order.checkpoints.partition_point(|(lsn, _)| *lsn <= needed);
        let Some((lsn, marks)) = order.checkpoints.drain(..passed).next_back() else {
            return Ok(());
        };
        order.marks = marks.clone();
        order.checkpoints.push_front((lsn, marks));
        let manifest = order.node_manifest(self.files.next());
        let inner = Arc::clone(self);
        let release = move || {
            inner.files.write_node_manifest(&manifest)?;
            inner.log.release(lsn)
        };
        self.env.blocking(release).await
    }

    /// The index whose flush gives back most.
    fn pick_flush(&self) -> Option<Arc<Slot>> {
        let end = self.log.end();
        let weight = |slot: &Arc<Slot>| {
            let held = slot.figures.needs_log_from().map_or(0, |lsn| end.saturating_sub(lsn));
            MEMORY_WEIGHT * slot.memory_bytes() + LOG_WEIGHT * held
        };
        self.state.slots().into_iter().max_by_key(weight)
    }

    fn wants_flush(&self) -> bool {
        // Flushes begin before epochs must wait, also where little is left of the budget.
        self.unwritten_bytes() > self.options.flush_bytes().min(self.room_bytes() / 2)
            || self.log.held_bytes() > self.options.log_bytes
            || self.state.slots().iter().any(|slot| slot.figures.is_full())
    }

    /// Runs one kind of worker, unless one runs already.
    fn work(
        self: &Arc<Self>,
        flag: fn(&mut Background) -> &mut bool,
        work: impl FnOnce(&Arc<Self>) -> Result<()> + Send + 'static,
    ) {
        if std::mem::replace(flag(&mut lock(&self.background)), true) {
            return;
        }
        let inner = Arc::clone(self);
        self.env.spawner.spawn_blocking(Box::new(move || {
            let ended = Ended { inner: &inner, flag };
            if let Err(error) = work(&inner) {
                inner.note_trouble(&error);
            }
            drop(ended);
        }));
    }

    fn note_trouble(&self, error: &proto::Error) {
        tracing::warn!(%error, "the slice store's upkeep");
        lock(&self.background).trouble = Some(error.to_string());
    }
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
pub(super) fn after_epoch(inner: &Arc<Inner>, bucket: BucketId) {
    if inner.state.of_bucket(bucket).iter().any(|slot| slot.is_worth_merging()) {
        inner.work(|background| &mut background.merging, merge_runs);
    }
    if inner.wants_flush() {
        flush_in_background(inner);
    }
}

fn merge_runs(inner: &Arc<Inner>) -> Result<()> {
    while let Some(slot) = inner.state.slots().into_iter().find(|slot| slot.is_worth_merging()) {
        slot.merge_runs()?;
    }
    Ok(())
}

fn flush_in_background(inner: &Arc<Inner>) {
    inner.work(
        |background| &mut background.flushing,
        |inner| {
            let mut tried = Vec::<Arc<Slot>>::new();
            while inner.wants_flush() {
                let is_new = |slot: &Arc<Slot>| !tried.iter().any(|other| Arc::ptr_eq(other, slot));
                let Some(slot) = inner.pick_flush().filter(is_new) else { break };
                tried.push(Arc::clone(&slot));
                // One index that cannot be flushed does not keep the others from it.
                match slot.flush(&inner.files) {
                    Ok(_) => {
                        lock(&inner.background).trouble = None;
                        inner.room.notify_waiters();
                    }
                    // Who waits for room tries again after a while.
                    Err(error) => inner.note_trouble(&error),
                }
            }
            let release = Arc::clone(inner);
            let released = async move {
                if let Err(error) = release.release_log().await {
                    tracing::warn!(%error, "releasing the commit log");
                }
            };
            inner.env.spawn("release-log", released).detach();
            inner.work(|background| &mut background.compacting, compact);
            Ok(())
        },
    );
}

fn compact(inner: &Arc<Inner>) -> Result<()> {
    for slot in inner.state.slots() {
        loop {
            match slot.compact(&inner.files, Extent::WherePays) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    inner.note_trouble(&error);
                    break;
                }
            }
        }
    }
    inner.files.collect();
    Ok(())
}
