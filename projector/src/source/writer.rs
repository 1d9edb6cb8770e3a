//! The writer of a bucket, which commits requests in groups: many requests share one batch and
//! one sync of the bucket's log.
//!
//! A request is checked before it is added to the queue of its bucket. One thread at a time takes
//! all waiting requests up to a limit, numbers their mutations, and commits them as one batch, in
//! the two turns of [`super::gate`]: first the group is durable in the log; then it is added to
//! the documents, the bucket publishes it, and its requests are answered. While a group is synced
//! the next one is collected, and while a group is published the next one is synced. So
//! throughput grows with the number of writers, and a lone writer waits for one sync only.
//!
//! Only the thread with the first turn numbers mutations, and it continues from the previous
//! group, so seqnos have no gaps. A refused request (a duplicate id, a position out of order)
//! leaves the group before it has changed anything. If the store fails, the group is not
//! published, and all its requests fail; so do later groups, because the store accepts no more
//! writes.
//!
//! If the leader waits for other copies ([`super::links`]), a group is published when the last of
//! them has confirmed it. Meanwhile the next groups are logged, up to a limit. Exclusive work
//! waits until no group waits for another copy.
//!
//! Each bucket has its own queue and log, so a slow sync delays no other bucket. No statement is
//! split over two groups: each reported position is *participant-closed*.

use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_channel::Receiver;
use proto::env::{Env, TaskPolicy};
use proto::flow::Reservation;
use proto::lock::lock;
use proto::model::commits::TransactionEvent;
use proto::model::ids::{BucketId, ProducerTransactionId, TransactionId};
use proto::model::open_commit::CommitId;
use proto::plant::{self, Plant};
use proto::rpc::api::{CheckedWrites, Decision, PushReply, PushedCommitRequest, WriteReply};
use proto::rpc::mutation::MutationKind;
use proto::{Error, Result};
use tokio::sync::{Notify, oneshot};

use super::embedded::{commit, holds, joint, numbering};
use super::groups::ahead::{GroupBetweenTurns, Positions, UnshownGroups};
use super::groups::gate::{Answers, GroupFate, SMALL_BYTES_MAX, WaitingGroup};
use super::pending::PendingChanges;
use super::push::check::CheckedPush;
use super::push::{commit as push_commit, order};
use super::view::bucket::Bucket;
use super::view::large_commits::LargeCommit;
use crate::transactions::committing::CommitInProgress;
use crate::transactions::producer_transactions::ProducerCommitGuard;
use documents::document_store::{Batch, DocumentStore, ShowBatch};

/// The approximate size limit of a group in bytes. The limit is large enough that the sync is a
/// small part of a group's cost, and small enough that the next group does not wait long.
const GROUP_BYTES_MAX: usize = 4 << 20;
/// The number of groups that one thread commits before it yields.
const GROUPS_MAX: usize = 64;
/// The maximum number of groups that are logged and not published, without other copies. More
/// groups would only wait longer.
const UNSHOWN_MAX: usize = 2;
/// The maximum number of groups that wait for other copies: one that is being sent, one that
/// another copy is syncing, and further ones that arrive meanwhile.
const AWAITED_MAX: usize = 4;

/// A request to a bucket's writer, with the memory that is reserved for it in the queue.
pub struct Job {
    /// The approximate size in bytes.
    pub bytes: usize,
    /// The request.
    pub work: Work,
    /// The reserved memory, released when the request is answered; `None` for work without
    /// documents in the queue.
    pub room: Option<JobReservations>,
}

/// The memory that is reserved for a request. It is reserved twice: in the budget of the
/// request's bucket, so that a bucket whose copies are silent leaves memory for other buckets,
/// and in the total budget.
pub type JobReservations = (Reservation, Reservation);

impl Job {
    /// Returns true if no other request of the bucket may be in progress during this one.
    fn is_exclusive(&self) -> bool {
        matches!(self.work, Work::Exclusive(_) | Work::Brief(_))
    }

    /// Returns true if the work usually takes no longer than the sync of a small group.
    fn is_brief(&self) -> bool {
        matches!(self.work, Work::Brief(_))
    }
}

/// A function that the writer runs while no group of the bucket is in progress.
pub type ExclusiveWork = Box<dyn FnOnce(&Writer, &Bucket) + Send>;

/// A request to the writer of a bucket. Each request but the last two contains the channel of its
/// answer.
pub enum Work {
    /// Documents to be numbered and written, all or none.
    Write(CheckedWrites, oneshot::Sender<Result<WriteReply>>),
    /// The changes of a transaction to be numbered and written, all or none.
    Commit(Box<CommitInProgress>, oneshot::Sender<Result<WriteReply>>),
    /// The changes of a transaction to be prepared, and the transaction's number in the deciding
    /// bucket.
    Prepare(TransactionId, Box<CommitInProgress>, oneshot::Sender<Result<u64>>),
    /// The outcome of a prepared transaction.
    Decide(TransactionId, Decision, oneshot::Sender<Result<WriteReply>>),
    /// Mutations that their producer has numbered, to be accepted up to the first one that does
    /// not follow its predecessor. Also the error that validation has found in the request.
    Push(Vec<CheckedPush>, Option<Error>, oneshot::Sender<Result<PushReply>>),
    /// The mutations of a producer's transaction, and the request that names the vbuckets whose
    /// mutations are committed.
    CommitPushed(PushedCommitRequest, Box<ProducerCommitGuard>, oneshot::Sender<Result<PushReply>>),
    /// A producer's transaction whose missing parts are given up, so that epochs include its open
    /// commit without them.
    GiveUpRest(ProducerTransactionId, oneshot::Sender<Result<()>>),
    /// Work that runs alone, while no group of the bucket is in progress.
    Exclusive(ExclusiveWork),
    /// Work that runs alone, and that usually takes no longer than the sync of a small group.
    Brief(ExclusiveWork),
}

/// The writer of a projector: the data that the writers of all buckets share, and their work.
pub struct Writer {
    /// The store that batches are written to.
    pub store: Arc<dyn DocumentStore>,
    /// Notified when the store has failed; it accepts no more writes until it is opened again.
    pub failed: Arc<Notify>,
    /// Locked while a group is published, and while the positions of several buckets are read as
    /// of one moment. So if the read positions include a write, they also include all writes that
    /// were acknowledged before that write began.
    pub showing: Mutex<()>,
    /// The smallest number of changed documents of a large commit. For such a commit, streams
    /// send a marker instead of its mutations.
    pub large_commit_changes: u64,
    /// A function that is called with the id of each bucket that has changed.
    pub on_change: Box<dyn Fn(BucketId) + Send + Sync>,
}

impl Writer {
    /// Handles the jobs of a bucket until cancelled. Waits when all senders of jobs were dropped,
    /// which happens while the service stops. Cancelling drops the queued jobs and closes the
    /// reply channels of their callers; groups that are being committed are finished and
    /// answered.
    pub async fn run(
        self: Arc<Self>,
        bucket: Arc<Bucket>,
        env: Env,
        jobs: Receiver<Job>,
    ) -> Infallible {
        while let Ok(first) = jobs.recv().await {
            let mut next = Some(first);
            while let Some(first) = next {
                wait_for_copies(&bucket, first.is_exclusive()).await;
                let (writer, bucket) = (Arc::clone(&self), Arc::clone(&bucket));
                let (queue, shows, is_brief) = (jobs.clone(), env.clone(), first.is_brief());
                let groups_max = if is_brief { 1 } else { GROUPS_MAX };
                let work = move || writer.handle_jobs(&bucket, first, (&queue, groups_max), &shows);
                next = match is_brief {
                    true => env.blocking_briefly(work).await,
                    false => env.blocking(work).await,
                };
            }
        }
        pending().await
    }

    /// Handles waiting jobs: at most `groups_max` groups. Returns the next job if there are more.
    fn handle_jobs(
        self: &Arc<Self>,
        bucket: &Arc<Bucket>,
        first: Job,
        (jobs, groups_max): (&Receiver<Job>, usize),
        env: &Env,
    ) -> Option<Job> {
        let mut next = Some(first);
        for _ in 0..groups_max {
            let first = next.take()?;
            if !may_begin(bucket, first.is_exclusive()) {
                return Some(first);
            }
            if first.is_exclusive() {
                // Only this thread begins groups, so no group waits from here on.
                bucket.gate.show_waiting();
                if bucket.gate.waiting() > 0 && !bucket.has_ended() {
                    return Some(first);
                }
            }
            if let Work::Exclusive(work) | Work::Brief(work) = first.work {
                work(self, bucket);
                next = jobs.try_recv().ok();
                continue;
            }
            let (group, then) = gather_group(first, jobs);
            // A small group is shown by the thread that has logged it: that costs less than another thread's wake-up.
            let bytes = bytes_of(&group);
            let is_large = bytes > SMALL_BYTES_MAX;
            let (waiting, shown) = self.log_group(bucket, group);
            if shown.iter().any(GroupBetweenTurns::is_large) {
                env.spawn_blocking("projector groups", TaskPolicy::Request, move || drop(shown));
            }
            next = then.or_else(|| jobs.try_recv().ok());
            if !bucket.links.is_alone() && !bucket.gate.is_settled() {
                // The answer of the last copy shows it (`copies::serve`).
                next = next.or_else(|| jobs.try_recv().ok());
                continue;
            }
            let has_more = next.is_some() || bytes > GROUP_BYTES_MAX;
            if is_large && has_more && waiting < UNSHOWN_MAX {
                let bucket = Arc::clone(bucket);
                env.spawn_blocking("projector groups", TaskPolicy::EndProcess, move || {
                    bucket.gate.show_waiting();
                });
                continue;
            }
            bucket.gate.show_waiting();
            next = next.or_else(|| jobs.try_recv().ok());
        }
        next
    }

    /// Numbers a group of jobs, and makes it durable in the log. Returns the number of groups
    /// that wait to be published. Also returns earlier groups that are published now; the caller
    /// drops them, since that may take long.
    fn log_group(
        self: &Arc<Self>,
        bucket: &Arc<Bucket>,
        jobs: Vec<Job>,
    ) -> (usize, Vec<GroupBetweenTurns>) {
        let bytes = bytes_of(&jobs);
        let mut turn = bucket.gate.lock_first_turn();
        let behind = turn.take_positions(|| bucket.published());
        let pending = PendingChanges::new(Arc::clone(bucket), behind);
        let large_changes = self.large_commit_changes;
        let mut group = Group { store: &*self.store, ahead: &mut turn, pending, large_changes };
        let mut answers = Vec::with_capacity(jobs.len());
        for job in jobs {
            answers.push((group.number_request(job.work), job.room));
        }
        group.pending.drop_ended_commits();
        let PendingChanges { changes, next, branches, commits, large, .. } = group.pending;
        turn.put_positions(Positions { next, branches, commits });
        let (batch, is_shown) = (Arc::new(changes), Arc::new(AtomicBool::new(false)));
        let has_changes = !batch.is_empty();
        // The other copies write the group while it is synced here.
        let number = match has_changes || bucket.gate.waiting() > 0 {
            true => bucket.links.add_group(has_changes.then_some(&batch)),
            // The group waits for no copy, also after the end of a term.
            false => 0,
        };
        bucket.wake_copies(has_changes);
        let logged = has_changes.then(|| self.store.log(bucket.info.id, &batch));
        let no_longer = turn.push(Arc::clone(&batch), Arc::clone(&is_shown));
        let (writer, at) = (Arc::clone(self), Arc::clone(bucket));
        let show = move |fate| {
            let shown = |logged| writer.show_group((&at, fate), logged, (&batch, large));
            let committed = logged.map_or(Ok(()), shown);
            is_shown.store(true, Ordering::Release);
            Box::new(move || answer_all(answers, &committed)) as Answers
        };
        let group = WaitingGroup { number, bytes, show: Box::new(show) };
        (bucket.gate.push(&turn, group), no_longer)
    }

    /// Adds a durable group to the document table, and publishes it unless it is abandoned.
    fn show_group(
        &self,
        (bucket, fate): (&Bucket, GroupFate),
        logged: Result<ShowBatch>,
        (batch, large): (&Batch, Vec<Arc<LargeCommit>>),
    ) -> Result<()> {
        // Before the documents can be read: their readers look for commits that lack parts after the read.
        bucket.record_pushed_commits(&batch.commits);
        let shown = logged.and_then(|show| show());
        match &shown {
            Ok(()) if fate == GroupFate::Abandoned => return Err(bucket.in_doubt_error()),
            Ok(()) => {
                let branches = batch.record.as_ref().map(|record| record.branches.clone());
                let published = bucket.to_publish(&batch.mutations);
                let _showing = lock(&self.showing);
                bucket.publish(published, branches, (&batch.commits, large));
                (self.on_change)(bucket.info.id);
            }
            Err(error) => {
                tracing::error!(%error, "the commit of a group failed");
                self.failed.notify_one();
            }
        }
        shown
    }
}

/// Returns true if a job may begin. Exclusive work must wait while any group waits for other
/// copies. Other jobs must wait while [`AWAITED_MAX`] groups do.
fn may_begin(bucket: &Bucket, is_exclusive: bool) -> bool {
    if bucket.links.is_alone() || bucket.has_ended() {
        return true;
    }
    match is_exclusive {
        true => bucket.gate.is_settled(),
        false => bucket.gate.waiting() < AWAITED_MAX,
    }
}

/// Waits until a job may begin.
async fn wait_for_copies(bucket: &Bucket, is_exclusive: bool) {
    let mut changes = bucket.watch();
    while !may_begin(bucket, is_exclusive) {
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Collects the waiting jobs that are committed together with `first`. Also returns the job after
/// them, if it was received already.
fn gather_group(first: Job, jobs: &Receiver<Job>) -> (Vec<Job>, Option<Job>) {
    let (mut bytes, mut group, mut then) = (0, Vec::new(), Some(first));
    while let Some(job) = then.take_if(|job| !job.is_exclusive()) {
        bytes += job.bytes;
        group.push(job);
        then = if bytes < GROUP_BYTES_MAX { jobs.try_recv().ok() } else { None };
    }
    (group, then)
}

fn bytes_of(jobs: &[Job]) -> usize {
    jobs.iter().map(|job| job.bytes).sum()
}

/// Answers all requests of a group, and releases their memory.
fn answer_all(answers: Vec<(Answer, Option<JobReservations>)>, committed: &Result<()>) {
    let committed = match plant::is(Plant::AcknowledgedEarly) {
        true => Ok(()),
        false => committed.clone(),
    };
    for (answer, _room) in answers {
        answer(committed.clone());
    }
}

/// A function that answers a request once its group is committed. An error of the store takes
/// precedence over the request's own outcome.
type Answer = Box<dyn FnOnce(Result<()>) + Send>;

/// Returns the function that answers a request with its outcome.
fn answer<T: Send + 'static>(reply: oneshot::Sender<Result<T>>, outcome: Result<T>) -> Answer {
    Box::new(move |committed| {
        // The caller may have stopped waiting; the write is done anyway.
        let _gone = reply.send(committed.and(outcome));
    })
}

/// Returns a function that answers the caller of a commit and then ends the transaction. If the
/// group has failed, the transaction does not end: the log may contain the group, and the next
/// opening of the bucket decides.
fn end_with_answer(committing: Box<CommitInProgress>, answer: Answer) -> Answer {
    Box::new(move |committed| answer(committed.map_err(|error| committing.keep_in_doubt(error))))
}

/// Returns a function that answers the caller of a producer's commit and then ends the
/// transaction. If the commit was refused, the transaction is open again instead.
fn end_pushed_with_answer(
    committing: Box<ProducerCommitGuard>,
    reply: oneshot::Sender<Result<PushReply>>,
    outcome: Result<PushReply>,
) -> Answer {
    Box::new(move |committed| {
        let outcome = match (committed, outcome) {
            (Err(error), _) => Err(committing.keep_in_doubt(error)),
            (Ok(()), Ok(reply)) => {
                committing.finish();
                Ok(reply)
            }
            (Ok(()), Err(error)) => {
                drop(committing);
                Err(error)
            }
        };
        // The caller may have stopped waiting; the commit is done anyway.
        let _gone = reply.send(outcome);
    })
}

/// A group of requests while it is being numbered.
struct Group<'s> {
    store: &'s dyn DocumentStore,
    ahead: &'s mut UnshownGroups,
    pending: PendingChanges,
    /// The smallest number of changes of a large commit.
    large_changes: u64,
}

impl Group<'_> {
    /// Numbers the mutations of one request, and returns the function that answers it.
    fn number_request(&mut self, work: Work) -> Answer {
        let Self { store, ahead, pending, large_changes } = self;
        let bucket = Arc::clone(&pending.bucket);
        let removed = bucket.refusal();
        match work {
            Work::Write(writes, reply) => {
                let ids = writes.writes().iter().map(|write| &**write.id());
                let refused = removed.or_else(|| holds::check_not_locked(pending, ids).err());
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
            Work::Commit(mut committing, reply) => {
                let outcome = match removed {
                    Some(error) => Err(error),
                    None => {
                        let is_large = committing.changes.len() as u64 >= *large_changes;
                        let before = is_large.then(|| pending.next.clone());
                        let numbered =
                            commit::commit(pending, (&mut **ahead, *store), &mut committing);
                        if let (Some(before), Ok(reply)) = (before, &numbered) {
                            let large = LargeCommit::new(&committing, &before, reply);
                            pending.large.push(Arc::new(large));
                        }
                        numbered
                    }
                };
                end_with_answer(committing, answer(reply, outcome))
            }
            Work::Prepare(number, committing, reply) => {
                let outcome = match removed {
                    Some(error) => Err(error),
                    None => joint::prepare(pending, (&mut **ahead, *store), (number, &committing)),
                };
                end_with_answer(committing, answer(reply, outcome))
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
                end_pushed_with_answer(committing, reply, outcome)
            }
            Work::GiveUpRest(transaction, reply) => {
                if pending.commits.find_pushed(transaction).is_some() {
                    let settled = CommitId::Pushed(transaction);
                    pending.add_transaction_step(TransactionEvent::Settled(settled));
                }
                answer(reply, removed.map_or(Ok(()), Err))
            }
            // The loop never puts this kind into a group.
            Work::Exclusive(_) | Work::Brief(_) => Box::new(|_| ()),
            Work::Push(mutations, error, reply) => {
                let outcome = match removed {
                    Some(error) => Err(error),
                    None => order::accept_pushed(pending, mutations, error),
                };
                answer(reply, outcome)
            }
        }
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
