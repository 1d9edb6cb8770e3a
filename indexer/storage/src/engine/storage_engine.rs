//! The facade: opening, epochs, snapshots, and the implementation of [`SliceStore`]. The crate's
//! head explains the engine.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use proto::env::{Env, TaskPolicy};
use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::{
    BucketId, Epoch, LocalIndexId, NodeId, SliceId, SliceNo, TransactionId, TransactionPlace,
};
use proto::model::index::IndexInfo;
use proto::rpc::api::SliceProgress;
use proto::rpc::scan::UncommittedView;
use proto::{Error, ErrorCode, Result};

use crate::apply::apply_epoch::apply_epoch;
use crate::apply::documents::last_changes;
use crate::batch::EpochBatch;
use crate::build::backfill::{add_backfill_documents, begin_backfill};
use crate::build::finish::finish_build;
use crate::build::rebuild::finish_rebuild;
use crate::counters::Counters;
use crate::edit::edits::{drop_index, edit_slice, regroup_index};
use crate::edit::rollback::roll_back_bucket;
use crate::files::data_files::DataFiles;
use crate::index::load_state::LoadState;
use crate::index::local_index::LocalIndex;
use crate::late_commit::commits::enter::enter_commits;
use crate::late_commit::commits::prepare::prepare;
use crate::late_commit::store::LateCommitStore;
use crate::log::lsn::Lsn;
use crate::log_record::Record;
use crate::maintain::compaction::compact_everything;
use crate::maintain::flush::flush;
use crate::maintain::release::release_log;
use crate::maintain::upkeep::{start_after_commits, start_after_epoch, wait_for_memory};
use crate::manifest::index_manifest::IndexManifest;
use crate::node::context::EngineContext;
use crate::node::durability::{counters, wait_durable};
use crate::node::report::progress;
use crate::node::state::epochs_skipped_by;
use crate::options::StoreOptions;
use crate::read::index_snapshot::{IndexSnapshot, too_old};
use crate::read::snapshot::Snapshot;
#[cfg(test)]
use crate::recover::load::load;
use crate::recover::load::{load_in_background, wait_loaded};
use crate::recover::open::open;
use crate::rows::columns::Grouping;
use crate::slice_store::{SliceStore, StoredIndex};

/// The storage engine of a node.
pub struct StorageEngine {
    pub(crate) context: Arc<EngineContext>,
    late_commit: Arc<LateCommitStore>,
}

impl StorageEngine {
    /// Opens the store in a directory and recovers the contents of its manifests, fragments and
    /// log. Blocks until epochs can be applied. Indexes are loaded in the background (see
    /// [`SliceStore::wait_loaded`]).
    pub fn open(env: &Env, node: NodeId, dir: &Path, options: StoreOptions) -> Result<Self> {
        let context = Arc::new(open(env, node, dir, options)?);
        load_in_background(&context);
        let late_commit = LateCommitStore::new(
            env,
            &context.files,
            &context.options,
            Arc::clone(&context.open_transactions_bytes),
        );
        Ok(Self { context, late_commit: Arc::new(late_commit) })
    }

    /// Returns the store of the changes of open transactions.
    pub fn late_commit(&self) -> &Arc<LateCommitStore> {
        &self.late_commit
    }

    /// Begins to write a transaction's changes in the background, ahead of the epoch of its
    /// commit. The store must have received all of the transaction's changes.
    pub fn prepare_commit(
        &self,
        bucket: BucketId,
        transaction: TransactionId,
        place: TransactionPlace,
    ) {
        let (context, late) = (Arc::clone(&self.context), Arc::clone(&self.late_commit));
        let work = move || prepare(&context, &late, (bucket, transaction, place));
        self.context.env.spawn_blocking("late-commit-prepare", TaskPolicy::Request, work);
    }

    /// Waits until the log fails. From then on no epoch is applied until the store is opened
    /// again.
    pub async fn wait_log_failed(&self) {
        let mut durable = self.context.log.durable();
        // A closed channel means that the log has ended, so there is nothing to wait for.
        let _closed = durable.wait_for(|durable| durable.failed.is_some()).await;
    }

    /// Returns the number of the oldest file that a manifest may still be going to name. No
    /// fragment with a smaller number will be added to a manifest of this node.
    pub fn oldest_pending_file(&self) -> u64 {
        self.context.files.oldest_pending().0
    }

    /// Returns an index of this node; an error if it is not on the node.
    pub(crate) fn index(&self, index: LocalIndexId) -> Result<Arc<LocalIndex>> {
        self.context.state.get(index).ok_or_else(|| {
            let text = format!("node {} has no slices of index {index}", self.context.node);
            Error::new(ErrorCode::SliceMoved, text)
        })
    }

    /// Returns the rebuild of an index if there is one, and the index itself otherwise.
    fn index_or_rebuild(&self, index: LocalIndexId) -> Result<Arc<LocalIndex>> {
        self.context.state.rebuild(index).map_or_else(|| self.index(index), Ok)
    }

    /// Appends an epoch to the log; returns the LSN of its record's beginning.
    pub(crate) async fn log_epoch(&self, batch: &EpochBatch) -> Result<Lsn> {
        let context = &self.context;
        let record = Record::Epoch(batch.clone()).encode()?;
        let bucket = batch.mark.bucket;
        let mut order = context.order.lock().await;
        let begin = context.log.end();
        let end = context.log.append(&record).await?;
        {
            let mut buckets = lock(&context.state.buckets);
            let progress = buckets.entry(bucket).or_default();
            progress.logged = Some(batch.mark.clone());
            progress.ends.push_back((batch.mark.epoch, end));
        }
        context.state.mark_unapplied_from(bucket, begin);
        order.skipped.extend(epochs_skipped_by(&batch.mark));
        context.checkpoint(&mut order, context.options.log.segment_bytes / 4);
        Ok(begin)
    }

    /// Runs `work` on an index, on a thread that may block.
    pub(crate) async fn run_on_index<T: Send + 'static>(
        &self,
        index: Arc<LocalIndex>,
        work: impl FnOnce(&LocalIndex, &DataFiles) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let context = Arc::clone(&self.context);
        self.context.env.blocking(move || work(&index, &context.files)).await
    }
}

#[async_trait]
impl SliceStore for StorageEngine {
    fn applied(&self) -> Vec<EpochMark> {
        let buckets = lock(&self.context.state.buckets);
        buckets.values().filter_map(|progress| progress.applied.clone()).collect()
    }

    fn counters(&self, bucket: BucketId) -> Counters {
        counters(&self.context, bucket)
    }

    fn committed(&self, bucket: BucketId) -> Epoch {
        self.context.committed(bucket)
    }

    fn indexes(&self) -> Vec<StoredIndex> {
        let stored = |index: Arc<LocalIndex>| {
            let version = index.version.load();
            StoredIndex {
                info: Arc::clone(&index.info),
                floor: version.floor,
                newest: index.stats.applied(),
                slices: version
                    .slices
                    .keys()
                    .map(|slice| (*slice, version.floor_of(*slice).unwrap_or_default()))
                    .collect(),
            }
        };
        self.context.state.indexes().into_iter().map(stored).collect()
    }

    async fn begin_build(&self, info: Arc<IndexInfo>, grouping: Grouping) -> Result<()> {
        self.drop_index(info.local_id()).await?;
        let slices = info.topology.slices_on(self.context.node);
        self.context.state.insert(LocalIndex::building(info, &slices, grouping));
        Ok(())
    }

    async fn begin_backfill(&self, index: LocalIndexId) -> Result<()> {
        let rebuild = self.context.state.rebuild(index);
        let only = rebuild.map(|index| index.slices().into_iter().collect());
        let index = self.index_or_rebuild(index)?;
        self.run_on_index(index, |index, files| begin_backfill(index, only, files)).await
    }

    async fn backfill(&self, index: LocalIndexId, documents: Bytes) -> Result<()> {
        add_backfill_documents(&self.context, self.index_or_rebuild(index)?, documents).await
    }

    async fn finish_build(&self, index: LocalIndexId, mark: &EpochMark) -> Result<()> {
        match self.context.state.rebuild(index) {
            Some(rebuild) => finish_rebuild(&self.context, rebuild, mark).await,
            None => finish_build(&self.context, self.index(index)?, mark).await,
        }
    }

    async fn drop_index(&self, index: LocalIndexId) -> Result<()> {
        self.drop_rebuild(index).await?;
        let Some(local) = self.context.state.get(index) else { return Ok(()) };
        self.run_on_index(local, drop_index).await?;
        self.context.state.remove(index);
        Ok(())
    }

    async fn apply(&self, batch: EpochBatch) -> Result<()> {
        let context = &self.context;
        let bucket = batch.mark.bucket;
        wait_for_memory(context).await;
        lock(&context.state.buckets).entry(bucket).or_default().staged = batch.mark.epoch;
        let commits = batch.commits.clone();
        if !commits.is_empty() {
            let (task, late) = (Arc::clone(context), Arc::clone(&self.late_commit));
            let entering = batch.clone();
            context.env.blocking(move || enter_commits(&task, &late, &entering)).await?;
        }
        let lsn = self.log_epoch(&batch).await?;
        let (state, late) = (Arc::clone(&context.state), Arc::clone(&self.late_commit));
        let apply = move || {
            let documents = last_changes(&batch)?;
            apply_epoch(&state, (&batch.mark, &documents), lsn)?;
            late.note_applied(&batch, &documents);
            Ok::<_, Error>(())
        };
        context.env.blocking(apply).await?;
        if !commits.is_empty() {
            self.late_commit.drop_entered(bucket, &commits);
            start_after_commits(context);
        }
        start_after_epoch(context, bucket);
        Ok(())
    }

    async fn wait_durable(&self, bucket: BucketId, epoch: Epoch) -> Result<()> {
        wait_durable(&self.context, bucket, epoch).await
    }

    async fn flush(&self) -> Result<()> {
        self.context.log.sync().await?;
        for index in self.context.state.indexes_and_rebuilds() {
            self.run_on_index(index, flush).await?;
        }
        self.context.log.sync().await?;
        release_log(&self.context).await
    }

    async fn compact(&self) -> Result<()> {
        self.flush().await?;
        for index in self.context.state.indexes_and_rebuilds() {
            self.run_on_index(index, compact_everything).await?;
        }
        self.context.files.delete_retired();
        Ok(())
    }

    async fn split(&self, slice: SliceId, at: &[u8], low: SliceNo, high: SliceNo) -> Result<()> {
        let at = at.to_vec();
        let index = self.index(slice.local_index())?;
        let edit = move |manifest: &mut IndexManifest| manifest.split(slice.slice, &at, low, high);
        self.run_on_index(index, move |index, files| edit_slice(index, files, slice.slice, edit))
            .await
    }

    async fn clone_slice(&self, slice: SliceId, to: SliceNo) -> Result<()> {
        let index = self.index(slice.local_index())?;
        let edit = move |manifest: &mut IndexManifest| manifest.clone_slice(slice.slice, to);
        self.run_on_index(index, move |index, files| edit_slice(index, files, slice.slice, edit))
            .await
    }

    async fn drop_slice(&self, slice: SliceId) -> Result<()> {
        let index = self.index(slice.local_index())?;
        let edit = move |manifest: &mut IndexManifest| manifest.drop_slice(slice.slice);
        self.run_on_index(index, move |index, files| edit_slice(index, files, slice.slice, edit))
            .await
    }

    async fn regroup(&self, index: LocalIndexId, grouping: Grouping) -> Result<()> {
        let index = self.index(index)?;
        self.run_on_index(index, move |index, files| regroup_index(index, grouping, files)).await
    }

    fn can_roll_back(&self, slice: SliceId, epoch: Epoch) -> bool {
        let index = self.index(slice.local_index());
        index.is_ok_and(|index| {
            index
                .version
                .load()
                .readable_epochs_of(slice.slice)
                .is_some_and(|reach| reach.retains(epoch))
        })
    }

    async fn roll_back(&self, mark: &EpochMark, dead_to: Epoch) -> Result<()> {
        roll_back_bucket(&self.context, mark, dead_to).await
    }

    fn snapshot(&self, index: LocalIndexId, epoch: Epoch) -> Result<Arc<dyn Snapshot>> {
        let local = self.index(index)?;
        let applied = self.context.committed(local.info.bucket);
        local.check_readable()?;
        let version = local.version.load_full();
        let Some(floor) = version.floor else {
            return Err(Error::unavailable(format!("index {index} is being built on this node")));
        };
        if epoch > applied {
            return Err(Error::unavailable(format!(
                "epoch {epoch} is not applied on this node yet"
            )));
        }
        if epoch < floor || self.context.state.is_dead(local.info.bucket, epoch) {
            return Err(too_old(epoch, format!("index {index}"), floor));
        }
        let walk_bytes = self.context.options.walk_bytes();
        Ok(Arc::new(IndexSnapshot::new(Arc::clone(&local.info), epoch, version, walk_bytes)))
    }

    async fn wait_for_transaction(&self, bucket: BucketId, own: UncommittedView) -> Result<()> {
        self.late_commit.wait(bucket, own).await
    }

    fn snapshot_of_transaction(
        &self,
        index: LocalIndexId,
        epoch: Epoch,
        own: Option<UncommittedView>,
    ) -> Result<Arc<dyn Snapshot>> {
        let base = self.snapshot(index, epoch)?;
        match own {
            None => Ok(base),
            Some(own) => self.late_commit.transaction_snapshot(base, own),
        }
    }

    async fn wait_loaded(&self, index: LocalIndexId) -> Result<()> {
        wait_loaded(&self.context, index).await
    }

    fn load_states(&self) -> Vec<(LocalIndexId, LoadState)> {
        let indexes = self.context.state.indexes();
        indexes.iter().map(|index| (index.info.local_id(), index.load_state())).collect()
    }

    fn progress(&self) -> Vec<SliceProgress> {
        progress(&self.context)
    }

    fn memory_bytes(&self) -> u64 {
        self.context.memory_bytes()
    }
}

#[cfg(test)]
impl StorageEngine {
    /// Loads all indexes, and returns when they are loaded.
    pub fn load_all(&self) {
        let indexes = self.context.state.indexes_and_rebuilds();
        indexes
            .iter()
            .for_each(|index| load(index, &self.context.files).expect("an index is loaded"));
    }
}

#[cfg(test)]
#[path = "storage_engine_tests.rs"]
pub(crate) mod tests;
