//! Backfills: a backfill sends the entries of all documents of a bucket, as of one moment, for
//! one index to one node.
//!
//! One **reading** of the bucket serves all backfills that are requested at about the same time:
//! those of all nodes of an index, and of all indexes that are built together. A reading waits
//! [`JOIN_WINDOW`] for further backfills to join it. Then it takes the snapshot together with the
//! bucket's durable cut, under the bucket's gate, so that it contains exactly the mutations that
//! the cut covers. Each index joined its node's maintenance stream before its backfill was
//! requested, so that stream carries all mutations after the cut. So every mutation is in the
//! backfill or in the stream. A mutation that is in both is recognized by its seqno.
//!
//! Documents are read in chunks, in the order of their ids. Several chunks are evaluated at once,
//! off the async threads; each document is parsed once for all backfills that need it
//! ([`super::evaluate`]). The messages of a chunk are sent to all backfills before those of the
//! next chunk, so memory is bounded whatever the bucket's size. A backfill whose reader is slow,
//! and so delays the others, leaves the reading: it continues alone, from the position that it
//! has reached, with the same snapshot.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use proto::env::{Bulk, Task};
use proto::flow::ByteSender;
use proto::lock::lock;
use proto::model::assignment::VbucketSet;
use proto::model::cut::Cut;
use proto::rpc::mutation::BackfillMessage;
use proto::{Error, Result};
use tokio::time::{Instant, timeout_at};

use super::context::StreamContext;
use super::evaluate::{BackfillContent, EvaluationInput, EvaluationOutput, EvaluationTask};
use crate::source::DocumentSnapshot;
use crate::source::view::bucket::Bucket;

/// The size in bytes of the documents that are read at once: some milliseconds of work, off the
/// async threads.
const CHUNK_BYTES: usize = 512 << 10;
/// The maximum number of chunks of documents that are being evaluated, or wait for their readers.
const CHUNKS_AT_ONCE: usize = 4;
/// The time for which a reading waits for further backfills. The nodes of an index request their
/// backfills within some tens of milliseconds.
const JOIN_WINDOW: Duration = Duration::from_millis(30);
/// The time for which a slow reader may delay the other readers, in addition to the share of
/// [`FORGIVEN_PART`].
const LEAVE_AFTER: Duration = Duration::from_secs(1);
/// A slow reader may also delay the others for one part in this many of the elapsed time.
const FORGIVEN_PART: u32 = 10;

/// A requested backfill: the index, the slices, and the channel to the reader.
pub struct Backfill {
    pub wanted: Arc<BackfillContent>,
    pub out: ByteSender<Result<BackfillMessage>>,
}

/// The readings of a projector that have not begun, so that further backfills may join them.
#[derive(Default)]
pub struct Readings(Mutex<ReadingTable>);

/// The readings that have not begun, by number.
#[derive(Default)]
struct ReadingTable {
    last: u64,
    open: BTreeMap<u64, OpenReading>,
}

/// A reading that has not begun, so that backfills may join it.
struct OpenReading {
    bucket: Arc<Bucket>,
    backfills: Vec<Backfill>,
    /// The task of the reading. The pointer is dead once all backfills of the reading were
    /// dropped.
    task: Weak<Task>,
}

impl Readings {
    /// Adds a backfill to a reading of the bucket that is about to begin, or starts such a
    /// reading. Returns the task of the reading; the reading ends when all holders of the task
    /// have dropped it.
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
                begin_reading(context, at, backfills).await;
            }
        }));
        let bucket = Arc::clone(bucket);
        let open = OpenReading { bucket, backfills: vec![backfill], task: Arc::downgrade(&task) };
        table.open.insert(number, open);
        task
    }
}

/// Begins a reading: takes the snapshot of the bucket, and sends the first message to all
/// backfills.
async fn begin_reading(context: Arc<StreamContext>, bucket: Arc<Bucket>, backfills: Vec<Backfill>) {
    let (store, at) = (Arc::clone(&context.store), Arc::clone(&bucket));
    let take = move || {
        let _gate = at.gate.hold_publication();
        let (cut, kept) = (at.durable(), at.ownership().owned.clone());
        let snapshot = store.snapshot(at.info.id)?;
        // A bucket that another copy leads may have documents that are not visible yet.
        at.check_open().map(|()| (snapshot, cut, kept))
    };
    let (snapshot, cut, kept) = match context.env.blocking(take).await {
        Ok(taken) => taken,
        Err(error) => return send_error_to_all(&backfills, error).await,
    };
    let mut readers = Vec::with_capacity(backfills.len());
    for backfill in backfills {
        let begin = backfill.wanted.first_message(&bucket, &cut, &kept);
        let is_refused = begin.is_err();
        if send(&backfill.out, begin).await && !is_refused {
            readers.push(Reader { backfill, owed: Duration::ZERO });
        }
    }
    let mut reading = Reading::new(&context, &bucket, snapshot);
    reading.readers = readers;
    reading.run().await;
}

/// Sends a message; returns false if the reader has stopped.
async fn send(out: &ByteSender<Result<BackfillMessage>>, message: Result<BackfillMessage>) -> bool {
    let bytes = message.as_ref().map_or(0, BackfillMessage::bytes);
    out.send(message, bytes).await.is_ok()
}

/// Sends an error to all backfills of a reading.
async fn send_error_to_all<'b>(backfills: impl IntoIterator<Item = &'b Backfill>, error: Error) {
    join_all(backfills.into_iter().map(|backfill| send(&backfill.out, Err(error.clone())))).await;
}

/// A reading in progress.
struct Reading {
    context: Arc<StreamContext>,
    bucket: Arc<Bucket>,
    readers: Vec<Reader>,
    snapshot: Box<dyn DocumentSnapshot>,
    /// The chunks of documents that were read and not yet sent.
    queue: VecDeque<Chunk>,
    /// The number of documents that were sent so far.
    done: u64,
    /// The time at which the last chunk was sent to all readers.
    delivered: Instant,
}

/// The reader of one backfill.
struct Reader {
    backfill: Backfill,
    /// The time for which this reader has delayed the others so far.
    owed: Duration,
}

/// A chunk of documents that is being evaluated.
struct Chunk {
    evaluating: EvaluationTask,
    /// The rest of the snapshot after the chunk, for a reader that leaves the reading; `None` if
    /// there is only one reader.
    behind: Option<Box<dyn DocumentSnapshot>>,
}

/// A slow reader that leaves a reading, with the messages that it has not received yet.
struct LeavingReader {
    reader: Reader,
    unsent: Vec<BackfillMessage>,
}

impl Reading {
    /// Creates a reading of a snapshot; the readers are added later.
    fn new(
        context: &Arc<StreamContext>,
        bucket: &Arc<Bucket>,
        snapshot: Box<dyn DocumentSnapshot>,
    ) -> Self {
        let (context, bucket) = (Arc::clone(context), Arc::clone(bucket));
        let (readers, queue, delivered) = (Vec::new(), VecDeque::new(), Instant::now());
        Self { context, bucket, readers, snapshot, queue, done: 0, delivered }
    }

    /// Sends the documents of the snapshot to the readers. Ends early when no reader is left.
    async fn run(mut self) {
        match self.send_all().await {
            Ok(()) => {
                let outs = self.readers.iter().map(|reader| &reader.backfill.out);
                join_all(outs.map(|out| send(out, Ok(BackfillMessage::End)))).await;
            }
            Err(error) => {
                send_error_to_all(self.readers.iter().map(|reader| &reader.backfill), error).await
            }
        }
    }

    async fn send_all(&mut self) -> Result<()> {
        let mut is_end = false;
        while !self.readers.is_empty() {
            while !is_end && self.queue.len() < CHUNKS_AT_ONCE {
                if self.bucket.is_removed() {
                    return Err(self.bucket.removed_error());
                }
                match self.read().await? {
                    Some(chunk) => self.queue.push_back(chunk),
                    None => is_end = true,
                }
            }
            let Some(Chunk { evaluating, behind }) = self.queue.pop_front() else { break };
            let EvaluationOutput { documents, messages, rest } = evaluating.finish().await?;
            self.done += documents;
            for left in self.deliver(messages).await {
                // A reader leaves only if there are several, and then a copy of the snapshot exists.
                if let Some(behind) = &behind {
                    self.continue_alone(left, rest.as_ref(), behind.fork());
                }
            }
            if let Some(rest) = rest {
                let evaluating = rest.begin(&self.context);
                self.queue.push_front(Chunk { evaluating, behind });
            }
        }
        Ok(())
    }

    /// Reads the next chunk of documents, and begins to evaluate it; `None` at the end of the
    /// snapshot.
    async fn read(&mut self) -> Result<Option<Chunk>> {
        let snapshot = std::mem::replace(&mut self.snapshot, Box::new(BusySnapshot));
        let read = move || {
            let mut snapshot = snapshot;
            let chunk = snapshot.next_chunk(CHUNK_BYTES);
            (snapshot, chunk)
        };
        let chunk;
        (self.snapshot, chunk) = self.context.env.bulk(Bulk::Queued, read).await;
        let chunk = chunk?;
        if chunk.is_empty() {
            return Ok(None);
        }
        let wanted = self.readers.iter().map(|reader| Arc::clone(&reader.backfill.wanted));
        let documents = EvaluationInput::new(chunk, wanted.collect(), self.bucket.info.vbuckets);
        let behind = (self.readers.len() > 1).then(|| self.snapshot.fork());
        Ok(Some(Chunk { evaluating: documents.begin(&self.context), behind }))
    }

    /// Sends the messages of a chunk to their readers, in parallel. Removes readers that have
    /// stopped. Returns the readers that have delayed the others for too long; the delay is
    /// counted from the time at which the first reader had received its messages.
    async fn deliver(
        &mut self,
        messages: Vec<(Arc<BackfillContent>, Bytes)>,
    ) -> Vec<LeavingReader> {
        let of = self.snapshot.documents_about();
        let progress = BackfillMessage::Progress { read: self.done, of };
        let of = |reader: &Reader| -> Vec<BackfillMessage> {
            let is_own =
                |wanted: &Arc<BackfillContent>| Arc::ptr_eq(wanted, &reader.backfill.wanted);
            let own = messages.iter().filter(|(wanted, _)| is_own(wanted));
            // A chunk without entries for the node needs no message.
            let own = own.filter(|(_, packed)| !packed.is_empty());
            let own = own.map(|(_, packed)| BackfillMessage::Documents(packed.clone()));
            own.chain([progress.clone()]).collect()
        };
        let mut unsent: Vec<Vec<BackfillMessage>> = self.readers.iter().map(of).collect();
        let sent: Vec<AtomicUsize> = unsent.iter().map(|_| AtomicUsize::new(0)).collect();
        let waits = self.send_in_parallel(&unsent, &sent).await;
        let mut leaving = Vec::new();
        for (n, mut reader) in std::mem::take(&mut self.readers).into_iter().enumerate() {
            match waits[n] {
                ReaderDelay::Gone => {}
                ReaderDelay::Took(wait) => {
                    reader.owed += wait;
                    self.readers.push(reader);
                }
                ReaderDelay::TooLong => {
                    let unsent = unsent[n].split_off(sent[n].load(Ordering::Relaxed));
                    leaving.push(LeavingReader { reader, unsent });
                }
            }
        }
        leaving
    }

    /// Sends each reader its messages, all readers in parallel. `sent` counts the messages that
    /// each reader has received. Returns the delay that each reader has caused.
    async fn send_in_parallel(
        &mut self,
        messages: &[Vec<BackfillMessage>],
        sent: &[AtomicUsize],
    ) -> Vec<ReaderDelay> {
        // A reader may keep the others waiting for a small part of the time, for ever.
        let now = Instant::now();
        let forgiven = now.duration_since(self.delivered) / FORGIVEN_PART;
        self.delivered = now;
        for reader in &mut self.readers {
            reader.owed = reader.owed.saturating_sub(forgiven);
        }
        let mut waits: Vec<ReaderDelay> = messages.iter().map(|_| ReaderDelay::TooLong).collect();
        let send_each = |(n, reader)| send_counted(n, reader, &messages[n], &sent[n]);
        let mut sending: FuturesUnordered<_> =
            self.readers.iter().enumerate().map(send_each).collect();
        let mut others_wait_since: Option<Instant> = None;
        loop {
            let unfinished = self.readers.iter().zip(&waits);
            let unfinished = unfinished.filter(|(_, wait)| matches!(wait, ReaderDelay::TooLong));
            let owed = unfinished.map(|(reader, _)| reader.owed).max().unwrap_or_default();
            let next = match others_wait_since {
                None => sending.next().await,
                Some(since) => {
                    let until = since + LEAVE_AFTER.saturating_sub(owed);
                    match timeout_at(until, sending.next()).await {
                        Ok(next) => next,
                        Err(_late) => return waits,
                    }
                }
            };
            let Some((n, is_there)) = next else { return waits };
            let now = Instant::now();
            waits[n] = match is_there {
                true => ReaderDelay::Took(now - *others_wait_since.get_or_insert(now)),
                false => ReaderDelay::Gone,
            };
        }
    }

    /// Continues alone, in a separate task, for a reader that leaves the reading. The task sends
    /// the unsent messages, the rest of the chunk, and then the rest of the snapshot.
    fn continue_alone(
        &self,
        LeavingReader { reader, unsent }: LeavingReader,
        rest: Option<&EvaluationInput>,
        snapshot: Box<dyn DocumentSnapshot>,
    ) {
        tracing::info!(
            bucket = %self.bucket.info.name, node = %reader.backfill.wanted.node,
            "a slow backfill leaves the reading that it shared"
        );
        let rest = rest.map(|rest| rest.for_backfill(&reader.backfill.wanted));
        let mut alone = Self::new(&self.context, &self.bucket, snapshot);
        alone.done = self.done;
        let env = self.context.env.clone();
        // The task ends when its reader has stopped.
        let go_on = async move {
            for message in unsent {
                if !send(&reader.backfill.out, Ok(message)).await {
                    return;
                }
            }
            let chunk = |rest: EvaluationInput| {
                let evaluating = rest.begin(&alone.context);
                Chunk { evaluating, behind: None }
            };
            alone.queue.extend(rest.map(chunk));
            alone.readers.push(Reader { owed: Duration::ZERO, ..reader });
            alone.run().await;
        };
        env.spawn_request("backfill", go_on).detach();
    }
}

/// The outcome for one reader, if the reader has not received all messages of a chunk.
enum ReaderDelay {
    Took(Duration),
    /// The reader has not received all of its messages in time.
    TooLong,
    /// The reader has stopped.
    Gone,
}

/// Sends messages to one reader, and counts them in `sent`. Returns the reader's number `n`, and
/// false if the reader has stopped.
async fn send_counted(
    n: usize,
    reader: &Reader,
    messages: &[BackfillMessage],
    sent: &AtomicUsize,
) -> (usize, bool) {
    for message in messages {
        if !send(&reader.backfill.out, Ok(message.clone())).await {
            return (n, false);
        }
        sent.fetch_add(1, Ordering::Relaxed);
    }
    (n, true)
}

/// A snapshot without documents, in the place of a snapshot that another thread is reading.
struct BusySnapshot;

impl DocumentSnapshot for BusySnapshot {
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

impl BackfillContent {
    /// Returns the first message of a backfill, which contains the cut of its snapshot. An error
    /// if the bucket does not own the requested vbuckets.
    fn first_message(
        &self,
        bucket: &Bucket,
        cut: &Cut,
        kept: &VbucketSet,
    ) -> Result<BackfillMessage> {
        match self.vbuckets.iter().find(|vbucket| !kept.contains(*vbucket)) {
            Some(vbucket) => Err(bucket.not_owned(vbucket)),
            None => Ok(BackfillMessage::Begin { cut: cut.only_vbuckets(&self.vbuckets) }),
        }
    }
}
