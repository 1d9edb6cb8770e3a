//! The document store on disk: opens the data directory, and implements [`DocumentStore`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use bytes::Bytes;
use proto::env::{Env, FileSystem, check_version, create_dir_durably};
use proto::lock::{lock, read, write};
use proto::model::cut::{Cut, Position};
use proto::model::history::branch_of;
use proto::model::ids::{BucketId, Seqno, VbucketId};
use proto::{Error, ErrorCode, Result};

use super::bucket_store::BucketStore;
use super::options::DiskStoreOptions;
use super::paired_file::PairedFile;
use super::source_manifest::{
    self, BucketEntry, SourceManifest, directory_path, remove as remove_directory,
};
use super::walk::StoreWalk;
use crate::document_store::{
    AddSorted, Batch, DamagedBucket, DamagedFiles, DocumentRef, DocumentSnapshot, DocumentStore,
    KnownLoss, LogExtent, LogRange, ShowBatch, StoredDocument,
};
use crate::record::{BucketRecord, StoredId};
use crate::rules::no_bucket;
use crate::table::TableOptions;

/// The content of the data directory's version file. A different number means a different layout
/// of the directory.
pub(super) const VERSION: &str = "sextant projector, format 2\n";

/// The hint in the error about a directory that has the log of another bucket.
const FOREIGN_LOG_HINT: &str = "put the directories of the buckets back as they were, or restore the data directory from a copy";

/// The document store on disk. All calls block the thread.
pub struct DiskStore {
    pub(super) env: Env,
    pub(super) dir: PathBuf,
    pub(super) options: DiskStoreOptions,
    tables: TableOptions,
    pub(super) manifest: Mutex<ManifestOnDisk>,
    pub(super) buckets: RwLock<BTreeMap<BucketId, Arc<BucketStore>>>,
    /// The buckets whose files are damaged.
    pub(super) damaged: RwLock<BTreeMap<BucketId, DamagedBucket>>,
    /// Locked during the removal of dropped buckets' directories.
    removing: Mutex<()>,
    /// Bytes of mutations that were logged since the store was opened.
    pub(super) logged_bytes: AtomicUsize,
    /// The number of maintenance rounds since the store was opened.
    pub(super) idle_rounds: AtomicU32,
}

/// The manifest of the source, with the file that stores it.
pub(super) struct ManifestOnDisk {
    file: PairedFile,
    pub(super) contents: SourceManifest,
}

impl ManifestOnDisk {
    /// Replaces the manifest durably. After an error the manifest in memory is unchanged.
    pub(super) fn write(&mut self, fs: &dyn FileSystem, next: SourceManifest) -> Result<()> {
        self.file.write(fs, &next)?;
        self.contents = next;
        Ok(())
    }
}

impl DiskStore {
    /// Opens or creates the store in a directory that this process has locked. Blocks the thread.
    /// The error is `Version` if the directory has another layout. It is `Corrupt` if both copies
    /// of the source's manifest are damaged, or if a directory exists that the manifest does not
    /// name. A bucket that is damaged, or lacks data that it had, is not an error:
    /// [`DocumentStore::damaged`] lists it.
    pub fn open(env: &Env, dir: &Path, options: DiskStoreOptions) -> Result<Self> {
        let opening =
            |error: Error| error.context(format!("opening the documents in {}", dir.display()));
        Self::open_directory(env, dir, options).map_err(opening)
    }

    /// Returns true if a directory contains a document store.
    pub fn is_in(fs: &dyn FileSystem, dir: &Path) -> bool {
        ["buckets", "source.1", "source.2"].iter().any(|name| fs.exists(&dir.join(name)))
    }

    fn open_directory(env: &Env, dir: &Path, options: DiskStoreOptions) -> Result<Self> {
        let fs = &env.fs;
        create_dir_durably(&**fs, dir)?;
        check_version(&**fs, dir, VERSION, Self::is_in(&**fs, dir))?;
        let (file, contents) = source_manifest::open(&**fs, dir)?;
        let tables = options.tables(env);
        let (mut buckets, mut damaged) = (BTreeMap::new(), BTreeMap::new());
        for (id, entry) in &contents.buckets {
            let path = directory_path(dir, entry.directory);
            let opened = BucketStore::open(env, &path, entry.end, &options, &tables)
                .and_then(|bucket| check_log_id(&bucket, entry).map(|()| bucket))
                .map_err(|error| error.context(format!("bucket {id}, {}", contents_text(entry))));
            match opened {
                Ok(bucket) => drop(buckets.insert(*id, Arc::new(bucket))),
                // Other buckets are intact, and this one may have another copy elsewhere.
                Err(error) if error.code == ErrorCode::Corrupt => {
                    let positions = entry.positions.clone();
                    damaged.insert(*id, DamagedBucket { error, positions });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            env: env.clone(),
            dir: dir.to_path_buf(),
            options,
            tables,
            manifest: Mutex::new(ManifestOnDisk { file, contents }),
            buckets: RwLock::new(buckets),
            damaged: RwLock::new(damaged),
            removing: Mutex::default(),
            logged_bytes: AtomicUsize::default(),
            idle_rounds: AtomicU32::default(),
        })
    }

    fn bucket(&self, bucket: BucketId) -> Result<Arc<BucketStore>> {
        let found = read(&self.buckets).get(&bucket).cloned();
        found.ok_or_else(|| match read(&self.damaged).get(&bucket) {
            Some(damaged) => damaged.error.clone(),
            None => no_bucket(bucket),
        })
    }

    /// Returns all buckets, in the order of their numbers.
    pub(super) fn all(&self) -> Vec<(BucketId, Arc<BucketStore>)> {
        read(&self.buckets).iter().map(|(id, bucket)| (*id, Arc::clone(bucket))).collect()
    }

    /// Creates the directories of new buckets, which the manifest must name already as being
    /// made. `first` is the number of the first directory.
    pub(super) fn make_buckets(
        &self,
        made: &[&BucketRecord],
        first: u64,
    ) -> Result<Vec<MadeBucket>> {
        let make = |(record, directory): (&&BucketRecord, u64)| {
            let path = directory_path(&self.dir, directory);
            let bucket = BucketStore::create(
                &self.env,
                &path,
                (record, directory),
                &self.options,
                &self.tables,
            )?;
            let entry = entry_of(&bucket, directory);
            Ok((record.info.id, entry, Arc::new(bucket)))
        };
        made.iter().zip(first..).map(make).collect()
    }

    /// Removes the directories that the manifest lists as being removed; the manifest is not
    /// locked meanwhile. A failed removal is repeated later, and at the next start.
    pub(super) fn remove_left(&self) {
        let _one_at_a_time = lock(&self.removing);
        let left = lock(&self.manifest).contents.removing.clone();
        for directory in left {
            let path = directory_path(&self.dir, directory);
            match remove_directory(&*self.env.fs, &self.dir, &path) {
                Ok(()) => drop(lock(&self.manifest).contents.removing.remove(&directory)),
                Err(error) => {
                    tracing::warn!(%error, "the directory of a dropped bucket stays for now");
                }
            }
        }
    }
}

/// A bucket that was just created: its id, its entry in the manifest, and its store.
pub(super) type MadeBucket = (BucketId, BucketEntry, Arc<BucketStore>);

/// Returns the manifest entry for a bucket as it is now, in the directory with this number.
pub(super) fn entry_of(bucket: &BucketStore, directory: u64) -> BucketEntry {
    let state = bucket.log.state();
    let branches = bucket.record().branches;
    let position = |(vbucket, branches): (&crate::change_log::VbucketState, &_)| {
        let seqno = vbucket.extent.end;
        Position { vbuuid: branch_of(branches, seqno), seqno }
    };
    BucketEntry {
        directory,
        log_id: state.log_id.unwrap_or_default(),
        end: state.from,
        positions: Cut::from_positions(
            state.vbuckets.iter().zip(&branches).map(position).collect(),
        ),
    }
}

/// Returns a description of what a bucket had when its manifest entry was written, for error
/// messages.
fn contents_text(entry: &BucketEntry) -> String {
    let mutations: u64 = entry.positions.iter().map(|(_, position)| position.seqno.0).sum();
    format!("which had {mutations} mutations")
}

/// Returns an error if the log in a bucket's directory is another one than the manifest names.
pub(super) fn check_log_id(bucket: &BucketStore, entry: &BucketEntry) -> Result<()> {
    if bucket.log.state().log_id == Some(entry.log_id) {
        return Ok(());
    }
    let what = "the change log is another one than the manifest of the source means";
    Err(Error::new(ErrorCode::Corrupt, what).with_hint(FOREIGN_LOG_HINT))
}

impl DocumentStore for DiskStore {
    fn buckets(&self) -> Result<Vec<(BucketRecord, Vec<Seqno>)>> {
        Ok(self.all().iter().map(|(_, bucket)| (bucket.record(), bucket.ends())).collect())
    }

    fn damaged(&self) -> Result<BTreeMap<BucketId, DamagedBucket>> {
        Ok(read(&self.damaged).clone())
    }

    fn recreate_empty(&self, record: &BucketRecord, files: DamagedFiles) -> Result<()> {
        self.recreate_damaged(record, files)
    }

    fn recreated(&self) -> Result<BTreeSet<BucketId>> {
        Ok(lock(&self.manifest).contents.replaced().map(|(_, bucket)| bucket).collect())
    }

    fn remove_replaced(&self, bucket: BucketId) -> Result<()> {
        self.remove_replaced_of(bucket)
    }

    fn catalog_cas(&self) -> Result<u64> {
        Ok(lock(&self.manifest).contents.catalog_cas)
    }

    fn unique_ids(&self) -> Result<BTreeMap<BucketId, StoredId>> {
        Ok(lock(&self.manifest).contents.unique_ids.clone())
    }

    fn put_unique_ids(&self, ids: &[(BucketId, StoredId)]) -> Result<()> {
        let mut manifest = lock(&self.manifest);
        let mut next = manifest.contents.clone();
        next.unique_ids.extend(ids.iter().copied());
        manifest.write(&*self.env.fs, next)
    }

    fn losses(&self) -> Result<BTreeMap<BucketId, KnownLoss>> {
        Ok(lock(&self.manifest).contents.losses.clone())
    }

    fn put_loss(&self, bucket: BucketId, loss: Option<KnownLoss>) -> Result<()> {
        let mut manifest = lock(&self.manifest);
        let mut next = manifest.contents.clone();
        next.losses.remove(&bucket);
        next.losses.extend(loss.map(|loss| (bucket, loss)));
        if next == manifest.contents {
            return Ok(());
        }
        manifest.write(&*self.env.fs, next)
    }

    fn apply_catalog(&self, cas: u64, made: &[BucketRecord], removed: &[BucketId]) -> Result<()> {
        let fs = &*self.env.fs;
        let mut manifest = lock(&self.manifest);
        let mut next = manifest.contents.clone();
        // A caller repeats a call that has failed before.
        let has = |record: &&BucketRecord| next.buckets.contains_key(&record.info.id);
        let made: Vec<&BucketRecord> = made.iter().filter(|record| !has(record)).collect();
        let first = next.next_directory;
        let making = first..first + made.len() as u64;
        if !made.is_empty() {
            next.next_directory = making.end;
            next.making.extend(making.clone());
            manifest.write(fs, next.clone())?;
        }
        let new = self.make_buckets(&made, first)?;
        next.making.retain(|directory| !making.contains(directory));
        next.buckets.extend(new.iter().map(|(id, entry, _)| (*id, entry.clone())));
        next.catalog_cas = cas;
        let gone = removed.iter().filter_map(|bucket| next.buckets.remove(bucket));
        let gone: Vec<u64> = gone.map(|entry| entry.directory).collect();
        next.removing.extend(gone);
        next.remove_replaced(removed);
        // The loss of a removed bucket cannot be accepted any more.
        next.losses.retain(|bucket, _| !removed.contains(bucket));
        manifest.write(fs, next)?;
        {
            let mut buckets = write(&self.buckets);
            buckets.extend(new.into_iter().map(|(id, _, bucket)| (id, bucket)));
            removed.iter().for_each(|bucket| drop(buckets.remove(bucket)));
        }
        write(&self.damaged).retain(|bucket, _| !removed.contains(bucket));
        drop(manifest);
        self.remove_left();
        Ok(())
    }

    fn put_records(&self, records: &[BucketRecord]) -> Result<()> {
        for record in records {
            // A bucket that was dropped stays dropped.
            if let Ok(bucket) = self.bucket(record.info.id) {
                bucket.put_record(record)?;
            }
        }
        Ok(())
    }

    fn rewind(&self, record: &BucketRecord, to: &[(VbucketId, Seqno)]) -> Result<()> {
        self.bucket(record.info.id)?.rewind(record, to)
    }

    fn extents(&self, bucket: BucketId) -> Result<Vec<LogExtent>> {
        Ok(self.bucket(bucket)?.extents())
    }

    fn log_bytes_to(&self, bucket: BucketId, vbucket: VbucketId, to: Seqno) -> Result<u64> {
        self.bucket(bucket)?.log.bytes_to(vbucket, to)
    }

    fn purge(&self, bucket: BucketId, to: &[(VbucketId, Seqno)]) -> Result<()> {
        self.bucket(bucket)?.purge(to)
    }

    fn points_to_shrink_to(&self, bucket: BucketId, bytes: u64) -> Result<Vec<(VbucketId, Seqno)>> {
        Ok(self.bucket(bucket)?.log.points_to_shrink_to(bytes))
    }

    fn log(&self, bucket: BucketId, batch: &Arc<Batch>) -> Result<ShowBatch> {
        let bucket = self.bucket(bucket)?;
        let bytes =
            batch.mutations.iter().map(|mutation| mutation.id.len() + mutation.document.len());
        self.flush_if_needed(&bucket, bytes.sum())?;
        let group = bucket.log_group(batch)?;
        let batch = Arc::clone(batch);
        Ok(Box::new(move || bucket.show(&batch, group)))
    }

    fn get(
        &self,
        bucket: BucketId,
        ids: &[String],
        bytes_max: usize,
    ) -> Result<Vec<Option<Bytes>>> {
        self.bucket(bucket)?.documents(ids, None, bytes_max)
    }

    fn get_at(
        &self,
        bucket: BucketId,
        ids: &[String],
        cut: &[Seqno],
        bytes_max: usize,
    ) -> Result<Vec<Option<Bytes>>> {
        self.bucket(bucket)?.documents(ids, Some(cut), bytes_max)
    }

    fn changed_at(&self, bucket: BucketId, id: &str) -> Result<Option<Seqno>> {
        self.bucket(bucket)?.table.changed_at(id)
    }

    fn contains(&self, bucket: BucketId, id: &str) -> Result<bool> {
        self.bucket(bucket)?.table.contains(id)
    }

    fn snapshot_after(
        &self,
        bucket: BucketId,
        after: Option<&str>,
    ) -> Result<Box<dyn DocumentSnapshot>> {
        Ok(Box::new(StoreWalk::new(self.bucket(bucket)?, after)))
    }

    fn begin_purged(&self, record: &BucketRecord, vbucket: VbucketId, purged: Seqno) -> Result<()> {
        self.bucket(record.info.id)?.begin_purged(record, vbucket, purged)
    }

    fn put_documents(&self, bucket: BucketId, documents: &[StoredDocument]) -> Result<()> {
        let bucket = self.bucket(bucket)?;
        let bytes = documents.iter().map(|stored| stored.id.len() + stored.document.len()).sum();
        self.flush_if_needed(&bucket, bytes)?;
        bucket.put_documents(documents)
    }

    fn write_sorted<'d>(
        &self,
        bucket: BucketId,
        documents: &mut dyn ExactSizeIterator<Item = DocumentRef<'d>>,
    ) -> Result<AddSorted> {
        self.bucket(bucket)?.write_sorted(documents)
    }

    fn end_load(&self, bucket: BucketId) {
        if let Ok(bucket) = self.bucket(bucket) {
            bucket.end_load();
        }
    }

    fn remove_vbucket(&self, record: &BucketRecord, vbucket: VbucketId) -> Result<()> {
        self.bucket(record.info.id)?.remove(record, vbucket)
    }

    fn read_log(&self, range: LogRange, bytes: usize) -> Result<Vec<Arc<crate::Mutation>>> {
        self.bucket(range.bucket)?.read_log(range, bytes)
    }

    fn has_failed(&self) -> bool {
        self.all().iter().any(|(_, bucket)| bucket.has_failed())
    }

    fn maintain(&self) -> Result<bool> {
        self.maintain_all()
    }

    fn stop(&self) {
        self.tables.stop.store(true, Ordering::Relaxed);
    }
}
