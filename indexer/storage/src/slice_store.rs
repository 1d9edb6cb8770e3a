//! The trait that a store of slices implements. The tests compare the engine with a model in memory
//! through this trait.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, LocalIndexId, SliceId, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::api::SliceProgress;
use proto::rpc::scan::UncommittedView;
use proto::{Error, ErrorCode, Result};

use crate::batch::EpochBatch;
use crate::counters::Counters;
use crate::index::load_state::LoadState;
use crate::read::snapshot::Snapshot;
use crate::rows::columns::Grouping;

/// A generation of an index, with the slices and epochs that a store has of it.
#[derive(Clone, Debug)]
pub struct StoredIndex {
    /// The definition of the index, and its topology at the time when its slices were created.
    pub info: Arc<IndexInfo>,
    /// Oldest epoch that can be read in the slices; `None` while they are being built.
    pub floor: Option<Epoch>,
    /// Newest epoch of the index. After a crash it can be above the bucket's newest epoch.
    pub newest: Epoch,
    /// Slices on this node, ascending, each with its oldest readable epoch.
    pub slices: Vec<(SliceNo, Epoch)>,
}

impl StoredIndex {
    /// Returns the index and its generation.
    pub fn id(&self) -> LocalIndexId {
        self.info.local_id()
    }

    /// Returns true if a slice is on this node.
    pub fn has(&self, slice: SliceNo) -> bool {
        self.slices.iter().any(|(other, _)| *other == slice)
    }
}

/// Returns the error of a store that does not support open transactions.
fn no_transactions() -> Error {
    Error::new(ErrorCode::Unsupported, "this store keeps no changes of open transactions")
}

/// A store of a node's slices.
///
/// Keys are self-delimiting (`proto::value::key`): no key is a proper prefix of another. So the
/// order of (key, id) is the order of the two byte strings concatenated.
#[async_trait]
pub trait SliceStore: Send + Sync + 'static {
    /// Returns the newest epoch that was applied to each bucket.
    fn applied(&self) -> Vec<EpochMark>;

    /// Returns the progress counters of a bucket.
    fn counters(&self, bucket: BucketId) -> Counters;

    /// Returns the newest visible epoch of a bucket, like [`Self::counters`], but without waiting
    /// for a writer.
    fn committed(&self, bucket: BucketId) -> Epoch {
        self.counters(bucket).committed
    }

    /// Returns the indexes of this store, by [`LocalIndexId`]; each generation of an index is a
    /// separate element.
    fn indexes(&self) -> Vec<StoredIndex>;

    /// Begins, or restarts, the build of all slices of an index on this node. From now on epochs
    /// are applied to the index, but it cannot be read. `grouping` determines whether included
    /// values, if any, get separate fragments.
    async fn begin_build(&self, info: Arc<IndexInfo>, grouping: Grouping) -> Result<()>;

    /// Begins a backfill: a snapshot of the source whose cut is at or after the place where the
    /// build began. Documents of an earlier, interrupted snapshot are dropped.
    async fn begin_backfill(&self, index: LocalIndexId) -> Result<()>;

    /// Adds documents of a backfill snapshot, each document once.
    async fn backfill(&self, index: LocalIndexId, documents: Bytes) -> Result<()>;

    /// Ends a build. `mark` is the newest applied epoch and must cover the snapshot's cut. From
    /// this epoch on, also after a crash, the slices can be read: they contain the snapshot with
    /// all epochs applied since the build began. If an epoch has changed a document, its entries
    /// replace those of the snapshot.
    async fn finish_build(&self, index: LocalIndexId, mark: &EpochMark) -> Result<()>;

    /// Removes a generation of an index durably.
    async fn drop_index(&self, index: LocalIndexId) -> Result<()>;

    /// Applies an epoch to all indexes of its bucket; waits while the store is short of memory.
    /// When the call returns, scans see the epoch.
    async fn apply(&self, batch: EpochBatch) -> Result<()>;

    /// Waits until an epoch of a bucket survives a crash.
    async fn wait_durable(&self, bucket: BucketId, epoch: Epoch) -> Result<()>;

    /// Writes the memory of all indexes into synced fragments: all epochs committed before the
    /// call are stable afterwards.
    async fn flush(&self) -> Result<()>;

    /// Merges the fragments of each slice into as few as possible, and drops versions that are
    /// visible at no retained epoch.
    async fn compact(&self) -> Result<()>;

    /// Splits a slice at an entry: `low` gets the entries before `at`, `high` the others, with all
    /// their versions. The split slice is removed. No row is copied.
    async fn split(&self, slice: SliceId, at: &[u8], low: SliceNo, high: SliceNo) -> Result<()>;

    /// Creates the slice `to` with all entries and versions of `slice`, without copying rows.
    async fn clone_slice(&self, slice: SliceId, to: SliceNo) -> Result<()>;

    /// Removes one slice. A scan that has begun can continue to read it.
    async fn drop_slice(&self, slice: SliceId) -> Result<()>;

    /// Changes the column groups of an index durably. No row is copied: flushes and compactions use
    /// the new groups from now on.
    async fn regroup(&self, index: LocalIndexId, grouping: Grouping) -> Result<()>;

    /// Returns true if a slice can be rolled back to an epoch: the epoch is at or above the
    /// slice's oldest readable epoch, or is a rollback point whose versions the slice still has.
    fn can_roll_back(&self, slice: SliceId, epoch: Epoch) -> bool;

    /// Rolls a bucket back to an epoch, to which it must be possible to roll back each of its
    /// slices. Newer epochs are removed durably, and epochs up to at least `dead_to` are refused
    /// for ever.
    async fn roll_back(&self, mark: &EpochMark, dead_to: Epoch) -> Result<()>;

    /// Returns a snapshot of an index at an epoch. Errors: `SnapshotTooOld` below the oldest
    /// readable epoch, `Unavailable` during a build or before the epoch is applied, `SliceMoved`
    /// if the index is not on this node.
    fn snapshot(&self, index: LocalIndexId, epoch: Epoch) -> Result<Arc<dyn Snapshot>>;

    /// Waits until this node has a transaction's changes up to a place (the number of a change).
    /// The node need not know the transaction yet. `SnapshotTooOld` if the transaction has ended,
    /// or if the change at the place was rolled back.
    async fn wait_for_transaction(&self, _bucket: BucketId, _own: UncommittedView) -> Result<()> {
        Err(no_transactions())
    }

    /// Returns a snapshot like [`Self::snapshot`], with the rows that a transaction has written up
    /// to a place (the number of a change). Further errors: `Unavailable` if this node has not
    /// received all of these changes, `SnapshotTooOld` as in [`Self::wait_for_transaction`], `OverLimit`
    /// if the transaction was too large.
    fn snapshot_of_transaction(
        &self,
        index: LocalIndexId,
        epoch: Epoch,
        own: Option<UncommittedView>,
    ) -> Result<Arc<dyn Snapshot>> {
        match own {
            None => self.snapshot(index, epoch),
            Some(_) => Err(no_transactions()),
        }
    }

    /// Waits until an index is loaded, or is found to be absent. A failed load is an error.
    async fn wait_loaded(&self, index: LocalIndexId) -> Result<()>;

    /// Returns the load state of each index, which all of its slices share.
    fn load_states(&self) -> Vec<(LocalIndexId, LoadState)>;

    /// Returns the progress of each slice.
    fn progress(&self) -> Vec<SliceProgress>;

    /// Returns the memory use in bytes.
    fn memory_bytes(&self) -> u64;
}
