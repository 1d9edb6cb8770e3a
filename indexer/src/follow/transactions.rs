//! Passes the changes of open transactions from the bucket's stream to the node's late-commit
//! store.
//!
//! A rollback to a savepoint runs inside the follower's loop.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto::Result;
use proto::env::{Bulk, Env};
use proto::model::ids::{BucketId, LocalIndexId, SliceNo, TransactionId, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::rpc::mutation::{CommitMarker, TransactionBodies};
use storage::{LateCommitStore, StorageEngine};

use crate::context::NodeContext;

/// Changes of at most this size are added on the follower's thread: a hop to a blocking thread and
/// back would cost more than the delay of other tasks.
const AT_ONCE_BYTES_MAX: usize = 4 << 10;

/// The open transactions of one bucket. A drop of this value drops their changes, because the node
/// no longer follows the bucket.
pub(super) struct OpenTransactions {
    engine: Arc<StorageEngine>,
    store: Arc<LateCommitStore>,
    env: Env,
    bucket: BucketId,
}

impl OpenTransactions {
    pub(super) fn new(context: &NodeContext, bucket: BucketId) -> Self {
        let engine = Arc::clone(&context.store);
        let store = Arc::clone(engine.late_commit());
        Self { engine, store, env: context.env.clone(), bucket }
    }

    /// Drops the transactions, because a new stream will send them again or the bucket is rolled
    /// back.
    pub(super) fn forget(&self) {
        self.store.forget(self.bucket);
    }

    /// Records the slices of an index that the stream carries from now on.
    pub(super) fn join(&self, index: &Arc<IndexInfo>, slices: BTreeSet<SliceNo>) {
        self.store.join(index, slices);
    }

    /// Drops the transactions' changes in an index that the stream does not carry any more.
    pub(super) fn leave(&self, index: LocalIndexId) {
        self.store.leave(self.bucket, index);
    }

    /// Adds changes to the store, after a wait for memory.
    pub(super) async fn take(&self, bodies: Vec<TransactionBodies>) -> Result<()> {
        let bytes: usize = bodies.iter().map(TransactionBodies::bytes).sum();
        self.store.room(bytes as u64).await;
        let (store, bucket) = (Arc::clone(&self.store), self.bucket);
        // Data on disk has to be read, and perhaps deleted.
        let is_quick = bytes <= AT_ONCE_BYTES_MAX && store.disk_bytes() == 0;
        let work = move || bodies.iter().try_for_each(|bodies| store.bodies(bucket, bodies));
        if is_quick { work() } else { self.env.bulk(Bulk::AtOnce, work).await }
    }

    /// Rolls a transaction back to an earlier place.
    pub(super) async fn back_to(&self, id: TransactionId, to: TransactionPlace) -> Result<()> {
        let (store, bucket) = (Arc::clone(&self.store), self.bucket);
        // The rest of the transaction is rewritten, and may be large.
        self.env.blocking(move || store.back_to(bucket, id, to)).await
    }

    /// Begins to write the rows of a transaction whose commit has begun, in the background, so that
    /// little work remains at its epoch.
    pub(super) fn prepare(&self, id: TransactionId, last: TransactionPlace) {
        self.engine.prepare_commit(self.bucket, id, last);
    }

    /// Keeps a committed transaction until its epoch is applied. `DropData` unless the node has all
    /// of its changes.
    pub(super) fn keep_committed(&self, marker: &CommitMarker) -> Result<()> {
        self.store.keep_committed(self.bucket, marker)
    }

    /// Drops transactions that have ended.
    pub(super) fn end(&self, ended: &[TransactionId]) {
        self.store.end(self.bucket, ended);
    }
}

impl Drop for OpenTransactions {
    fn drop(&mut self) {
        self.store.drop_bucket(self.bucket);
    }
}
