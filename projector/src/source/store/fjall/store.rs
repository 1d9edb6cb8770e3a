//! The document store on its trees.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, RwLock};

use bytes::Bytes;
use fjall::config::CompressionPolicy;
use fjall::{
    CompressionType, Database, Iter, Keyspace, KeyspaceCreateOptions, PersistMode, Readable,
};
use proto::env::FileSystem;
use proto::lock::{read, write};
use proto::model::ids::{BucketId, Seqno, VbucketId};
use proto::rpc::mutation::MutationKind;
use proto::{Error, Result};

use super::format::{
    CAS_KEY, DATABASE_DIR, RECORD_PREFIX, UNIQUE_PREFIX, be_u64, check_version, damaged,
    document_id, encode_record, purged_prefix, record_key, split_document, store_error, stored,
    tree_names, unique_key,
};
use super::log::Log;
use documents::document_store::{
    Batch, BucketChanges, DocumentSnapshot, DocumentStore, LogExtent, LogRange, StoredDocument,
};
use documents::mutation::Mutation;
use documents::record::{BucketRecord, StoredId};
use documents::rules::{get_each, no_bucket};

/// The size of the cache for blocks and indexes.
const CACHE_BYTES: u64 = 64 << 20;
/// The size at which a memtable is flushed. Each bucket that is being written has two.
const MEMTABLE_BYTES: u64 = 32 << 20;

/// The prefix of the name of the newest tree.
const NEWEST_PREFIX: &str = "newest-";

/// The store on disk.
pub struct FjallStore {
    database: Database,
    meta: Keyspace,
    buckets: RwLock<BTreeMap<BucketId, BucketTrees>>,
}

#[derive(Clone)]
struct BucketTrees {
    documents: Keyspace,
    log: Arc<Log>,
}

impl FjallStore {
    /// Opens or creates the store in a directory. Blocks. `Version` for a directory of another layout, `Unavailable`
    /// if another process has it open. At most about `open_files_max` of its tables are open at once.
    pub fn open(fs: &dyn FileSystem, directory: &Path, open_files_max: usize) -> Result<Self> {
        let doing = || format!("opening the documents in {}", directory.display());
        check_version(fs, directory).map_err(|error| error.context(doing()))?;
        Self::open_database(directory, open_files_max).map_err(|error| error.context(doing()))
    }

    /// True if a directory has documents.
    pub fn is_in(fs: &dyn FileSystem, directory: &Path) -> bool {
        fs.exists(&directory.join(DATABASE_DIR))
    }

    fn open_database(directory: &Path, open_files_max: usize) -> Result<Self> {
        let database = Database::builder(directory.join(DATABASE_DIR))
            .cache_size(CACHE_BYTES)
            .journal_compression(CompressionType::None)
            .worker_threads(1)
            .max_cached_files(Some(open_files_max))
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
        let is_left =
            |name: &str| name != "meta" && !kept.contains(name) && !name.starts_with(NEWEST_PREFIX);
        let names = store.database.list_keyspace_names();
        let left: Vec<_> = names.iter().filter(|name| is_left(name)).collect();
        if !left.is_empty() {
            store.keep_newest_number()?;
        }
        left.into_iter().try_for_each(|name| store.remove_tree(name))?;
        Ok(store)
    }

    /// Makes an empty tree, newer than all others, and removes the one before. The database numbers its trees, and
    /// begins after the largest number that it finds when it is opened. Without this tree it would give the numbers of
    /// removed trees again, and then remove the new trees with the next start.
    fn keep_newest_number(&self) -> Result<()> {
        let names = self.database.list_keyspace_names();
        let number = |name: &str| name.strip_prefix(NEWEST_PREFIX)?.parse::<u64>().ok();
        let before: Vec<u64> = names.iter().filter_map(|name| number(name)).collect();
        let next = before.iter().max().map_or(0, |newest| newest + 1);
        let name = |number: u64| format!("{NEWEST_PREFIX}{number}");
        self.database.keyspace(&name(next), KeyspaceCreateOptions::default).map_err(store_error)?;
        before.into_iter().try_for_each(|number| self.remove_tree(&name(number)))
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
        let log = Log::open(open(&log)?, &self.meta, &record.info)?;
        let trees = BucketTrees { documents: open(&documents)?, log: Arc::new(log) };
        write(&self.buckets).insert(record.info.id, trees);
        Ok(())
    }

    fn remove_tree(&self, name: &str) -> Result<()> {
        let tree =
            self.database.keyspace(name, KeyspaceCreateOptions::default).map_err(store_error)?;
        self.database.delete_keyspace(tree).map_err(store_error)
    }

    fn trees(&self, bucket: BucketId) -> Result<BucketTrees> {
        let buckets = read(&self.buckets);
        buckets.get(&bucket).cloned().ok_or_else(|| no_bucket(bucket))
    }
}

impl DocumentStore for FjallStore {
    fn buckets(&self) -> Result<Vec<(BucketRecord, Vec<Seqno>)>> {
        let mut found = Vec::new();
        for record in self.records()? {
            let extents = self.trees(record.info.id)?.log.extents();
            let ends = extents.iter().map(|extent| extent.end).collect();
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

    fn unique_ids(&self) -> Result<BTreeMap<BucketId, StoredId>> {
        let mut ids = BTreeMap::new();
        for guard in self.meta.prefix(UNIQUE_PREFIX) {
            let (key, value) = guard.into_inner().map_err(store_error)?;
            let unreadable = || damaged("a bucket's random id");
            let bucket = key.get(UNIQUE_PREFIX.len()..).ok_or_else(unreadable)?;
            let id = postcard::from_bytes(&value).map_err(|_| unreadable())?;
            ids.insert(BucketId(be_u64(bucket)?), id);
        }
        Ok(ids)
    }

    fn put_unique_ids(&self, ids: &[(BucketId, StoredId)]) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        for (bucket, id) in ids {
            let value = postcard::to_stdvec(id)
                .map_err(|e| Error::internal(format!("a bucket's random id: {e}")))?;
            batch.insert(&self.meta, unique_key(*bucket), value);
        }
        batch.commit().map_err(store_error)
    }

    fn apply_catalog(&self, cas: u64, made: &[BucketRecord], removed: &[BucketId]) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        for record in made {
            self.open_trees(record)?;
            batch.insert(&self.meta, record_key(record.info.id), encode_record(record)?);
        }
        for bucket in removed {
            batch.remove(&self.meta, record_key(*bucket));
            for guard in self.meta.prefix(purged_prefix(*bucket)) {
                batch.remove(&self.meta, guard.key().map_err(store_error)?);
            }
        }
        batch.insert(&self.meta, CAS_KEY, cas.to_be_bytes());
        batch.commit().map_err(store_error)?;
        if !removed.is_empty() {
            self.keep_newest_number()?;
        }
        for bucket in removed {
            write(&self.buckets).remove(bucket);
            for name in tree_names(*bucket) {
                self.remove_tree(&name)?;
            }
        }
        Ok(())
    }

    fn put_records(&self, records: &[BucketRecord]) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        // The record of a dropped bucket would bring the bucket back with the next start.
        let buckets = read(&self.buckets);
        for record in records.iter().filter(|record| buckets.contains_key(&record.info.id)) {
            batch.insert(&self.meta, record_key(record.info.id), encode_record(record)?);
        }
        batch.commit().map_err(store_error)
    }

    fn rewind(&self, record: &BucketRecord, to: &[(VbucketId, Seqno)]) -> Result<()> {
        let trees = self.trees(record.info.id)?;
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        batch.insert(&self.meta, record_key(record.info.id), encode_record(record)?);
        trees.log.rewind(to, &trees.documents, &self.meta, batch)
    }

    fn extents(&self, bucket: BucketId) -> Result<Vec<LogExtent>> {
        Ok(self.trees(bucket)?.log.extents())
    }

    fn log_bytes_to(&self, bucket: BucketId, vbucket: VbucketId, to: Seqno) -> Result<u64> {
        self.trees(bucket)?.log.bytes_to(vbucket, to)
    }

    fn purge(&self, bucket: BucketId, to: &[(VbucketId, Seqno)]) -> Result<()> {
        self.trees(bucket)?.log.purge(to, &self.meta, self.database.batch())
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        let writes = batch.buckets.values().map(|b| b.mutations.len() + b.last.len() + 1).sum();
        let mut out = fjall::OwnedWriteBatch::with_capacity(self.database.clone(), writes)
            .durability(Some(PersistMode::SyncAll));
        let mut grown = Vec::new();
        for (bucket, changes) in &batch.buckets {
            let trees = self.trees(*bucket)?;
            if let Some(record) = &changes.record {
                out.insert(&self.meta, record_key(*bucket), encode_record(record)?);
            }
            let ends = trees.log.add(&mut out, &changes.mutations);
            add_documents(&mut out, &trees, changes);
            grown.push((trees.log, ends));
        }
        out.commit().map_err(store_error)?;
        grown.into_iter().for_each(|(log, ends)| log.grow(&ends));
        Ok(())
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

    fn snapshot_after(
        &self,
        bucket: BucketId,
        after: Option<&str>,
    ) -> Result<Box<dyn DocumentSnapshot>> {
        let documents = self.trees(bucket)?.documents;
        let snapshot = self.database.snapshot();
        let count = documents.approximate_len() as u64;
        let rows = snapshot.range::<&[u8], _>(&documents, ids_after(after));
        Ok(Box::new(FjallSnapshot(rows, count)))
    }

    fn begin_purged(&self, record: &BucketRecord, vbucket: VbucketId, purged: Seqno) -> Result<()> {
        let trees = self.trees(record.info.id)?;
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        batch.insert(&self.meta, record_key(record.info.id), encode_record(record)?);
        trees.log.begin_purged(vbucket, purged, &self.meta, batch)
    }

    fn put_documents(&self, bucket: BucketId, documents: &[StoredDocument]) -> Result<()> {
        let trees = self.trees(bucket)?;
        let mut batch = self.database.batch();
        for StoredDocument { id, seqno, document } in documents {
            batch.insert(&trees.documents, id.as_bytes(), stored(*seqno, document));
        }
        batch.commit().map_err(store_error)
    }

    fn remove_documents(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        after: Option<&str>,
        look_at: usize,
    ) -> Result<Option<String>> {
        let trees = self.trees(bucket)?;
        let mut batch = self.database.batch();
        let (mut looked_at, mut last) = (0, None);
        for guard in trees.documents.range::<&[u8], _>(ids_after(after)).take(look_at) {
            let key = guard.key().map_err(store_error)?;
            let id = document_id(&key)?;
            if trees.log.vbucket_of(id) == vbucket {
                batch.remove(&trees.documents, id.as_bytes());
            }
            looked_at += 1;
            last = Some(id.to_owned());
        }
        batch.commit().map_err(store_error)?;
        Ok(last.filter(|_| looked_at == look_at))
    }

    fn remove_log(&self, bucket: BucketId, vbucket: VbucketId, entries: u64) -> Result<bool> {
        self.trees(bucket)?.log.remove(vbucket, entries, &self.meta, self.database.batch())
    }

    fn read_log(&self, range: LogRange, bytes: usize) -> Result<Vec<Arc<Mutation>>> {
        self.trees(range.bucket)?.log.read(range, bytes)
    }
}

struct FjallSnapshot(Iter, u64);

impl DocumentSnapshot for FjallSnapshot {
    fn documents_about(&self) -> u64 {
        self.1
    }

    fn next_chunk(&mut self, bytes: usize) -> Result<Vec<StoredDocument>> {
        let (mut chunk, mut size) = (Vec::new(), 0);
        while size < bytes {
            let Some(guard) = self.0.next() else { break };
            let (key, value) = guard.into_inner().map_err(store_error)?;
            size += key.len() + value.len();
            let id = document_id(&key)?.to_owned();
            let (seqno, document) = split_document(&value)?;
            chunk.push(StoredDocument { id, seqno, document });
        }
        Ok(chunk)
    }
}

/// The key range after an id, or of all documents.
fn ids_after(after: Option<&str>) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let from = after.map_or(Bound::Unbounded, |id| Bound::Excluded(id.as_bytes()));
    (from, Bound::Unbounded)
}

/// Adds one write per id, because the writes of a batch share one version and have no order.
fn add_documents(out: &mut fjall::OwnedWriteBatch, trees: &BucketTrees, changes: &BucketChanges) {
    for (id, at) in &changes.last {
        let mutation = &changes.mutations[*at];
        if mutation.kind == MutationKind::Deletion {
            out.remove(&trees.documents, id.as_bytes());
            continue;
        }
        let document = stored(mutation.seqno, &mutation.document);
        out.insert(&trees.documents, id.as_bytes(), document);
    }
}
