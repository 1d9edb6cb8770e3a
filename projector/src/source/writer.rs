//! Group commit: many writers share one batch and one sync of the store.
//!
//! A request is checked and its documents are parsed in its caller's task, then it waits in one queue.
//! One loop takes all that waits (up to a bound), numbers the mutations, commits them as one batch, and
//! then, in one step for each bucket, publishes them and answers. While a group is being synced the
//! next one gathers, so that throughput grows with the number of writers and a lone writer waits for
//! one sync only.
//!
//! The loop is the only one that numbers, so seqnos have no gaps. A request that is refused (a duplicate
//! id, a position out of order) leaves the group before it has touched anything. If the store fails,
//! nothing of the group is published, and everybody in it is told so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_channel::Receiver;
use proto::env::Env;
use proto::flow::Reservation;
use proto::model::ids::BucketId;
use proto::plant::{self, Plant};
use proto::rpc::api::{PushReply, WriteReply};
use proto::{Error, Result};
use tokio::sync::{Notify, oneshot};

use super::bucket::Bucket;
use super::embedded::check::CheckedWrite;
use super::embedded::numbering;
use super::pending::Pending;
use super::push::check::CheckedPush;
use super::push::order;
use super::store::document_store::{Batch, DocumentStore};

/// Bytes of documents in one group, about: enough that the sync is a small part of its cost, and few
/// enough that those who gather meanwhile do not wait long.
const GROUP_BYTES_MAX: usize = 4 << 20;

/// A request on its way to the log, with the room that it takes in the queue.
pub struct Job {
    /// The bucket that it writes.
    pub bucket: Arc<Bucket>,
    /// About how many bytes it has.
    pub bytes: usize,
    /// What it asks.
    pub work: Work,
    /// Given back when it is answered.
    pub room: Reservation,
}

/// What is done between two groups.
pub type Alone = Box<dyn FnOnce(&Writer, &Bucket) + Send>;

/// What a job asks.
pub enum Work {
    /// Documents to number and write, all or none.
    Write(Vec<CheckedWrite>, oneshot::Sender<Result<WriteReply>>),
    /// Mutations that have their numbers, up to the first that does not fit; then the error that the
    /// request has met already, if any.
    Push(Vec<CheckedPush>, Option<Error>, oneshot::Sender<Result<PushReply>>),
    /// Something that is done alone, between two groups: what came before it is of before.
    Alone(Alone),
}

/// What the commit loop needs.
pub struct Writer {
    /// Where batches go.
    pub store: Arc<dyn DocumentStore>,
    /// Held from the first look at a group's buckets to its publication. Whoever holds it sees store
    /// and buckets agree.
    pub gate: Arc<Mutex<()>>,
    /// Told when the store has failed: it takes no more until it is opened again.
    pub failed: Arc<Notify>,
    /// Told of each bucket that has moved on.
    pub moved: Box<dyn Fn(BucketId) + Send + Sync>,
}

impl Writer {
    /// Takes jobs until all senders are gone. Cancelled: jobs in the queue are dropped, whose callers
    /// see their reply's channel close; a group that is being committed is finished and answered.
    pub async fn run(self: Arc<Self>, env: Env, jobs: Receiver<Job>) {
        while let Ok(first) = jobs.recv().await {
            let mut bytes = 0;
            let (mut group, mut then) = (Vec::new(), Some(first));
            while let Some(job) = then.take_if(|job| !matches!(job.work, Work::Alone(_))) {
                bytes += job.bytes;
                group.push(job);
                then = if bytes < GROUP_BYTES_MAX { jobs.try_recv().ok() } else { None };
            }
            let writer = Arc::clone(&self);
            env.blocking(move || {
                if !group.is_empty() {
                    writer.commit_group(group);
                }
                if let Some(Job { bucket, work: Work::Alone(work), .. }) = then {
                    work(&writer, &bucket);
                }
            })
            .await;
        }
    }

    /// Store and buckets agree while this is held.
    pub(crate) fn agree(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn commit_group(&self, jobs: Vec<Job>) {
        let agree = self.agree();
        let mut group = Group { store: &*self.store, buckets: BTreeMap::new() };
        let mut answers = Vec::new();
        for job in jobs {
            answers.push((group.stage(job.bucket, job.work), job.room));
        }
        let mut batch = Batch::default();
        let mut publish = Vec::new();
        for (id, Pending { bucket, changes, .. }) in group.buckets {
            if !changes.mutations.is_empty() {
                let branches = changes.record.as_ref().map(|record| record.branches.clone());
                publish.push((bucket, changes.mutations.clone(), branches));
                batch.buckets.insert(id, changes);
            }
        }
        let committed = if batch.buckets.is_empty() { Ok(()) } else { self.store.commit(&batch) };
        match &committed {
            Ok(()) => {
                for (bucket, mutations, branches) in publish {
                    bucket.publish(mutations, branches);
                    (self.moved)(bucket.info.id);
                }
            }
            Err(error) => {
                tracing::error!(%error, "committing documents failed");
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

/// Tells the writer of a request how it went; a store's error stands above the request's own outcome.
type Answer = Box<dyn FnOnce(Result<()>) + Send>;

fn answer<T: Send + 'static>(reply: oneshot::Sender<Result<T>>, outcome: Result<T>) -> Answer {
    Box::new(move |committed| {
        // Whoever asked may have gone; the write stands all the same.
        let _gone = reply.send(committed.and(outcome));
    })
}

/// The batch that is being put together.
struct Group<'s> {
    store: &'s dyn DocumentStore,
    buckets: BTreeMap<BucketId, Pending>,
}

impl Group<'_> {
    fn stage(&mut self, bucket: Arc<Bucket>, work: Work) -> Answer {
        let pending =
            self.buckets.entry(bucket.info.id).or_insert_with(|| Pending::new(Arc::clone(&bucket)));
        let removed = bucket.is_removed().then(|| bucket.removed_error());
        match work {
            Work::Write(writes, reply) => {
                let outcome = match removed {
                    Some(error) => Err(error),
                    None => numbering::write(pending, self.store, writes),
                };
                answer(reply, outcome)
            }
            // The loop does not put it into a group.
            Work::Alone(_) => Box::new(|_| ()),
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
