//! The tapped store: the product's store, each change of which is reported to the judge's mirror.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use projector::testing::{
    AddSorted, Batch, BucketRecord, DamagedBucket, DamagedFiles, DocumentRef, DocumentSnapshot,
    DocumentStore, KnownLoss, LogExtent, LogRange, Mutation, ShowBatch, StoredDocument, StoredId,
};
use projector::{DiskStore, DiskStoreOptions};
use proto::env::Env;
use proto::model::ids::{BucketId, Seqno, VbucketId};
use proto::{ErrorCode, Result};

use super::contents::Change;
use super::mirror::{Mirror, StoreChange};
use super::reconcile::Found;

/// A store on disk with its mirror. Clones share the store.
#[derive(Clone)]
pub struct TappedStore {
    store: Arc<DiskStore>,
    mirror: Mirror,
}

impl TappedStore {
    /// Opens the store in a directory.
    pub fn open(env: &Env, dir: &Path, options: DiskStoreOptions, mirror: Mirror) -> Result<Self> {
        let opened = Self { store: Arc::new(DiskStore::open(env, dir, options)?), mirror };
        opened.tell_losses()?;
        Ok(opened)
    }

    /// Tells the simulated operator whether the projector knows of a loss.
    fn tell_losses(&self) -> Result<()> {
        let losses = self.store.losses()?;
        self.mirror.tell_loss(losses.values().any(|loss| !loss.is_accepted));
        Ok(())
    }

    /// Compares the store with its mirror, which decides the changes in doubt. An error means that
    /// a read failed. `may_be_damaged` means that a bit of the disk was flipped.
    pub fn reconcile(&self, may_be_damaged: bool) -> Result<()> {
        self.mirror.reconcile(&Found::read(&*self.store)?, may_be_damaged);
        Ok(())
    }

    /// Executes a change of the store, and reports it to the mirror.
    fn change<T>(
        &self,
        change: StoreChange,
        call: impl FnOnce(&DiskStore) -> Result<T>,
    ) -> Result<T> {
        let numbers = self.mirror.begin(vec![change]);
        let done = call(&self.store);
        for number in numbers {
            match &done {
                Ok(_) => self.mirror.succeeded(number),
                Err(error) if error.code == ErrorCode::Io => self.mirror.failed(number),
                // The store has refused it before the first write.
                Err(_) => self.mirror.refused(number),
            }
        }
        done
    }

    fn change_bucket<T>(
        &self,
        bucket: BucketId,
        change: Change,
        call: impl FnOnce(&DiskStore) -> Result<T>,
    ) -> Result<T> {
        self.change(StoreChange::Bucket(bucket, change), call)
    }

    /// True if a failed commit is in the log of a bucket. Only a later step has then failed: a
    /// flush, or the commit of another bucket.
    fn has(&self, bucket: BucketId, mutations: &[Arc<Mutation>]) -> bool {
        let Ok(extents) = self.store.extents(bucket) else { return false };
        let is_there = |m: &Arc<Mutation>| {
            extents.get(usize::from(m.vbucket.0)).is_some_and(|e| e.end >= m.seqno)
        };
        !mutations.is_empty() && mutations.iter().all(is_there)
    }
}

impl DocumentStore for TappedStore {
    fn buckets(&self) -> Result<Vec<(BucketRecord, Vec<Seqno>)>> {
        self.store.buckets()
    }

    fn damaged(&self) -> Result<BTreeMap<BucketId, DamagedBucket>> {
        self.store.damaged()
    }

    fn recreate_empty(&self, record: &BucketRecord, files: DamagedFiles) -> Result<()> {
        let change = Change::Anew(record.clone());
        if files == DamagedFiles::Kept {
            self.mirror.keep_damaged();
        }
        self.change_bucket(record.info.id, change, |store| store.recreate_empty(record, files))
    }

    fn recreated(&self) -> Result<BTreeSet<BucketId>> {
        self.store.recreated()
    }

    fn remove_replaced(&self, bucket: BucketId) -> Result<()> {
        self.store.remove_replaced(bucket)
    }

    fn catalog_cas(&self) -> Result<u64> {
        self.store.catalog_cas()
    }

    fn unique_ids(&self) -> Result<BTreeMap<BucketId, StoredId>> {
        self.store.unique_ids()
    }

    fn put_unique_ids(&self, ids: &[(BucketId, StoredId)]) -> Result<()> {
        self.change(StoreChange::Ids(ids.to_vec()), |store| store.put_unique_ids(ids))
    }

    fn losses(&self) -> Result<BTreeMap<BucketId, KnownLoss>> {
        self.store.losses()
    }

    fn put_loss(&self, bucket: BucketId, loss: Option<KnownLoss>) -> Result<()> {
        self.store.put_loss(bucket, loss)?;
        self.tell_losses()
    }

    fn apply_catalog(&self, cas: u64, made: &[BucketRecord], removed: &[BucketId]) -> Result<()> {
        let change = StoreChange::Catalog { cas, made: made.to_vec(), removed: removed.to_vec() };
        self.change(change, |store| store.apply_catalog(cas, made, removed))
    }

    fn put_records(&self, records: &[BucketRecord]) -> Result<()> {
        for record in records {
            let change = Change::Record(record.clone());
            let one = std::slice::from_ref(record);
            self.change_bucket(record.info.id, change, |store| store.put_records(one))?;
        }
        Ok(())
    }

    fn rewind(&self, record: &BucketRecord, to: &[(VbucketId, Seqno)]) -> Result<()> {
        let change = Change::Rewind { record: record.clone(), to: to.to_vec() };
        self.change_bucket(record.info.id, change, |store| store.rewind(record, to))
    }

    fn extents(&self, bucket: BucketId) -> Result<Vec<LogExtent>> {
        self.store.extents(bucket)
    }

    fn log_bytes_to(&self, bucket: BucketId, vbucket: VbucketId, to: Seqno) -> Result<u64> {
        self.store.log_bytes_to(bucket, vbucket, to)
    }

    fn purge(&self, bucket: BucketId, to: &[(VbucketId, Seqno)]) -> Result<()> {
        self.change_bucket(bucket, Change::Purge(to.to_vec()), |store| store.purge(bucket, to))
    }

    fn points_to_shrink_to(&self, bucket: BucketId, bytes: u64) -> Result<Vec<(VbucketId, Seqno)>> {
        self.store.points_to_shrink_to(bucket, bytes)
    }

    fn log(&self, bucket: BucketId, batch: &Arc<Batch>) -> Result<ShowBatch> {
        let Batch { mutations, record, commits } = Batch::clone(batch);
        let change = StoreChange::Bucket(bucket, Change::Commit { mutations, record, commits });
        let numbers = self.mirror.begin(vec![change]);
        let logged = self.store.log(bucket, batch);
        let show = match logged {
            Ok(show) => show,
            Err(error) => {
                let has = self.has(bucket, &batch.mutations);
                for number in numbers {
                    match has {
                        true => self.mirror.succeeded(number),
                        false => self.mirror.failed(number),
                    }
                }
                return Err(error);
            }
        };
        // Readers see the batch from then on. Until then it is in doubt: it is durable, and a crash keeps it.
        let mirror = self.mirror.clone();
        Ok(Box::new(move || {
            show()?;
            numbers.into_iter().for_each(|number| mirror.succeeded(number));
            Ok(())
        }))
    }

    fn get(
        &self,
        bucket: BucketId,
        ids: &[String],
        bytes_max: usize,
    ) -> Result<Vec<Option<Bytes>>> {
        self.store.get(bucket, ids, bytes_max)
    }

    fn get_at(
        &self,
        bucket: BucketId,
        ids: &[String],
        cut: &[Seqno],
        bytes_max: usize,
    ) -> Result<Vec<Option<Bytes>>> {
        self.store.get_at(bucket, ids, cut, bytes_max)
    }

    fn changed_at(&self, bucket: BucketId, id: &str) -> Result<Option<Seqno>> {
        self.store.changed_at(bucket, id)
    }

    fn contains(&self, bucket: BucketId, id: &str) -> Result<bool> {
        self.store.contains(bucket, id)
    }

    fn snapshot_after(
        &self,
        bucket: BucketId,
        after: Option<&str>,
    ) -> Result<Box<dyn DocumentSnapshot>> {
        self.store.snapshot_after(bucket, after)
    }

    fn begin_purged(&self, record: &BucketRecord, vbucket: VbucketId, purged: Seqno) -> Result<()> {
        let change = Change::BeginPurged { record: record.clone(), vbucket, purged };
        let begin = |store: &DiskStore| store.begin_purged(record, vbucket, purged);
        self.change_bucket(record.info.id, change, begin)
    }

    fn put_documents(&self, bucket: BucketId, documents: &[StoredDocument]) -> Result<()> {
        let change = Change::Documents(documents.to_vec());
        self.change_bucket(bucket, change, |store| store.put_documents(bucket, documents))
    }

    fn write_sorted<'d>(
        &self,
        bucket: BucketId,
        documents: &mut dyn ExactSizeIterator<Item = DocumentRef<'d>>,
    ) -> Result<AddSorted> {
        let documents: Vec<DocumentRef<'d>> = documents.collect();
        let add = self.store.write_sorted(bucket, &mut documents.iter().copied())?;
        let stored = |one: &DocumentRef<'_>| StoredDocument {
            id: one.id.to_owned(),
            seqno: one.seqno,
            document: Bytes::copy_from_slice(one.document),
        };
        let change = Change::Documents(documents.iter().map(stored).collect());
        let store = self.clone();
        Ok(Box::new(move || store.change_bucket(bucket, change, |_| add())))
    }

    fn end_load(&self, bucket: BucketId) {
        self.store.end_load(bucket);
    }

    fn remove_vbucket(&self, record: &BucketRecord, vbucket: VbucketId) -> Result<()> {
        let change = Change::Remove { record: record.clone(), vbucket };
        let remove = |store: &DiskStore| store.remove_vbucket(record, vbucket);
        self.change_bucket(record.info.id, change, remove)
    }

    fn read_log(&self, range: LogRange, bytes: usize) -> Result<Vec<Arc<Mutation>>> {
        self.store.read_log(range, bytes)
    }

    fn has_failed(&self) -> bool {
        self.store.has_failed()
    }

    fn maintain(&self) -> Result<bool> {
        self.store.maintain()
    }

    fn stop(&self) {
        self.store.stop();
    }
}
