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
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use proto::env::Env;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, Generation, IndexId, NodeId, SliceId, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::api::SliceProgress;
use proto::{Error, ErrorCode, Result};

use crate::apply::apply_epoch::apply_epoch;
use crate::batch::EpochBatch;
use crate::build::backfill::{begin_backfill, take_documents};
use crate::build::finish::finish_build;
use crate::build::rebuild::finish_rebuild;
use crate::counters::Counters;
use crate::edit::edits::{drop_all, edit_slice, regroup_index};
use crate::edit::rollback::truncate_bucket;
use crate::files::data_files::Files;
use crate::index::load_state::LoadState;
use crate::index::local_index::Slot;
use crate::lock::lock;
use crate::log::lsn::Lsn;
use crate::log_record::Record;
use crate::maintain::compaction::compact_everything;
use crate::maintain::flush::flush;
use crate::maintain::release::release_log;
use crate::maintain::upkeep::{after_epoch, wait_for_room};
use crate::manifest::index_manifest::IndexManifest;
use crate::node::context::Inner;
use crate::node::durability::{counters, wait_durable};
use crate::node::report::progress;
use crate::node::state::skipped_by;
use crate::options::StoreOptions;
use crate::read::index_snapshot::{SlotSnapshot, too_old};
use crate::read::snapshot::Snapshot;
#[cfg(test)]
use crate::recover::load::load;
use crate::recover::load::{load_in_background, wait_loaded};
use crate::recover::open::open;
use crate::rows::columns::Grouping;
use crate::slice_store::{SliceStore, StoredIndex};

/// The store of a node.
pub struct FragmentStore {
    pub(crate) inner: Arc<Inner>,
}

impl FragmentStore {
    /// Opens the store in a directory, recovering what its manifests, fragments and log hold. Blocks
    /// until epochs can be applied; indexes are loaded in the background ([`SliceStore::wait_loaded`]).
    pub fn open(env: &Env, node: NodeId, dir: &Path, options: StoreOptions) -> Result<Self> {
        let inner = Arc::new(open(env, node, dir, options)?);
        load_in_background(&inner);
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

    pub(crate) fn slot(&self, index: IndexId, generation: Generation) -> Result<Arc<Slot>> {
        let inner = &self.inner;
        match inner.state.get(index) {
            Some(slot) if slot.info.generation == generation => Ok(slot),
            _ => Err(Error::new(
                ErrorCode::SliceMoved,
                format!("node {} has no slices of index {index}.{generation}", inner.node),
            )),
        }
    }

    /// Appends an epoch to the log; says where its record begins.
    pub(crate) async fn log_epoch(&self, batch: &EpochBatch) -> Result<Lsn> {
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
    pub(crate) async fn on_slot<T: Send + 'static>(
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
        counters(&self.inner, bucket)
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
        self.on_slot(slot, |slot, files| begin_backfill(slot, only, files)).await
    }

    async fn backfill(
        &self,
        index: IndexId,
        generation: Generation,
        documents: Bytes,
    ) -> Result<()> {
        let rebuild = self.inner.state.rebuild(index, generation);
        let slot = rebuild.map_or_else(|| self.slot(index, generation), Ok)?;
        take_documents(&self.inner, slot, documents).await
    }

    async fn finish_build(
        &self,
        index: IndexId,
        generation: Generation,
        mark: &EpochMark,
    ) -> Result<()> {
        if let Some(slot) = self.inner.state.rebuild(index, generation) {
            return finish_rebuild(&self.inner, slot, mark.epoch).await;
        }
        let slot = self.slot(index, generation)?;
        finish_build(&self.inner, slot, mark.epoch).await
    }

    async fn drop_index(&self, index: IndexId) -> Result<()> {
        self.drop_rebuild(index).await?;
        let Some(slot) = self.inner.state.get(index) else { return Ok(()) };
        self.on_slot(slot, drop_all).await?;
        self.inner.state.remove(index);
        Ok(())
    }

    async fn apply(&self, batch: EpochBatch) -> Result<()> {
        let inner = &self.inner;
        let bucket = batch.mark.bucket;
        wait_for_room(inner).await;
        lock(&inner.state.buckets).entry(bucket).or_default().staged = batch.mark.epoch;
        let lsn = self.log_epoch(&batch).await?;
        let state = Arc::clone(&inner.state);
        inner.env.blocking(move || apply_epoch(&state, &batch, lsn)).await?;
        after_epoch(inner, bucket);
        Ok(())
    }

    async fn wait_durable(&self, bucket: BucketId, epoch: Epoch) -> Result<()> {
        wait_durable(&self.inner, bucket, epoch).await
    }

    async fn flush(&self) -> Result<()> {
        self.inner.log.sync().await?;
        for slot in self.inner.state.slots() {
            self.on_slot(slot, flush).await?;
        }
        self.inner.log.sync().await?;
        release_log(&self.inner).await
    }

    async fn compact(&self) -> Result<()> {
        self.flush().await?;
        for slot in self.inner.state.slots() {
            self.on_slot(slot, compact_everything).await?;
        }
        self.inner.files.collect();
        Ok(())
    }

    async fn split(&self, slice: SliceId, at: &[u8], low: SliceNo, high: SliceNo) -> Result<()> {
        let at = at.to_vec();
        let slot = self.slot(slice.index, slice.generation)?;
        let edit = move |manifest: &mut IndexManifest| manifest.split(slice.slice, &at, low, high);
        self.on_slot(slot, move |slot, files| edit_slice(slot, files, slice.slice, edit)).await
    }

    async fn clone_slice(&self, slice: SliceId, to: SliceNo) -> Result<()> {
        let slot = self.slot(slice.index, slice.generation)?;
        let edit = move |manifest: &mut IndexManifest| manifest.clone_slice(slice.slice, to);
        self.on_slot(slot, move |slot, files| edit_slice(slot, files, slice.slice, edit)).await
    }

    async fn drop_slice(&self, slice: SliceId) -> Result<()> {
        let slot = self.slot(slice.index, slice.generation)?;
        let edit = move |manifest: &mut IndexManifest| manifest.drop_slice(slice.slice);
        self.on_slot(slot, move |slot, files| edit_slice(slot, files, slice.slice, edit)).await
    }

    async fn regroup(
        &self,
        index: IndexId,
        generation: Generation,
        grouping: Grouping,
    ) -> Result<()> {
        let slot = self.slot(index, generation)?;
        self.on_slot(slot, move |slot, files| regroup_index(slot, grouping, files)).await
    }

    fn can_go_back(&self, slice: SliceId, epoch: Epoch) -> bool {
        let slot = self.slot(slice.index, slice.generation);
        slot.is_ok_and(|slot| {
            slot.visible.load().reach_of(slice.slice).is_some_and(|reach| reach.keeps(epoch))
        })
    }

    async fn truncate(&self, mark: &EpochMark, dead_to: Epoch) -> Result<()> {
        truncate_bucket(&self.inner, mark, dead_to).await
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
        wait_loaded(&self.inner, index).await
    }

    fn load_states(&self) -> Vec<(IndexId, LoadState)> {
        let slots = self.inner.state.indexes();
        slots.iter().map(|slot| (slot.info.id, slot.load_state())).collect()
    }

    fn progress(&self) -> Vec<SliceProgress> {
        progress(&self.inner)
    }

    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }
}

#[cfg(test)]
impl FragmentStore {
    /// Loads all indexes before anything else is done.
    pub fn load_all(&self) {
        let slots = self.inner.state.slots();
        slots.iter().for_each(|slot| load(slot, &self.inner.files).expect("an index is loaded"));
    }
}

#[cfg(test)]
#[path = "storage_engine_tests.rs"]
pub(crate) mod tests;
