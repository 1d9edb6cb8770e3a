//! The change log of a bucket on disk, and the retained part of each vbucket's log.
//!
//! The extents of the logs are also in memory, as of the last durable batch. Their lock keeps purges and rewinds
//! apart. Only the writer of all buckets adds entries, and it takes the lock for a moment only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use fjall::{Keyspace, OwnedWriteBatch};
use proto::Result;
use proto::lock::lock;
use proto::model::bucket::BucketInfo;
use proto::model::ids::{BucketId, Seqno, VbucketId, vbucket_of};

use super::format::{
    be_u64, damaged, document_id, log_entry, log_key, log_seqno, purged_key, read_entry,
    store_error, stored,
};
use documents::document_store::{LogExtent, LogRange};
use documents::mutation::{Mutation, entry_bytes};
use documents::rules::{check_empty, check_rewind, documents_before};

/// The log of a bucket.
pub struct Log {
    tree: Keyspace,
    bucket: BucketId,
    vbuckets: u16,
    extents: Mutex<Vec<LogExtent>>,
}

/// The new ends of some vbuckets' logs after a batch: the last seqno, and the bytes since the log began.
pub type Ends = BTreeMap<VbucketId, (Seqno, u64)>;

impl Log {
    /// Opens the log in a tree and finds its extents.
    pub fn open(tree: Keyspace, meta: &Keyspace, bucket: &BucketInfo) -> Result<Self> {
        let (id, vbuckets) = (bucket.id, bucket.vbuckets);
        let log = Self { tree, bucket: id, vbuckets, extents: Mutex::default() };
        let found = (0..vbuckets).map(|n| log.find(VbucketId(n), meta)).collect::<Result<_>>()?;
        *log.lock() = found;
        Ok(log)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LogExtent>> {
        lock(&self.extents)
    }

    fn find(&self, vbucket: VbucketId, meta: &Keyspace) -> Result<LogExtent> {
        let point = meta.get(purged_key(self.bucket, vbucket)).map_err(store_error)?;
        let purged = point.map_or(Ok(Seqno(0)), |point| be_u64(&point).map(Seqno))?;
        let Some(last) = self.tree.prefix(vbucket.0.to_be_bytes()).next_back() else {
            return Ok(LogExtent { purged, end: purged, ..LogExtent::default() });
        };
        let (key, value) = last.into_inner().map_err(store_error)?;
        let end = log_seqno(&key)?;
        let (last, before) = read_entry((vbucket, end), &value)?;
        let bytes_end = before.saturating_add(entry_bytes(&last));
        if purged >= end {
            return Err(damaged("a purge point behind the end of its log"));
        }
        let bytes_purged = self.bytes_before(vbucket, Seqno(purged.0 + 1))?;
        Ok(LogExtent { purged, end, bytes_purged, bytes_end })
    }

    fn bytes_before(&self, vbucket: VbucketId, seqno: Seqno) -> Result<u64> {
        let found = self.tree.get(log_key(vbucket, seqno)).map_err(store_error)?;
        let value = found.ok_or_else(|| damaged("a log that lacks an entry"))?;
        Ok(read_entry((vbucket, seqno), &value)?.1)
    }

    /// The retained part of each vbucket's log.
    pub fn extents(&self) -> Vec<LogExtent> {
        self.lock().clone()
    }

    fn extent(&self, vbucket: VbucketId) -> LogExtent {
        self.lock().get(usize::from(vbucket.0)).copied().unwrap_or_default()
    }

    /// Bytes of a vbucket's log up to a retained seqno, since the log began.
    pub fn bytes_to(&self, vbucket: VbucketId, to: Seqno) -> Result<u64> {
        let extent = self.extent(vbucket);
        match () {
            () if to >= extent.end => Ok(extent.bytes_end),
            () if to <= extent.purged => Ok(extent.bytes_purged),
            () => self.bytes_before(vbucket, Seqno(to.0 + 1)),
        }
    }

    /// Adds entries to a batch. Returns the ends of the logs once the batch is durable.
    pub fn add(&self, out: &mut OwnedWriteBatch, mutations: &[Arc<Mutation>]) -> Ends {
        let mut ends = Ends::new();
        for mutation in mutations {
            let begin = || (Seqno(0), self.extent(mutation.vbucket).bytes_end);
            let end = ends.entry(mutation.vbucket).or_insert_with(begin);
            let entry = log_entry(mutation, end.1);
            out.insert(&self.tree, log_key(mutation.vbucket, mutation.seqno), entry);
            *end = (mutation.seqno, end.1 + entry_bytes(mutation));
        }
        ends
    }

    /// Records the new ends after the batch is durable.
    pub fn grow(&self, ends: &Ends) {
        let mut extents = self.lock();
        for (vbucket, (end, bytes_end)) in ends {
            if let Some(extent) = extents.get_mut(usize::from(vbucket.0)) {
                (extent.end, extent.bytes_end) = (*end, *bytes_end);
            }
        }
    }

    /// Removes the oldest entries of some logs.
    pub fn purge(
        &self,
        to: &[(VbucketId, Seqno)],
        meta: &Keyspace,
        mut batch: OwnedWriteBatch,
    ) -> Result<()> {
        let mut extents = self.lock();
        let mut next = extents.clone();
        for (vbucket, to) in to {
            let Some(extent) = next.get_mut(usize::from(vbucket.0)) else { continue };
            // The last entry stays, because opening reads the vbucket's position from it.
            let to = Seqno(to.0.min(extent.end.0.saturating_sub(1)));
            if to <= extent.purged {
                continue;
            }
            let bytes_purged = self.bytes_before(*vbucket, Seqno(to.0 + 1))?;
            for seqno in extent.purged.0 + 1..=to.0 {
                batch.remove(&self.tree, log_key(*vbucket, Seqno(seqno)));
            }
            batch.insert(meta, purged_key(self.bucket, *vbucket), to.0.to_be_bytes());
            (extent.purged, extent.bytes_purged) = (to, bytes_purged);
        }
        batch.commit().map_err(store_error)?;
        *extents = next;
        Ok(())
    }

    /// Gives an empty log a purge point, in a batch that already has the bucket's record.
    pub fn begin_purged(
        &self,
        vbucket: VbucketId,
        purged: Seqno,
        meta: &Keyspace,
        mut batch: OwnedWriteBatch,
    ) -> Result<()> {
        let mut extents = self.lock();
        let Some(extent) = extents.get_mut(usize::from(vbucket.0)) else { return Ok(()) };
        check_empty(vbucket, extent)?;
        batch.insert(meta, purged_key(self.bucket, vbucket), purged.0.to_be_bytes());
        batch.commit().map_err(store_error)?;
        *extent = LogExtent { purged, end: purged, ..LogExtent::default() };
        Ok(())
    }

    /// Removes the oldest entries of a log, or its last entries together with the purge point.
    pub fn remove(
        &self,
        vbucket: VbucketId,
        entries: u64,
        meta: &Keyspace,
        mut batch: OwnedWriteBatch,
    ) -> Result<bool> {
        let extent = self.extent(vbucket);
        let to = Seqno(extent.purged.0.saturating_add(entries));
        if to < extent.end {
            self.purge(&[(vbucket, to)], meta, batch)?;
            return Ok(false);
        }
        let mut extents = self.lock();
        let Some(extent) = extents.get_mut(usize::from(vbucket.0)) else { return Ok(true) };
        for seqno in extent.purged.0 + 1..=extent.end.0 {
            batch.remove(&self.tree, log_key(vbucket, Seqno(seqno)));
        }
        batch.remove(meta, purged_key(self.bucket, vbucket));
        batch.commit().map_err(store_error)?;
        *extent = LogExtent::default();
        Ok(true)
    }

    /// The vbucket of a document.
    pub fn vbucket_of(&self, id: &str) -> VbucketId {
        vbucket_of(id, self.vbuckets)
    }

    /// Takes the logs and the documents of some vbuckets back, in a batch that already has the bucket's record.
    pub fn rewind(
        &self,
        to: &[(VbucketId, Seqno)],
        documents: &Keyspace,
        meta: &Keyspace,
        mut batch: OwnedWriteBatch,
    ) -> Result<()> {
        let mut extents = self.lock();
        let mut next = extents.clone();
        let mut anew = BTreeSet::new();
        for (vbucket, to) in to {
            let Some(extent) = next.get_mut(usize::from(vbucket.0)) else { continue };
            check_rewind(*vbucket, extent.purged, *to)?;
            let kept = Seqno(to.0.max(extent.purged.0));
            if to.0 == 0 && extent.purged.0 > 0 {
                anew.insert(*vbucket);
                batch.remove(meta, purged_key(self.bucket, *vbucket));
                *extent = LogExtent::default();
            } else if *to < extent.end {
                self.undo(*vbucket, *to, extent.purged, documents, &mut batch)?;
                extent.bytes_end = self.bytes_before(*vbucket, Seqno(to.0 + 1))?;
                extent.end = *to;
            }
            let beyond = log_key(*vbucket, Seqno(kept.0 + 1))..=log_key(*vbucket, Seqno(u64::MAX));
            for guard in self.tree.range(beyond) {
                batch.remove(&self.tree, guard.key().map_err(store_error)?);
            }
        }
        self.remove_all_of(&anew, documents, &mut batch)?;
        batch.commit().map_err(store_error)?;
        *extents = next;
        Ok(())
    }

    /// Restores the documents as they were at a position that the log still has.
    fn undo(
        &self,
        vbucket: VbucketId,
        to: Seqno,
        purged: Seqno,
        documents: &Keyspace,
        batch: &mut OwnedWriteBatch,
    ) -> Result<()> {
        let read = |guard: fjall::Guard| {
            let (key, value) = guard.into_inner().map_err(store_error)?;
            Ok(Arc::new(read_entry((vbucket, log_seqno(&key)?), &value)?.0))
        };
        let beyond = log_key(vbucket, Seqno(to.0 + 1))..=log_key(vbucket, Seqno(u64::MAX));
        let before = log_key(vbucket, Seqno(purged.0 + 1))..=log_key(vbucket, to);
        let gone = self.tree.range(beyond).map(read);
        for (id, was) in documents_before(gone, self.tree.range(before).map(read), vbucket, purged)?
        {
            match was {
                Some(was) => {
                    batch.insert(documents, id.as_bytes(), stored(was.seqno, &was.document));
                }
                None => batch.remove(documents, id.as_bytes()),
            }
        }
        Ok(())
    }

    /// Removes all documents of vbuckets that start again, including those whose entries were purged.
    fn remove_all_of(
        &self,
        vbuckets: &BTreeSet<VbucketId>,
        documents: &Keyspace,
        batch: &mut OwnedWriteBatch,
    ) -> Result<()> {
        if vbuckets.is_empty() {
            return Ok(());
        }
        for guard in documents.iter() {
            let id = guard.key().map_err(store_error)?;
            if vbuckets.contains(&self.vbucket_of(document_id(&id)?)) {
                batch.remove(documents, id);
            }
        }
        Ok(())
    }

    /// See [`crate::source::DocumentStore::read_log`].
    pub fn read(&self, range: LogRange, bytes: usize) -> Result<Vec<Arc<Mutation>>> {
        if range.after >= range.to {
            return Ok(Vec::new());
        }
        let keys =
            log_key(range.vbucket, Seqno(range.after.0 + 1))..=log_key(range.vbucket, range.to);
        let (mut found, mut size) = (Vec::new(), 0);
        for guard in self.tree.range(keys) {
            let (key, value) = guard.into_inner().map_err(store_error)?;
            size += key.len() + value.len();
            let place = (range.vbucket, log_seqno(&key)?);
            found.push(Arc::new(read_entry(place, &value)?.0));
            if size >= bytes {
                break;
            }
        }
        Ok(found)
    }
}
