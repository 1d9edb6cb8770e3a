//! The commit of a transaction, and the checks of its answer.

use std::sync::Arc;

use bytes::Bytes;
use projector::testing::Mutation;
use proto::model::cut::WritePosition;
use proto::model::ids::{TransactionPlace, vbucket_of};
use proto::rpc::api::{Write, WriteKind, WriteReply};
use proto::rpc::mutation::MutationKind;
use proto::{Error, ErrorCode};
use tokio::time::timeout;

use super::running::{Left, Running};
use crate::sim::client::session::Session;
use crate::sim::client::workload::{STATEMENT, Workload, now};
use crate::sim::cluster::hosts::VBUCKETS;
use crate::sim::judge::statements::Outcome;
use crate::sim::violation;

/// The text in an error that tells a conflict from a transaction that the projector has lost.
const CONFLICT: &str = "was changed by another transaction";

impl Outcome {
    /// Returns the outcome of a commit that was refused with this error
    /// ([`ErrorCode::refuses_commit`]).
    pub(super) fn of_conflict(error: &Error) -> Self {
        if is_refusal(error) { Self::Refused } else { Self::RolledBack }
    }
}

/// True if a commit was refused because of other writers' changes.
pub(super) fn is_refusal(error: &Error) -> bool {
    error.code == ErrorCode::DuplicateId || error.message.contains(CONFLICT)
}

impl Workload {
    /// Commits a transaction; returns the position if the commit is acknowledged.
    pub(super) async fn commit(
        &mut self,
        session: &Session,
        running: &mut Running,
    ) -> Option<WritePosition> {
        // From now on, its scans may be refused.
        running.leave(TransactionPlace(0));
        let (writes, began) = (writes(&running.left), now());
        let statement = running.statement;
        self.statements.resume(statement, &writes);
        match timeout(STATEMENT, running.changes.commit(running.epoch(), &[])).await {
            Ok(Ok(reply)) => {
                self.committed(session, running, &reply);
                if statement % 4 == 1 {
                    self.commit_again(running, &reply).await;
                }
                return Some(reply.position);
            }
            Ok(Err(error)) if error.code.refuses_commit() => {
                let is_conflict = is_refusal(&error);
                self.statements.end(statement, Outcome::of_conflict(&error));
                self.count(|summary| match is_conflict {
                    true => summary.conflicts += 1,
                    false => summary.transactions_lost += 1,
                });
                if is_conflict && !self.may_conflict(running) {
                    let text = format!("refused without a reason: {error}; {:?}", running.left);
                    violation(&self.summary, text);
                }
            }
            // There was no answer in time.
            Ok(Err(error)) if error.code == ErrorCode::InDoubt => {
                self.count(|summary| summary.writes_unknown += 1);
            }
            Ok(Err(error)) if !error.is_retry() && !self.is_excused(&error, began) => {
                violation(&self.summary, format!("a commit was refused: {error}"));
            }
            _ => self.count(|summary| summary.writes_unknown += 1),
        }
        None
    }

    /// Repeats the request of a commit, as if its answer had been lost. The second answer must
    /// equal the first, if the projector remembers it.
    async fn commit_again(&self, running: &Running, first: &WriteReply) {
        let asked = timeout(STATEMENT, running.changes.commit(running.epoch(), &[])).await;
        let wrong = match asked {
            Ok(Ok(again)) if again != *first => format!("has changed {again:?}"),
            Ok(Err(error)) if is_refusal(&error) => format!("is refused: {error}"),
            _ => return,
        };
        let text = format!("a commit with the answer {first:?} that is asked for again {wrong}");
        violation(&self.summary, text);
    }

    /// Records and judges an acknowledged commit.
    pub(super) fn committed(&mut self, session: &Session, running: &Running, reply: &WriteReply) {
        self.count(|summary| {
            summary.transactions += 1;
            summary.note(reply);
        });
        self.statements.end(running.statement, Outcome::Acknowledged(reply.clone()));
        let ids = running.left.iter().map(|left| left.id.clone()).collect();
        self.acknowledged.push((reply.position.clone(), ids));
        if let Some(copied) = self.truth.copied() {
            copied.acknowledge(&reply.position);
        }
        if let Some(wrong) = self.judge_committed(session, running, reply) {
            violation(&self.summary, format!("a commit of {:?}: {wrong}", running.left));
        }
    }

    /// True if another writer may have changed a document of a transaction after its snapshot, or may have created one that it inserts.
    pub(super) fn may_conflict(&self, running: &Running) -> bool {
        let cut = running.snapshot.as_ref().map(|seen| &*seen.cut);
        running.left.iter().any(|Left { id, was_inserted, .. }| {
            let behind_cut =
                cut.is_some_and(|cut| self.statements.may_change(running.statement, id, Some(cut)));
            behind_cut || *was_inserted && self.statements.may_change(running.statement, id, None)
        })
    }

    /// Judges an acknowledged commit; returns a text about a violation.
    fn judge_committed(
        &self,
        session: &Session,
        running: &Running,
        reply: &WriteReply,
    ) -> Option<String> {
        let is_effective = |left: &&Left| match (&left.document, &running.snapshot) {
            (Some(_), _) => true,
            (None, seen) => seen.as_ref().is_some_and(|seen| seen.documents.contains_key(&left.id)),
        };
        let expected = running.left.iter().filter(is_effective).count() as u64;
        if running.snapshot.is_some() && reply.affected != expected {
            return Some(format!("{} changes instead of {expected}", reply.affected));
        }
        running.left.iter().find_map(|left| {
            let vbucket = vbucket_of(&left.id, VBUCKETS);
            let position = reply.position.positions.iter().find(|(v, _)| *v == vbucket)?.1;
            let log = self.truth.log_at(session.bucket.id, vbucket, position)?;
            let of_document = log.iter().filter(|mutation| *mutation.id == *left.id).collect();
            judge_document(running, left, of_document, is_effective(&left))
        })
    }
}

/// Judges a document of an acknowledged commit by its mutations up to the commit; returns a text
/// about a violation.
fn judge_document(
    running: &Running,
    left: &Left,
    mut mutations: Vec<&Arc<Mutation>>,
    is_effective: bool,
) -> Option<String> {
    let id = &left.id;
    if let Some(seen) = &running.snapshot {
        let end = seen.cut.get(vbucket_of(id, VBUCKETS)).seqno;
        let behind = mutations.iter().filter(|mutation| mutation.seqno > end);
        let behind: Vec<_> = behind.map(|mutation| (mutation.seqno, mutation.kind)).collect();
        if behind.len() > usize::from(is_effective) {
            let epoch = seen.epoch();
            return Some(format!("{id} was changed behind epoch {epoch} by others: {behind:?}"));
        }
    }
    if left.was_inserted && left.document.is_some() {
        let _own = mutations.pop();
        let before = mutations.last().filter(|before| before.kind == MutationKind::Upsert);
        return before.map(|before| format!("an INSERT has replaced {before:?}"));
    }
    None
}

/// Returns the writes of a commit.
pub(super) fn writes(left: &[Left]) -> Vec<Write> {
    let write = |Left { id, document, .. }: &Left| {
        let kind = match document {
            Some(text) => WriteKind::Upsert(Bytes::from(text.clone())),
            None => WriteKind::Delete,
        };
        Write { id: id.clone(), kind }
    };
    left.iter().map(write).collect()
}
