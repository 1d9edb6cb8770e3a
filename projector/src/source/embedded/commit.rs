//! Numbers the commit of a transaction, which consists of the last change of each changed
//! document. All changes are numbered, or none if the commit is refused.
//!
//! The check for conflicts is made when the mutations are numbered, so it considers every other
//! commit: visible commits, groups that are not visible yet, and earlier requests of the present
//! group. The first committer wins:
//!
//! - A transaction that has read a snapshot is refused if a document that it changes was changed
//!   or deleted after the snapshot.
//! - A document whose first change in the transaction is an INSERT must still be absent. If it
//!   exists and the transaction has no snapshot, the commit is refused with the error of an
//!   INSERT.
//! - Any other change replaces the present document.
//!
//! A large commit has looked its documents up before ([`look_up`]), and looks up only those
//! documents again that were changed in between.
//!
//! A deletion of an absent document is left out. The commit itself is logged even if it changes
//! nothing, so that its caller can query the outcome.

use std::sync::Arc;

use proto::model::commits::{CommittedTransaction, TransactionEvent};
use proto::model::ids::Seqno;
use proto::model::joint::JointCommit;
use proto::model::open_commit::OpenCommit;
use proto::plant::{self, Plant};
use proto::rpc::api::WriteReply;
use proto::rpc::mutation::MutationKind;
use proto::{Error, ErrorCode, Result};

use super::holds::{check_joint_limit, check_not_locked};
use super::numbering::RequestNumbering;
use crate::effects::duplicate_id_error;
use crate::source::groups::ahead::UnshownGroups;
use crate::source::pending::PendingChanges;
use crate::source::view::bucket::Bucket;
use crate::transactions::committing::CommitInProgress;
use crate::transactions::document_lookups::DocumentLookUps;
use crate::transactions::snapshot::Snapshot;
use crate::transactions::transaction::LastChange;
use documents::document_store::{DocumentStore, LogRange};
use documents::mutation::Mutation;

/// The hint in the error of a conflict.
const BEGIN_AGAIN: &str = "begin the transaction again";

/// The size in bytes of one read of the log. The reads find the documents that were changed after
/// a commit looked them up.
const LOG_READ_BYTES: usize = 1 << 20;

/// Numbers all changes of a commit, or refuses the commit. If the commit has participants in
/// other buckets, this bucket decides the outcome, and the others have prepared the transaction
/// already.
pub(in crate::source) fn commit(
    pending: &mut PendingChanges,
    store: (&mut UnshownGroups, &dyn DocumentStore),
    committing: &mut CommitInProgress,
) -> Result<WriteReply> {
    if !committing.participants.is_empty() {
        check_joint_limit(pending)?;
    }
    let kept = effective_changes(pending, store, committing)?;
    let mut numbered = RequestNumbering::for_request(pending, kept.len());
    match kept.len() == committing.changes.len() && committing.unnumbered.is_some() {
        true => numbered.add_created(committing.unnumbered.take().unwrap_or_default()),
        false => {
            for Mutation { id, kind, document, .. } in kept.into_iter().map(Arc::as_ref) {
                numbered.add(id, *kind, document.clone());
            }
        }
    }
    let reply = numbered.reply();
    let CommitInProgress { transaction, participants, .. } = committing;
    let (transaction, affected) = (*transaction, reply.affected);
    let positions = reply.position.positions.clone();
    let committed = CommittedTransaction { transaction, affected, positions };
    let participants = participants.clone();
    pending.add_transaction_step(match participants.is_empty() {
        true => TransactionEvent::Committed(committed),
        false => {
            let joint = JointCommit { committed, participants };
            TransactionEvent::Opened(OpenCommit::Joint(joint))
        }
    });
    Ok(reply)
}

/// Returns the changes of a transaction that have an effect. The error is `Conflict` if another
/// writer has changed one of its documents, and `DuplicateId` if the transaction has no snapshot
/// and an inserted document exists.
pub(super) fn effective_changes<'c>(
    pending: &mut PendingChanges,
    (ahead, store): (&mut UnshownGroups, &dyn DocumentStore),
    committing: &'c CommitInProgress,
) -> Result<Vec<&'c Arc<Mutation>>> {
    let CommitInProgress { changes, snapshot, looked_up, .. } = committing;
    let ids = changes.iter().map(|changed| &*changed.mutation.id);
    // A prepared transaction that holds a document is about to change it.
    check_not_locked(pending, ids)
        .map_err(|held| Error { code: ErrorCode::Conflict, ..held.with_hint(BEGIN_AGAIN) })?;
    if let Some(snapshot) = snapshot {
        let vbuckets = changes.iter().map(|changed| changed.mutation.vbucket);
        pending.bucket.check_not_purged(store, snapshot, vbuckets)?;
    }
    let mut newest = NewestStates { pending, ahead, store };
    let known = match looked_up {
        Some(looked_up) => newest.still_valid_look_up(looked_up, changes)?,
        None => None,
    };
    let mut kept = Vec::with_capacity(changes.len());
    for (at, changed) in changes.iter().enumerate() {
        let mutation = &changed.mutation;
        let exists = match known.as_ref().and_then(|known| known[at]) {
            Some(exists) => exists,
            None if newest.has_conflict(changed, snapshot.as_ref())? => {
                return Err(refusal_error(&pending.bucket.info.name, mutation, snapshot.as_ref()));
            }
            None => mutation.kind == MutationKind::Upsert || newest.exists(&mutation.id)?,
        };
        if mutation.kind == MutationKind::Upsert || exists {
            kept.push(mutation);
        }
    }
    Ok(kept)
}

/// Looks up the documents of a commit before it is numbered. Returns `Conflict` or `DuplicateId`
/// if it is already certain that [`effective`] will refuse the commit.
pub fn look_up(
    store: &dyn DocumentStore,
    bucket: &Bucket,
    committing: &CommitInProgress,
) -> Result<DocumentLookUps> {
    let CommitInProgress { changes, snapshot, .. } = committing;
    // Order matters: the documents have everything up to these positions, and perhaps more.
    let (ends, id) = (bucket.durable(), bucket.info.id);
    let mut exists = Vec::with_capacity(changes.len());
    for LastChange { mutation, was_inserted } in changes {
        let end = snapshot.as_ref().map(|snapshot| snapshot.end(mutation.vbucket));
        let is_conflict = match end {
            Some(end) if ends.get(mutation.vbucket).seqno > end => {
                store.changed_at(id, &mutation.id)?.is_some_and(|seqno| seqno > end)
            }
            _ => false,
        };
        let depends = *was_inserted || mutation.kind == MutationKind::Deletion;
        let is_there = depends && store.contains(id, &mutation.id)?;
        if is_conflict || *was_inserted && is_there {
            return Err(refusal_error(&bucket.info.name, mutation, snapshot.as_ref()));
        }
        exists.push(is_there);
    }
    Ok(DocumentLookUps::new(ends, exists, changes))
}

/// Finds the newest version of a document, including mutations that are numbered but not yet in
/// the store.
struct NewestStates<'n> {
    pending: &'n mut PendingChanges,
    ahead: &'n mut UnshownGroups,
    store: &'n dyn DocumentStore,
}

impl NewestStates<'_> {
    /// Returns true if another writer has changed a document that a transaction changes.
    fn has_conflict(&mut self, changed: &LastChange, snapshot: Option<&Snapshot>) -> Result<bool> {
        let id = &changed.mutation.id;
        if let Some(snapshot) = snapshot {
            let vbucket = changed.mutation.vbucket;
            let end = snapshot.end(vbucket);
            let numbered = self.pending.next[usize::from(vbucket.0)].seqno;
            // Most vbuckets have nothing new, so most documents need no look-up.
            if numbered > end && self.changed_at(id)?.is_some_and(|seqno| seqno > end) {
                let is_missed = plant::is(Plant::ConflictMissed) && !self.exists(id)?;
                return Ok(!is_missed);
            }
        }
        Ok(changed.was_inserted && self.exists(id)?)
    }

    /// Compares the log with an earlier look-up of a commit's documents. Returns for each change
    /// whether its document exists, or `None` if the document was changed after the look-up.
    /// Returns `None` as a whole if the log no longer shows which documents were changed.
    fn still_valid_look_up(
        &mut self,
        looked_up: &DocumentLookUps,
        changes: &[LastChange],
    ) -> Result<Option<Vec<Option<bool>>>> {
        let bucket = self.pending.bucket.info.id;
        let mut known: Vec<_> = looked_up.exists.iter().copied().map(Some).collect();
        let mut forget = |mutation: &Mutation| {
            if let Some(at) = looked_up.change_of(&mutation.id, changes) {
                known[at] = None;
            }
        };
        let extents = self.store.extents(bucket)?;
        for ((vbucket, end), extent) in looked_up.ends.iter().zip(extents) {
            if extent.purged > end.seqno {
                return Ok(None);
            }
            let mut after = end.seqno;
            while after < extent.end {
                let range = LogRange { bucket, vbucket, after, to: extent.end };
                let read = self.store.read_log(range, LOG_READ_BYTES)?;
                let Some(last) = read.last() else { return Ok(None) };
                after = last.seqno;
                read.iter().for_each(|mutation| forget(mutation));
            }
        }
        self.ahead.unshown().for_each(&mut forget);
        self.pending.changes.mutations.iter().for_each(|mutation| forget(mutation));
        Ok(Some(known))
    }

    /// Returns the newest numbered mutation of a document that the store lacks: its kind and its
    /// seqno.
    fn last_numbered(&mut self, id: &str) -> Option<(MutationKind, Seqno)> {
        let newest = self.pending.newest(id).or_else(|| self.ahead.newest(id))?;
        Some((newest.kind, newest.seqno))
    }

    /// Returns the seqno of the last change of a document; `None` if there is none.
    fn changed_at(&mut self, id: &str) -> Result<Option<Seqno>> {
        match self.last_numbered(id) {
            Some((_, seqno)) => Ok(Some(seqno)),
            None => self.store.changed_at(self.pending.bucket.info.id, id),
        }
    }

    /// Returns true if a document exists after all numbered mutations.
    fn exists(&mut self, id: &str) -> Result<bool> {
        match self.last_numbered(id) {
            Some((kind, _)) => Ok(kind == MutationKind::Upsert),
            None => self.store.contains(self.pending.bucket.info.id, id),
        }
    }
}

/// Returns the error of a commit that is refused because of one of its documents.
fn refusal_error(bucket: &str, mutation: &Mutation, snapshot: Option<&Snapshot>) -> Error {
    if snapshot.is_none() {
        return duplicate_id_error(bucket, &mutation.id);
    }
    let what = format!(
        "document {:?} of bucket {bucket} was changed by another transaction since this one began to read",
        mutation.id
    );
    Error::new(ErrorCode::Conflict, what).with_hint(BEGIN_AGAIN)
}
