//! Backfills: consistent snapshots of a bucket as key-versions, each of one index for one node.
//!
//! One **reading** of the bucket serves all backfills that are asked for at about the same time: those of all nodes of an index, and of
//! all indexes that are built together. A reading waits [`JOIN_WINDOW`] for others to join it. Then it takes the snapshot together with
//! the bucket's durable cut, under the bucket's gate, so that it holds exactly what the cut covers. Each index joined its node's
//! maintenance stream before its backfill was requested, so that stream carries everything newer than the cut. Nothing is lost between
//! the two. A mutation in both is the same or, by its seqno, older.
//!
//! Documents come in chunks, in the order of their ids. Several chunks are evaluated at once, off the async threads; each document is
//! parsed once for all backfills that need it ([`super::evaluate`]). The messages of a chunk go to all backfills before the next
//! chunk's, so memory is bounded whatever the bucket's size. A backfill whose reader makes the others wait leaves the reading: it gets
//! what was evaluated, and goes on with a snapshot of the same moment, at the same place, in a reading of its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use proto::env::Task;
use proto::flow::ByteSender;
use proto::lock::lock;
use proto::model::assignment::VbucketSet;
use proto::model::cut::Cut;
use proto::rpc::mutation::BackfillMessage;
use proto::{Error, Result};
use tokio::time::{Instant, timeout};

use super::context::StreamContext;
use super::evaluate::{Evaluated, Evaluating, Unevaluated, Wanted};
use crate::source::DocumentSnapshot;
use crate::source::bucket::Bucket;

/// The size of one read: a few milliseconds of work off the async threads.
const CHUNK_BYTES: usize = 512 << 10;
/// The number of chunks that are evaluated at once, or wait for their readers.
const CHUNKS_AT_ONCE: usize = 4;
/// How long a reading waits for others to join it: the nodes of an index ask within some tens of milliseconds.
const JOIN_WINDOW: Duration = Duration::from_millis(30);
/// The time for which a reader may make the others wait, in all.
const LEAVE_AFTER: Duration = Duration::from_secs(1);

/// One backfill: what is wanted, and its reader.
pub struct Backfill {
    pub wanted: Arc<Wanted>,
    pub out: ByteSender<Result<BackfillMessage>>,
}

/// The readings of a projector that others may join.
#[derive(Default)]
pub struct Readings(Mutex<ReadingTable>);

#[derive(Default)]
struct ReadingTable {
    last: u64,
    open: BTreeMap<u64, OpenReading>,
}

/// A reading that has not begun.
struct OpenReading {
    bucket: Arc<Bucket>,
    backfills: Vec<Backfill>,
    /// Gone if all who had asked for it are gone.
    task: Weak<Task>,
}

impl Readings {
    /// Adds a backfill to a reading that begins soon. The task ends the reading when all holders have dropped it.
    pub fn join(
        self: &Arc<Self>,
        context: &Arc<StreamContext>,
        bucket: &Arc<Bucket>,
        backfill: Backfill,
    ) -> Arc<Task> {
        let mut table = lock(&self.0);
        for reading in table.open.values_mut() {
            if Arc::ptr_eq(&reading.bucket, bucket)
                && let Some(task) = reading.task.upgrade()
            {
                reading.backfills.push(backfill);
                return task;
            }
        }
        table.open.retain(|_, reading| reading.task.strong_count() > 0);
        table.last += 1;
        let (number, this) = (table.last, Arc::clone(self));
        let (context, at) = (Arc::clone(context), Arc::clone(bucket));
        let env = context.env.clone();
        let task = Arc::new(env.spawn_request("backfill", async move {
            tokio::time::sleep(JOIN_WINDOW).await;
            let joined = lock(&this.0).open.remove(&number);
            if let Some(OpenReading { backfills, .. }) = joined {
                open(context, at, backfills).await;
            }
        }));
        let bucket = Arc::clone(bucket);
        let open = OpenReading { bucket, backfills: vec![backfill], task: Arc::downgrade(&task) };
        table.open.insert(number, open);
        task
    }
}

/// Takes the snapshot, and sends it to all backfills.
async fn open(context: Arc<StreamContext>, bucket: Arc<Bucket>, backfills: Vec<Backfill>) {
    let (store, at) = (Arc::clone(&context.store), Arc::clone(&bucket));
    let take = move || {
        let _gate = at.gate.shown();
        let (cut, kept) = (at.durable(), at.ownership().owned.clone());
        let snapshot = store.snapshot(at.info.id)?;
        // A bucket that another copy leads may have documents that nobody may see.
        at.check_open().map(|()| (snapshot, cut, kept))
    };
    let (snapshot, cut, kept) = match context.env.blocking(take).await {
        Ok(taken) => taken,
        Err(error) => return fail(&backfills, error).await,
    };
    let mut readers = Vec::with_capacity(backfills.len());
    for backfill in backfills {
        let begin = backfill.wanted.begin(&bucket, &cut, &kept);
        let is_refused = begin.is_err();
        if send(&backfill.out, begin).await && !is_refused {
            readers.push(Reader { backfill, owed: Duration::ZERO });
        }
    }
    Reading { context, bucket, readers, snapshot, done: 0 }.run().await;
}

/// Sends a message; false if the reader is gone.
async fn send(out: &ByteSender<Result<BackfillMessage>>, message: Result<BackfillMessage>) -> bool {
    let bytes = message.as_ref().map_or(0, BackfillMessage::bytes);
    out.send(message, bytes).await.is_ok()
}

async fn fail<'b>(backfills: impl IntoIterator<Item = &'b Backfill>, error: Error) {
    join_all(backfills.into_iter().map(|backfill| send(&backfill.out, Err(error.clone())))).await;
}

/// A reading in progress.
struct Reading {
    context: Arc<StreamContext>,
    bucket: Arc<Bucket>,
    readers: Vec<Reader>,
    snapshot: Box<dyn DocumentSnapshot>,
    /// Documents that were read, and went to the readers.
    done: u64,
}

struct Reader {
    backfill: Backfill,
    /// How long it has made the others wait.
    owed: Duration,
}

/// A reader that leaves, and the messages that it has not got yet.
struct Leaving {
    reader: Reader,
    unsent: Vec<BackfillMessage>,
}

impl Reading {
    /// Sends the whole rest of the snapshot. A reading without readers ends.
    async fn run(mut self) {
        match self.send_all().await {
            Ok(()) => {
                let outs = self.readers.iter().map(|reader| &reader.backfill.out);
                join_all(outs.map(|out| send(out, Ok(BackfillMessage::End)))).await;
            }
            Err(error) => fail(self.readers.iter().map(|reader| &reader.backfill), error).await,
        }
    }

    async fn send_all(&mut self) -> Result<()> {
        let (mut queue, mut is_end) = (VecDeque::new(), false);
        let mut leaving: Vec<Leaving> = Vec::new();
        while !self.readers.is_empty() || !leaving.is_empty() {
            // Those that leave get what is evaluated already, so nothing more is read for them here.
            while !is_end && leaving.is_empty() && queue.len() < CHUNKS_AT_ONCE {
                if self.bucket.is_removed() {
                    return Err(self.bucket.removed_error());
                }
                match self.read().await? {
                    Some(evaluating) => queue.push_back(evaluating),
                    None => is_end = true,
                }
            }
            let Some(evaluating) = queue.pop_front() else {
                if leaving.is_empty() {
                    return Ok(());
                }
                for left in leaving.drain(..) {
                    self.go_alone(left);
                }
                continue;
            };
            let Evaluated { documents, messages, rest } = evaluating.finish().await?;
            if let Some(rest) = rest {
                queue.push_front(rest.begin(&self.context));
            }
            self.done += documents;
            let of = self.snapshot.documents_about();
            let progress = BackfillMessage::Progress { read: self.done, of };
            self.deliver(messages, &progress, &mut leaving).await;
        }
        Ok(())
    }

    /// Reads the next chunk, and begins to evaluate it; `None` at the end.
    async fn read(&mut self) -> Result<Option<Evaluating>> {
        let snapshot = std::mem::replace(&mut self.snapshot, Box::new(Nothing));
        let read = move || {
            let mut snapshot = snapshot;
            let chunk = snapshot.next_chunk(CHUNK_BYTES);
            (snapshot, chunk)
        };
        let chunk;
        (self.snapshot, chunk) = self.context.env.blocking(read).await;
        let chunk = chunk?;
        if chunk.is_empty() {
            return Ok(None);
        }
        let wanted = self.readers.iter().map(|reader| Arc::clone(&reader.backfill.wanted));
        let vbuckets = self.bucket.info.vbuckets;
        Ok(Some(Unevaluated::new(chunk, wanted.collect(), vbuckets).begin(&self.context)))
    }

    /// Gives the messages of a chunk to their readers, side by side. Readers that are gone are forgotten, and one that keeps the others
    /// waiting for too long leaves.
    async fn deliver(
        &mut self,
        messages: Vec<(Arc<Wanted>, Bytes)>,
        progress: &BackfillMessage,
        leaving: &mut Vec<Leaving>,
    ) {
        let of = |wanted: &Arc<Wanted>| -> Vec<BackfillMessage> {
            let own = messages.iter().filter(|(other, _)| Arc::ptr_eq(other, wanted));
            // A chunk without entries for the node needs no message of its own.
            let own = own.filter(|(_, packed)| !packed.is_empty());
            own.map(|(_, packed)| BackfillMessage::Documents(packed.clone()))
                .chain([progress.clone()])
                .collect()
        };
        for left in leaving.iter_mut() {
            left.unsent.extend(of(&left.reader.backfill.wanted));
        }
        let is_alone = self.readers.len() == 1;
        let sends = self.readers.iter().map(|reader| {
            let (unsent, out) = (of(&reader.backfill.wanted), &reader.backfill.out);
            let left = LEAVE_AFTER.saturating_sub(reader.owed);
            async move {
                let began = Instant::now();
                let (sent, unsent) = send_in_time(out, unsent, (!is_alone).then_some(left)).await;
                (sent, unsent, began.elapsed())
            }
        });
        let sent = join_all(sends).await;
        let mut waits: Vec<Duration> = sent.iter().map(|(_, _, wait)| *wait).collect();
        waits.sort_unstable();
        let others = waits.iter().rev().nth(1).copied().unwrap_or_default();
        for (mut reader, (is_there, unsent, wait)) in
            std::mem::take(&mut self.readers).into_iter().zip(sent)
        {
            reader.owed += if is_alone { Duration::ZERO } else { wait.saturating_sub(others) };
            match is_there {
                false => {}
                true if unsent.is_empty() => self.readers.push(reader),
                true => leaving.push(Leaving { reader, unsent }),
            }
        }
        // Of several that could not take their messages one stays, so that all may be equally slow without reading apart.
        if self.readers.is_empty()
            && leaving.len() > 1
            && let Some(stays) = leaving.pop()
        {
            for message in stays.unsent {
                send(&stays.reader.backfill.out, Ok(message)).await;
            }
            self.readers.push(Reader { owed: Duration::ZERO, ..stays.reader });
        }
    }

    /// Continues for a reader that leaves: in a task of its own, at the present place of the snapshot.
    fn go_alone(&self, Leaving { reader, unsent }: Leaving) {
        tracing::info!(
            bucket = %self.bucket.info.name, node = %reader.backfill.wanted.node,
            "a slow backfill leaves the reading that it shared"
        );
        let (context, bucket) = (Arc::clone(&self.context), Arc::clone(&self.bucket));
        let (snapshot, done) = (self.snapshot.fork(), self.done);
        let reader = Reader { owed: Duration::ZERO, ..reader };
        let env = self.context.env.clone();
        // It ends when its reader is gone.
        let go_on = async move {
            for message in unsent {
                if !send(&reader.backfill.out, Ok(message)).await {
                    return;
                }
            }
            Self { context, bucket, readers: vec![reader], snapshot, done }.run().await;
        };
        env.spawn_request("backfill", go_on).detach();
    }
}

/// Sends messages until a time has passed. Returns whether the reader is there, and the messages that it has not got.
async fn send_in_time(
    out: &ByteSender<Result<BackfillMessage>>,
    mut messages: Vec<BackfillMessage>,
    time: Option<Duration>,
) -> (bool, Vec<BackfillMessage>) {
    let deadline = time.map(|time| Instant::now() + time);
    let mut next = 0;
    while let Some(message) = messages.get(next) {
        let sending = send(out, Ok(message.clone()));
        let sent = match deadline {
            None => Ok(sending.await),
            Some(at) => timeout(at.saturating_duration_since(Instant::now()), sending).await,
        };
        match sent {
            Ok(true) => next += 1,
            Ok(false) => return (false, Vec::new()),
            Err(_late) => break,
        }
    }
    messages.drain(..next);
    (true, messages)
}

/// Stands for a snapshot while another thread reads it.
struct Nothing;

impl DocumentSnapshot for Nothing {
    fn next_chunk(&mut self, _bytes: usize) -> Result<Vec<crate::source::StoredDocument>> {
        Err(Error::internal("a snapshot that another thread reads"))
    }

    fn documents_about(&self) -> u64 {
        0
    }

    fn fork(&self) -> Box<dyn DocumentSnapshot> {
        Box::new(Self)
    }
}

impl Wanted {
    /// The first message of a backfill; an error if the bucket does not own what it wants.
    fn begin(&self, bucket: &Bucket, cut: &Cut, kept: &VbucketSet) -> Result<BackfillMessage> {
        match self.vbuckets.iter().find(|vbucket| !kept.contains(*vbucket)) {
            Some(vbucket) => Err(bucket.not_owned(vbucket)),
            None => Ok(BackfillMessage::Begin { cut: cut.of(&self.vbuckets) }),
        }
    }
}
