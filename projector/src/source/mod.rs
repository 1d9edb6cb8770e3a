//! The embedded source: documents by id, and for each vbucket the log of all changes that made them.
//!
//! A [`DocumentStore`] keeps three things: a record of each bucket (definition and branches), its
//! documents, each with the seqno of its last change, and its change log by (vbucket, seqno). The two
//! implementations differ in where the bytes are: [`fjall::FjallStore`] on disk, and
//! [`memory::MemoryStore`], its twin for the simulation, which can lose what was never synced.
//!
//! What holds at every moment, and after any crash:
//!
//! - a [`Batch`] is in documents, log and records, or in none of them;
//! - nobody reads a batch before it is durable, so what is streamed cannot be lost;
//! - the seqnos of a vbucket's log have no gap, and its last one is the vbucket's position: positions are
//!   read from the log when a store is opened, never kept beside it;
//! - a log begins behind its *purge point*: what is at or before it was removed, so that logs are bounded
//!   (`crate::purge`). The point and the removal are one batch, and the last entry always stays;
//! - a vbucket of which something is here has a log or a purge point, and so an end beyond zero. One that is copied
//!   from elsewhere by its documents begins with the purge point, and one that is removed ends with it. A vbucket
//!   that is not here *as a whole* is known by that: it has an end and no branches ([`is_part`]).
//!
//! The calls block; they are made inside `Env::blocking`. Numbering, duplicate ids and the order of
//! writers are not the store's business but [`writer`]'s, and what is published to readers is
//! [`bucket`]'s.

pub mod backlog;
mod branches;
pub mod bucket;
mod copying;
pub mod fjall;
pub mod keeping;
pub mod memory;
mod removing;
pub mod writer;

pub use copying::LogPiece;
pub use removing::{Removal, is_coming};

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use proto::model::bucket::BucketInfo;
use proto::model::history::Branches;
use proto::model::ids::{BucketId, Seqno, VbucketId};
use proto::rpc::mutation::MutationKind;
use proto::value::Value;
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

/// What a store keeps of a bucket besides its contents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BucketRecord {
    /// Its definition.
    pub info: BucketInfo,
    /// For each vbucket, its branches.
    pub branches: Vec<Branches>,
    /// Which vbuckets the projector keeps.
    pub keeping: keeping::Keeping,
    /// Of vbuckets that a producer numbers, the branches that were begun and are no part of the history any more,
    /// newest first and at most [`BRANCHES_MAX`](proto::model::history::BRANCHES_MAX).
    pub given_up: BTreeMap<VbucketId, Branches>,
}

/// One change of one document.
#[derive(Debug)]
pub struct Mutation {
    /// The vbucket of its id.
    pub vbucket: VbucketId,
    /// Its place in the vbucket.
    pub seqno: Seqno,
    /// The document's id.
    pub id: Arc<str>,
    /// What happened.
    pub kind: MutationKind,
    /// The document as it was given, JSON; empty for a deletion.
    pub document: Bytes,
    value: OnceLock<Value>,
}

impl Mutation {
    /// A mutation whose document is parsed when first asked for.
    pub fn new(
        (vbucket, seqno): (VbucketId, Seqno),
        id: Arc<str>,
        kind: MutationKind,
        document: Bytes,
    ) -> Self {
        Self { vbucket, seqno, id, kind, document, value: OnceLock::new() }
    }

    /// The same with the document that was parsed already.
    pub fn with_value(self, value: Value) -> Self {
        let _first = self.value.set(value);
        self
    }

    /// The document; MISSING for a deletion.
    pub fn value(&self) -> Result<&Value> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = match self.kind {
            MutationKind::Deletion => Value::Missing,
            MutationKind::Upsert => parse_stored(&self.id, &self.document)?,
        };
        Ok(self.value.get_or_init(|| value))
    }

    /// Roughly what it takes in memory: a parsed document is a few times as large as its text.
    pub fn bytes(&self) -> usize {
        200 + self.id.len() + 4 * self.document.len()
    }
}

/// Parses a document that was checked before it was stored.
pub fn parse_stored(id: &str, document: &[u8]) -> Result<Value> {
    Value::parse_json(document).map_err(|error| {
        Error::new(ErrorCode::Corrupt, format!("the stored document {id:?} is damaged: {error}"))
    })
}

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

/// What an entry of a log counts for, in bytes, whatever store it is in: its text, a key, a number or two.
pub fn entry_bytes(mutation: &Mutation) -> u64 {
    24 + mutation.id.len() as u64 + mutation.document.len() as u64
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

/// Is a vbucket with these branches and this end not here as a whole? It is being copied by its documents, or
/// removed: nobody may see it, and what is left of it goes before anything else comes.
pub fn is_part(branches: &Branches, end: Seqno) -> bool {
    end.0 > 0 && branches.is_empty()
}

/// What taking a vbucket back to a place does to its documents: for each id that was changed beyond it, the
/// mutation that it goes back to, if it had one. The vbucket's log is read in two parts, what goes first. Where
/// neither part says what a document was, purged entries may have.
fn undone(
    beyond: impl Iterator<Item = Result<Arc<Mutation>>>,
    before: impl Iterator<Item = Result<Arc<Mutation>>>,
    vbucket: VbucketId,
    purged: Seqno,
) -> Result<BTreeMap<Arc<str>, Option<Arc<Mutation>>>> {
    let mut changed: BTreeMap<Arc<str>, Option<Arc<Mutation>>> =
        beyond.map(|mutation| Ok((Arc::clone(&mutation?.id), None))).collect::<Result<_>>()?;
    for mutation in before {
        let mutation = mutation?;
        if let Some(was) = changed.get_mut(&mutation.id) {
            *was = Some(mutation);
        }
    }
    if purged.0 > 0 && changed.values().any(Option::is_none) {
        return Err(versions_purged(vbucket, purged));
    }
    let upsert = |was: &Arc<Mutation>| was.kind == MutationKind::Upsert;
    Ok(changed.into_iter().map(|(id, was)| (id, was.filter(upsert))).collect())
}

/// Is the place to which a vbucket goes back still in its log, or its very beginning?
fn check_rewind(vbucket: VbucketId, purged: Seqno, to: Seqno) -> Result<()> {
    if to.0 > 0 && to <= purged { Err(versions_purged(vbucket, purged)) } else { Ok(()) }
}

/// Is nothing here of a vbucket that is to be copied?
fn check_empty(vbucket: VbucketId, extent: &LogExtent) -> Result<()> {
    let LogExtent { end, .. } = extent;
    match end.0 {
        0 => Ok(()),
        _ => Err(Error::internal(format!("vbucket {vbucket} is here already, up to seqno {end}"))),
    }
}

fn versions_purged(vbucket: VbucketId, purged: Seqno) -> Error {
    let text = format!(
        "vbucket {vbucket} cannot go back: its log was purged up to seqno {purged}, and with it what documents were"
    );
    Error::new(ErrorCode::OutOfOrder, text)
        .with_hint("begin the branch at seqno 0 and push everything again")
}

/// Looks up each id, as long as what is found is within a bound.
fn get_each(
    ids: &[String],
    bytes_max: usize,
    get: impl Fn(&str) -> Result<Option<Bytes>>,
) -> Result<Vec<Option<Bytes>>> {
    let (mut found, mut bytes) = (Vec::with_capacity(ids.len()), 0);
    for id in ids {
        let document = get(id)?;
        bytes += document.as_ref().map_or(0, Bytes::len);
        if bytes > bytes_max {
            let message = format!("{} documents take over {bytes_max} bytes together", ids.len());
            return Err(Error::new(ErrorCode::OverLimit, message)
                .with_hint("ask for fewer documents at once"));
        }
        found.push(document);
    }
    Ok(found)
}

/// The error for a bucket that a store does not have.
fn no_bucket(bucket: BucketId) -> Error {
    Error::new(ErrorCode::Unknown, format!("this projector keeps no bucket {bucket}"))
}

#[cfg(test)]
mod purge_tests;
#[cfg(test)]
mod tests;
