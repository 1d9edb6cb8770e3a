//! The contract of a store of documents and change logs; the crate lists the invariants.

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

/// Makes a batch visible that its log has.
pub type ShowBatch = Box<dyn FnOnce() -> Result<()> + Send>;

/// Changes of one bucket that are committed with one call: all of them become durable, or none.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Mutations in commit order; contiguous and ascending in each vbucket.
    pub mutations: Vec<Arc<Mutation>>,
    /// The new record, if a branch began.
    pub record: Option<BucketRecord>,
    /// The transactions whose commits are among the mutations, in their order.
    pub commits: Vec<TransactionEvent>,
}

impl Batch {
    /// True if nothing changes.
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
    /// The document as it was given.
    pub document: Bytes,
}

/// A document that is to be stored.
#[derive(Clone, Copy, Debug)]
pub struct DocumentRef<'a> {
    /// The id of the document.
    pub id: &'a str,
    /// The seqno of the document's last change.
    pub seqno: Seqno,
    /// The document as it was given.
    pub document: &'a [u8],
}

/// Adds documents to their bucket that were written to a separate file. If this is dropped, the file is removed.
pub type AddSorted = Box<dyn FnOnce() -> Result<()> + Send>;

/// All documents of a bucket at one moment, by id.
pub trait DocumentSnapshot: Send {
    /// The next documents, about the given number of bytes; empty at the end.
    fn next_chunk(&mut self, bytes: usize) -> Result<Vec<StoredDocument>>;

    /// The approximate number of documents: replaced ones may count twice.
    fn documents_about(&self) -> u64;

    /// A second iterator over the same moment, from the present position on.
    fn fork(&self) -> Box<dyn DocumentSnapshot>;
}

/// A range of a vbucket's log.
#[derive(Clone, Copy, Debug)]
pub struct LogRange {
    /// The bucket to read.
    pub bucket: BucketId,
    /// The vbucket to read.
    pub vbucket: VbucketId,
    /// The start, exclusive.
    pub after: Seqno,
    /// The end, inclusive.
    pub to: Seqno,
}

/// The retained part of a vbucket's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogExtent {
    /// The last purged entry; zero if none was purged.
    pub purged: Seqno,
    /// The last entry.
    pub end: Seqno,
    /// Bytes of the log up to `purged`, since the log began.
    pub bytes_purged: u64,
    /// Bytes of the log up to `end`, since the log began.
    pub bytes_end: u64,
}

impl LogExtent {
    /// The retained bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes_end.saturating_sub(self.bytes_purged)
    }
}

/// A loss of a bucket that the coordinators have reported to the projector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownLoss {
    /// The last epoch at that time: the bucket lacks something that it covers.
    pub epoch: Epoch,
    /// True if an operator has accepted the loss.
    pub is_accepted: bool,
}

/// A stored bucket whose files are damaged. It is kept as it is, and accepts nothing.
#[derive(Clone, Debug)]
pub struct DamagedBucket {
    /// The damage: the file, and what is wrong with it.
    pub error: Error,
    /// The positions up to which it had everything when they were last written down.
    pub positions: Cut,
}

/// When the damaged files of a recreated bucket are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamagedFiles {
    /// The files stay until [`DocumentStore::remove_replaced`], or until the bucket is dropped.
    UntilComplete,
    /// The files stay until an operator removes them.
    Kept,
}

/// The documents and change logs of all buckets of a projector.
pub trait DocumentStore: Send + Sync + 'static {
    /// The stored buckets, with the last seqno of each vbucket's log.
    fn buckets(&self) -> Result<Vec<(BucketRecord, Vec<Seqno>)>>;

    /// The damaged buckets. They are stored, and are not among [`Self::buckets`].
    fn damaged(&self) -> Result<BTreeMap<BucketId, DamagedBucket>> {
        Ok(BTreeMap::new())
    }

    /// Durably abandons the stored data of a damaged bucket, and recreates the bucket, empty.
    fn make_anew(&self, record: &BucketRecord, _files: DamagedFiles) -> Result<()> {
        let what = format!("bucket {} is not damaged", record.info.id);
        Err(Error::internal(what))
    }

    /// The recreated buckets whose damaged files stay until the new copies are complete.
    fn replaced(&self) -> Result<BTreeSet<BucketId>> {
        Ok(BTreeSet::new())
    }

    /// Removes the damaged files of a recreated bucket.
    fn remove_replaced(&self, _bucket: BucketId) -> Result<()> {
        Ok(())
    }

    /// The `cas` of the newest applied catalog; zero at first.
    fn catalog_cas(&self) -> Result<u64>;

    /// The random ids of buckets. The id of a removed bucket may remain.
    fn unique_ids(&self) -> Result<BTreeMap<BucketId, StoredId>>;

    /// Durably sets the random ids of some buckets.
    fn put_unique_ids(&self, ids: &[(BucketId, StoredId)]) -> Result<()>;

    /// The losses of buckets that the coordinators have reported to the projector.
    fn losses(&self) -> Result<BTreeMap<BucketId, KnownLoss>>;

    /// Durably notes a loss, or forgets it.
    fn put_loss(&self, bucket: BucketId, loss: Option<KnownLoss>) -> Result<()>;

    /// Applies a catalog: creates and removes buckets with all their contents. A damaged bucket counts as stored: it is removed like any
    /// other, and not created.
    fn apply_catalog(&self, cas: u64, made: &[BucketRecord], removed: &[BucketId]) -> Result<()>;

    /// Durably replaces the records of some buckets. A bucket that was dropped stays dropped.
    fn put_records(&self, records: &[BucketRecord]) -> Result<()>;

    /// Rewinds vbuckets of a bucket to earlier positions: all of them or none. Later log entries are removed, and the
    /// documents return to their earlier versions. `record` has the branches that begin there. This reads the whole
    /// logs of these vbuckets. `OutOfOrder` if the earlier documents were purged; rewinding to seqno 0 is always
    /// possible.
    fn rewind(&self, record: &BucketRecord, to: &[(VbucketId, Seqno)]) -> Result<()>;

    /// The retained and durable part of each vbucket's log.
    fn extents(&self, bucket: BucketId) -> Result<Vec<LogExtent>>;

    /// The number of bytes of a vbucket's log up to a seqno, since the log began. A seqno that is not retained counts
    /// as the nearest retained one.
    fn log_bytes_to(&self, bucket: BucketId, vbucket: VbucketId, to: Seqno) -> Result<u64>;

    /// Removes the entries of some vbuckets' logs up to these seqnos, all or none. If a crash undoes the removal, all
    /// entries exist again.
    fn purge(&self, bucket: BucketId, to: &[(VbucketId, Seqno)]) -> Result<()>;

    /// The purge after which a bucket's log takes about the given bytes of disk; empty if it takes no more, or if a purge
    /// would not help. A vbucket that seldom changes may hold a part of the log in which most is purged.
    fn purge_to_hold(&self, _bucket: BucketId, _bytes: u64) -> Result<Vec<(VbucketId, Seqno)>> {
        Ok(Vec::new())
    }

    /// Makes a batch of a bucket durable, and returns what makes it visible. The batches of a bucket are made visible in the order
    /// in which they were made durable. Several may wait; before any other change of the bucket, all are visible. After an error
    /// the batch's durability is unknown, and the bucket accepts no more until the store is opened again.
    fn log(&self, bucket: BucketId, batch: &Arc<Batch>) -> Result<ShowBatch>;

    /// Makes a batch of a bucket durable and then visible.
    fn commit(&self, bucket: BucketId, batch: Batch) -> Result<()> {
        self.log(bucket, &Arc::new(batch))?()
    }

    /// The current documents of the given ids, all at one moment: all of a batch or nothing of it. `OverLimit` if
    /// they exceed `bytes_max` together.
    fn get(&self, bucket: BucketId, ids: &[String], bytes_max: usize)
    -> Result<Vec<Option<Bytes>>>;

    /// The documents of the given ids as of a cut, the seqno of each vbucket, as [`Self::get`] returns the current ones. The answer for a
    /// vbucket whose log is purged beyond the cut is undefined: the caller checks [`Self::extents`] after the call.
    fn get_at(
        &self,
        bucket: BucketId,
        ids: &[String],
        cut: &[Seqno],
        bytes_max: usize,
    ) -> Result<Vec<Option<Bytes>>>;

    /// The seqno of a document's last change, a deletion included; `None` if there was none. A deletion at or below the purge point of
    /// its vbucket may be forgotten, and no other one.
    fn changed_at(&self, bucket: BucketId, id: &str) -> Result<Option<Seqno>>;

    /// True if a document with that id exists.
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

    /// Gives a vbucket without data a log that is purged up to a seqno and empty after it, and durably stores the
    /// record. Its documents follow, then its mutations.
    fn begin_purged(&self, record: &BucketRecord, vbucket: VbucketId, purged: Seqno) -> Result<()>;

    /// Stores documents of a vbucket that is copied; durable no later than the next batch.
    fn put_documents(&self, bucket: BucketId, documents: &[StoredDocument]) -> Result<()>;

    /// Writes documents of vbuckets that are not readable yet, ascending by id and each id once, and returns a handle that adds them to the
    /// bucket durably. They have no place in a log: a crash leaves all of one call or nothing, and the caller starts again. Among documents
    /// with the same id, the one added last counts. Several threads may write at once.
    fn write_sorted<'d>(
        &self,
        bucket: BucketId,
        documents: &mut dyn ExactSizeIterator<Item = DocumentRef<'d>>,
    ) -> Result<AddSorted>;

    /// Ends a series of [`Self::write_sorted`] calls: work that waits for the end of a load continues.
    fn end_load(&self, _bucket: BucketId) {}

    /// Removes all data of a vbucket, and durably stores the record, which has no branches of it: both or nothing.
    fn remove_vbucket(&self, record: &BucketRecord, vbucket: VbucketId) -> Result<()>;

    /// Mutations in the order of their seqnos, from the beginning of the range: all of them or about the given number
    /// of bytes, but at least one.
    fn read_log(&self, range: LogRange, bytes: usize) -> Result<Vec<Arc<Mutation>>>;

    /// True if a bucket accepts nothing until the store is opened again.
    fn has_failed(&self) -> bool {
        false
    }

    /// Does a piece of the work that makes room and reads fast: flushes, merges, removal of purged segments. Returns true if
    /// more is due. Readers and writers go on meanwhile.
    fn maintain(&self) -> Result<bool> {
        Ok(false)
    }

    /// Says that the process ends: long work that nothing needs is given up.
    fn stop(&self) {}
}
