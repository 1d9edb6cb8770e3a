//! The store of a node: the open transactions of each bucket.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::ids::{BucketId, LocalIndexId, SliceNo, TransactionId, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::rpc::mutation::TransactionBodies;
use proto::rpc::scan::OwnView;
use proto::{Error, ErrorCode, Result};
use tokio::sync::watch;

use crate::late_commit::own_view::OwnSnapshot;
use crate::late_commit::transaction::{OpenTransaction, Seen};
use crate::read::snapshot::Snapshot;

/// Ended transactions that are remembered for each bucket, so that their scans end at once. Of others, scans wait for their
/// time-out.
const ENDED_MAX: usize = 1 << 10;

/// The open transactions of a node. The stream of each bucket changes those of the bucket, one message after another.
pub struct LateCommitStore {
    /// Limit of all transactions together.
    bytes_max: u64,
    /// Bytes of all transactions.
    bytes: Arc<AtomicU64>,
    buckets: Mutex<BTreeMap<BucketId, BucketTransactions>>,
    /// Counts changes of places.
    changed: watch::Sender<u64>,
}

/// The open transactions of a bucket.
#[derive(Default)]
struct BucketTransactions {
    /// The indexes that the bucket's stream carries, and the slices of each.
    indexes: BTreeMap<LocalIndexId, (Arc<IndexInfo>, BTreeSet<SliceNo>)>,
    open: BTreeMap<TransactionId, Arc<OpenTransaction>>,
    /// The last ones that have ended, oldest first.
    ended: VecDeque<TransactionId>,
}

impl BucketTransactions {
    fn find(&self, own: OwnView) -> Result<Option<&Arc<OpenTransaction>>> {
        if self.ended.contains(&own.transaction) {
            let text = format!("transaction {} has ended", own.transaction);
            return Err(Error::new(ErrorCode::SnapshotTooOld, text)
                .with_hint("begin the scan anew, in another transaction"));
        }
        Ok(self.open.get(&own.transaction))
    }
}

/// The error of a view whose place the node has not come to.
pub fn not_there(own: OwnView) -> Error {
    let OwnView { transaction, place } = own;
    Error::unavailable(format!(
        "place {place} of transaction {transaction} is not on this node yet"
    ))
    .with_hint("try again; the node waits for the stream of the bucket's projector")
}

impl LateCommitStore {
    /// A store without transactions. `bytes` counts what it holds, up to `bytes_max` and the changes of one message.
    pub fn new(bytes_max: u64, bytes: Arc<AtomicU64>) -> Self {
        let (buckets, changed) = (Mutex::default(), watch::Sender::new(0));
        Self { bytes_max, bytes, buckets, changed }
    }

    /// Bytes of all transactions.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The number of open transactions.
    pub fn open(&self) -> usize {
        lock(&self.buckets).values().map(|bucket| bucket.open.len()).sum()
    }

    /// Forgets the transactions and indexes of a bucket: a stream begins, which brings them anew, or the bucket is dropped or
    /// rolled back.
    pub fn forget(&self, bucket: BucketId) {
        let forgotten = lock(&self.buckets).get_mut(&bucket).map(|of| {
            of.indexes.clear();
            std::mem::take(&mut of.open)
        });
        drop(forgotten);
    }

    /// The stream of the index's bucket carries these slices of an index from now on. If any of them is new, what is here of
    /// open transactions lacks it: it is forgotten, and the stream brings it anew.
    pub fn join(&self, info: &Arc<IndexInfo>, slices: BTreeSet<SliceNo>) {
        let mut buckets = lock(&self.buckets);
        let bucket = buckets.entry(info.bucket).or_default();
        let before = bucket.indexes.insert(info.local_id(), (Arc::clone(info), slices.clone()));
        let had = before.map(|(_, had)| had).unwrap_or_default();
        let forgotten = (!slices.is_subset(&had)).then(|| std::mem::take(&mut bucket.open));
        drop(buckets);
        drop(forgotten);
    }

    /// The stream of a bucket does not carry an index any more.
    pub fn leave(&self, bucket: BucketId, index: LocalIndexId) {
        let mut buckets = lock(&self.buckets);
        let Some(of) = buckets.get_mut(&bucket) else { return };
        of.indexes.remove(&index);
        let open: Vec<_> = of.open.values().cloned().collect();
        drop(buckets);
        open.iter().for_each(|transaction| transaction.leave(index));
    }

    /// Takes changes of a transaction. Changes from place zero begin it anew; others must continue at its place, or the error is
    /// `DropData`. After an error the transaction is forgotten.
    pub fn bodies(&self, bucket: BucketId, bodies: &TransactionBodies) -> Result<()> {
        let id = bodies.transaction;
        let (transaction, indexes) = {
            let mut buckets = lock(&self.buckets);
            let of = buckets.entry(bucket).or_default();
            if bodies.from == TransactionPlace(0) {
                of.ended.retain(|ended| *ended != id);
                let begun = OpenTransaction::new(id, Arc::clone(&self.bytes));
                of.open.insert(id, Arc::new(begun));
            }
            let Some(transaction) = of.open.get(&id).cloned() else {
                let text = format!(
                    "the changes of transaction {id} up to place {} are not here",
                    bodies.from
                );
                return Err(Error::new(ErrorCode::DropData, text));
            };
            let info =
                |(id, (info, _)): (&LocalIndexId, &(Arc<IndexInfo>, _))| (*id, Arc::clone(info));
            (transaction, of.indexes.iter().map(info).collect())
        };
        // Without the lock, which views take.
        let taken = transaction.take(bodies, &indexes, self.bytes_max);
        if taken.is_err() {
            self.remove(bucket, id);
        }
        self.changed.send_modify(|count| *count += 1);
        taken
    }

    /// Takes a transaction back to an earlier place. One that is not here has nothing to take back.
    pub fn back_to(&self, bucket: BucketId, id: TransactionId, to: TransactionPlace) -> Result<()> {
        let buckets = lock(&self.buckets);
        let transaction = buckets.get(&bucket).and_then(|of| of.open.get(&id)).cloned();
        drop(buckets);
        let back = transaction.map_or(Ok(()), |transaction| transaction.go_back(to));
        if back.is_err() {
            self.remove(bucket, id);
        }
        self.changed.send_modify(|count| *count += 1);
        back
    }

    /// Drops transactions that have ended.
    pub fn end(&self, bucket: BucketId, transactions: &[TransactionId]) {
        let mut buckets = lock(&self.buckets);
        let of = buckets.entry(bucket).or_default();
        let mut dropped = Vec::new();
        for id in transactions {
            dropped.extend(of.open.remove(id));
            of.ended.push_back(*id);
        }
        let too_many = of.ended.len().saturating_sub(ENDED_MAX);
        of.ended.drain(..too_many);
        drop(buckets);
        self.changed.send_modify(|count| *count += 1);
    }

    fn remove(&self, bucket: BucketId, id: TransactionId) {
        let removed = lock(&self.buckets).get_mut(&bucket).and_then(|of| of.open.remove(&id));
        drop(removed);
    }

    /// True if the node has come to the place of a view. `SnapshotTooOld` if the transaction has ended or was rolled back from
    /// there.
    fn has_come_to(&self, bucket: BucketId, own: OwnView) -> Result<bool> {
        if own.place == TransactionPlace(0) {
            return Ok(true);
        }
        let buckets = lock(&self.buckets);
        let Some(of) = buckets.get(&bucket) else { return Ok(false) };
        let Some(transaction) = of.find(own)? else { return Ok(false) };
        Ok(!matches!(transaction.seen(own, None)?, Seen::NotYet))
    }

    /// Waits until the node has come to the place of a view, also in a transaction that it does not know yet.
    pub async fn wait(&self, bucket: BucketId, own: OwnView) -> Result<()> {
        let mut changed = self.changed.subscribe();
        while !self.has_come_to(bucket, own)? {
            changed.changed().await.map_err(|_| Error::unavailable("the indexer stops"))?;
        }
        Ok(())
    }

    /// Merges a transaction's rows, as of the place of its view, over a snapshot of an epoch. `Unavailable` if the node has not
    /// come to the place, `OverLimit` if the transaction was given up.
    pub fn own_view(&self, base: Arc<dyn Snapshot>, own: OwnView) -> Result<Arc<dyn Snapshot>> {
        if own.place == TransactionPlace(0) {
            return Ok(base);
        }
        let (bucket, index) = (base.info().bucket, base.info().local_id());
        let transaction = {
            let buckets = lock(&self.buckets);
            let of = buckets.get(&bucket).filter(|of| of.indexes.contains_key(&index));
            let found = of.map(|of| of.find(own)).transpose()?.flatten();
            Arc::clone(found.ok_or_else(|| not_there(own))?)
        };
        match transaction.seen(own, Some(index))? {
            Seen::NotYet => Err(not_there(own)),
            Seen::GivenUp => Err(self.given_up(own.transaction)),
            Seen::Part(None) => Ok(base),
            Seen::Part(Some(part)) => Ok(Arc::new(OwnSnapshot::new(base, part, own.place))),
        }
    }

    fn given_up(&self, transaction: TransactionId) -> Error {
        let text = format!(
            "the changes of transaction {transaction} cannot be read before its commit: the open \
             transactions of this node exceed {} bytes",
            self.bytes_max
        );
        let hint = "an eighth of memory_mb is for open transactions: raise memory_mb, or commit more often";
        Error::new(ErrorCode::OverLimit, text).with_hint(hint)
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
