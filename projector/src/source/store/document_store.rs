//! What a store of documents and change logs promises ([`crate::source`] says what holds at every moment).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proto::Result;
use proto::model::ids::{BucketId, Seqno, VbucketId};

use crate::source::mutation::Mutation;
use crate::source::record::BucketRecord;

/// Changes that become durable together.
#[derive(Debug, Default)]
pub struct Batch {
    /// By bucket.
    pub buckets: BTreeMap<BucketId, BucketChanges>,
}

/// What a batch changes in one bucket.
#[derive(Debug, Default)]
pub struct BucketChanges {
    /// In the order of the writers; contiguous and ascending in each vbucket.
    pub mutations: Vec<Arc<Mutation>>,
    /// For each id, which of the mutations is its last one.
    pub last: BTreeMap<Arc<str>, usize>,
    /// The new record, where a branch began.
    pub record: Option<BucketRecord>,
}

/// A document of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDocument {
    /// Its id.
    pub id: String,
    /// The seqno of its last change.
    pub seqno: Seqno,
    /// The document as it was given.
    pub document: Bytes,
}

/// All documents of a bucket at one moment, by id.
pub trait DocumentSnapshot: Send {
    /// The next documents, about so many bytes of them; none at the end.
    fn next_chunk(&mut self, bytes: usize) -> Result<Vec<StoredDocument>>;
}

/// Which part of a vbucket's log is read.
#[derive(Clone, Copy, Debug)]
pub struct LogRange {
    /// The bucket.
    pub bucket: BucketId,
    /// The vbucket.
    pub vbucket: VbucketId,
    /// Exclusive.
    pub after: Seqno,
    /// Inclusive.
    pub to: Seqno,
}

/// What is kept of a vbucket's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogExtent {
    /// Entries up to here were purged; zero where none was.
    pub purged: Seqno,
    /// The last entry.
    pub end: Seqno,
    /// Bytes of the log up to `purged`, since it began.
    pub bytes_purged: u64,
    /// Bytes of the log up to `end`, since it began.
    pub bytes_end: u64,
}

impl LogExtent {
    /// Bytes that are kept.
    pub fn bytes(&self) -> u64 {
        self.bytes_end.saturating_sub(self.bytes_purged)
    }
}

/// Documents and change logs of all buckets of a projector.
pub trait DocumentStore: Send + Sync + 'static {
    /// The buckets that are kept, with the last seqno of each vbucket's log.
    fn buckets(&self) -> Result<Vec<(BucketRecord, Vec<Seqno>)>>;

    /// The `cas` of the newest catalog that was taken over; zero at first.
    fn catalog_cas(&self) -> Result<u64>;

    /// Takes over a catalog: makes and removes buckets, with all that is in them.
    fn apply_catalog(&self, cas: u64, made: &[BucketRecord], removed: &[BucketId]) -> Result<()>;

    /// Replaces the records of some buckets, durably.
    fn put_records(&self, records: &[BucketRecord]) -> Result<()>;

    /// Takes vbuckets of a bucket back to an earlier place, all or none: what their logs have beyond goes, and
    /// the documents are as they were there. The record has the branches that begin there. Reads all of
    /// the logs of these vbuckets. `OutOfOrder` where what the documents were was purged; back to seqno 0 a
    /// vbucket can always go.
    fn rewind(&self, record: &BucketRecord, to: &[(VbucketId, Seqno)]) -> Result<()>;

    /// What is kept of each vbucket's log, as of what is durable.
    fn extents(&self, bucket: BucketId) -> Result<Vec<LogExtent>>;

    /// Bytes of a vbucket's log up to a seqno, since it began; of a seqno that is not kept, those up to the nearest
    /// that is.
    fn log_bytes_to(&self, bucket: BucketId, vbucket: VbucketId, to: Seqno) -> Result<u64>;

    /// Removes the entries of some vbuckets' logs up to these seqnos, all or none; never the last entry of a log. What
    /// a crash takes back of it is there again, as a whole.
    fn purge(&self, bucket: BucketId, to: &[(VbucketId, Seqno)]) -> Result<()>;

    /// Makes a batch durable and then visible. After an error nobody knows whether it is durable, and
    /// the store takes no more until it is opened again.
    fn commit(&self, batch: &Batch) -> Result<()>;

    /// Documents by id as they are now, all at one moment: all of a batch or nothing of it. `OverLimit`
    /// where together they are longer than `bytes_max`.
    fn get(&self, bucket: BucketId, ids: &[String], bytes_max: usize)
    -> Result<Vec<Option<Bytes>>>;

    /// Is there a document of that id?
    fn contains(&self, bucket: BucketId, id: &str) -> Result<bool>;

    /// All documents as they are now.
    fn snapshot(&self, bucket: BucketId) -> Result<Box<dyn DocumentSnapshot>> {
        self.snapshot_after(bucket, None)
    }

    /// All documents behind an id as they are now.
    fn snapshot_after(
        &self,
        bucket: BucketId,
        after: Option<&str>,
    ) -> Result<Box<dyn DocumentSnapshot>>;

    /// Gives a vbucket of which nothing is here a log that was purged up to a seqno and has nothing behind it, with
    /// the bucket's record, durably. Its documents follow, and then its mutations.
    fn begin_purged(&self, record: &BucketRecord, vbucket: VbucketId, purged: Seqno) -> Result<()>;

    /// Puts documents of a vbucket that is copied. Not synced by itself: durable no later than the next batch.
    fn put_documents(&self, bucket: BucketId, documents: &[StoredDocument]) -> Result<()>;

    /// Removes documents of a vbucket: looks at so many of the bucket behind an id, or at the first ones; the id to
    /// go on behind, none at the end. Not synced by itself.
    fn remove_documents(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        after: Option<&str>,
        look_at: usize,
    ) -> Result<Option<String>>;

    /// Removes the oldest entries of a vbucket's log, at most so many, and with the last one the purge point: true
    /// when nothing is left. Not synced by itself.
    fn remove_log(&self, bucket: BucketId, vbucket: VbucketId, entries: u64) -> Result<bool>;

    /// Mutations in the order of their seqnos, from the beginning of the range: all of it or about so
    /// many bytes, at least one.
    fn read_log(&self, range: LogRange, bytes: usize) -> Result<Vec<Arc<Mutation>>>;
}
