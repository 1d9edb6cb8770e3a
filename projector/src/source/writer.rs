//! Group commit: many writers share one batch and one sync of the store.
//!
//! A request is validated and parsed in its caller's task, then waits in one queue. One loop takes all waiting
//! requests up to a limit, numbers their mutations, commits them as one batch, and then publishes them and answers,
//! in one step per bucket. While a group is synced the next one gathers. So throughput grows with the number of
//! writers, and a lone writer waits for one sync only.
//!
//! Only this loop numbers mutations, so seqnos have no gaps. A refused request (a duplicate id, a position out of
//! order) leaves the group before it has changed anything. If the store fails, nothing of the group is published, and
//! all its requests fail.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};

use async_channel::Receiver;
use proto::env::Env;
use proto::flow::Reservation;
use proto::lock::lock;
use proto::model::ids::BucketId;
use proto::plant::{self, Plant};
use proto::rpc::api::{CheckedWrites, PushReply, WriteReply};
use proto::{Error, Result};
use tokio::sync::{Notify, oneshot};

use super::bucket::Bucket;
use super::embedded::numbering;
use super::pending::PendingChanges;
use super::push::check::CheckedPush;
use super::push::order;
use documents::document_store::{Batch, DocumentStore};

/// The approximate size of a group: large enough that the sync is a small part of its cost, and small enough that the
/// next group does not wait long.
const GROUP_BYTES_MAX: usize = 4 << 20;

/// A request on its way to the log, and its room in the queue.
pub struct Job {
    /// The bucket to write.
    pub bucket: Arc<Bucket>,
    /// The approximate size.
    pub bytes: usize,
    /// The request.
    pub work: Work,
    /// Released when the request is answered.
    pub room: Reservation,
}

/// Work that runs between two groups.
pub type Exclusive = Box<dyn FnOnce(&Writer, &Bucket) + Send>;

/// The request of a job.
pub enum Work {
    /// Documents to number and write, all or none.
    Write(CheckedWrites, oneshot::Sender<Result<WriteReply>>),
    /// Numbered mutations, up to the first that does not fit, then the error that validation has found in the
    /// request.
    Push(Vec<CheckedPush>, Option<Error>, oneshot::Sender<Result<PushReply>>),
    /// Work that runs exclusively between two groups.
    Exclusive(Exclusive),
}

/// The commit loop's components.
pub struct Writer {
    /// The store that batches go to.
    pub store: Arc<dyn DocumentStore>,
    /// Held from the first look at a group's buckets until its publication. While it is held, store and buckets
    /// agree.
    pub gate: Arc<Mutex<()>>,
    /// Notified when the store has failed. It accepts no more until it is opened again.
    pub failed: Arc<Notify>,
    /// Called for each bucket that has changed.
    pub on_change: Box<dyn Fn(BucketId) + Send + Sync>,
}

impl Writer {
    /// Handles jobs; idle once all senders are gone, which happens while the service stops. Cancelling drops the queued
    /// jobs, whose callers see their reply channel close; a group that is being committed is finished and answered.
    pub async fn run(self: Arc<Self>, env: Env, jobs: Receiver<Job>) -> Infallible {
        while let Ok(first) = jobs.recv().await {
            let mut bytes = 0;
            let (mut group, mut then) = (Vec::new(), Some(first));
            while let Some(job) = then.take_if(|job| !matches!(job.work, Work::Exclusive(_))) {
                bytes += job.bytes;
                group.push(job);
                then = if bytes < GROUP_BYTES_MAX { jobs.try_recv().ok() } else { None };
            }
            let writer = Arc::clone(&self);
            env.blocking(move || {
                if !group.is_empty() {
                    writer.commit_group(group);
                }
                if let Some(Job { bucket, work: Work::Exclusive(work), .. }) = then {
                    work(&writer, &bucket);
                }
            })
            .await;
        }
        pending().await
    }

    /// Locks the gate. While it is held, store and buckets agree.
    pub(crate) fn lock_gate(&self) -> MutexGuard<'_, ()> {
        lock(&self.gate)
    }

    fn commit_group(&self, jobs: Vec<Job>) {
        let agree = self.lock_gate();
        let mut group = Group { store: &*self.store, buckets: BTreeMap::new() };
        let mut answers = Vec::new();
        for job in jobs {
            answers.push((group.stage(job.bucket, job.work), job.room));
        }
        let (mut batch, mut buckets) = (Batch::default(), Vec::new());
        for (id, PendingChanges { bucket, changes, .. }) in group.buckets {
            if !changes.mutations.is_empty() {
                buckets.push(bucket);
                batch.buckets.insert(id, changes);
            }
        }
        let committed = if batch.buckets.is_empty() { Ok(()) } else { self.store.commit(&batch) };
        match &committed {
            Ok(()) => {
                for (bucket, (id, changes)) in buckets.iter().zip(batch.buckets) {
                    let branches = changes.record.map(|record| record.branches);
                    bucket.publish(changes.mutations, branches);
                    (self.on_change)(id);
                }
            }
            Err(error) => {
                tracing::error!(%error, "the commit of a group failed");
                self.failed.notify_one();
            }
        }
        let committed = if plant::is(Plant::AcknowledgedEarly) { Ok(()) } else { committed };
        drop(agree);
        for (answer, _room) in answers {
            answer(committed.clone());
        }
    }
}

/// Answers a request. A store error takes precedence over the request's own outcome.
type Answer = Box<dyn FnOnce(Result<()>) + Send>;

fn answer<T: Send + 'static>(reply: oneshot::Sender<Result<T>>, outcome: Result<T>) -> Answer {
    Box::new(move |committed| {
        // The caller may be gone; the write stands all the same.
        let _gone = reply.send(committed.and(outcome));
    })
}

/// The batch of a group while it is built.
struct Group<'s> {
    store: &'s dyn DocumentStore,
    buckets: BTreeMap<BucketId, PendingChanges>,
}

impl Group<'_> {
    fn stage(&mut self, bucket: Arc<Bucket>, work: Work) -> Answer {
        let pending = self
            .buckets
            .entry(bucket.info.id)
            .or_insert_with(|| PendingChanges::new(Arc::clone(&bucket)));
        let removed = bucket.is_removed().then(|| bucket.removed_error());
        match work {
            Work::Write(writes, reply) => {
                let outcome = match removed {
                    Some(error) => Err(error),
                    None => numbering::write(pending, self.store, &writes),
                };
                answer(reply, outcome)
            }
            // The loop never puts this kind into a group.
            Work::Exclusive(_) => Box::new(|_| ()),
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
