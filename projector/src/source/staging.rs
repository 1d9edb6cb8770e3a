//! A request becomes a part of a group: it is checked against everything before it, and numbered.

use std::sync::Arc;

use proto::Result;
use proto::model::commits::TransactionEvent;
use proto::rpc::api::PushReply;
use proto::rpc::mutation::MutationKind;
use tokio::sync::oneshot;

use super::ahead::Ahead;
use super::embedded::{commit, holds, joint, numbering};
use super::large_commits::LargeCommit;
use super::pending::PendingChanges;
use super::push::{commit as push_commit, order};
use super::writer::Work;
use crate::transactions::committing::Committing;
use crate::transactions::pushed::CommittingPushed;
use documents::document_store::DocumentStore;

/// Answers a request. A store error takes precedence over the request's own outcome.
pub(super) type Answer = Box<dyn FnOnce(Result<()>) + Send>;

fn answer<T: Send + 'static>(reply: oneshot::Sender<Result<T>>, outcome: Result<T>) -> Answer {
    Box::new(move |committed| {
        // The caller may be gone; the write stands all the same.
        let _gone = reply.send(committed.and(outcome));
    })
}

/// Ends a transaction when its caller learns the outcome. One whose group has failed never ends here: the log may have it, and the next
/// opening of the bucket tells.
fn ended(committing: Box<Committing>, answer: Answer) -> Answer {
    Box::new(move |committed| answer(committed.map_err(|error| committing.in_doubt(error))))
}

/// The same for a transaction of a producer, which is open again if its commit was refused.
fn ended_pushed(
    committing: Box<CommittingPushed>,
    reply: oneshot::Sender<Result<PushReply>>,
    outcome: Result<PushReply>,
) -> Answer {
    Box::new(move |committed| {
        let outcome = match (committed, outcome) {
            (Err(error), _) => Err(committing.in_doubt(error)),
            (Ok(()), Ok(reply)) => {
                committing.finish();
                Ok(reply)
            }
            (Ok(()), Err(error)) => {
                drop(committing);
                Err(error)
            }
        };
        // The caller may be gone; the commit stands all the same.
        let _gone = reply.send(outcome);
    })
}

/// A group while it is built.
pub(super) struct Group<'s> {
    pub store: &'s dyn DocumentStore,
    pub ahead: &'s mut Ahead,
    pub pending: PendingChanges,
    /// Changes of the smallest large commit.
    pub large_changes: u64,
}

impl Group<'_> {
    /// Checks a request and numbers what it writes; a refused one changes nothing. The answer is sent when the group is visible.
    pub fn stage(&mut self, work: Work) -> Answer {
        let Self { store, ahead, pending, large_changes } = self;
        let bucket = Arc::clone(&pending.bucket);
        let removed = bucket.refusal();
        match work {
            Work::Write(writes, reply) => {
                let ids = writes.writes().iter().map(|write| &**write.id());
                let refused = removed.or_else(|| holds::check_unheld(pending, ids).err());
                let outcome = match refused {
                    Some(error) => Err(error),
                    None => {
                        let mut exists = |document: &str| match ahead.newest(document) {
                            Some(newest) => Ok(newest.kind == MutationKind::Upsert),
                            None => store.contains(bucket.info.id, document),
                        };
                        numbering::write(pending, &mut exists, &writes)
                    }
                };
                answer(reply, outcome)
            }
            Work::Commit(committing, reply) => {
                let outcome = match removed {
                    Some(error) => Err(error),
                    None => {
                        let is_large = committing.changes.len() as u64 >= *large_changes;
                        let before = is_large.then(|| pending.next.clone());
                        let numbered = commit::commit(pending, (&mut **ahead, *store), &committing);
                        if let (Some(before), Ok(reply)) = (before, &numbered) {
                            let large = LargeCommit::new(&committing, &before, reply);
                            pending.large.push(Arc::new(large));
                        }
                        numbered
                    }
                };
                ended(committing, answer(reply, outcome))
            }
            Work::Prepare(number, committing, reply) => {
                let outcome = match removed {
                    Some(error) => Err(error),
                    None => joint::prepare(pending, (&mut **ahead, *store), (number, &committing)),
                };
                ended(committing, answer(reply, outcome))
            }
            Work::Decide(transaction, decision, reply) => {
                let outcome = match removed {
                    Some(error) => Err(error),
                    None => joint::decide(pending, transaction, decision),
                };
                answer(reply, outcome)
            }
            Work::CommitPushed(request, committing, reply) => {
                let outcome = match removed {
                    Some(error) => Err(error),
                    None => push_commit::commit(pending, (&request, *large_changes), &committing),
                };
                ended_pushed(committing, reply, outcome)
            }
            Work::GiveUpRest(transaction, reply) => {
                if pending.commits.pushed().find(transaction).is_some() {
                    pending.transaction(TransactionEvent::PushedSettled(transaction));
                }
                answer(reply, removed.map_or(Ok(()), Err))
            }
            // The loop never puts this kind into a group.
            Work::Exclusive(_) | Work::Brief(_) => Box::new(|_| ()),
            Work::Push(mutations, error, reply) => {
                let outcome = match removed {
                    Some(error) => Err(error),
                    None => order::push(pending, mutations, error),
                };
                answer(reply, outcome)
            }
        }
    }
}
