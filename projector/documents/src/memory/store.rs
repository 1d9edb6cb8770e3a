//! The document store in memory, which simulates a disk for tests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use proto::lock::lock;
use proto::model::cut::{Cut, Position};
use proto::model::history::branch_of;
use proto::model::ids::{BucketId, Seqno, VbucketId, vbucket_of};
use proto::rpc::mutation::MutationKind;
use proto::{Error, ErrorCode, Result};

use super::contents::{Contents, DoubtfulWrites};
use super::snapshot::MemorySnapshot;
use crate::document_store::{
    AddSorted, Batch, DamagedBucket, DamagedFiles, DocumentRef, DocumentSnapshot, DocumentStore,
    KnownLoss, LogExtent, LogRange, ShowBatch, StoredDocument,
};
use crate::mutation::Mutation;
use crate::record::{BucketRecord, StoredId};
use crate::rules::{check_empty, check_rewind, get_each, no_bucket};

/// A document store in memory. Clones are handles to the same contents, for the same simulated
/// process.
#[derive(Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<MemoryState>>,
    syncs: Arc<Syncs>,
    /// The number of the simulated process that this handle belongs to.
    process: u64,
}

/// A switch that blocks simulated syncs: while it is on, commits block their threads.
#[derive(Default)]
struct Syncs {
    are_held: Mutex<bool>,
    let_go: Condvar,
}

#[derive(Default)]
struct MemoryState {
    /// The number of the process that may write; handles of earlier processes are ignored.
    process: u64,
    cas: u64,
    unique_ids: BTreeMap<BucketId, StoredId>,
    buckets: BTreeMap<BucketId, Contents>,
    damaged: BTreeMap<BucketId, DamagedBucket>,
    replaced: BTreeSet<BucketId>,
    kept: BTreeSet<BucketId>,
    losses: BTreeMap<BucketId, KnownLoss>,
    sync_fails: bool,
    listing_fails: bool,
    /// The batches whose sync has failed. The next opening of the store decides whether they are
    /// on the disk.
    in_doubt: Option<Vec<(BucketId, DoubtfulWrites)>>,
    /// The batches that are durable and not visible yet, in order.
    unshown: VecDeque<(BucketId, Arc<Batch>)>,
}

impl MemoryState {
    fn bucket(&self, bucket: BucketId) -> Result<&Contents> {
        self.buckets.get(&bucket).ok_or_else(|| no_bucket(bucket))
    }

    fn apply(&mut self, batch: &[(BucketId, DoubtfulWrites)]) {
        for (bucket, changes) in batch {
            if let Some(contents) = self.buckets.get_mut(bucket) {
                contents.apply(changes);
            }
        }
    }
}

impl MemoryStore {
    /// Opens the store in another simulated process, which finds all durable data. Work of the
    /// previous process that is still running has no effect any more.
    pub fn reopened(&self) -> Self {
        let mut state = self.state();
        state.process += 1;
        for (bucket, batch) in std::mem::take(&mut state.unshown) {
            state.apply(&[(bucket, DoubtfulWrites::of(&batch))]);
        }
        let (process, syncs) = (state.process, Arc::clone(&self.syncs));
        Self { state: Arc::clone(&self.state), syncs, process }
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        lock(&self.state)
    }

    /// Locks the contents for a write. An error if the process of this handle must not write, for
    /// example after a failed sync.
    fn writable(&self) -> Result<MutexGuard<'_, MemoryState>> {
        let state = self.state();
        if state.process != self.process {
            return Err(Error::new(ErrorCode::Io, "another process has the document store"));
        }
        match state.in_doubt {
            None => Ok(state),
            Some(_) => Err(Error::new(
                ErrorCode::Io,
                "the document store accepts no writes, because an earlier write could not be made durable",
            )),
        }
    }

    /// Returns the last durable seqno of each vbucket, including mutations that are not visible
    /// yet.
    pub fn durable_ends(&self, bucket: BucketId) -> Result<Vec<Seqno>> {
        let state = self.state();
        let contents = state.bucket(bucket)?;
        let mut ends: Vec<_> = (0..contents.log.len()).map(|at| contents.extent(at).end).collect();
        let unshown = state.unshown.iter().filter(|(of, _)| *of == bucket);
        for mutation in unshown.flat_map(|(_, batch)| &batch.mutations) {
            ends[usize::from(mutation.vbucket.0)] = mutation.seqno;
        }
        Ok(ends)
    }

    /// Makes the next commit's sync fail.
    pub fn fail_next_sync(&self) {
        self.state().sync_fails = true;
    }

    /// Makes the next listing of the buckets fail.
    pub fn fail_next_listing(&self) {
        self.state().listing_fails = true;
    }

    /// Marks a bucket as damaged, as an opening that finds damaged files would.
    pub fn damage(&self, bucket: BucketId) {
        let mut state = self.state();
        if let Some(Contents { record, log, .. }) = state.buckets.remove(&bucket) {
            let ends = log.iter().zip(&record.branches).map(|(log, branches)| {
                let seqno = Seqno(log.len() as u64);
                Position { vbuuid: branch_of(branches, seqno), seqno }
            });
            let positions = Cut::from_positions(ends.collect());
            let error = Error::new(ErrorCode::Corrupt, "a file of the bucket is damaged");
            state.damaged.insert(bucket, DamagedBucket { error, positions });
        }
    }

    /// Returns the recreated buckets whose damaged files only an operator may remove.
    pub fn kept(&self) -> BTreeSet<BucketId> {
        self.state().kept.clone()
    }

    /// Makes commits block their threads in the sync, or lets them continue.
    pub fn hold_syncs(&self, are_held: bool) {
        *lock(&self.syncs.are_held) = are_held;
        self.syncs.let_go.notify_all();
    }

    fn wait_for_sync(&self) {
        let mut are_held = lock(&self.syncs.are_held);
        while *are_held {
            are_held = self.syncs.let_go.wait(are_held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Simulates a crash and a restart of the machine. `reached_disk` says whether a batch whose
    /// sync has failed is on the disk or lost.
    pub fn lose_unsynced(&self, reached_disk: bool) {
        let mut state = self.state();
        state.sync_fails = false;
        if let Some(batch) = state.in_doubt.take()
            && reached_disk
        {
            state.apply(&batch);
        }
    }
}

impl DocumentStore for MemoryStore {
    fn buckets(&self) -> Result<Vec<(BucketRecord, Vec<Seqno>)>> {
        let mut state = self.state();
        if std::mem::take(&mut state.listing_fails) {
            return Err(Error::new(ErrorCode::Io, "the buckets cannot be listed"));
        }
        let found = state.buckets.values().map(|contents| {
            let ends = contents.log.iter().map(|log| Seqno(log.len() as u64)).collect();
            (contents.record.clone(), ends)
        });
        Ok(found.collect())
    }

    fn damaged(&self) -> Result<BTreeMap<BucketId, DamagedBucket>> {
        Ok(self.state().damaged.clone())
    }

    fn recreate_empty(&self, record: &BucketRecord, files: DamagedFiles) -> Result<()> {
        let (mut state, id) = (self.writable()?, record.info.id);
        state.damaged.remove(&id).ok_or_else(|| no_bucket(id))?;
        let files = match files {
            DamagedFiles::UntilComplete => &mut state.replaced,
            DamagedFiles::Kept => &mut state.kept,
        };
        files.insert(id);
        state.buckets.insert(id, empty(record));
        Ok(())
    }

    fn recreated(&self) -> Result<BTreeSet<BucketId>> {
        Ok(self.state().replaced.clone())
    }

    fn remove_replaced(&self, bucket: BucketId) -> Result<()> {
        self.writable()?.replaced.remove(&bucket);
        Ok(())
    }

    fn catalog_cas(&self) -> Result<u64> {
        Ok(self.state().cas)
    }

    fn unique_ids(&self) -> Result<BTreeMap<BucketId, StoredId>> {
        Ok(self.state().unique_ids.clone())
    }

    fn put_unique_ids(&self, ids: &[(BucketId, StoredId)]) -> Result<()> {
        let mut state = self.writable()?;
        state.unique_ids.extend(ids.iter().copied());
        Ok(())
    }

    fn losses(&self) -> Result<BTreeMap<BucketId, KnownLoss>> {
        Ok(self.state().losses.clone())
    }

    fn put_loss(&self, bucket: BucketId, loss: Option<KnownLoss>) -> Result<()> {
        let losses = &mut self.writable()?.losses;
        losses.remove(&bucket);
        losses.extend(loss.map(|loss| (bucket, loss)));
        Ok(())
    }

    fn apply_catalog(&self, cas: u64, made: &[BucketRecord], removed: &[BucketId]) -> Result<()> {
        let mut state = self.writable()?;
        for record in made {
            state.buckets.insert(record.info.id, empty(record));
        }
        for bucket in removed {
            state.buckets.remove(bucket);
            state.damaged.remove(bucket);
            state.replaced.remove(bucket);
        }
        state.cas = cas;
        Ok(())
    }

    fn put_records(&self, records: &[BucketRecord]) -> Result<()> {
        let mut state = self.writable()?;
        for record in records {
            if let Some(contents) = state.buckets.get_mut(&record.info.id) {
                contents.record = record.clone();
            }
        }
        Ok(())
    }

    fn rewind(&self, record: &BucketRecord, to: &[(VbucketId, Seqno)]) -> Result<()> {
        let mut state = self.writable()?;
        let id = record.info.id;
        let contents = state.buckets.get_mut(&id).ok_or_else(|| no_bucket(id))?;
        for (vbucket, to) in to {
            let purged = contents.purged[usize::from(vbucket.0)];
            check_rewind(*vbucket, purged, *to)?;
            if to.0 > 0 {
                contents.documents_before(*vbucket, *to, purged)?;
            }
        }
        contents.record = record.clone();
        to.iter().try_for_each(|(vbucket, to)| contents.rewind(*vbucket, *to))
    }

    fn extents(&self, bucket: BucketId) -> Result<Vec<LogExtent>> {
        let state = self.state();
        let contents = state.bucket(bucket)?;
        Ok((0..contents.log.len()).map(|at| contents.extent(at)).collect())
    }

    fn log_bytes_to(&self, bucket: BucketId, vbucket: VbucketId, to: Seqno) -> Result<u64> {
        Ok(self.state().bucket(bucket)?.bytes_to(usize::from(vbucket.0), to))
    }

    fn purge(&self, bucket: BucketId, to: &[(VbucketId, Seqno)]) -> Result<()> {
        let mut state = self.writable()?;
        let contents = state.buckets.get_mut(&bucket).ok_or_else(|| no_bucket(bucket))?;
        for (vbucket, to) in to {
            let at = usize::from(vbucket.0);
            let to = Seqno(to.0.min(contents.log[at].len() as u64));
            contents.purged[at] = contents.purged[at].max(to);
        }
        Ok(())
    }

    fn log(&self, bucket: BucketId, batch: &Arc<Batch>) -> Result<ShowBatch> {
        self.wait_for_sync();
        let mut state = self.writable()?;
        state.bucket(bucket)?;
        let changes = vec![(bucket, DoubtfulWrites::of(batch))];
        if std::mem::take(&mut state.sync_fails) {
            state.in_doubt = Some(changes);
            return Err(Error::new(ErrorCode::Io, "the document store's sync failed"));
        }
        state.unshown.push_back((bucket, Arc::clone(batch)));
        let (this, batch) = (self.clone(), Arc::clone(batch));
        Ok(Box::new(move || {
            let mut state = this.state();
            let at = state.unshown.iter().position(|(_, unshown)| Arc::ptr_eq(unshown, &batch));
            // The next process has it otherwise.
            if at.and_then(|at| state.unshown.remove(at)).is_some() {
                state.apply(&changes);
            }
            Ok(())
        }))
    }

    fn get(
        &self,
        bucket: BucketId,
        ids: &[String],
        bytes_max: usize,
    ) -> Result<Vec<Option<Bytes>>> {
        let state = self.state();
        let documents = &state.bucket(bucket)?.documents;
        let get = |id: &str| Ok(documents.get(id).map(|found| found.document.clone()));
        get_each(ids, bytes_max, get)
    }

    fn get_at(
        &self,
        bucket: BucketId,
        ids: &[String],
        cut: &[Seqno],
        bytes_max: usize,
    ) -> Result<Vec<Option<Bytes>>> {
        let state = self.state();
        let contents = state.bucket(bucket)?;
        let get = |id: &str| {
            let vbucket = vbucket_of(id, contents.record.info.vbuckets);
            let to = cut.get(usize::from(vbucket.0)).copied().unwrap_or_default();
            let last = contents.change_up_to(id, to);
            let document = last.filter(|last| last.kind == MutationKind::Upsert);
            Ok(document.map(|found| found.document.clone()))
        };
        get_each(ids, bytes_max, get)
    }

    fn changed_at(&self, bucket: BucketId, id: &str) -> Result<Option<Seqno>> {
        let state = self.state();
        let last = state.bucket(bucket)?.change_up_to(id, Seqno(u64::MAX));
        Ok(last.map(|last| last.seqno))
    }

    fn contains(&self, bucket: BucketId, id: &str) -> Result<bool> {
        Ok(self.state().bucket(bucket)?.documents.contains_key(id))
    }

    fn snapshot_after(
        &self,
        bucket: BucketId,
        after: Option<&str>,
    ) -> Result<Box<dyn DocumentSnapshot>> {
        let state = self.state();
        Ok(Box::new(MemorySnapshot::of(state.bucket(bucket)?, after)))
    }

    fn begin_purged(&self, record: &BucketRecord, vbucket: VbucketId, purged: Seqno) -> Result<()> {
        let mut state = self.writable()?;
        let id = record.info.id;
        let contents = state.buckets.get_mut(&id).ok_or_else(|| no_bucket(id))?;
        let at = usize::from(vbucket.0);
        check_empty(vbucket, &contents.extent(at))?;
        contents.record = record.clone();
        let place = (vbucket, Seqno(0));
        let (id, kind) = (Arc::from(""), MutationKind::Deletion);
        let nothing = Arc::new(Mutation::new(place, id, kind, Bytes::new()));
        contents.log[at] = (0..purged.0).map(|_| Arc::clone(&nothing)).collect();
        (contents.purged[at], contents.absent[at]) = (purged, purged);
        Ok(())
    }

    fn put_documents(&self, bucket: BucketId, documents: &[StoredDocument]) -> Result<()> {
        let mut state = self.writable()?;
        let contents = state.buckets.get_mut(&bucket).ok_or_else(|| no_bucket(bucket))?;
        let vbuckets = contents.record.info.vbuckets;
        for StoredDocument { id, seqno, document } in documents {
            let (id, place) = (Arc::<str>::from(&**id), (vbucket_of(id, vbuckets), *seqno));
            let (of, kind) = (Arc::clone(&id), MutationKind::Upsert);
            let stored = Arc::new(Mutation::new(place, of, kind, document.clone()));
            contents.copied.insert(Arc::clone(&id), Arc::clone(&stored));
            contents.documents.insert(id, stored);
        }
        Ok(())
    }

    fn write_sorted<'d>(
        &self,
        bucket: BucketId,
        documents: &mut dyn ExactSizeIterator<Item = DocumentRef<'d>>,
    ) -> Result<AddSorted> {
        let stored = |DocumentRef { id, seqno, document }: DocumentRef<'_>| {
            let document = Bytes::copy_from_slice(document);
            StoredDocument { id: id.to_owned(), seqno, document }
        };
        let documents: Vec<_> = documents.map(stored).collect();
        let store = self.clone();
        Ok(Box::new(move || store.put_documents(bucket, &documents)))
    }

    fn remove_vbucket(&self, record: &BucketRecord, vbucket: VbucketId) -> Result<()> {
        let mut state = self.writable()?;
        let bucket = record.info.id;
        let contents = state.buckets.get_mut(&bucket).ok_or_else(|| no_bucket(bucket))?;
        contents.record = record.clone();
        contents.remove_all_of(vbucket);
        Ok(())
    }

    fn read_log(&self, range: LogRange, bytes: usize) -> Result<Vec<Arc<Mutation>>> {
        let state = self.state();
        let contents = state.bucket(range.bucket)?;
        let at = usize::from(range.vbucket.0);
        let Some(log) = contents.log.get(at) else { return Ok(Vec::new()) };
        let after = range.after.max(contents.purged[at]).0 as usize;
        // Mutations that the log has and the documents lack are read too, as on disk.
        let unshown = state.unshown.iter().filter(|(of, _)| *of == range.bucket);
        let unshown = unshown.flat_map(|(_, batch)| &batch.mutations);
        let all = log.iter().chain(unshown.filter(|m| m.vbucket == range.vbucket));
        let mut size = 0;
        let wanted = all.take(range.to.0 as usize).skip(after).take_while(|mutation| {
            let more = size < bytes;
            size += mutation.id.len() + mutation.document.len() + 1;
            more
        });
        Ok(wanted.cloned().collect())
    }
}

fn empty(record: &BucketRecord) -> Contents {
    let log = vec![Vec::new(); usize::from(record.info.vbuckets)];
    let purged = vec![Seqno(0); log.len()];
    let (record, absent) = (record.clone(), purged.clone());
    let (documents, copied) = (BTreeMap::new(), BTreeMap::new());
    Contents { record, documents, log, purged, absent, copied }
}
