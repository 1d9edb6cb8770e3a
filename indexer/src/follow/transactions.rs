//! Passes the changes of open transactions from the bucket's stream to the late-commit store of the
//! node, which keeps them until the commit. A rollback to a savepoint runs inside the follower's
//! loop.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto::Result;
use proto::env::{Bulk, Env};
use proto::model::ids::{BucketId, LocalIndexId, SliceNo, TransactionId, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::rpc::mutation::{CommitMarker, UncommittedChanges};
use storage::{LateCommitStore, StorageEngine};

use crate::context::NodeContext;

/// The size, in bytes, up to which changes are added on the follower's thread. A hop to a
/// blocking thread and back would cost more than the delay of other tasks.
const AT_ONCE_BYTES_MAX: usize = 4 << 10;

/// The open transactions of one bucket, in the node's late-commit store. A drop of this value
/// drops their changes, because the node no longer follows the bucket.
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

    /// Drops all transactions of the bucket, because a new stream will send them again or the
    /// bucket is rolled back.
    pub(super) fn drop_all(&self) {
        self.store.drop_transactions(self.bucket);
    }

    /// Records the slices of an index whose mutations the stream carries from now on.
    pub(super) fn join(&self, index: &Arc<IndexInfo>, slices: BTreeSet<SliceNo>) {
        self.store.carry_index(index, slices);
    }

    /// Drops the transactions' changes of an index whose mutations the stream does not carry any
    /// more.
    pub(super) fn leave(&self, index: LocalIndexId) {
        self.store.stop_carrying_index(self.bucket, index);
    }

    /// Adds changes of transactions to the store, after a wait for free memory.
    pub(super) async fn add_changes(&self, bodies: Vec<UncommittedChanges>) -> Result<()> {
        let bytes: usize = bodies.iter().map(UncommittedChanges::bytes).sum();
        self.store.wait_for_memory(bytes as u64).await;
        let (store, bucket) = (Arc::clone(&self.store), self.bucket);
        // Data on disk has to be read, and perhaps deleted.
        let is_quick = bytes <= AT_ONCE_BYTES_MAX && store.disk_bytes() == 0;
        let work = move || bodies.iter().try_for_each(|bodies| store.add_changes(bucket, bodies));
        if is_quick { work() } else { self.env.bulk(Bulk::AtOnce, work).await }
    }

    /// Rolls a transaction back to an earlier place in it (a savepoint).
    pub(super) async fn roll_back_to(&self, id: TransactionId, to: TransactionPlace) -> Result<()> {
        let (store, bucket) = (Arc::clone(&self.store), self.bucket);
        // The rest of the transaction is rewritten, and may be large.
        self.env.blocking(move || store.roll_back(bucket, id, to)).await
    }

    /// Begins to write the rows of a transaction whose commit has begun. The work is done in the
    /// background, so that little remains when the epoch is applied.
    pub(super) fn prepare(&self, id: TransactionId, last: TransactionPlace) {
        self.engine.prepare_commit(self.bucket, id, last);
    }

    /// Keeps a committed transaction until its epoch is applied. Returns the error `DropData` if
    /// the node lacks some of its changes.
    pub(super) fn keep_committed(&self, marker: &CommitMarker) -> Result<()> {
        self.store.keep_committed(self.bucket, marker)
    }

    /// Drops transactions that have ended.
    pub(super) fn end(&self, ended: &[TransactionId]) {
        self.store.end_transactions(self.bucket, ended);
    }
}

impl Drop for OpenTransactions {
    fn drop(&mut self) {
        self.store.drop_bucket(self.bucket);
    }
}
