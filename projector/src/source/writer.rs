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
use bytes::Bytes;
use proto::env::Env;
use proto::flow::Reservation;
use proto::model::cut::{Position, WritePosition};
use proto::model::ids::{BucketId, Seqno, VbucketId, Vbuuid, vbucket_of};
use proto::plant::{self, Plant};
use proto::rpc::api::{PushReply, WriteReply};
use proto::rpc::mutation::MutationKind;
use proto::value::Value;
use proto::{Error, ErrorCode, Result};
use tokio::sync::{Notify, oneshot};

use super::branches::stage_branch;
use super::bucket::Bucket;
use super::keeping::{Keeping, not_home};
use super::{Batch, BucketChanges, BucketRecord, DocumentStore, Mutation};
use proto::model::history::Branches;

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

/// A write whose id and document are within limits.
pub struct CheckedWrite {
    /// The document's id.
    pub id: Arc<str>,
    /// What is done.
    pub kind: CheckedKind,
}

/// What a checked write does.
pub enum CheckedKind {
    /// Makes a document that must not be there.
    Insert(Bytes, Value),
    /// Makes or replaces a document.
    Upsert(Bytes, Value),
    /// Removes a document.
    Delete,
}

/// A pushed mutation whose id, vbucket and document are right.
pub struct CheckedPush {
    /// Its branch.
    pub vbuuid: Vbuuid,
    /// The mutation at its place.
    pub mutation: Mutation,
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
    pub(super) fn agree(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Branches that a producer has begun: what the vbuckets have beyond is lost, here too. Said again it
    /// changes nothing.
    pub fn begin_branches(&self, bucket: &Bucket, begun: &[(VbucketId, Position)]) -> Result<()> {
        let _agree = self.gate.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if bucket.is_removed() {
            return Err(bucket.removed_error());
        }
        let durable = bucket.durable();
        let mut record = bucket.record();
        let (mut ends, mut begins) = (Vec::new(), false);
        for (vbucket, at) in begun {
            if vbucket.0 < bucket.info.vbuckets && !record.keeping.takes(*vbucket) {
                return Err(not_home(bucket, *vbucket));
            }
            let named = begun.iter().filter(|(other, _)| other == vbucket).count();
            let end = durable.get(*vbucket).seqno;
            if stage_branch(&mut record, (*vbucket, *at), end, named)? {
                begins = true;
                ends.extend((at.seqno < end).then_some((*vbucket, at.seqno)));
            }
        }
        if !begins {
            return Ok(());
        }
        if ends.is_empty() {
            self.store.put_records(std::slice::from_ref(&record))?;
            bucket.publish(Vec::new(), Some(record.branches));
        } else {
            self.store.rewind(&record, &ends)?;
            bucket.lose(record.branches, &ends);
        }
        bucket.give_up(record.given_up);
        (self.moved)(bucket.info.id);
        Ok(())
    }

    fn commit_group(&self, jobs: Vec<Job>) {
        let agree = self.gate.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
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

/// What the group does to one bucket.
struct Pending {
    bucket: Arc<Bucket>,
    next: Vec<Position>,
    branches: Vec<Branches>,
    keeping: Arc<Keeping>,
    changes: BucketChanges,
}

impl Group<'_> {
    fn stage(&mut self, bucket: Arc<Bucket>, work: Work) -> Answer {
        let pending = self.buckets.entry(bucket.info.id).or_insert_with(|| Pending {
            next: bucket.durable().iter().map(|(_, position)| position).collect(),
            branches: bucket.branches(),
            keeping: bucket.keeping(),
            changes: BucketChanges::default(),
            bucket: Arc::clone(&bucket),
        });
        let removed = bucket.is_removed().then(|| bucket.removed_error());
        match work {
            Work::Write(writes, reply) => {
                let outcome = match removed {
                    Some(error) => Err(error),
                    None => pending.write(self.store, writes),
                };
                answer(reply, outcome)
            }
            // The loop does not put it into a group.
            Work::Alone(_) => Box::new(|_| ()),
            Work::Push(mutations, error, reply) => {
                let outcome = match removed {
                    Some(error) => Err(error),
                    None => pending.push(mutations, error),
                };
                answer(reply, outcome)
            }
        }
    }
}

impl Pending {
    fn exists(&self, store: &dyn DocumentStore, id: &str) -> Result<bool> {
        match self.changes.last.get(id) {
            Some(at) => Ok(self.changes.mutations[*at].kind == MutationKind::Upsert),
            None => store.contains(self.bucket.info.id, id),
        }
    }

    fn write(
        &mut self,
        store: &dyn DocumentStore,
        writes: Vec<CheckedWrite>,
    ) -> Result<WriteReply> {
        let effective = self.check_writes(store, &writes)?;
        let mut positions = BTreeMap::new();
        let mut affected = 0;
        for (write, effective) in writes.into_iter().zip(effective) {
            if !effective {
                continue;
            }
            affected += 1;
            let vbucket = vbucket_of(&write.id, self.bucket.info.vbuckets);
            let position = self.number(vbucket);
            positions.insert(vbucket, position);
            let place = (vbucket, position.seqno);
            self.add(match write.kind {
                CheckedKind::Insert(document, value) | CheckedKind::Upsert(document, value) => {
                    Mutation::new(place, write.id, MutationKind::Upsert, document).with_value(value)
                }
                CheckedKind::Delete => {
                    Mutation::new(place, write.id, MutationKind::Deletion, Bytes::new())
                }
            });
        }
        let bucket = self.bucket.info.id;
        let positions = positions.into_iter().collect();
        Ok(WriteReply { affected, position: WritePosition { bucket, positions } })
    }

    /// Looks at a request as a whole before any of it is done: which of its writes change something.
    /// `DuplicateId` where one makes a document that is there, perhaps by an earlier write of the same
    /// request.
    fn check_writes(
        &self,
        store: &dyn DocumentStore,
        writes: &[CheckedWrite],
    ) -> Result<Vec<bool>> {
        // Bulk loads replace; they need to know of nothing that is there.
        if writes.iter().all(|write| matches!(write.kind, CheckedKind::Upsert(..))) {
            return Ok(vec![true; writes.len()]);
        }
        let mut here: BTreeMap<&str, bool> = BTreeMap::new();
        let mut effective = Vec::with_capacity(writes.len());
        for write in writes {
            let exists = match here.get(&*write.id) {
                Some(exists) => *exists,
                None => self.exists(store, &write.id)?,
            };
            effective.push(match write.kind {
                CheckedKind::Insert(..) if exists => {
                    return Err(Error::new(
                        ErrorCode::DuplicateId,
                        format!("bucket {} has a document {:?}", self.bucket.info.name, write.id),
                    )
                    .with_hint("ON CONFLICT (id) DO UPDATE SET doc = excluded.doc replaces it"));
                }
                CheckedKind::Delete => exists,
                _ => true,
            });
            here.insert(&write.id, !matches!(write.kind, CheckedKind::Delete));
        }
        Ok(effective)
    }

    /// The next place in a vbucket of an embedded bucket.
    fn number(&mut self, vbucket: VbucketId) -> Position {
        let at = usize::from(vbucket.0);
        let newest = self.branches[at].first().map_or(Vbuuid(0), |(vbuuid, _)| *vbuuid);
        self.next[at] = Position { vbuuid: newest, seqno: Seqno(self.next[at].seqno.0 + 1) };
        self.next[at]
    }

    fn add(&mut self, mutation: Mutation) {
        self.changes.last.insert(Arc::clone(&mutation.id), self.changes.mutations.len());
        self.changes.mutations.push(Arc::new(mutation));
    }

    fn push(&mut self, mutations: Vec<CheckedPush>, error: Option<Error>) -> Result<PushReply> {
        // All or nothing: whoever sends it to the wrong place can send it again as it is.
        let elsewhere = |push: &&CheckedPush| !self.keeping.takes(push.mutation.vbucket);
        if let Some(push) = mutations.iter().find(elsewhere) {
            return Err(not_home(&self.bucket, push.mutation.vbucket));
        }
        let mut durable = BTreeMap::new();
        for CheckedPush { vbuuid, mutation } in mutations {
            let position = Position { vbuuid, seqno: mutation.seqno };
            self.check_order(mutation.vbucket, position)?;
            let at = usize::from(mutation.vbucket.0);
            if self.branches[at].is_empty() {
                self.branches[at] = vec![(vbuuid, 0)];
                let branches = self.branches.clone();
                self.changes.record = Some(BucketRecord { branches, ..self.bucket.record() });
            }
            self.next[at] = position;
            durable.insert(mutation.vbucket, position);
            self.add(mutation);
        }
        error.map_or(Ok(PushReply { durable: durable.into_iter().collect() }), Err)
    }

    /// Does a pushed mutation follow the last one? The first of a vbucket names its branch.
    fn check_order(&self, vbucket: VbucketId, position: Position) -> Result<()> {
        let at = usize::from(vbucket.0);
        let (last, expected) = (self.next[at], self.next[at].seqno.0 + 1);
        let branch = self.branches[at].first().map(|(vbuuid, _)| *vbuuid);
        let name = &self.bucket.info.name;
        let what = if branch.is_some_and(|branch| branch != position.vbuuid) {
            format!("branch {:x} is unknown, its branch is {:x}", position.vbuuid.0, last.vbuuid.0)
        } else if position.vbuuid.0 == 0 {
            "a branch of zero is none".to_owned()
        } else if position.seqno.0 < expected {
            format!("seqno {} is here already, {expected} is the next", position.seqno)
        } else if position.seqno.0 > expected {
            format!("seqno {} leaves a gap, {expected} is the next", position.seqno)
        } else {
            return Ok(());
        };
        Err(Error::new(
            ErrorCode::OutOfOrder,
            format!("vbucket {vbucket} of bucket {name}: {what}"),
        )
        .with_hint("go on from the durable position; what came before in the request is kept"))
    }
}
