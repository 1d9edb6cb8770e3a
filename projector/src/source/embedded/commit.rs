//! Numbers the commit of a transaction: the last change of each document that it has changed, as one request.
//!
//! The check stands where mutations are numbered, so it sees every other commit: those that readers see, the groups between
//! their turns, and earlier requests of the same group. The first committer wins:
//!
//! - A transaction that has read a snapshot is refused if a document that it changes was changed behind the snapshot, by a deletion too.
//! - A document that the transaction has begun with an INSERT must still be absent.
//! - Any other change replaces what is there.
//!
//! A deletion of a document that is gone already is left out. The commit itself is logged too, also one that changes nothing, so that
//! its caller can ask again.

use std::sync::Arc;

use proto::model::commits::Committed;
use proto::model::ids::Seqno;
use proto::rpc::api::WriteReply;
use proto::rpc::mutation::MutationKind;
use proto::{Error, ErrorCode, Result};

use super::numbering::Numbered;
use crate::source::ahead::Ahead;
use crate::source::pending::PendingChanges;
use crate::transactions::open::Committing;
use crate::transactions::snapshot::Snapshot;
use crate::transactions::transaction::Changed;
use documents::document_store::DocumentStore;
use documents::mutation::Mutation;

/// Numbers a commit, or refuses it as a whole.
pub(in crate::source) fn commit(
    pending: &mut PendingChanges,
    (ahead, store): (&mut Ahead, &dyn DocumentStore),
    committing: &Committing,
) -> Result<WriteReply> {
    let Committing { transaction, changes, snapshot, .. } = committing;
    if let Some(snapshot) = snapshot {
        let vbuckets = changes.iter().map(|changed| changed.mutation.vbucket);
        pending.bucket.check_not_purged(store, snapshot, vbuckets)?;
    }
    let mut newest = Newest { pending, ahead, store };
    let mut kept = Vec::with_capacity(changes.len());
    for changed in changes {
        if newest.has_conflict(changed, snapshot.as_ref())? {
            return Err(conflict(&pending.bucket.info.name, &changed.mutation));
        }
        let mutation = &changed.mutation;
        if mutation.kind == MutationKind::Upsert || newest.exists(&mutation.id)? {
            kept.push(mutation);
        }
    }
    let mut numbered = Numbered::of(pending, kept.len());
    for Mutation { id, kind, document, .. } in kept.into_iter().map(Arc::as_ref) {
        numbered.add(id, *kind, document.clone());
    }
    let reply = numbered.reply();
    let (transaction, affected) = (*transaction, reply.affected);
    let positions = reply.position.positions.clone();
    pending.commit(Committed { transaction, affected, positions });
    Ok(reply)
}

/// The newest state of documents, with everything that was numbered.
struct Newest<'n> {
    pending: &'n mut PendingChanges,
    ahead: &'n mut Ahead,
    store: &'n dyn DocumentStore,
}

impl Newest<'_> {
    /// True if somebody else has changed a document that a transaction changes.
    fn has_conflict(&mut self, changed: &Changed, snapshot: Option<&Snapshot>) -> Result<bool> {
        let id = &changed.mutation.id;
        if let Some(snapshot) = snapshot {
            let vbucket = changed.mutation.vbucket;
            let end = snapshot.end(vbucket);
            let numbered = self.pending.next[usize::from(vbucket.0)].seqno;
            // Most vbuckets have nothing new, so most documents need no look-up.
            if numbered > end && self.changed_at(id)?.is_some_and(|seqno| seqno > end) {
                return Ok(true);
            }
        }
        Ok(changed.was_inserted && self.exists(id)?)
    }

    fn numbered(&mut self, id: &str) -> Option<(MutationKind, Seqno)> {
        let newest = self.pending.newest(id).or_else(|| self.ahead.newest(id))?;
        Some((newest.kind, newest.seqno))
    }

    fn changed_at(&mut self, id: &str) -> Result<Option<Seqno>> {
        match self.numbered(id) {
            Some((_, seqno)) => Ok(Some(seqno)),
            None => self.store.changed_at(self.pending.bucket.info.id, id),
        }
    }

    fn exists(&mut self, id: &str) -> Result<bool> {
        match self.numbered(id) {
            Some((kind, _)) => Ok(kind == MutationKind::Upsert),
            None => self.store.contains(self.pending.bucket.info.id, id),
        }
    }
}

fn conflict(bucket: &str, mutation: &Mutation) -> Error {
    let what = format!(
        "document {:?} of bucket {bucket} was changed by another transaction since this one began to read",
        mutation.id
    );
    Error::new(ErrorCode::Conflict, what).with_hint("begin the transaction again")
}
