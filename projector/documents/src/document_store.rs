//! The interface of a store of documents and change logs. The documentation of this crate lists
//! its invariants.

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

/// A function that makes a batch visible which is already durable.
pub type ShowBatch = Box<dyn FnOnce() -> Result<()> + Send>;

/// Changes of one bucket that are committed together: all of them become durable, or none.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Mutations in commit order. The seqnos of each vbucket ascend without a gap.
    pub mutations: Vec<Arc<Mutation>>,
    /// The new record of the bucket, if the batch changes it, for example because a branch
    /// begins.
    pub record: Option<BucketRecord>,
    /// The steps of transactions in the batch, such as commits of the mutations, in their order.
    pub commits: Vec<TransactionEvent>,
}

impl Batch {
    /// Returns true if the batch has no changes.
    pub fn is_empty(&self) -> bool {
        self.mutations.is_empty() && self.record.is_none() && self.commits.is_empty()
    }
}

/// A document that was read from a store.
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

/// A function that adds a file of documents, which is already written, to its bucket. If the
/// function is dropped without a call, the file is removed.
pub type AddSorted = Box<dyn FnOnce() -> Result<()> + Send>;

/// An iterator over all documents of a bucket as of one moment, in the order of their ids.
pub trait DocumentSnapshot: Send {
    /// Returns the next documents, about `bytes` bytes of them; empty at the end.
    fn next_chunk(&mut self, bytes: usize) -> Result<Vec<StoredDocument>>;

    /// Returns the approximate number of documents; a replaced document may be counted twice.
    fn documents_about(&self) -> u64;

    /// Returns a second iterator over the same snapshot, which begins at the present position.
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
    /// The last seqno that was purged; zero if none was.
    pub purged: Seqno,
    /// The last seqno of the log.
    pub end: Seqno,
    /// The bytes of the log up to the seqno `purged`, counted since the log began.
    pub bytes_purged: u64,
    /// The bytes of the log up to the seqno `end`, counted since the log began.
    pub bytes_end: u64,
}

impl LogExtent {
    /// Returns the number of bytes that the log retains.
    pub fn bytes(&self) -> u64 {
        self.bytes_end.saturating_sub(self.bytes_purged)
    }
}

/// A loss of a bucket's data, about which the coordinators have informed the projector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownLoss {
    /// The newest epoch when the coordinators reported the loss. The bucket lacks data that this
    /// epoch covers.
    pub epoch: Epoch,
    /// True if an operator has accepted the loss.
    pub is_accepted: bool,
}

/// A stored bucket with damaged files. The files are not changed, and the bucket accepts no writes.
#[derive(Clone, Debug)]
pub struct DamagedBucket {
    /// The error that names the damaged file and the damage.
    pub error: Error,
    /// The positions of the vbuckets up to which the bucket was complete, when these were last
    /// stored.
    pub positions: Cut,
}

/// The time at which the damaged files of a recreated bucket are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamagedFiles {
    /// The files are removed at [`DocumentStore::remove_replaced`], or when the bucket is
    /// dropped.
    UntilComplete,
    /// The files remain until an operator removes them.
    Kept,
}

/// A store of the documents and change logs of all buckets of a projector.
pub trait DocumentStore: Send + Sync + 'static {
    /// Returns the record of each intact stored bucket, with the last seqno of each vbucket's log.
    fn buckets(&self) -> Result<Vec<(BucketRecord, Vec<Seqno>)>>;

    /// Returns the damaged buckets, which [`Self::buckets`] omits.
    fn damaged(&self) -> Result<BTreeMap<BucketId, DamagedBucket>> {
        Ok(BTreeMap::new())
    }

    /// Recreates a damaged bucket, empty. The damaged data is never used again, even after a
    /// restart. `_files` says when the damaged files are removed.
    fn recreate_empty(&self, record: &BucketRecord, _files: DamagedFiles) -> Result<()> {
        let what = format!("bucket {} is not damaged", record.info.id);
        Err(Error::internal(what))
    }

    /// Returns the recreated buckets whose damaged files remain until the new copies are
    /// complete.
    fn recreated(&self) -> Result<BTreeSet<BucketId>> {
        Ok(BTreeSet::new())
    }

    /// Removes the damaged files of a recreated bucket, whose new copy is complete.
    fn remove_replaced(&self, _bucket: BucketId) -> Result<()> {
        Ok(())
    }

    /// Returns the version number (`cas`) of the newest applied catalog; zero before the first.
    fn catalog_cas(&self) -> Result<u64>;

    /// Returns the random ids of the stored buckets. The id of a removed bucket may be included.
    fn unique_ids(&self) -> Result<BTreeMap<BucketId, StoredId>>;

    /// Durably sets the random ids of some buckets.
    fn put_unique_ids(&self, ids: &[(BucketId, StoredId)]) -> Result<()>;

    /// Returns the losses of buckets' data that the coordinators have reported to the projector.
    fn losses(&self) -> Result<BTreeMap<BucketId, KnownLoss>>;

    /// Durably stores the reported loss of a bucket, or removes it (`None`).
    fn put_loss(&self, bucket: BucketId, loss: Option<KnownLoss>) -> Result<()>;

    /// Applies a catalog: creates the buckets in `made`, and removes the buckets in `removed`
    /// with all their contents. A damaged bucket counts as stored: it can be removed, and is not
    /// created again.
    fn apply_catalog(&self, cas: u64, made: &[BucketRecord], removed: &[BucketId]) -> Result<()>;

    /// Durably replaces the records of some buckets. Ignores buckets that were dropped.
    fn put_records(&self, records: &[BucketRecord]) -> Result<()>;

    /// Rewinds vbuckets of a bucket to earlier positions: all of them, or none after an error.
    /// Later log entries are removed, and the documents return to their earlier versions.
    /// `record` has the branches that begin at these positions. The complete logs of these
    /// vbuckets are read. The error is `OutOfOrder` if the earlier versions were purged; a rewind
    /// to seqno 0 is always possible.
    fn rewind(&self, record: &BucketRecord, to: &[(VbucketId, Seqno)]) -> Result<()>;

    /// Returns the retained and durable range of each vbucket's log.
    fn extents(&self, bucket: BucketId) -> Result<Vec<LogExtent>>;

    /// Returns the number of bytes of a vbucket's log up to a seqno, counted since the log began.
    /// A seqno that is not retained is replaced by the nearest retained one.
    fn log_bytes_to(&self, bucket: BucketId, vbucket: VbucketId, to: Seqno) -> Result<u64>;

    /// Purges the log entries of some vbuckets up to these seqnos: in all of these vbuckets, or
    /// in none after an error. A crash may undo the purge as a whole.
    fn purge(&self, bucket: BucketId, to: &[(VbucketId, Seqno)]) -> Result<()>;

    /// Returns the seqnos up to which vbuckets must be purged, so that a bucket's log takes about
    /// `bytes` of disk. Empty if the log is already that short, or if a purge would not help.
    /// Such a purge is needed because a vbucket that seldom changes may retain segments in which
    /// most mutations are purged.
    fn points_to_shrink_to(
        &self,
        _bucket: BucketId,
        _bytes: u64,
    ) -> Result<Vec<(VbucketId, Seqno)>> {
        Ok(Vec::new())
    }

    /// Makes a batch of a bucket durable, and returns the function that makes it visible. Batches
    /// must be made visible in the order in which they were made durable. Several batches may
    /// wait to be made visible, but all of them must be visible before any other change of the
    /// bucket. After an error it is unknown whether the batch is durable, and the bucket accepts
    /// no writes until the store is opened again.
    fn log(&self, bucket: BucketId, batch: &Arc<Batch>) -> Result<ShowBatch>;

    /// Makes a batch of a bucket durable and then visible.
    fn commit(&self, bucket: BucketId, batch: Batch) -> Result<()> {
        self.log(bucket, &Arc::new(batch))?()
    }

    /// Returns the current documents with the given ids, all as of one moment, at which each
    /// batch is visible completely or not at all. The error is `OverLimit` if the documents
    /// together exceed `bytes_max`.
    fn get(&self, bucket: BucketId, ids: &[String], bytes_max: usize)
    -> Result<Vec<Option<Bytes>>>;

    /// Returns the documents with the given ids as of a cut, which has the seqno of each vbucket;
    /// otherwise like [`Self::get`]. The answer is undefined for a vbucket whose log is purged
    /// beyond the cut. So the caller must check [`Self::extents`] after the call.
    fn get_at(
        &self,
        bucket: BucketId,
        ids: &[String],
        cut: &[Seqno],
        bytes_max: usize,
    ) -> Result<Vec<Option<Bytes>>>;

    /// Returns the seqno of the last change of a document, which may be a deletion; `None` if
    /// there was no change. A deletion at or below the purge point of its vbucket may not be
    /// found.
    fn changed_at(&self, bucket: BucketId, id: &str) -> Result<Option<Seqno>>;

    /// Returns true if a document with the id exists.
    fn contains(&self, bucket: BucketId, id: &str) -> Result<bool>;

    /// Returns all current documents.
    fn snapshot(&self, bucket: BucketId) -> Result<Box<dyn DocumentSnapshot>> {
        self.snapshot_after(bucket, None)
    }

    /// Returns all current documents whose ids follow `after`; all documents if it is `None`.
    fn snapshot_after(
        &self,
        bucket: BucketId,
        after: Option<&str>,
    ) -> Result<Box<dyn DocumentSnapshot>>;

    /// Begins the log of a vbucket without data after the purge point `purged`, and durably
    /// stores the record. The caller then adds the vbucket's documents, and after them mutations.
    fn begin_purged(&self, record: &BucketRecord, vbucket: VbucketId, purged: Seqno) -> Result<()>;

    /// Stores documents of a vbucket that is being copied. The documents become durable with the
    /// next batch, or earlier.
    fn put_documents(&self, bucket: BucketId, documents: &[StoredDocument]) -> Result<()>;

    /// Writes documents of vbuckets that are not readable yet to a file. Returns the function
    /// that adds the file to the bucket durably. The documents must ascend by id, with each id
    /// once. They are in no log: after a crash either all documents of a call are stored or none,
    /// and the caller writes them again. If several calls add the same id, the last document is
    /// kept. Several threads may call this function at the same time.
    fn write_sorted<'d>(
        &self,
        bucket: BucketId,
        documents: &mut dyn ExactSizeIterator<Item = DocumentRef<'d>>,
    ) -> Result<AddSorted>;

    /// Ends a series of [`Self::write_sorted`] calls. Maintenance that has waited for the end of
    /// the load continues.
    fn end_load(&self, _bucket: BucketId) {}

    /// Removes all data of a vbucket, and durably stores the record, in one step. The record must
    /// have no branches of the vbucket.
    fn remove_vbucket(&self, record: &BucketRecord, vbucket: VbucketId) -> Result<()>;

    /// Returns mutations in the order of their seqnos, from the beginning of a range: all of
    /// them, or about `bytes` bytes but at least one mutation.
    fn read_log(&self, range: LogRange, bytes: usize) -> Result<Vec<Arc<Mutation>>>;

    /// Returns true if some bucket accepts no writes until the store is opened again.
    fn has_failed(&self) -> bool {
        false
    }

    /// Does one piece of maintenance: a flush, a merge, or the removal of purged segments.
    /// Returns true if more work is needed. Readers and writers can continue during that time.
    fn maintain(&self) -> Result<bool> {
        Ok(false)
    }

    /// Informs the store that the process ends, so that long maintenance is cancelled.
    fn stop(&self) {}
}
