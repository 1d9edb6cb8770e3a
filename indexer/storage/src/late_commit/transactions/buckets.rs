//! The open transactions of each bucket.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use proto::lock::lock;
use proto::model::ids::{BucketId, LocalIndexId, SliceNo, TransactionId};
use proto::model::index::IndexInfo;
use proto::plant::{self, Plant};
use proto::rpc::scan::UncommittedView;
use proto::{Error, ErrorCode, Result};

use crate::late_commit::transactions::open::OpenTransaction;

/// Number of ended transactions that are remembered for each bucket, so that their scans fail at
/// once. Scans of transactions that ended earlier wait until their time-out.
const ENDED_MAX: usize = 1 << 10;

/// The open transactions of each bucket that the node follows.
#[derive(Default)]
pub struct Buckets(Mutex<BTreeMap<BucketId, BucketTransactions>>);

/// The open transactions of a bucket, and the slices that its stream carries.
#[derive(Default)]
pub struct BucketTransactions {
    /// The indexes that the bucket's stream carries, and the slices of each.
    pub indexes: BTreeMap<LocalIndexId, (Arc<IndexInfo>, BTreeSet<SliceNo>)>,
    /// The open transactions.
    pub open: BTreeMap<TransactionId, Arc<OpenTransaction>>,
    /// The committed transactions that wait for the epoch of their commit. Some of them are among
    /// the open transactions too.
    pub committed: BTreeMap<TransactionId, Arc<OpenTransaction>>,
    /// The numbers of the transactions that ended most recently, oldest first.
    ended: VecDeque<TransactionId>,
}

impl Buckets {
    /// Locks the buckets. The creation of an own view takes this lock too, so a value that may own
    /// files must not be dropped under it.
    pub fn lock(&self) -> MutexGuard<'_, BTreeMap<BucketId, BucketTransactions>> {
        lock(&self.0)
    }

    /// Returns the open transactions of all buckets, and the committed transactions that wait for
    /// their epoch, in the order of buckets.
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
    /// Returns the transaction whose changes a scan reads; `None` if the store does not have it.
    /// `SnapshotTooOld` if the transaction has ended.
    pub fn find(&self, own: UncommittedView) -> Result<Option<&Arc<OpenTransaction>>> {
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

    /// Begins a transaction, or restarts it. Returns the transaction that the new one replaces.
    pub fn begin(
        &mut self,
        id: TransactionId,
        begun: OpenTransaction,
    ) -> Option<Arc<OpenTransaction>> {
        self.ended.retain(|ended| *ended != id);
        self.open.insert(id, Arc::new(begun))
    }

    /// Forbids the use of all rows that were written ahead of commits. These commits are written
    /// again when their epochs are applied.
    pub fn void_preparations(&self) {
        let all = self.open.values().chain(self.committed.values());
        all.for_each(|transaction| transaction.preparation().invalidate());
    }

    /// Removes transactions that have ended, and returns them.
    pub fn end(&mut self, transactions: &[TransactionId]) -> Vec<Arc<OpenTransaction>> {
        let mut dropped = Vec::new();
        for id in transactions {
            let ended = self.open.remove(id);
            if let Some(ended) = ended.as_ref().filter(|_| !self.committed.contains_key(id)) {
                ended.preparation().invalidate();
            }
            dropped.extend(ended);
            self.ended.push_back(*id);
        }
        let too_many = self.ended.len().saturating_sub(ENDED_MAX);
        self.ended.drain(..too_many);
        dropped
    }

    /// Returns the number of ended transactions that are remembered.
    #[cfg(test)]
    pub fn ended(&self) -> usize {
        self.ended.len()
    }
}
