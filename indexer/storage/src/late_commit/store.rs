//! The late-commit store of a node: has the changes of open transactions, and creates the
//! snapshots that show a transaction its changes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::env::Env;
use proto::model::ids::{BucketId, LocalIndexId, SliceNo, TransactionId, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::plant::{self, Plant};
use proto::rpc::mutation::UncommittedChanges;
use proto::rpc::scan::UncommittedView;
use proto::{Error, ErrorCode, Result};
use serde::Serialize;
use tokio::sync::watch;

use crate::files::data_files::DataFiles;
use crate::late_commit::changes::own_view::TransactionSnapshot;
use crate::late_commit::changes::usage::{Limits, Usage};
use crate::late_commit::transactions::buckets::{BucketTransactions, Buckets};
use crate::late_commit::transactions::open::{GivenUp, OpenTransaction, VisibleChanges};
use crate::late_commit::transactions::spiller::Spiller;
use crate::options::StoreOptions;
use crate::read::snapshot::Snapshot;

/// The longest time that a stream waits for free memory. If writing changes to disk takes longer,
/// the disk is too slow for the stream.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The changes of a node's open transactions. The stream of each bucket adds changes to the
/// transactions of the bucket, one message after another.
pub struct LateCommitStore {
    pub(super) usage: Arc<Usage>,
    pub(super) buckets: Arc<Buckets>,
    pub(super) spiller: Arc<Spiller>,
    /// The maximum number of bytes that the cursors of one walk over changes on disk use.
    walk_bytes: usize,
    /// Locked while a commit is written ahead of its epoch.
    pub(super) preparing: Mutex<()>,
    /// Incremented whenever a transaction gets more changes, is rolled back, or ends.
    changed: watch::Sender<u64>,
}

/// Counters of a node's late-commit store, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LateCommitCounters {
    /// Number of open transactions.
    pub open: u64,
    /// Size in memory of the transactions' changes, in bytes.
    pub bytes: u64,
    /// Size on disk of the transactions' changes, in bytes.
    pub disk_bytes: u64,
    /// Number of times that changes of a transaction were written to disk since the process has
    /// started.
    pub spilled: u64,
    /// Number of transactions whose changes were dropped, because of a limit or a disk error,
    /// since the process has started. A transaction that a new stream sends again may be counted
    /// again.
    pub given_up: u64,
    /// Number of transactions whose rows were added to the indexes from the store at their commit,
    /// since the process has started.
    pub entered: u64,
    /// Number of those transactions in `entered` whose rows were written ahead of their epoch.
    pub entered_prepared: u64,
    /// Number of commits whose rows are being written ahead of their epoch, or were written and
    /// wait for it.
    pub prepared: u64,
}

/// Returns the error of a scan that needs changes of a transaction which the node has not received
/// yet.
pub fn place_not_reached(own: UncommittedView) -> Error {
    let UncommittedView { transaction, place } = own;
    Error::unavailable(format!(
        "place {place} of transaction {transaction} is not on this node yet"
    ))
    .with_hint("try again; the node waits for the stream of the bucket's projector")
}

impl LateCommitStore {
    /// Creates a store without transactions, which writes changes to disk among the files of a
    /// node. The counter `memory` receives its memory use in bytes.
    pub fn new(
        env: &Env,
        files: &Arc<DataFiles>,
        options: &StoreOptions,
        memory: Arc<AtomicU64>,
    ) -> Self {
        let limits = Limits {
            memory_bytes: options.open_transactions_bytes(),
            disk_bytes: options.open_transactions_disk_bytes(),
        };
        let usage = Arc::new(Usage { memory, ..Usage::default() });
        let buckets = Arc::new(Buckets::default());
        let spiller = Arc::new(Spiller::new(env, files, limits, &usage, &buckets));
        let (walk_bytes, changed) = (options.walk_bytes(), watch::Sender::new(0));
        Self { usage, buckets, spiller, walk_bytes, preparing: Mutex::default(), changed }
    }

    /// Returns the memory use of all transactions, in bytes.
    pub fn bytes(&self) -> u64 {
        self.usage.memory_bytes()
    }

    /// Returns the size of all transactions on disk in bytes, including files that only an open
    /// view still reads.
    pub fn disk_bytes(&self) -> u64 {
        self.usage.disk_bytes()
    }

    /// Returns the number of open transactions.
    pub fn open(&self) -> usize {
        self.buckets.lock().values().map(|bucket| bucket.open.len()).sum()
    }

    /// Returns the number of times that changes were written to disk since the start.
    pub fn pieces_written(&self) -> u64 {
        self.usage.pieces.load(Ordering::Relaxed)
    }

    /// Returns the number of transactions whose changes were dropped, because of a limit or a disk
    /// error, since the start.
    pub fn given_up(&self) -> u64 {
        self.usage.given_up.load(Ordering::Relaxed)
    }

    /// Returns the counters of the store.
    pub fn counters(&self) -> LateCommitCounters {
        LateCommitCounters {
            open: self.open() as u64,
            bytes: self.bytes(),
            disk_bytes: self.disk_bytes(),
            spilled: self.pieces_written(),
            given_up: self.given_up(),
            entered: self.usage.entered.load(Ordering::Relaxed),
            entered_prepared: self.usage.entered_prepared.load(Ordering::Relaxed),
            prepared: self.usage.prepared.load(Ordering::Relaxed),
        }
    }

    /// Drops the transactions of a bucket and its list of indexes, because a new stream will send
    /// them again, or the bucket is rolled back.
    pub fn drop_transactions(&self, bucket: BucketId) {
        let forgotten = {
            let mut buckets = self.buckets.lock();
            let of = buckets.entry(bucket).or_default();
            of.indexes.clear();
            of.void_preparations();
            (std::mem::take(&mut of.open), std::mem::take(&mut of.committed))
        };
        self.spiller.drop_off_thread(forgotten);
    }

    /// Drops all data of a bucket, including the list of ended transactions: the node no longer
    /// follows the bucket.
    pub fn drop_bucket(&self, bucket: BucketId) {
        let dropped = self.buckets.lock().remove(&bucket);
        dropped.iter().for_each(BucketTransactions::void_preparations);
        self.spiller.drop_off_thread(dropped);
    }

    /// Records that the bucket's stream carries these slices of an index from now on. The stored
    /// changes of open transactions lack a new slice: if there is one, all are dropped, and the
    /// stream sends them again.
    pub fn carry_index(&self, info: &Arc<IndexInfo>, slices: BTreeSet<SliceNo>) {
        let forgotten = {
            let mut buckets = self.buckets.lock();
            let bucket = buckets.entry(info.bucket).or_default();
            let before = bucket.indexes.insert(info.local_id(), (Arc::clone(info), slices.clone()));
            let had = before.map(|(_, had)| had).unwrap_or_default();
            let lacks = !slices.is_subset(&had) && !plant::is(Plant::BodyLostAtJoin);
            lacks.then(|| {
                bucket.void_preparations();
                std::mem::take(&mut bucket.open)
            })
        };
        self.spiller.drop_off_thread(forgotten);
    }

    /// Records that the stream of a bucket no longer carries an index, and drops the transactions'
    /// changes in this index.
    pub fn stop_carrying_index(&self, bucket: BucketId, index: LocalIndexId) {
        let open: Vec<_> = {
            let mut buckets = self.buckets.lock();
            let Some(of) = buckets.get_mut(&bucket) else { return };
            of.indexes.remove(&index);
            of.open.values().chain(of.committed.values()).cloned().collect()
        };
        let parts: Vec<_> =
            open.iter().filter_map(|transaction| transaction.remove_index(index)).collect();
        // The rows that were written ahead are in files of the index.
        open.iter().for_each(|transaction| transaction.preparation().invalidate());
        self.spiller.drop_off_thread(parts);
    }

    /// Waits, for at most `WAIT_MAX`, until changes of `bytes` bytes fit in memory. Writing other
    /// changes to disk may free memory meanwhile.
    pub async fn wait_for_memory(&self, bytes: u64) {
        self.spiller.wait_for_memory(bytes, WAIT_MAX).await;
    }

    /// Adds changes to a transaction. Changes from place zero restart the transaction. Others must
    /// continue after its last change, or the error is `DropData`. After an error the transaction
    /// is removed from the store. Reads files if some changes are on disk.
    pub fn add_changes(&self, bucket: BucketId, bodies: &UncommittedChanges) -> Result<()> {
        let id = bodies.transaction;
        let (transaction, indexes, before) = {
            let mut buckets = self.buckets.lock();
            let of = buckets.get_mut(&bucket).ok_or_else(|| unknown_transaction(bodies))?;
            let before = (bodies.from == TransactionPlace(0))
                .then(|| of.begin(id, OpenTransaction::new(id, Arc::clone(&self.usage))));
            let transaction =
                of.open.get(&id).cloned().ok_or_else(|| unknown_transaction(bodies))?;
            let infos = of.indexes.iter().map(|(index, (info, _))| (*index, Arc::clone(info)));
            (transaction, infos.collect(), before)
        };
        self.spiller.drop_off_thread(before);
        // Without the lock, which views take.
        self.free_memory(&transaction, bodies.body.len() as u64);
        let taken = transaction.add_changes(bodies, &indexes);
        if taken.is_err() {
            self.spiller.drop_off_thread(self.buckets.remove(bucket, id));
        }
        drop(transaction);
        self.changed.send_modify(|count| *count += 1);
        self.spiller.start(0);
        taken
    }

    /// Drops the changes of transactions until `bytes` more bytes fit in memory, if the wait in
    /// [`Self::room`] was not enough.
    fn free_memory(&self, transaction: &OpenTransaction, bytes: u64) {
        if bytes > self.spiller.limits().memory_bytes {
            // No part of it is being written, and no other transaction makes room for it.
            transaction.give_up(GivenUp::Memory);
            return;
        }
        while !self.spiller.has_memory_for(bytes) && self.spiller.give_up_largest(GivenUp::Memory) {
        }
    }

    /// Undoes the changes of a transaction after the place `to`. Does nothing if the transaction
    /// is not in the store.
    pub fn roll_back(
        &self,
        bucket: BucketId,
        id: TransactionId,
        to: TransactionPlace,
    ) -> Result<()> {
        let transaction = self.buckets.get(bucket, id);
        let back = transaction.map_or(Ok(()), |transaction| transaction.roll_back(to));
        if back.is_err() {
            self.spiller.drop_off_thread(self.buckets.remove(bucket, id));
        }
        self.changed.send_modify(|count| *count += 1);
        back
    }

    /// Removes transactions that have ended.
    pub fn end_transactions(&self, bucket: BucketId, transactions: &[TransactionId]) {
        let ended = self.buckets.lock().get_mut(&bucket).map(|of| of.end(transactions));
        self.spiller.drop_off_thread(ended);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Returns true if the node has the transaction's changes up to the place of `own`.
    /// `SnapshotTooOld` if the transaction has ended, or if a rollback has undone the change at
    /// that place.
    fn has_reached(&self, bucket: BucketId, own: UncommittedView) -> Result<bool> {
        if own.place == TransactionPlace(0) {
            return Ok(true);
        }
        let buckets = self.buckets.lock();
        let Some(of) = buckets.get(&bucket) else { return Ok(false) };
        let Some(transaction) = of.find(own)? else { return Ok(false) };
        Ok(!matches!(transaction.changes_for_view(own, None)?, VisibleChanges::NotYet))
    }

    /// Waits until the node has a transaction's changes up to the place of `own`, also if the
    /// transaction is not in the store yet.
    pub async fn wait(&self, bucket: BucketId, own: UncommittedView) -> Result<()> {
        let mut changed = self.changed.subscribe();
        while !self.has_reached(bucket, own)? {
            changed.changed().await.map_err(|_| Error::unavailable("the indexer stops"))?;
        }
        Ok(())
    }

    /// Returns a snapshot that merges a transaction's rows, up to the place of `own`, over `base`.
    /// `Unavailable` if the node lacks some of these changes, `OverLimit` if the transaction's
    /// changes were dropped because of a limit or a disk error.
    pub fn transaction_snapshot(
        &self,
        base: Arc<dyn Snapshot>,
        own: UncommittedView,
    ) -> Result<Arc<dyn Snapshot>> {
        if own.place == TransactionPlace(0) {
            return Ok(base);
        }
        let (bucket, index) = (base.info().bucket, base.info().local_id());
        let transaction = {
            let buckets = self.buckets.lock();
            let of = buckets.get(&bucket).filter(|of| of.indexes.contains_key(&index));
            let found = of.map(|of| of.find(own)).transpose()?.flatten();
            Arc::clone(found.ok_or_else(|| place_not_reached(own))?)
        };
        match transaction.changes_for_view(own, Some(index))? {
            VisibleChanges::NotYet => Err(place_not_reached(own)),
            VisibleChanges::GivenUp(why) => Err(self.given_up_error(own.transaction, why)),
            VisibleChanges::Part(None) => Ok(base),
            VisibleChanges::Part(Some(part)) => {
                let behind = u64::from(plant::is(Plant::OwnViewBehind));
                let place = TransactionPlace(own.place.0 - behind);
                Ok(Arc::new(TransactionSnapshot::new(base, part, place, self.walk_bytes)))
            }
        }
    }

    /// Returns the error of a scan whose transaction's changes were dropped for the reason `why`.
    fn given_up_error(&self, transaction: TransactionId, why: GivenUp) -> Error {
        let Limits { memory_bytes, disk_bytes } = self.spiller.limits();
        let (cause, hint) = match why {
            GivenUp::Memory => (
                format!("the open transactions of this node exceed {memory_bytes} bytes"),
                "an eighth of memory_mb is for open transactions: raise memory_mb, or commit more often",
            ),
            GivenUp::Disk => (
                format!("the open transactions of this node exceed {disk_bytes} bytes on disk"),
                "twice memory_mb on disk is for open transactions: raise memory_mb, or commit more often",
            ),
            GivenUp::DiskFailed => (
                "this node could not write them to its disk, or not read them there".into(),
                "the node's log has the error, a full disk most likely; a commit still works",
            ),
        };
        let text = format!(
            "the changes of transaction {transaction} cannot be read before its commit: {cause}"
        );
        Error::new(ErrorCode::OverLimit, text).with_hint(hint)
    }
}

/// Returns the error of changes that continue a transaction which is not in the store.
fn unknown_transaction(bodies: &UncommittedChanges) -> Error {
    let UncommittedChanges { transaction, from, .. } = bodies;
    let text = format!("the changes of transaction {transaction} up to place {from} are not here");
    Error::new(ErrorCode::DropData, text)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
