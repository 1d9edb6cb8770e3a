//! Tests of many buckets in one store: their open files, their memory, and which operations wait
//! for each other.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use proto::env::{Env, File, FileSystem, OpenMode, sim};
use proto::lock::lock;
use proto::model::assignment::VbucketSet;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::{BucketId, NodeId, Seqno, VbucketId, Vbuuid};
use proto::rpc::mutation::MutationKind;

use super::small;
use crate::document_store::{Batch, DocumentStore, StoredDocument};
use crate::mutation::Mutation;
use crate::ownership::Ownership;
use crate::record::BucketRecord;
use crate::store::{DiskStore, DiskStoreOptions};

/// A function that the test runs during the removal of a directory.
type Hook = Box<dyn Fn() + Send + Sync>;

/// A file system that counts its open files.
struct CountedFs {
    inner: Arc<dyn FileSystem>,
    open: Arc<AtomicUsize>,
    while_removing: Arc<Mutex<Option<Hook>>>,
}

struct CountedFile {
    inner: Arc<dyn File>,
    open: Arc<AtomicUsize>,
}

impl Drop for CountedFile {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl File for CountedFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner.read_exact_at(buf, offset)
    }
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_all_at(buf, offset)
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }
    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

impl FileSystem for CountedFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.open(path, mode)?;
        self.open.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(CountedFile { inner, open: Arc::clone(&self.open) }))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_file(path)
    }
    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        if let Some(hook) = &*lock(&self.while_removing) {
            hook();
        }
        self.inner.remove_dir_all(path)
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir_all(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_dir(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(path)
    }
    fn exists(&self, path: &Path) -> bool {
        self.inner.exists(path)
    }
    fn lock_dir(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.inner.lock_dir(path)
    }
}

/// A store with several buckets, each of one vbucket.
struct World {
    store: Arc<DiskStore>,
    fs: sim::SimFs,
    open: Arc<AtomicUsize>,
    while_removing: Arc<Mutex<Option<Hook>>>,
    ends: BTreeMap<BucketId, u64>,
}

impl World {
    fn new(buckets: u64, options: DiskStoreOptions) -> Self {
        let (env, _, fs) = sim::world(1);
        let (open, while_removing) = (Arc::default(), Arc::default());
        let counted = CountedFs {
            inner: Arc::clone(&env.fs),
            open: Arc::clone(&open),
            while_removing: Arc::clone(&while_removing),
        };
        let env = Env { fs: Arc::new(counted), ..env };
        let store = Arc::new(DiskStore::open(&env, Path::new("/data"), options).expect("opened"));
        let records: Vec<_> = (1..=buckets).map(|id| record(BucketId(id))).collect();
        store.apply_catalog(1, &records, &[]).expect("buckets");
        let ends = records.iter().map(|record| (record.info.id, 0)).collect();
        Self { store, fs, open, while_removing, ends }
    }

    /// Writes a document of about `bytes` bytes into each bucket.
    fn write(&mut self, bytes: usize) {
        for (bucket, end) in &mut self.ends {
            *end += 1;
            let document = Bytes::from(format!("\"{}\"", "x".repeat(bytes)));
            let id = Arc::from(format!("d{end}"));
            let kind = MutationKind::Upsert;
            let mutation = Mutation::new((VbucketId(0), Seqno(*end)), id, kind, document);
            let batch = Batch { mutations: vec![Arc::new(mutation)], ..Batch::default() };
            self.store.commit(*bucket, batch).expect("committed");
        }
    }

    fn memory_bytes(&self) -> usize {
        self.store.all().iter().map(|(_, bucket)| bucket.table.memory_bytes()).sum()
    }
}

fn record(id: BucketId) -> BucketRecord {
    let info = BucketInfo::new(id, "b", 1, SourceKind::Embedded, NodeId(1));
    let ownership = Ownership { owned: VbucketSet::all(1), ..Ownership::default() };
    let branches = vec![vec![(Vbuuid(7), 0)]];
    BucketRecord {
        info,
        branches,
        ownership,
        given_up: BTreeMap::new(),
        commits: Default::default(),
    }
}

#[test]
fn a_store_of_many_buckets_keeps_few_files_open() {
    const OPEN_MAX: usize = 8;
    let mut world = World::new(60, DiskStoreOptions { open_files_max: OPEN_MAX, ..small() });
    let open = |world: &World| world.open.load(Ordering::Relaxed);
    for round in 0..3 {
        world.write(2_000);
        assert!(open(&world) <= OPEN_MAX, "round {round}: {} files after writes", open(&world));
        for (bucket, end) in &world.ends {
            let ids: Vec<String> = (1..=*end).map(|n| format!("d{n}")).collect();
            let found = world.store.get(*bucket, &ids, 1 << 20).expect("documents");
            assert!(found.iter().all(Option::is_some));
        }
        while world.store.maintain().expect("maintained") {}
        // A mark is written beside the writers, and synced by the round after it.
        world.store.maintain().expect("maintained");
        assert!(open(&world) <= OPEN_MAX, "round {round}: {} files at rest", open(&world));
    }
}

#[test]
fn the_memory_of_all_buckets_is_bounded_while_the_maintenance_is_busy() {
    let memory_bytes_max = 64 << 10;
    let options = DiskStoreOptions { memory_bytes_max, memtable_bytes: 32 << 10, ..small() };
    let mut world = World::new(40, options);
    for _ in 0..20 {
        world.write(1_000);
        let (memory, bound) = (world.memory_bytes(), 2 * memory_bytes_max);
        assert!(memory <= bound, "{memory} bytes in memory, the bound is {bound}");
    }
}

/// Copied documents arrive in large pieces without a pause, and memory must remain bounded.
#[test]
fn the_memory_of_copied_documents_is_bounded_while_the_maintenance_is_busy() {
    let memtable_bytes = 8 << 10;
    let world = World::new(1, DiskStoreOptions { memtable_bytes, ..small() });
    let (bucket, documents) = (BucketId(1), 200);
    let begun = world.store.begin_purged(&record(bucket), VbucketId(0), Seqno(documents));
    begun.expect("begun");
    for n in 1..=documents {
        let (id, document) = (format!("d{n}"), Bytes::from(vec![b'1'; 1_000]));
        let stored = StoredDocument { id, seqno: Seqno(n), document };
        world.store.put_documents(bucket, &[stored]).expect("stored");
        let (memory, bound) = (world.memory_bytes(), 4 * memtable_bytes);
        assert!(memory <= bound, "{memory} bytes in memory, the bound is {bound}");
    }
}

#[test]
fn removal_of_a_bucket_blocks_no_call() {
    let world = World::new(3, small());
    let (store, tries) = (Arc::downgrade(&world.store), Arc::new(AtomicUsize::default()));
    let counted = Arc::clone(&tries);
    *lock(&world.while_removing) = Some(Box::new(move || {
        let store = store.upgrade().expect("open");
        assert!(store.manifest.try_lock().is_ok(), "the manifest is locked");
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    world.store.apply_catalog(2, &[], &[BucketId(1), BucketId(2)]).expect("dropped");
    assert_eq!(tries.load(Ordering::Relaxed), 2);
    assert_eq!(world.fs.list(Path::new("/data/buckets")).expect("directories").len(), 1);
    assert!(lock(&world.store.manifest).contents.removing.is_empty());
    *lock(&world.while_removing) = None;
}

#[test]
fn the_moment_of_a_snapshot_is_fixed_without_reading_or_sorting() {
    let mut world = World::new(1, small());
    for _ in 0..30 {
        world.write(1_000);
        world.store.maintain().expect("maintained");
    }
    world.write(1_000);
    let before = world.fs.operations();
    let mut snapshot = world.store.snapshot(BucketId(1)).expect("a snapshot");
    assert_eq!(world.fs.operations(), before, "files are read later");
    assert!(snapshot.documents_about() >= 31);
    world.write(1_000);
    let documents = snapshot.next_chunk(1 << 20).expect("documents");
    assert_eq!(documents.len(), 31, "as of the moment");
}
