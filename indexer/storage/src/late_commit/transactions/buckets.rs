//! The open transactions of each bucket.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use proto::lock::lock;
use proto::model::ids::{BucketId, LocalIndexId, SliceNo, TransactionId};
use proto::model::index::IndexInfo;
use proto::plant::{self, Plant};
use proto::rpc::scan::OwnView;
use proto::{Error, ErrorCode, Result};

use crate::late_commit::transactions::open::OpenTransaction;

/// Number of ended transactions that are remembered for each bucket, so that their scans end at
/// once. Scans of older transactions end with a time-out.
const ENDED_MAX: usize = 1 << 10;

/// The open transactions of each bucket that the node follows.
#[derive(Default)]
pub struct Buckets(Mutex<BTreeMap<BucketId, BucketTransactions>>);

/// The open transactions of a bucket.
#[derive(Default)]
pub struct BucketTransactions {
    /// The indexes that the bucket's stream carries, and the slices of each.
    pub indexes: BTreeMap<LocalIndexId, (Arc<IndexInfo>, BTreeSet<SliceNo>)>,
    /// The open transactions.
    pub open: BTreeMap<TransactionId, Arc<OpenTransaction>>,
    /// The transactions whose commit waits for its epoch. Some of them are among the open
    /// transactions too.
    pub committed: BTreeMap<TransactionId, Arc<OpenTransaction>>,
    /// The transactions that ended most recently, oldest first.
    ended: VecDeque<TransactionId>,
}

impl Buckets {
    /// Locks the buckets. Values that may own files must not be dropped under this lock, which
    /// views take too.
    pub fn lock(&self) -> MutexGuard<'_, BTreeMap<BucketId, BucketTransactions>> {
        lock(&self.0)
    }

    /// Returns the open transactions of all buckets, in the order of buckets and numbers, and the
    /// committed ones that wait for their epoch.
    pub fn open(&self) -> Vec<Arc<OpenTransaction>> {
        let of = |bucket: &BucketTransactions| -> Vec<_> {
            bucket.open.values().chain(bucket.committed.values()).cloned().collect()
        };
        self.lock().values().flat_map(of).collect()
    }

    /// Returns a transaction of a bucket; `None` if the store does not have it.
    pub fn get(&self, bucket: BucketId, id: TransactionId) -> Option<Arc<OpenTransaction>> {
        self.lock().get(&bucket).and_then(|of| of.open.get(&id)).cloned()
    }

    /// Removes a transaction and returns it.
    pub fn remove(&self, bucket: BucketId, id: TransactionId) -> Option<Arc<OpenTransaction>> {
        self.lock().get_mut(&bucket).and_then(|of| of.open.remove(&id))
    }
}

impl BucketTransactions {
    /// Returns the transaction of a view; `None` if the store does not have it. `SnapshotTooOld` if
    /// it has ended.
    pub fn find(&self, own: OwnView) -> Result<Option<&Arc<OpenTransaction>>> {
        if self.ended.contains(&own.transaction) {
            let text = format!("transaction {} has ended", own.transaction);
            return Err(Error::new(ErrorCode::SnapshotTooOld, text)
                .with_hint("begin the scan anew, in another transaction"));
        }
        if plant::is(Plant::OwnViewLeaks) {
            return Ok(self.open.values().next());
        }
        Ok(self.open.get(&own.transaction))
    }

    /// Begins a transaction, or restarts it; returns its previous state.
    pub fn begin(
        &mut self,
        id: TransactionId,
        begun: OpenTransaction,
    ) -> Option<Arc<OpenTransaction>> {
        self.ended.retain(|ended| *ended != id);
        self.open.insert(id, Arc::new(begun))
    }

    /// Makes all rows written ahead of commits void. These commits are written at their epochs.
    pub fn void_preparations(&self) {
        let all = self.open.values().chain(self.committed.values());
        all.for_each(|transaction| transaction.preparation().void());
    }

    /// Removes transactions that have ended, and returns them.
    pub fn end(&mut self, transactions: &[TransactionId]) -> Vec<Arc<OpenTransaction>> {
        let mut dropped = Vec::new();
        for id in transactions {
            let ended = self.open.remove(id);
            if let Some(ended) = ended.as_ref().filter(|_| !self.committed.contains_key(id)) {
                ended.preparation().void();
            }
            dropped.extend(ended);
            self.ended.push_back(*id);
        }
        let too_many = self.ended.len().saturating_sub(ENDED_MAX);
        self.ended.drain(..too_many);
        dropped
    }

    /// The number of ended transactions that are remembered.
    #[cfg(test)]
    pub fn ended(&self) -> usize {
        self.ended.len()
    }
}
