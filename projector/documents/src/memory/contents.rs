//! The contents of one bucket in the document store in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::Result;
use proto::model::ids::{Seqno, VbucketId, vbucket_of};
use proto::rpc::mutation::MutationKind;

use crate::document_store::{Batch, LogExtent};
use crate::mutation::{Mutation, entry_bytes};
use crate::record::BucketRecord;
use crate::rules::documents_before;
use proto::model::commits::TransactionEvent;

/// The stored contents of one bucket.
pub(super) struct Contents {
    pub(super) record: BucketRecord,
    pub(super) documents: BTreeMap<Arc<str>, Arc<Mutation>>,
    /// The mutations of each vbucket from seqno 1 on.
    pub(super) log: Log,
    /// The last purged seqno of each vbucket. Purged mutations remain in memory, but must not be
    /// read.
    pub(super) purged: Vec<Seqno>,
    /// For vbuckets that were copied by their documents, the last seqno whose mutation was never
    /// stored. The log has placeholders up to that seqno.
    pub(super) absent: Vec<Seqno>,
    /// The documents that were copied from another projector without their mutations.
    pub(super) copied: BTreeMap<Arc<str>, Arc<Mutation>>,
}

impl Contents {
    pub(super) fn rewind(&mut self, vbucket: VbucketId, to: Seqno) -> Result<()> {
        let at = usize::from(vbucket.0);
        self.record.commits.remove_lost_commits(vbucket, to);
        if to.0 == 0 {
            self.remove_all_of(vbucket);
            return Ok(());
        }
        for (id, was) in self.documents_before(vbucket, to, self.absent[at])? {
            match was {
                Some(was) => self.documents.insert(id, was),
                None => self.documents.remove(&id),
            };
        }
        self.log[at].truncate(to.0 as usize);
        self.purged[at] = self.purged[at].min(to);
        Ok(())
    }

    pub(super) fn remove_all_of(&mut self, vbucket: VbucketId) {
        let (at, vbuckets) = (usize::from(vbucket.0), self.record.info.vbuckets);
        self.record.commits.remove_lost_commits(vbucket, Seqno(0));
        self.documents.retain(|id, _| vbucket_of(id, vbuckets) != vbucket);
        self.copied.retain(|id, _| vbucket_of(id, vbuckets) != vbucket);
        self.log[at].clear();
        (self.purged[at], self.absent[at]) = (Seqno(0), Seqno(0));
    }

    /// Computes the documents of a vbucket before a position; see [`documents_before`]. Log
    /// entries up to `purged` are treated as unknown.
    pub(super) fn documents_before(
        &self,
        vbucket: VbucketId,
        to: Seqno,
        purged: Seqno,
    ) -> Result<BTreeMap<Arc<str>, Option<Arc<Mutation>>>> {
        let log = &self.log[usize::from(vbucket.0)];
        let (before, beyond) = log.split_at((to.0 as usize).min(log.len()));
        let [before, beyond] = [before, beyond].map(|part| part.iter().cloned().map(Ok));
        documents_before(beyond, before.skip(purged.0 as usize), vbucket, purged)
    }

    /// Returns the last change of a document up to a seqno.
    pub(super) fn change_up_to(&self, id: &str, to: Seqno) -> Option<&Arc<Mutation>> {
        let at = usize::from(vbucket_of(id, self.record.info.vbuckets).0);
        let logged = self.log[at].iter().skip(self.absent[at].0 as usize);
        let logged = logged.take_while(|mutation| mutation.seqno <= to);
        logged.filter(|mutation| *mutation.id == *id).last().or_else(|| self.copied.get(id))
    }

    pub(super) fn extent(&self, at: usize) -> LogExtent {
        let (purged, end) = (self.purged[at], Seqno(self.log[at].len() as u64));
        let [bytes_purged, bytes_end] = [purged, end].map(|to| self.bytes_to(at, to));
        LogExtent { purged, end, bytes_purged, bytes_end }
    }

    pub(super) fn bytes_to(&self, at: usize, to: Seqno) -> u64 {
        let entries = self.log[at].iter().take(to.0.max(self.purged[at].0) as usize);
        let entries = entries.skip(self.absent[at].0 as usize);
        entries.map(|mutation| entry_bytes(mutation)).sum()
    }

    pub(super) fn apply(&mut self, changes: &DoubtfulWrites) {
        if let Some(record) = &changes.record {
            self.record = record.clone();
        }
        changes.commits.iter().for_each(|event| self.record.commits.apply_event(event));
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

/// The writes of a batch whose sync has failed, so that it is unknown whether they are on the
/// disk.
pub(super) struct DoubtfulWrites {
    pub(super) mutations: Vec<Arc<Mutation>>,
    pub(super) record: Option<BucketRecord>,
    pub(super) commits: Vec<TransactionEvent>,
}

impl DoubtfulWrites {
    pub(super) fn of(batch: &Batch) -> Self {
        let Batch { mutations, record, commits } = batch.clone();
        Self { mutations, record, commits }
    }
}

/// The mutations of each vbucket, from seqno 1 on.
pub(super) type Log = Vec<Vec<Arc<Mutation>>>;
