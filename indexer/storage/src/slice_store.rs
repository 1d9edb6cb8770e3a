//! What the rest of a node sees of a store: the trait, and what it tells.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use proto::Result;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, Generation, IndexId, SliceId, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::api::SliceProgress;

use crate::batch::EpochBatch;
use crate::counters::Counters;
use crate::index::load_state::LoadState;
use crate::read::snapshot::Snapshot;
use crate::rows::columns::Grouping;

/// An index as a store has it.
#[derive(Clone, Debug)]
pub struct StoredIndex {
    /// Its definition and topology when its slices were made.
    pub info: Arc<IndexInfo>,
    /// The oldest epoch that its slices answer; `None` while they are being built.
    pub floor: Option<Epoch>,
    /// The newest epoch that it has; a crash may have left an index ahead of its bucket.
    pub newest: Epoch,
    /// The slices that are here, ascending, and the oldest epoch that each answers.
    pub slices: Vec<(SliceNo, Epoch)>,
}

impl StoredIndex {
    /// Is a slice here?
    pub fn has(&self, slice: SliceNo) -> bool {
        self.slices.iter().any(|(other, _)| *other == slice)
    }
}

/// What keeps the slices of a node.
///
/// Keys are self-delimiting (`proto::value::key`): none is a proper beginning of another, so that the order of
/// (key, id) is the order of their bytes back to back.
#[async_trait]
pub trait SliceStore: Send + Sync + 'static {
    /// The newest epoch applied to each bucket.
    fn applied(&self) -> Vec<EpochMark>;

    /// How far a bucket's epochs have come.
    fn counters(&self, bucket: BucketId) -> Counters;

    /// The newest epoch of a bucket that scans see; as in [`Self::counters`], without waiting for a
    /// writer.
    fn committed(&self, bucket: BucketId) -> Epoch {
        self.counters(bucket).committed
    }

    /// The indexes that it keeps.
    fn indexes(&self) -> Vec<StoredIndex>;

    /// Begins (or begins anew) to build the node's slices of an index: from now on the epochs are
    /// applied to it, but nothing is shown. `grouping` says whether its included values, if it has any,
    /// get fragments of their own.
    async fn begin_build(&self, info: Arc<IndexInfo>, grouping: Grouping) -> Result<()>;

    /// A backfill snapshot begins, at or behind the place where the build began: what an earlier one,
    /// cut short, has left is forgotten.
    async fn begin_backfill(&self, index: IndexId, generation: Generation) -> Result<()>;

    /// Takes documents of a backfill snapshot, each once.
    async fn backfill(
        &self,
        index: IndexId,
        generation: Generation,
        documents: Bytes,
    ) -> Result<()>;

    /// Ends a build: the slices show what the snapshot and the epochs since have made, from `mark`
    /// (the newest applied epoch, which must cover the snapshot's cut) on, also after a crash. What an
    /// epoch has said of a document outranks the snapshot.
    async fn finish_build(
        &self,
        index: IndexId,
        generation: Generation,
        mark: &EpochMark,
    ) -> Result<()>;

    /// Removes an index, also for what comes after a crash.
    async fn drop_index(&self, index: IndexId) -> Result<()>;

    /// Applies an epoch to all indexes of its bucket at once; waits while the store is short of memory.
    /// When this returns, scans see it.
    async fn apply(&self, batch: EpochBatch) -> Result<()>;

    /// Waits until an epoch of a bucket would survive a crash.
    async fn wait_durable(&self, bucket: BucketId, epoch: Epoch) -> Result<()>;

    /// Turns what is in memory into synced fragments: all epochs committed before the call are stable.
    async fn flush(&self) -> Result<()>;

    /// Merges each slice down to as few fragments as there can be, dropping what no epoch at or above
    /// the horizon needs.
    async fn compact(&self) -> Result<()>;

    /// Splits a slice at an entry: `low` has the entries before it, `high` those from it on, with all
    /// their versions; the slice itself is gone. Nothing is copied.
    async fn split(&self, slice: SliceId, at: &[u8], low: SliceNo, high: SliceNo) -> Result<()>;

    /// Makes `to` a slice with the same entries and versions. Nothing is copied.
    async fn clone_slice(&self, slice: SliceId, to: SliceNo) -> Result<()>;

    /// Removes one slice; scans in progress keep what they read.
    async fn drop_slice(&self, slice: SliceId) -> Result<()>;

    /// Divides the columns of an index anew, also for what comes after a crash. Nothing is copied: what
    /// is written from now on, also by compactions, follows the new division.
    async fn regroup(
        &self,
        index: IndexId,
        generation: Generation,
        grouping: Grouping,
    ) -> Result<()>;

    /// Can a slice that is here go back to an epoch: at or above its floor, or a rollback point that it has
    /// kept?
    fn can_go_back(&self, slice: SliceId, epoch: Epoch) -> bool;

    /// Goes back to an epoch, to which every slice of the bucket can go back: what is newer is gone, now
    /// and after a crash, and refused for ever, up to `dead_to` at least.
    async fn truncate(&self, mark: &EpochMark, dead_to: Epoch) -> Result<()>;

    /// An index as an epoch shows it; `SnapshotTooOld` below its floor, `Unavailable` while it is
    /// being built or the epoch is not applied, `SliceMoved` if it is not here.
    fn snapshot(
        &self,
        index: IndexId,
        generation: Generation,
        epoch: Epoch,
    ) -> Result<Arc<dyn Snapshot>>;

    /// Waits until an index is loaded, or known not to be here; what keeps it from being loaded is an
    /// error.
    async fn wait_loaded(&self, index: IndexId) -> Result<()>;

    /// Where each index is in its life on this node, the same for all of its slices.
    fn load_states(&self) -> Vec<(IndexId, LoadState)>;

    /// What there is of each slice.
    fn progress(&self) -> Vec<SliceProgress>;

    /// Bytes of memory.
    fn memory_bytes(&self) -> u64;
}
