//! The slice store: epochs go to the commit log and to runs in memory, memory goes to fragments.
//!
//! One writer per bucket applies epochs; readers take an `Arc` of the newest version of an index and
//! are never waited for. An epoch becomes visible in two steps: the runs of all indexes are published
//! first, then the bucket's committed epoch; a scan asks for a committed epoch, so it sees all or
//! nothing. Visible comes before durable: what a crash takes back is applied again from the source's
//! stream, with the same result (I1).
//!
//! What may be forgotten when: a run, when its rows are in a synced fragment that a synced manifest
//! names; a piece of the log, when that holds of every index for every epoch in it (`upkeep`). After a
//! crash an index has what its fragments have, and gets the epochs since from the log (`open`).

use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use proto::env::Env;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, Generation, IndexId, NodeId, SliceId, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::api::SliceProgress;
use proto::{Error, ErrorCode, Result};
use tokio::sync::Notify;

use super::epoch::Record;
use super::files::Files;
use super::fragment::Compression;
use super::log::{CommitLog, LogOptions, Lsn};
use super::manifest::{Grouping, IndexManifest};
use super::slot::{Slot, lock};
use super::state::{State, skipped_by};
use super::visible::{SlotSnapshot, too_old};
use super::{Counters, EpochBatch, LoadState, SliceStore, Snapshot, StoredIndex};

/// Settings of the store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// What it may take of memory, the block cache included.
    pub memory_bytes: u64,
    /// Above this much of the log, memory is flushed so that the log can go. A restart replays what there is:
    /// this bounds how long a node is missed.
    pub log_bytes: u64,
    /// How the log is written.
    pub log: LogOptions,
    /// How the blocks of fragments are compressed.
    pub compression: Compression,
    /// What a compaction in the background writes in a second, as long as there are few fragments.
    pub compaction_bytes_per_s: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 512 << 20,
            log_bytes: 96 << 20,
            log: LogOptions::default(),
            compression: Compression::default(),
            compaction_bytes_per_s: 128 << 20,
        }
    }
}

/// The store of a node.
pub struct FragmentStore {
    pub(super) inner: Arc<Inner>,
}

/// What the store shares with its background work.
pub(super) struct Inner {
    pub env: Env,
    /// Told with the numbers of files, which are of this opening of the store only.
    pub opening: u64,
    pub node: NodeId,
    pub options: StoreOptions,
    pub files: Files,
    pub log: CommitLog,
    pub state: Arc<State>,
    /// Holds the order of the log and of what is said about it together.
    pub order: tokio::sync::Mutex<super::upkeep::Order>,
    pub background: Mutex<super::upkeep::Background>,
    /// Memory was given back.
    pub room: Notify,
}

impl FragmentStore {
    /// Opens the store in a directory, recovering what its manifests, fragments and log hold. Blocks
    /// until epochs can be applied; indexes are loaded in the background ([`SliceStore::wait_loaded`]).
    pub fn open(env: &Env, node: NodeId, dir: &Path, options: StoreOptions) -> Result<Self> {
        let inner = Arc::new(super::open::open(env, node, dir, options)?);
        inner.load_in_background();
        Ok(Self { inner })
    }

    /// Waits until the log has failed: no epoch is applied any more before the store is opened again.
    pub async fn log_failed(&self) {
        let mut durable = self.inner.log.durable();
        // Without a log nothing of it is left to wait for.
        let _closed = durable.wait_for(|durable| durable.failed.is_some()).await;
    }

    /// No fragment with a smaller number will come into a manifest of this node any more.
    pub fn oldest_pending_file(&self) -> u64 {
        self.inner.files.oldest_pending().0
    }

    pub(super) fn slot(&self, index: IndexId, generation: Generation) -> Result<Arc<Slot>> {
        let inner = &self.inner;
        let slots = inner.state.slots.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        match slots.get(&index) {
            Some(slot) if slot.info.generation == generation => Ok(Arc::clone(slot)),
            _ => Err(Error::new(
                ErrorCode::SliceMoved,
                format!("node {} has no slices of index {index}.{generation}", inner.node),
            )),
        }
    }

    /// Appends an epoch to the log; says where its record begins.
    pub(super) async fn log_epoch(&self, batch: &EpochBatch) -> Result<Lsn> {
        let inner = &self.inner;
        let record = Record::Epoch(batch.clone()).encode()?;
        let bucket = batch.mark.bucket;
        let mut order = inner.order.lock().await;
        let begin = inner.log.end();
        let end = inner.log.append(&record).await?;
        {
            let mut buckets = lock(&inner.state.buckets);
            let progress = buckets.entry(bucket).or_default();
            progress.logged = Some(batch.mark.clone());
            progress.ends.push_back((batch.mark.epoch, end));
        }
        inner.state.needs_log_from(bucket, begin);
        lock(&order.dead).extend(skipped_by(&batch.mark));
        inner.checkpoint(&mut order, inner.options.log.segment_bytes / 4);
        Ok(begin)
    }

    /// Runs work on an index off the async threads.
    pub(super) async fn on_slot<T: Send + 'static>(
        &self,
        slot: Arc<Slot>,
        work: impl FnOnce(&Slot, &Files) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.inner);
        self.inner.env.blocking(move || work(&slot, &inner.files)).await
    }
}

#[async_trait]
impl SliceStore for FragmentStore {
    fn applied(&self) -> Vec<EpochMark> {
        let buckets = lock(&self.inner.state.buckets);
        buckets.values().filter_map(|progress| progress.applied.clone()).collect()
    }

    fn counters(&self, bucket: BucketId) -> Counters {
        self.inner.counters(bucket)
    }

    fn committed(&self, bucket: BucketId) -> Epoch {
        self.inner.committed(bucket)
    }

    fn indexes(&self) -> Vec<StoredIndex> {
        let stored = |slot: Arc<Slot>| {
            let visible = slot.visible.load();
            StoredIndex {
                info: Arc::clone(&slot.info),
                floor: visible.floor,
                newest: slot.figures.applied(),
                slices: visible
                    .slices
                    .keys()
                    .map(|slice| (*slice, visible.floor_of(*slice).unwrap_or_default()))
                    .collect(),
            }
        };
        self.inner.state.indexes().into_iter().map(stored).collect()
    }

    async fn begin_build(&self, info: Arc<IndexInfo>, grouping: Grouping) -> Result<()> {
        self.drop_index(info.id).await?;
        let slices = info.topology.slices_on(self.inner.node);
        self.inner.state.insert(Slot::begin(info, &slices, grouping));
        Ok(())
    }

    async fn begin_backfill(&self, index: IndexId, generation: Generation) -> Result<()> {
        let rebuild = self.inner.state.rebuild(index, generation);
        let only = rebuild.as_ref().map(|slot| slot.slices().into_iter().collect());
        let slot = rebuild.map_or_else(|| self.slot(index, generation), Ok)?;
        self.on_slot(slot, |slot, files| slot.begin_backfill(only, files)).await
    }

    async fn backfill(
        &self,
        index: IndexId,
        generation: Generation,
        documents: Bytes,
    ) -> Result<()> {
        let rebuild = self.inner.state.rebuild(index, generation);
        let slot = rebuild.map_or_else(|| self.slot(index, generation), Ok)?;
        self.inner.backfill(slot, documents).await
    }

    async fn finish_build(
        &self,
        index: IndexId,
        generation: Generation,
        mark: &EpochMark,
    ) -> Result<()> {
        if let Some(slot) = self.inner.state.rebuild(index, generation) {
            return self.inner.finish_rebuild(slot, mark.epoch).await;
        }
        let slot = self.slot(index, generation)?;
        self.inner.finish_build(slot, mark.epoch).await
    }

    async fn drop_index(&self, index: IndexId) -> Result<()> {
        self.drop_rebuild(index).await?;
        let Some(slot) = self.inner.state.get(index) else { return Ok(()) };
        self.on_slot(slot, |slot, files| slot.drop_all(files)).await?;
        self.inner.state.remove(index);
        Ok(())
    }

    async fn apply(&self, batch: EpochBatch) -> Result<()> {
        let inner = &self.inner;
        let bucket = batch.mark.bucket;
        inner.wait_for_room().await;
        lock(&inner.state.buckets).entry(bucket).or_default().staged = batch.mark.epoch;
        let lsn = self.log_epoch(&batch).await?;
        let state = Arc::clone(&inner.state);
        inner.env.blocking(move || state.apply(&batch, lsn)).await?;
        super::upkeep::after_epoch(inner, bucket);
        Ok(())
    }

    async fn wait_durable(&self, bucket: BucketId, epoch: Epoch) -> Result<()> {
        self.inner.wait_durable(bucket, epoch).await
    }

    async fn flush(&self) -> Result<()> {
        self.inner.log.sync().await?;
        for slot in self.inner.state.slots() {
            self.on_slot(slot, |slot, files| slot.flush(files)).await?;
        }
        self.inner.log.sync().await?;
        self.inner.release_log().await
    }

    async fn compact(&self) -> Result<()> {
        self.flush().await?;
        for slot in self.inner.state.slots() {
            self.on_slot(slot, |slot, files| slot.compact_everything(files)).await?;
        }
        self.inner.files.collect();
        Ok(())
    }

    async fn split(&self, slice: SliceId, at: &[u8], low: SliceNo, high: SliceNo) -> Result<()> {
        let at = at.to_vec();
        let slot = self.slot(slice.index, slice.generation)?;
        let edit = move |manifest: &mut IndexManifest| manifest.split(slice.slice, &at, low, high);
        self.on_slot(slot, move |slot, files| slot.edit(files, slice.slice, edit)).await
    }

    async fn clone_slice(&self, slice: SliceId, to: SliceNo) -> Result<()> {
        let slot = self.slot(slice.index, slice.generation)?;
        let edit = move |manifest: &mut IndexManifest| manifest.clone_slice(slice.slice, to);
        self.on_slot(slot, move |slot, files| slot.edit(files, slice.slice, edit)).await
    }

    async fn drop_slice(&self, slice: SliceId) -> Result<()> {
        let slot = self.slot(slice.index, slice.generation)?;
        let edit = move |manifest: &mut IndexManifest| manifest.drop_slice(slice.slice);
        self.on_slot(slot, move |slot, files| slot.edit(files, slice.slice, edit)).await
    }

    async fn regroup(
        &self,
        index: IndexId,
        generation: Generation,
        grouping: Grouping,
    ) -> Result<()> {
        let slot = self.slot(index, generation)?;
        self.on_slot(slot, move |slot, files| slot.regroup(grouping, files)).await
    }

    fn can_go_back(&self, slice: SliceId, epoch: Epoch) -> bool {
        let slot = self.slot(slice.index, slice.generation);
        slot.is_ok_and(|slot| {
            slot.visible.load().reach_of(slice.slice).is_some_and(|reach| reach.keeps(epoch))
        })
    }

    async fn truncate(&self, mark: &EpochMark, dead_to: Epoch) -> Result<()> {
        self.inner.truncate(mark, dead_to).await
    }

    fn snapshot(
        &self,
        index: IndexId,
        generation: Generation,
        epoch: Epoch,
    ) -> Result<Arc<dyn Snapshot>> {
        let slot = self.slot(index, generation)?;
        let applied = self.inner.committed(slot.info.bucket);
        slot.check_readable()?;
        let visible = slot.visible.load_full();
        let Some(floor) = visible.floor else {
            return Err(Error::unavailable(format!("index {index} is being built")));
        };
        if epoch > applied {
            return Err(Error::unavailable(format!("epoch {epoch} is not applied yet")));
        }
        if epoch < floor || self.inner.state.is_dead(slot.info.bucket, epoch) {
            return Err(too_old(epoch, format!("index {index}"), floor));
        }
        let walk_bytes = self.inner.options.walk_bytes();
        Ok(Arc::new(SlotSnapshot::new(Arc::clone(&slot.info), epoch, visible, walk_bytes)))
    }

    async fn wait_loaded(&self, index: IndexId) -> Result<()> {
        self.inner.wait_loaded(index).await
    }

    fn load_states(&self) -> Vec<(IndexId, LoadState)> {
        let slots = self.inner.state.indexes();
        slots.iter().map(|slot| (slot.info.id, slot.load_state())).collect()
    }

    fn progress(&self) -> Vec<SliceProgress> {
        self.inner.progress()
    }

    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
pub(super) mod tests;
