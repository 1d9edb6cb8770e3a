//! The contract of a store of documents and change logs; the crate's head lists the invariants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use proto::model::cut::Cut;
use proto::model::ids::{BucketId, Epoch, Seqno, VbucketId};
use proto::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::mutation::Mutation;
use crate::record::{BucketRecord, StoredId};
use proto::model::commits::TransactionEvent;

/// A function that makes a logged batch visible.
pub type ShowBatch = Box<dyn FnOnce() -> Result<()> + Send>;

/// Changes of one bucket that are committed with one call: all of them become durable, or none.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Mutations in commit order; contiguous and ascending in each vbucket.
    pub mutations: Vec<Arc<Mutation>>,
    /// The new record of the bucket, if a branch began.
    pub record: Option<BucketRecord>,
    /// The events of the transactions whose commits are among the mutations, in their order.
    pub commits: Vec<TransactionEvent>,
}

impl Batch {
    /// Returns true if the batch has no changes.
    pub fn is_empty(&self) -> bool {
        self.mutations.is_empty() && self.record.is_none() && self.commits.is_empty()
    }
}

/// A document of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDocument {
    /// The id of the document.
    pub id: String,
    /// The seqno of the document's last change.
    pub seqno: Seqno,
    /// The text of the document as its client sent it.
    pub document: Bytes,
}

/// A borrowed document that is to be stored.
#[derive(Clone, Copy, Debug)]
pub struct DocumentRef<'a> {
    /// The id of the document.
    pub id: &'a str,
    /// The seqno of the document's last change.
    pub seqno: Seqno,
    /// The text of the document as its client sent it.
    pub document: &'a [u8],
}

/// A function that adds documents, which were written to a separate file, to their bucket. If it is
/// dropped without a call, the file is removed.
pub type AddSorted = Box<dyn FnOnce() -> Result<()> + Send>;

/// An iterator over all documents of a bucket at one moment, by id.
pub trait DocumentSnapshot: Send {
    /// Returns the next documents, about `bytes` bytes of them; empty at the end.
    fn next_chunk(&mut self, bytes: usize) -> Result<Vec<StoredDocument>>;

    /// Returns the approximate number of documents; a replaced document may be counted twice.
    fn documents_about(&self) -> u64;

    /// Returns a second iterator over the snapshot, from the present position on.
    fn fork(&self) -> Box<dyn DocumentSnapshot>;
}

/// A range of seqnos in a vbucket's log.
#[derive(Clone, Copy, Debug)]
pub struct LogRange {
    /// The bucket to read.
    pub bucket: BucketId,
    /// The vbucket to read.
    pub vbucket: VbucketId,
    /// The seqno before the range.
    pub after: Seqno,
    /// The last seqno of the range.
    pub to: Seqno,
}

/// The range of seqnos that a vbucket's log retains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogExtent {
    /// The last purged seqno; zero if none was purged.
    pub purged: Seqno,
    /// The last seqno of the log.
    pub end: Seqno,
    /// Bytes of the log up to `purged`, since the log began.
    pub bytes_purged: u64,
    /// Bytes of the log up to `end`, since the log began.
    pub bytes_end: u64,
}

impl LogExtent {
    /// Returns the number of retained bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes_end.saturating_sub(self.bytes_purged)
    }
}

/// A loss of data of a bucket that the coordinators have reported to the projector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownLoss {
    /// The newest epoch at the time of the report: the bucket lacks data that this epoch covers.
    pub epoch: Epoch,
    /// True if an operator has accepted the loss.
    pub is_accepted: bool,
}

/// A stored bucket with damaged files. The files are not changed, and the bucket accepts no writes.
#[derive(Clone, Debug)]
pub struct DamagedBucket {
    /// The error that names the damaged file and the damage.
    pub error: Error,
    /// The positions up to which the bucket was complete when they were last stored.
    pub positions: Cut,
}

/// The time at which the damaged files of a recreated bucket are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamagedFiles {
    /// At [`DocumentStore::remove_replaced`], or when the bucket is dropped.
    UntilComplete,
    /// When an operator removes them.
    Kept,
}

/// The documents and change logs of all buckets of a projector.
pub trait DocumentStore: Send + Sync + 'static {
    /// Returns the record of each intact stored bucket, with the last seqno of each vbucket's log.
    fn buckets(&self) -> Result<Vec<(BucketRecord, Vec<Seqno>)>>;

    /// Returns the damaged buckets, which [`Self::buckets`] omits.
    fn damaged(&self) -> Result<BTreeMap<BucketId, DamagedBucket>> {
        Ok(BTreeMap::new())
    }

    /// Durably abandons the stored data of a damaged bucket, and recreates the bucket, empty.
    fn make_anew(&self, record: &BucketRecord, _files: DamagedFiles) -> Result<()> {
        let what = format!("bucket {} is not damaged", record.info.id);
        Err(Error::internal(what))
    }

    /// Returns the recreated buckets whose damaged files are kept until the new copies are
    /// complete.
    fn replaced(&self) -> Result<BTreeSet<BucketId>> {
        Ok(BTreeSet::new())
    }

    /// Removes the damaged files of a recreated bucket.
    fn remove_replaced(&self, _bucket: BucketId) -> Result<()> {
        Ok(())
    }

    /// Returns the `cas` of the newest applied catalog; zero before the first.
    fn catalog_cas(&self) -> Result<u64>;

    /// Returns the random ids of buckets. The id of a removed bucket may be included.
    fn unique_ids(&self) -> Result<BTreeMap<BucketId, StoredId>>;

    /// Durably sets the random ids of some buckets.
    fn put_unique_ids(&self, ids: &[(BucketId, StoredId)]) -> Result<()>;

    /// Returns the losses of buckets that the coordinators have reported to the projector.
    fn losses(&self) -> Result<BTreeMap<BucketId, KnownLoss>>;

    /// Durably stores the loss of a bucket, or removes it (`None`).
    fn put_loss(&self, bucket: BucketId, loss: Option<KnownLoss>) -> Result<()>;

    /// Applies a catalog: creates and removes buckets with all their contents. A damaged bucket
    /// counts as stored: it can be removed, and is not created again.
    fn apply_catalog(&self, cas: u64, made: &[BucketRecord], removed: &[BucketId]) -> Result<()>;

    /// Durably replaces the records of some buckets. Ignores buckets that were dropped.
    fn put_records(&self, records: &[BucketRecord]) -> Result<()>;

    /// Rewinds vbuckets of a bucket to earlier positions: all of them or none. Later log entries
    /// are removed, and the documents return to their earlier versions. `record` has the branches
    /// that begin at these positions. The complete logs of these vbuckets are read. `OutOfOrder` if
    /// the earlier documents were purged; a rewind to seqno 0 is always possible.
    fn rewind(&self, record: &BucketRecord, to: &[(VbucketId, Seqno)]) -> Result<()>;

    /// Returns the retained and durable range of each vbucket's log.
    fn extents(&self, bucket: BucketId) -> Result<Vec<LogExtent>>;

    /// Returns the number of bytes of a vbucket's log up to a seqno, since the log began. For a
    /// seqno that is not retained, returns that of the nearest retained one.
    fn log_bytes_to(&self, bucket: BucketId, vbucket: VbucketId, to: Seqno) -> Result<u64>;

    /// Removes the log entries of some vbuckets up to these seqnos, in all of these vbuckets or in
    /// none. A crash may undo the removal, completely.
    fn purge(&self, bucket: BucketId, to: &[(VbucketId, Seqno)]) -> Result<()>;

    /// Returns the purge points after which a bucket's log takes about `bytes` of disk; empty if
    /// the log is already that short, or if a purge would not help. A vbucket that seldom changes
    /// may retain segments in which most mutations are purged.
    fn purge_to_hold(&self, _bucket: BucketId, _bytes: u64) -> Result<Vec<(VbucketId, Seqno)>> {
        Ok(Vec::new())
    }

    /// Makes a batch of a bucket durable, and returns the function that makes it visible. The
    /// batches of a bucket are made visible in the order in which they were made durable. Several
    /// batches may wait to be made visible; all must be visible before any other change of the
    /// bucket. After an error the batch's durability is unknown, and the bucket accepts no writes
    /// until the store is opened again.
    fn log(&self, bucket: BucketId, batch: &Arc<Batch>) -> Result<ShowBatch>;

    /// Makes a batch of a bucket durable and then visible.
    fn commit(&self, bucket: BucketId, batch: Batch) -> Result<()> {
        self.log(bucket, &Arc::new(batch))?()
    }

    /// Returns the current documents of the given ids, all as of one moment, which never splits a
    /// batch. `OverLimit` if they exceed `bytes_max` together.
    fn get(&self, bucket: BucketId, ids: &[String], bytes_max: usize)
    -> Result<Vec<Option<Bytes>>>;

    /// Returns the documents of the given ids as of a cut, which has the seqno of each vbucket.
    /// Otherwise like [`Self::get`]. The answer for a vbucket whose log is purged beyond the cut is
    /// undefined: the caller checks [`Self::extents`] after the call.
    fn get_at(
        &self,
        bucket: BucketId,
        ids: &[String],
        cut: &[Seqno],
        bytes_max: usize,
    ) -> Result<Vec<Option<Bytes>>>;

    /// Returns the seqno of a document's last change, which may be a deletion; `None` if there was
    /// no change. A deletion at or below the purge point of its vbucket may be missing.
    fn changed_at(&self, bucket: BucketId, id: &str) -> Result<Option<Seqno>>;

    /// Returns true if a document with the id exists.
    fn contains(&self, bucket: BucketId, id: &str) -> Result<bool>;

    /// All current documents.
    fn snapshot(&self, bucket: BucketId) -> Result<Box<dyn DocumentSnapshot>> {
        self.snapshot_after(bucket, None)
    }

    /// All current documents after an id.
    fn snapshot_after(
        &self,
        bucket: BucketId,
        after: Option<&str>,
    ) -> Result<Box<dyn DocumentSnapshot>>;

    /// Gives a vbucket without data a log that is empty after the purge point `purged`, and durably
    /// stores the record. The caller then adds documents, and after them mutations.
    fn begin_purged(&self, record: &BucketRecord, vbucket: VbucketId, purged: Seqno) -> Result<()>;

    /// Stores documents of a vbucket that is being copied; they are durable no later than the next
    /// batch.
    fn put_documents(&self, bucket: BucketId, documents: &[StoredDocument]) -> Result<()>;

    /// Writes documents of vbuckets that are not readable yet, ascending by id and each id once,
    /// and returns a handle that adds them to the bucket durably. The documents are in no log: a
    /// crash leaves all documents of one call or none, and the caller starts again. If an id is
    /// added several times, the last document is kept. Several threads may call concurrently.
    fn write_sorted<'d>(
        &self,
        bucket: BucketId,
        documents: &mut dyn ExactSizeIterator<Item = DocumentRef<'d>>,
    ) -> Result<AddSorted>;

    /// Ends a series of [`Self::write_sorted`] calls: maintenance that waits for the end of a load
    /// continues.
    fn end_load(&self, _bucket: BucketId) {}

    /// Removes all data of a vbucket, and durably stores the record, which has no branches of the
    /// vbucket, in one step.
    fn remove_vbucket(&self, record: &BucketRecord, vbucket: VbucketId) -> Result<()>;

    /// Returns mutations in the order of their seqnos, from the beginning of the range: all of them
    /// or about `bytes` bytes, but at least one.
    fn read_log(&self, range: LogRange, bytes: usize) -> Result<Vec<Arc<Mutation>>>;

    /// Returns true if a bucket accepts no writes until the store is opened again.
    fn has_failed(&self) -> bool {
        false
    }

    /// Runs a piece of maintenance: flushes, merges, and removal of purged segments. Returns true
    /// if more work is due. Readers and writers continue meanwhile.
    fn maintain(&self) -> Result<bool> {
        Ok(false)
    }

    /// Signals the end of the process: long maintenance is cancelled.
    fn stop(&self) {}
}
