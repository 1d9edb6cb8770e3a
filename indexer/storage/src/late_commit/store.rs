//! The late-commit store of a node: keeps the changes of open transactions, and creates their own
//! views.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::env::Env;
use proto::model::ids::{BucketId, LocalIndexId, SliceNo, TransactionId, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::plant::{self, Plant};
use proto::rpc::mutation::TransactionBodies;
use proto::rpc::scan::OwnView;
use proto::{Error, ErrorCode, Result};
use serde::Serialize;
use tokio::sync::watch;

use crate::files::data_files::DataFiles;
use crate::late_commit::changes::own_view::OwnSnapshot;
use crate::late_commit::changes::usage::{Limits, Usage};
use crate::late_commit::transactions::buckets::{BucketTransactions, Buckets};
use crate::late_commit::transactions::open::{GivenUp, OpenTransaction, TransactionPart};
use crate::late_commit::transactions::spiller::Spiller;
use crate::options::StoreOptions;
use crate::read::snapshot::Snapshot;

/// The longest time that a stream waits for room. If a spill takes longer, the disk is too slow for
/// the stream.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The open transactions of a node. The stream of each bucket changes those of the bucket, one message after another.
pub struct LateCommitStore {
    pub(super) usage: Arc<Usage>,
    pub(super) buckets: Arc<Buckets>,
    pub(super) spiller: Arc<Spiller>,
    /// The maximum of bytes that the cursors of one walk over spilled pieces use.
    walk_bytes: usize,
    /// Locked while a commit is written ahead of its epoch.
    pub(super) preparing: Mutex<()>,
    /// Incremented at each change of a transaction's place.
    changed: watch::Sender<u64>,
}

/// The figures of a node's late-commit store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LateCommitFigures {
    /// Open transactions.
    pub open: u64,
    /// Bytes of their changes in memory.
    pub bytes: u64,
    /// Bytes of their changes on disk.
    pub disk_bytes: u64,
    /// Pieces that were spilled since the process has started.
    pub spilled: u64,
    /// Transactions that were given up since the process has started. A transaction that a new
    /// stream sends again may be counted again.
    pub given_up: u64,
    /// Transactions whose commit has entered the indexes from the store since the process has started.
    pub entered: u64,
    /// Transactions among these whose rows were written ahead of their epoch.
    pub entered_prepared: u64,
    /// Commits that are being written ahead of their epoch, or wait for it.
    pub prepared: u64,
}

/// The error of a view whose place the node has not reached yet.
pub fn not_there(own: OwnView) -> Error {
    let OwnView { transaction, place } = own;
    Error::unavailable(format!(
        "place {place} of transaction {transaction} is not on this node yet"
    ))
    .with_hint("try again; the node waits for the stream of the bucket's projector")
}

impl LateCommitStore {
    /// A store without transactions, which spills into the files of a node. `memory` counts its bytes in memory.
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

    /// Bytes of all transactions in memory.
    pub fn bytes(&self) -> u64 {
        self.usage.memory_bytes()
    }

    /// Returns the size of all transactions on disk, in bytes, including files that only a view
    /// still reads.
    pub fn disk_bytes(&self) -> u64 {
        self.usage.disk_bytes()
    }

    /// The number of open transactions.
    pub fn open(&self) -> usize {
        self.buckets.lock().values().map(|bucket| bucket.open.len()).sum()
    }

    /// The number of pieces that were spilled since the start.
    pub fn pieces_written(&self) -> u64 {
        self.usage.pieces.load(Ordering::Relaxed)
    }

    /// The number of transactions that were given up since the start.
    pub fn given_up(&self) -> u64 {
        self.usage.given_up.load(Ordering::Relaxed)
    }

    /// The figures of the store.
    pub fn figures(&self) -> LateCommitFigures {
        LateCommitFigures {
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

    /// Drops the transactions and indexes of a bucket, because a new stream will send them again,
    /// or the bucket is rolled back.
    pub fn forget(&self, bucket: BucketId) {
        let forgotten = {
            let mut buckets = self.buckets.lock();
            let of = buckets.entry(bucket).or_default();
            of.indexes.clear();
            of.void_preparations();
            (std::mem::take(&mut of.open), std::mem::take(&mut of.committed))
        };
        self.spiller.dispose(forgotten);
    }

    /// Drops all data of a bucket, including the list of ended transactions: the node no longer
    /// follows the bucket.
    pub fn drop_bucket(&self, bucket: BucketId) {
        let dropped = self.buckets.lock().remove(&bucket);
        dropped.iter().for_each(BucketTransactions::void_preparations);
        self.spiller.dispose(dropped);
    }

    /// Records that the bucket's stream carries these slices of an index from now on. If a slice is
    /// new, the stored changes of open transactions lack it: they are dropped, and the stream sends
    /// them again.
    pub fn join(&self, info: &Arc<IndexInfo>, slices: BTreeSet<SliceNo>) {
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
        self.spiller.dispose(forgotten);
    }

    /// Records that the stream of a bucket does not carry an index any more.
    pub fn leave(&self, bucket: BucketId, index: LocalIndexId) {
        let open: Vec<_> = {
            let mut buckets = self.buckets.lock();
            let Some(of) = buckets.get_mut(&bucket) else { return };
            of.indexes.remove(&index);
            of.open.values().chain(of.committed.values()).cloned().collect()
        };
        let parts: Vec<_> =
            open.iter().filter_map(|transaction| transaction.leave(index)).collect();
        // The rows that were written ahead are in files of the index.
        open.iter().for_each(|transaction| transaction.preparation().void());
        self.spiller.dispose(parts);
    }

    /// Waits, for at most `WAIT_MAX`, until changes of `bytes` bytes fit in memory; a running
    /// spill may free memory.
    pub async fn room(&self, bytes: u64) {
        self.spiller.room(bytes, WAIT_MAX).await;
    }

    /// Takes changes of a transaction. Changes from place zero restart the transaction; others must continue at its place, or the error is
    /// `DropData`. After an error the transaction is forgotten. Reads files if some changes are on disk.
    pub fn bodies(&self, bucket: BucketId, bodies: &TransactionBodies) -> Result<()> {
        let id = bodies.transaction;
        let (transaction, indexes, before) = {
            let mut buckets = self.buckets.lock();
            let of = buckets.get_mut(&bucket).ok_or_else(|| not_here(bodies))?;
            let before = (bodies.from == TransactionPlace(0))
                .then(|| of.begin(id, OpenTransaction::new(id, Arc::clone(&self.usage))));
            let transaction = of.open.get(&id).cloned().ok_or_else(|| not_here(bodies))?;
            let infos = of.indexes.iter().map(|(index, (info, _))| (*index, Arc::clone(info)));
            (transaction, infos.collect(), before)
        };
        self.spiller.dispose(before);
        // Without the lock, which views take.
        self.make_room(&transaction, bodies.body.len() as u64);
        let taken = transaction.take(bodies, &indexes);
        if taken.is_err() {
            self.spiller.dispose(self.buckets.remove(bucket, id));
        }
        drop(transaction);
        self.changed.send_modify(|count| *count += 1);
        self.spiller.start(0);
        taken
    }

    /// Gives up transactions until `bytes` bytes fit, if the wait in [`Self::room`] was not enough.
    fn make_room(&self, transaction: &OpenTransaction, bytes: u64) {
        if bytes > self.spiller.limits().memory_bytes {
            // No part of it is being written, and no other transaction makes room for it.
            transaction.give_up(GivenUp::Memory);
            return;
        }
        while !self.spiller.has_room(bytes) && self.spiller.give_up_largest(GivenUp::Memory) {}
    }

    /// Rolls a transaction back to an earlier place. Does nothing if the transaction is not in the
    /// store.
    pub fn back_to(&self, bucket: BucketId, id: TransactionId, to: TransactionPlace) -> Result<()> {
        let transaction = self.buckets.get(bucket, id);
        let back = transaction.map_or(Ok(()), |transaction| transaction.go_back(to));
        if back.is_err() {
            self.spiller.dispose(self.buckets.remove(bucket, id));
        }
        self.changed.send_modify(|count| *count += 1);
        back
    }

    /// Drops transactions that have ended.
    pub fn end(&self, bucket: BucketId, transactions: &[TransactionId]) {
        let ended = self.buckets.lock().get_mut(&bucket).map(|of| of.end(transactions));
        self.spiller.dispose(ended);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Returns true if the node has reached the place of a view. `SnapshotTooOld` if the
    /// transaction has ended or was rolled back before that place.
    fn has_come_to(&self, bucket: BucketId, own: OwnView) -> Result<bool> {
        if own.place == TransactionPlace(0) {
            return Ok(true);
        }
        let buckets = self.buckets.lock();
        let Some(of) = buckets.get(&bucket) else { return Ok(false) };
        let Some(transaction) = of.find(own)? else { return Ok(false) };
        Ok(!matches!(transaction.seen(own, None)?, TransactionPart::NotYet))
    }

    /// Waits until the node has reached the place of a view, also if the transaction is not in the
    /// store yet.
    pub async fn wait(&self, bucket: BucketId, own: OwnView) -> Result<()> {
        let mut changed = self.changed.subscribe();
        while !self.has_come_to(bucket, own)? {
            changed.changed().await.map_err(|_| Error::unavailable("the indexer stops"))?;
        }
        Ok(())
    }

    /// Returns a snapshot that merges a transaction's rows, as of the view's place, over `base`.
    /// `Unavailable` if the node has not reached the place, `OverLimit` if the transaction was
    /// given up.
    pub fn own_view(&self, base: Arc<dyn Snapshot>, own: OwnView) -> Result<Arc<dyn Snapshot>> {
        if own.place == TransactionPlace(0) {
            return Ok(base);
        }
        let (bucket, index) = (base.info().bucket, base.info().local_id());
        let transaction = {
            let buckets = self.buckets.lock();
            let of = buckets.get(&bucket).filter(|of| of.indexes.contains_key(&index));
            let found = of.map(|of| of.find(own)).transpose()?.flatten();
            Arc::clone(found.ok_or_else(|| not_there(own))?)
        };
        match transaction.seen(own, Some(index))? {
            TransactionPart::NotYet => Err(not_there(own)),
            TransactionPart::GivenUp(why) => Err(self.was_given_up(own.transaction, why)),
            TransactionPart::Part(None) => Ok(base),
            TransactionPart::Part(Some(part)) => {
                let behind = u64::from(plant::is(Plant::OwnViewBehind));
                let place = TransactionPlace(own.place.0 - behind);
                Ok(Arc::new(OwnSnapshot::new(base, part, place, self.walk_bytes)))
            }
        }
    }

    /// The error of a view of a transaction that was given up.
    fn was_given_up(&self, transaction: TransactionId, why: GivenUp) -> Error {
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

/// The error of changes that continue a transaction which is not in the store.
fn not_here(bodies: &TransactionBodies) -> Error {
    let TransactionBodies { transaction, from, .. } = bodies;
    let text = format!("the changes of transaction {transaction} up to place {from} are not here");
    Error::new(ErrorCode::DropData, text)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
