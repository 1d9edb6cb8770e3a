//! Documents on disk, in an LSM tree (`fjall`).
//!
//! | keyspace | key | value |
//! |---|---|---|
//! | `meta` | `cas` | catalog cas, 8 bytes |
//! | `meta` | `bucket/` id (8 bytes) | [`BucketRecord`], postcard |
//! | `docs-N` | document id | seqno (8 bytes), JSON |
//! | `log-N` | vbucket (2 bytes), seqno (8 bytes) | kind, length of id, id, JSON |
//!
//! Integers are big-endian, so that a vbucket's log is a range in the order of its seqnos. A batch is
//! one `fjall` batch: one journal record, synced before it is applied to the trees and before its
//! version is visible. A torn record at the end of the journal is dropped when the store is opened.
//!
//! Keyspaces are made before the record that names them and dropped after it; what a crash leaves in
//! between has no record and is removed when the store is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, RwLock};

use bytes::Bytes;
use fjall::config::CompressionPolicy;
use fjall::{
    CompressionType, Database, Iter, Keyspace, KeyspaceCreateOptions, PersistMode, Readable,
};
use proto::env::{FileSystem, OpenMode};
use proto::ids::{BucketId, Seqno, VbucketId};
use proto::mutation::{MutationKind, put_bytes, take_bytes};
use proto::{Error, ErrorCode, Result};

use super::{
    Batch, BucketChanges, BucketRecord, DocumentSnapshot, DocumentStore, LogRange, Mutation,
    StoredDocument, get_each, no_bucket, undone,
};

/// What stands in the data directory's version file; another number is another layout.
const VERSION: &str = "sextant documents 3\n";
const VERSION_FILE: &str = "VERSION";
/// Where the database is in the data directory.
const DATABASE_DIR: &str = "fjall";

/// Blocks and indexes kept in memory.
const CACHE_BYTES: u64 = 64 << 20;
/// A memtable this large is written out; two for each bucket that is being written.
const MEMTABLE_BYTES: u64 = 32 << 20;

const CAS_KEY: &[u8] = b"cas";
const RECORD_PREFIX: &[u8] = b"bucket/";

/// The store on disk.
pub struct FjallStore {
    database: Database,
    meta: Keyspace,
    buckets: RwLock<BTreeMap<BucketId, BucketTrees>>,
}

#[derive(Clone)]
struct BucketTrees {
    documents: Keyspace,
    log: Keyspace,
    vbuckets: u16,
}

impl FjallStore {
    /// Opens the store in a directory, or makes one there. Blocks. `Version` for a directory of
    /// another layout, `Unavailable` for one that another process has open.
    pub fn open(fs: &dyn FileSystem, directory: &Path) -> Result<Self> {
        let doing = || format!("opening the documents in {}", directory.display());
        check_version(fs, directory).map_err(|error| error.context(doing()))?;
        Self::open_database(directory).map_err(|error| error.context(doing()))
    }

    fn open_database(directory: &Path) -> Result<Self> {
        let database = Database::builder(directory.join(DATABASE_DIR))
            .cache_size(CACHE_BYTES)
            .journal_compression(CompressionType::None)
            .worker_threads(1)
            .open()
            .map_err(store_error)?;
        let meta =
            database.keyspace("meta", KeyspaceCreateOptions::default).map_err(store_error)?;
        let store = Self { database, meta, buckets: RwLock::default() };
        let records = store.records()?;
        for record in &records {
            store.open_trees(record)?;
        }
        let kept: BTreeSet<_> = records.iter().flat_map(|r| tree_names(r.info.id)).collect();
        for name in store.database.list_keyspace_names() {
            if &*name != "meta" && !kept.contains(&*name) {
                store.remove_tree(&name)?;
            }
        }
        Ok(store)
    }

    fn records(&self) -> Result<Vec<BucketRecord>> {
        let mut records = Vec::new();
        for guard in self.meta.prefix(RECORD_PREFIX) {
            let (_, value) = guard.into_inner().map_err(store_error)?;
            records.push(postcard::from_bytes(&value).map_err(|_| damaged("a bucket's record"))?);
        }
        Ok(records)
    }

    fn open_trees(&self, record: &BucketRecord) -> Result<()> {
        let open = |name: &str| {
            self.database
                .keyspace(name, || {
                    KeyspaceCreateOptions::default()
                        .max_memtable_size(MEMTABLE_BYTES)
                        .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
                })
                .map_err(store_error)
        };
        let [documents, log] = tree_names(record.info.id);
        let trees = BucketTrees {
            documents: open(&documents)?,
            log: open(&log)?,
            vbuckets: record.info.vbuckets,
        };
        self.buckets.write().unwrap_or_else(|e| e.into_inner()).insert(record.info.id, trees);
        Ok(())
    }

    fn remove_tree(&self, name: &str) -> Result<()> {
        let tree =
            self.database.keyspace(name, KeyspaceCreateOptions::default).map_err(store_error)?;
        self.database.delete_keyspace(tree).map_err(store_error)
    }

    fn trees(&self, bucket: BucketId) -> Result<BucketTrees> {
        let buckets = self.buckets.read().unwrap_or_else(|e| e.into_inner());
        buckets.get(&bucket).cloned().ok_or_else(|| no_bucket(bucket))
    }
}

impl DocumentStore for FjallStore {
    fn buckets(&self) -> Result<Vec<(BucketRecord, Vec<Seqno>)>> {
        let mut found = Vec::new();
        for record in self.records()? {
            let trees = self.trees(record.info.id)?;
            let ends = (0..trees.vbuckets)
                .map(|vbucket| match trees.log.prefix(vbucket.to_be_bytes()).next_back() {
                    Some(last) => log_seqno(&last.key().map_err(store_error)?),
                    None => Ok(Seqno(0)),
                })
                .collect::<Result<_>>()?;
            found.push((record, ends));
        }
        Ok(found)
    }

    fn catalog_cas(&self) -> Result<u64> {
        match self.meta.get(CAS_KEY).map_err(store_error)? {
            Some(value) => be_u64(&value),
            None => Ok(0),
        }
    }

    fn apply_catalog(&self, cas: u64, made: &[BucketRecord], removed: &[BucketId]) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        for record in made {
            self.open_trees(record)?;
            batch.insert(&self.meta, record_key(record.info.id), encode_record(record)?);
        }
        for bucket in removed {
            batch.remove(&self.meta, record_key(*bucket));
        }
        batch.insert(&self.meta, CAS_KEY, cas.to_be_bytes());
        batch.commit().map_err(store_error)?;
        for bucket in removed {
            self.buckets.write().unwrap_or_else(|e| e.into_inner()).remove(bucket);
            for name in tree_names(*bucket) {
                self.remove_tree(&name)?;
            }
        }
        Ok(())
    }

    fn put_records(&self, records: &[BucketRecord]) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        for record in records {
            batch.insert(&self.meta, record_key(record.info.id), encode_record(record)?);
        }
        batch.commit().map_err(store_error)
    }

    fn rewind(&self, record: &BucketRecord, to: &[(VbucketId, Seqno)]) -> Result<()> {
        let trees = self.trees(record.info.id)?;
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        batch.insert(&self.meta, record_key(record.info.id), encode_record(record)?);
        for (vbucket, to) in to {
            let read = |guard: fjall::Guard| {
                let (key, value) = guard.into_inner().map_err(store_error)?;
                Ok(Arc::new(read_mutation(*vbucket, log_seqno(&key)?, &value)?))
            };
            let beyond = log_key(*vbucket, Seqno(to.0 + 1))..=log_key(*vbucket, Seqno(u64::MAX));
            let before = log_key(*vbucket, Seqno(0))..=log_key(*vbucket, *to);
            let gone = trees.log.range(beyond.clone()).map(read);
            for (id, was) in undone(gone, trees.log.range(before).map(read))? {
                match was {
                    Some(was) => batch.insert(&trees.documents, id.as_bytes(), stored(&was)),
                    None => batch.remove(&trees.documents, id.as_bytes()),
                }
            }
            for guard in trees.log.range(beyond) {
                batch.remove(&trees.log, guard.key().map_err(store_error)?);
            }
        }
        batch.commit().map_err(store_error)
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        let writes = batch.buckets.values().map(|b| b.mutations.len() + b.last.len() + 1).sum();
        let mut out = fjall::OwnedWriteBatch::with_capacity(self.database.clone(), writes)
            .durability(Some(PersistMode::SyncAll));
        for (bucket, changes) in &batch.buckets {
            let trees = self.trees(*bucket)?;
            if let Some(record) = &changes.record {
                out.insert(&self.meta, record_key(*bucket), encode_record(record)?);
            }
            add_changes(&mut out, &trees, changes);
        }
        out.commit().map_err(store_error)
    }

    fn get(
        &self,
        bucket: BucketId,
        ids: &[String],
        bytes_max: usize,
    ) -> Result<Vec<Option<Bytes>>> {
        let documents = self.trees(bucket)?.documents;
        let snapshot = self.database.snapshot();
        get_each(ids, bytes_max, |id| {
            let value = snapshot.get(&documents, id).map_err(store_error)?;
            value.map(|value| Ok(split_document(&value)?.1)).transpose()
        })
    }

    fn contains(&self, bucket: BucketId, id: &str) -> Result<bool> {
        self.trees(bucket)?.documents.contains_key(id).map_err(store_error)
    }

    fn snapshot(&self, bucket: BucketId) -> Result<Box<dyn DocumentSnapshot>> {
        let trees = self.trees(bucket)?;
        Ok(Box::new(FjallSnapshot(self.database.snapshot().iter(&trees.documents))))
    }

    fn read_log(&self, range: LogRange, bytes: usize) -> Result<Vec<Arc<Mutation>>> {
        let trees = self.trees(range.bucket)?;
        if range.after >= range.to {
            return Ok(Vec::new());
        }
        let keys =
            log_key(range.vbucket, Seqno(range.after.0 + 1))..=log_key(range.vbucket, range.to);
        let (mut found, mut size) = (Vec::new(), 0);
        for guard in trees.log.range(keys) {
            let (key, value) = guard.into_inner().map_err(store_error)?;
            size += key.len() + value.len();
            found.push(Arc::new(read_mutation(range.vbucket, log_seqno(&key)?, &value)?));
            if size >= bytes {
                break;
            }
        }
        Ok(found)
    }
}

struct FjallSnapshot(Iter);

impl DocumentSnapshot for FjallSnapshot {
    fn next_chunk(&mut self, bytes: usize) -> Result<Vec<StoredDocument>> {
        let (mut chunk, mut size) = (Vec::new(), 0);
        while size < bytes {
            let Some(guard) = self.0.next() else { break };
            let (key, value) = guard.into_inner().map_err(store_error)?;
            size += key.len() + value.len();
            let id = std::str::from_utf8(&key).map_err(|_| damaged("a document's id"))?.to_owned();
            let (seqno, document) = split_document(&value)?;
            chunk.push(StoredDocument { id, seqno, document });
        }
        Ok(chunk)
    }
}

fn check_version(fs: &dyn FileSystem, directory: &Path) -> Result<()> {
    fs.create_dir_all(directory)?;
    let path = directory.join(VERSION_FILE);
    if fs.exists(&path) {
        let file = fs.open(&path, OpenMode::Read)?;
        // A version file is one short line; what is longer is not ours.
        let mut found = vec![0; file.len()?.min(200) as usize];
        file.read_exact_at(&mut found, 0)?;
        return if found == VERSION.as_bytes() {
            Ok(())
        } else {
            let found = String::from_utf8_lossy(&found);
            Err(Error::new(
                ErrorCode::Version,
                format!(
                    "the data directory is of version {:?}, this build reads {:?}",
                    found.trim(),
                    VERSION.trim()
                ),
            )
            .with_hint("start the build that made it, or name another data directory"))
        };
    }
    if fs.exists(&directory.join(DATABASE_DIR)) {
        return Err(Error::new(ErrorCode::Version, "the data directory has no version file")
            .with_hint("it is damaged or not Sextant's: name another data directory"));
    }
    let draft = directory.join("VERSION.draft");
    let file = fs.open(&draft, OpenMode::Create)?;
    file.set_len(0)?;
    file.write_all_at(VERSION.as_bytes(), 0)?;
    file.sync()?;
    fs.rename(&draft, &path)?;
    fs.sync_dir(directory)?;
    Ok(())
}

fn add_changes(out: &mut fjall::OwnedWriteBatch, trees: &BucketTrees, changes: &BucketChanges) {
    for mutation in &changes.mutations {
        let mut value = Vec::with_capacity(mutation.document.len() + mutation.id.len() + 3);
        value.push(u8::from(mutation.kind == MutationKind::Deletion));
        put_bytes(&mut value, mutation.id.as_bytes());
        value.extend_from_slice(&mutation.document);
        out.insert(&trees.log, log_key(mutation.vbucket, mutation.seqno), value);
    }
    // One write for each id: within a batch all writes have one version, and no order among them.
    for (id, at) in &changes.last {
        let mutation = &changes.mutations[*at];
        if mutation.kind == MutationKind::Deletion {
            out.remove(&trees.documents, id.as_bytes());
            continue;
        }
        out.insert(&trees.documents, id.as_bytes(), stored(mutation));
    }
}

/// A document as it stands in its tree.
fn stored(mutation: &Mutation) -> Vec<u8> {
    let mut value = Vec::with_capacity(mutation.document.len() + 8);
    value.extend_from_slice(&mutation.seqno.0.to_be_bytes());
    value.extend_from_slice(&mutation.document);
    value
}

fn tree_names(bucket: BucketId) -> [String; 2] {
    [format!("docs-{bucket}"), format!("log-{bucket}")]
}

fn record_key(bucket: BucketId) -> Vec<u8> {
    [RECORD_PREFIX, &bucket.0.to_be_bytes()].concat()
}

fn encode_record(record: &BucketRecord) -> Result<Vec<u8>> {
    postcard::to_stdvec(record).map_err(|e| Error::internal(format!("a bucket's record: {e}")))
}

fn log_key(vbucket: VbucketId, seqno: Seqno) -> [u8; 10] {
    let mut key = [0; 10];
    key[..2].copy_from_slice(&vbucket.0.to_be_bytes());
    key[2..].copy_from_slice(&seqno.0.to_be_bytes());
    key
}

fn log_seqno(key: &[u8]) -> Result<Seqno> {
    let seqno = key.get(2..).ok_or_else(|| damaged("a log key"))?;
    Ok(Seqno(be_u64(seqno)?))
}

fn be_u64(bytes: &[u8]) -> Result<u64> {
    Ok(u64::from_be_bytes(bytes.try_into().map_err(|_| damaged("a number"))?))
}

fn split_document(value: &[u8]) -> Result<(Seqno, Bytes)> {
    let (seqno, document) = value.split_at_checked(8).ok_or_else(|| damaged("a document"))?;
    Ok((Seqno(be_u64(seqno)?), Bytes::copy_from_slice(document)))
}

fn read_mutation(vbucket: VbucketId, seqno: Seqno, value: &[u8]) -> Result<Mutation> {
    let (kind, mut rest) = match value {
        [0, rest @ ..] => (MutationKind::Upsert, rest),
        [1, rest @ ..] => (MutationKind::Deletion, rest),
        _ => return Err(damaged("a log entry")),
    };
    let id = std::str::from_utf8(take_bytes(&mut rest)?).map_err(|_| damaged("a log entry"))?;
    Ok(Mutation::new((vbucket, seqno), Arc::from(id), kind, Bytes::copy_from_slice(rest)))
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorCode::Corrupt, format!("{what} in the document store cannot be read"))
}

fn store_error(error: fjall::Error) -> Error {
    match error {
        fjall::Error::Io(error) => error.into(),
        fjall::Error::Locked => Error::unavailable("another process has the document store open")
            .with_hint("end that process, or name another data directory"),
        fjall::Error::Poisoned => Error::new(
            ErrorCode::Io,
            "the document store takes no writes: an earlier one could not be made durable",
        )
        .with_hint("look at the disk, then start the process again"),
        fjall::Error::InvalidVersion(_) => {
            Error::new(ErrorCode::Version, format!("the document store: {error}"))
        }
        other => Error::new(ErrorCode::Corrupt, format!("the document store: {other}")),
    }
}
