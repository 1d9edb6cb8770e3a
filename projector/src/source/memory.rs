//! The simulation's document store: the same promises as on disk, in memory, with the disk's faults.
//!
//! The store stands for the disk, so it outlives the process that uses it: a simulated restart calls
//! [`MemoryStore::lose_unsynced`] and opens the same one again. A commit whose sync failed lies in the
//! journal and may or may not have reached the disk; as on disk, nothing is written after it until the
//! store is opened again, and then a prefix of what was in doubt is there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use proto::cut::Position;
use proto::history::{Branches, branch_of};
use proto::ids::{BucketId, Seqno, VbucketId, Vbuuid};
use proto::mutation::MutationKind;
use proto::{Error, ErrorCode, Result};

use super::{
    Batch, BucketRecord, DocumentSnapshot, DocumentStore, LogExtent, LogRange, Mutation,
    StoredDocument, check_rewind, entry_bytes, get_each, no_bucket, undone,
};

/// The store in memory. A clone is the same store.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    cas: u64,
    buckets: BTreeMap<BucketId, Contents>,
    sync_fails: bool,
    /// A batch whose sync failed, until the store is opened again.
    in_doubt: Option<Vec<(BucketId, Doubtful)>>,
}

struct Doubtful {
    mutations: Vec<Arc<Mutation>>,
    record: Option<BucketRecord>,
}

struct Contents {
    record: BucketRecord,
    documents: BTreeMap<Arc<str>, Arc<Mutation>>,
    /// For each vbucket, its mutations from seqno 1 on, as a judge needs them,
    log: Log,
    /// and up to where they were purged: the product sees none of these.
    purged: Vec<Seqno>,
    /// Branches and logs as they were before the branches changed: what a judge needs to know of what was
    /// lost. The product never reads them.
    past: Vec<(Vec<Branches>, Log)>,
}

type Log = Vec<Vec<Arc<Mutation>>>;

impl Contents {
    fn keep_history(&mut self) {
        self.past.push((self.record.branches.clone(), self.log.clone()));
    }

    fn rewind(&mut self, vbucket: VbucketId, to: Seqno) -> Result<()> {
        let at = usize::from(vbucket.0);
        for (id, was) in self.undone(vbucket, to, Seqno(0))? {
            match was {
                Some(was) => self.documents.insert(id, was),
                None => self.documents.remove(&id),
            };
        }
        self.log[at].truncate(to.0 as usize);
        self.purged[at] = self.purged[at].min(Seqno(to.0.saturating_sub(1)));
        Ok(())
    }

    /// See [`undone`]; of entries up to `purged` nothing is known.
    fn undone(
        &self,
        vbucket: VbucketId,
        to: Seqno,
        purged: Seqno,
    ) -> Result<BTreeMap<Arc<str>, Option<Arc<Mutation>>>> {
        let log = &self.log[usize::from(vbucket.0)];
        let (before, beyond) = log.split_at((to.0 as usize).min(log.len()));
        let [before, beyond] = [before, beyond].map(|part| part.iter().cloned().map(Ok));
        undone(beyond, before.skip(purged.0 as usize), vbucket, purged)
    }

    fn extent(&self, at: usize) -> LogExtent {
        let (purged, end) = (self.purged[at], Seqno(self.log[at].len() as u64));
        let [bytes_purged, bytes_end] = [purged, end].map(|to| self.bytes_to(at, to));
        LogExtent { purged, end, bytes_purged, bytes_end }
    }

    fn bytes_to(&self, at: usize, to: Seqno) -> u64 {
        let entries = self.log[at].iter().take(to.0.max(self.purged[at].0) as usize);
        entries.map(|mutation| entry_bytes(mutation)).sum()
    }

    /// The log of a vbucket in the history that has a position, the present one first.
    fn log_with(&self, vbucket: VbucketId, position: Position) -> Option<&[Arc<Mutation>]> {
        let (_, log) = self.history_with(vbucket, position)?;
        Some(&log[usize::from(vbucket.0)][..position.seqno.0 as usize])
    }

    /// The branch of a seqno in the history that has a position.
    fn branch_before(
        &self,
        vbucket: VbucketId,
        position: Position,
        seqno: Seqno,
    ) -> Option<Vbuuid> {
        let (branches, _) = self.history_with(vbucket, position)?;
        Some(branch_of(&branches[usize::from(vbucket.0)], seqno))
    }

    fn history_with(
        &self,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<(&Vec<Branches>, &Log)> {
        let at = usize::from(vbucket.0);
        let present = std::iter::once((&self.record.branches, &self.log));
        let past = self.past.iter().rev().map(|(branches, log)| (branches, log));
        let has = |(branches, log): &(&Vec<Branches>, &Log)| {
            log[at].len() as u64 >= position.seqno.0
                && (position.seqno.0 == 0
                    || branch_of(&branches[at], position.seqno) == position.vbuuid)
        };
        present.chain(past).find(has)
    }
}

impl Contents {
    fn apply(&mut self, changes: &Doubtful) {
        if let Some(record) = &changes.record {
            self.record = record.clone();
        }
        for mutation in &changes.mutations {
            self.log[usize::from(mutation.vbucket.0)].push(Arc::clone(mutation));
            match mutation.kind {
                MutationKind::Upsert => {
                    self.documents.insert(Arc::clone(&mutation.id), Arc::clone(mutation));
                }
                MutationKind::Deletion => {
                    self.documents.remove(&mutation.id);
                }
            }
        }
    }
}

impl State {
    fn bucket(&self, bucket: BucketId) -> Result<&Contents> {
        self.buckets.get(&bucket).ok_or_else(|| no_bucket(bucket))
    }

    fn apply(&mut self, batch: &[(BucketId, Doubtful)]) {
        for (bucket, changes) in batch {
            if let Some(contents) = self.buckets.get_mut(bucket) {
                contents.apply(changes);
            }
        }
    }

    fn check_writable(&self) -> Result<()> {
        match self.in_doubt {
            None => Ok(()),
            Some(_) => Err(Error::new(
                ErrorCode::Io,
                "the document store takes no writes: an earlier one could not be made durable",
            )),
        }
    }
}

impl MemoryStore {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The next commit's sync fails.
    pub fn fail_next_sync(&self) {
        self.state().sync_fails = true;
    }

    /// The mutations of a vbucket up to a position, in whichever history has it, present or lost.
    pub fn log_at(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<Vec<Arc<Mutation>>> {
        let state = self.state();
        Some(state.buckets.get(&bucket)?.log_with(vbucket, position)?.to_vec())
    }

    /// The same in the present history alone.
    pub fn present_log(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<Vec<Arc<Mutation>>> {
        let state = self.state();
        let contents = state.buckets.get(&bucket)?;
        let branches = &contents.record.branches[usize::from(vbucket.0)];
        let log = contents.log[usize::from(vbucket.0)].get(..position.seqno.0 as usize)?;
        let is_there = branch_of(branches, position.seqno) == position.vbuuid;
        is_there.then(|| log.to_vec())
    }

    /// Does a position lie before another one, or at it, in the history that has the latter?
    pub fn is_before(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
        end: Position,
    ) -> bool {
        let state = self.state();
        let Some(contents) = state.buckets.get(&bucket) else { return false };
        position.seqno <= end.seqno
            && contents.branch_before(vbucket, end, position.seqno) == Some(position.vbuuid)
    }

    /// The source comes back from an older copy: of each vbucket only so much is there as `keep` says of
    /// its end. Its branches are as they were; the process that opens the store begins new ones.
    pub fn restore_older(&self, bucket: BucketId, mut keep: impl FnMut(u64) -> u64) -> u64 {
        let mut state = self.state();
        let Some(contents) = state.buckets.get_mut(&bucket) else { return 0 };
        contents.keep_history();
        let mut lost = 0;
        for at in 0..contents.log.len() {
            let end = contents.log[at].len() as u64;
            let kept = keep(end).min(end);
            lost += end - kept;
            let _whole_log = contents.rewind(VbucketId(at as u16), Seqno(kept));
            // An older copy does not know of branches that began later.
            contents.record.branches[at].retain(|(_, began)| *began < kept.max(1));
        }
        lost
    }

    /// The machine crashed and starts again: a batch in doubt has reached the disk, or is gone.
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
        let state = self.state();
        let found = state.buckets.values().map(|contents| {
            let ends = contents.log.iter().map(|log| Seqno(log.len() as u64)).collect();
            (contents.record.clone(), ends)
        });
        Ok(found.collect())
    }

    fn catalog_cas(&self) -> Result<u64> {
        Ok(self.state().cas)
    }

    fn apply_catalog(&self, cas: u64, made: &[BucketRecord], removed: &[BucketId]) -> Result<()> {
        let mut state = self.state();
        state.check_writable()?;
        for record in made {
            let log = vec![Vec::new(); usize::from(record.info.vbuckets)];
            let purged = vec![Seqno(0); log.len()];
            let (record, documents, past) = (record.clone(), BTreeMap::new(), Vec::new());
            let contents = Contents { record, documents, log, purged, past };
            state.buckets.insert(contents.record.info.id, contents);
        }
        for bucket in removed {
            state.buckets.remove(bucket);
        }
        state.cas = cas;
        Ok(())
    }

    fn put_records(&self, records: &[BucketRecord]) -> Result<()> {
        let mut state = self.state();
        state.check_writable()?;
        for record in records {
            if let Some(contents) = state.buckets.get_mut(&record.info.id) {
                contents.keep_history();
                contents.record = record.clone();
            }
        }
        Ok(())
    }

    fn rewind(&self, record: &BucketRecord, to: &[(VbucketId, Seqno)]) -> Result<()> {
        let mut state = self.state();
        state.check_writable()?;
        let id = record.info.id;
        let contents = state.buckets.get_mut(&id).ok_or_else(|| no_bucket(id))?;
        for (vbucket, to) in to {
            let purged = contents.purged[usize::from(vbucket.0)];
            check_rewind(*vbucket, purged, *to)?;
            if to.0 > 0 {
                contents.undone(*vbucket, *to, purged)?;
            }
        }
        contents.keep_history();
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
        let mut state = self.state();
        state.check_writable()?;
        let contents = state.buckets.get_mut(&bucket).ok_or_else(|| no_bucket(bucket))?;
        for (vbucket, to) in to {
            let at = usize::from(vbucket.0);
            let last = contents.log[at].len() as u64;
            let to = Seqno(to.0.min(last.saturating_sub(1)));
            contents.purged[at] = contents.purged[at].max(to);
        }
        Ok(())
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        let mut state = self.state();
        state.check_writable()?;
        let mut changes = Vec::new();
        for (bucket, change) in &batch.buckets {
            state.bucket(*bucket)?;
            let (mutations, record) = (change.mutations.clone(), change.record.clone());
            changes.push((*bucket, Doubtful { mutations, record }));
        }
        if std::mem::take(&mut state.sync_fails) {
            state.in_doubt = Some(changes);
            return Err(Error::new(ErrorCode::Io, "the document store's sync failed"));
        }
        state.apply(&changes);
        Ok(())
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

    fn contains(&self, bucket: BucketId, id: &str) -> Result<bool> {
        Ok(self.state().bucket(bucket)?.documents.contains_key(id))
    }

    fn snapshot(&self, bucket: BucketId) -> Result<Box<dyn DocumentSnapshot>> {
        let documents = self.state().bucket(bucket)?.documents.clone();
        Ok(Box::new(MemorySnapshot(documents.into_values())))
    }

    fn read_log(&self, range: LogRange, bytes: usize) -> Result<Vec<Arc<Mutation>>> {
        let state = self.state();
        let contents = state.bucket(range.bucket)?;
        let at = usize::from(range.vbucket.0);
        let Some(log) = contents.log.get(at) else { return Ok(Vec::new()) };
        let to = log.len().min(range.to.0 as usize);
        let after = range.after.max(contents.purged[at]).0 as usize;
        let mut size = 0;
        let wanted = log[..to].iter().skip(after).take_while(|mutation| {
            let more = size < bytes;
            size += mutation.id.len() + mutation.document.len() + 1;
            more
        });
        Ok(wanted.cloned().collect())
    }
}

struct MemorySnapshot(std::collections::btree_map::IntoValues<Arc<str>, Arc<Mutation>>);

impl DocumentSnapshot for MemorySnapshot {
    fn next_chunk(&mut self, bytes: usize) -> Result<Vec<StoredDocument>> {
        let (mut chunk, mut size) = (Vec::new(), 0);
        while size < bytes {
            let Some(mutation) = self.0.next() else { break };
            size += mutation.id.len() + mutation.document.len() + 1;
            chunk.push(StoredDocument {
                id: mutation.id.to_string(),
                seqno: mutation.seqno,
                document: mutation.document.clone(),
            });
        }
        Ok(chunk)
    }
}
