//! A maintenance stream: everything that happens in a bucket, as key-versions for one node.
//!
//! A stream knows how far it is in each vbucket (`at`) and reads from one of two places:
//!
//! - **the head**, shared in memory by all streams that keep up;
//! - **the store's log**, when it begins in the past or has fallen behind the head. It then reads up
//!   to the end that it found when it began, from timestamp to timestamp, and tries the head from there. Where the
//!   log was purged meanwhile, the stream ends with `HistoryPurged`.
//!
//! Every batch becomes one frame for each vbucket that it touches, `(at, last seqno]`, whether or not it
//! holds anything for the node, so the frames have no gaps (I2). Between two batches, and only there,
//! come the other messages: indexes that join or leave (the frames before are without, the frames after
//! with them, so `at` is the exact border), and stability timestamps, as soon as they are known.
//!
//! One task per stream writes into a channel that is bounded in bytes and waits for its reader there, so a
//! slow reader holds up nobody: the head moves on without it, and the log is what it then reads. The bytes of frames
//! that no timestamp covers which the node has heard of are bounded too: beyond the bound the stream
//! waits for the next timestamp. A stream that catches up has sent all timestamps before the frames that
//! they cover; such frames do not count, or it would wait for a timestamp that an idle bucket never has.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proto::flow::ByteSender;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, Position};
use proto::model::history::FailoverLogs;
use proto::model::homes::VbucketSet;
use proto::model::ids::{Epoch, IndexId, NodeId, Seqno, VbucketId};
use proto::model::index::{IndexInfo, IndexState};
use proto::plant::{self, Plant};
use proto::rpc::mutation::{Frame, StreamMessage, SubscribeRequest};
use proto::{Error, Result};
use tokio::sync::watch;

use super::context::{MESSAGE_BYTES, StreamContext};
use super::frames::frames;
use super::log_reader;
use crate::keys::KeyMaker;
use crate::source::bucket::{Began, Bucket, HeadPosition};
use crate::source::ownership::Keeping;
use crate::source::{LogRange, Mutation};

/// Mutations turned into frames at once, by what they take in memory: about a thousand small documents,
/// a few milliseconds of work between two awaits.
const HEAD_READ_BYTES: usize = 1 << 20;

/// What a message counts for at least: while a few wait for their reader, what comes gathers in the next one.
const MESSAGE_BYTES_MIN: usize = MESSAGE_BYTES / 2;

/// Where the next mutations come from.
#[derive(Clone)]
enum Reading {
    Head(HeadPosition),
    /// The log up to `to`; the head from there.
    Log {
        to: Arc<Cut>,
        then: HeadPosition,
    },
}

/// One stream.
pub struct MaintenanceStream {
    context: Arc<StreamContext>,
    bucket: Arc<Bucket>,
    node: NodeId,
    catalog: watch::Receiver<Option<Arc<Catalog>>>,
    changed: watch::Receiver<u64>,
    out: ByteSender<Result<StreamMessage>>,
    /// The `cas` of the catalog that `indexes` are of.
    catalog_cas: u64,
    indexes: BTreeMap<IndexId, Arc<IndexInfo>>,
    /// The vbuckets that the stream brings.
    vbuckets: VbucketSet,
    /// What the projector kept when they were last compared.
    keeping: Arc<Keeping>,
    /// Where those vbuckets began that were not always kept.
    began: Began,
    at: Cut,
    /// What was told of the history; it ends with the next loss.
    logs: Option<Arc<FailoverLogs>>,
    losses: u64,
    reading: Reading,
    /// The cut of the timestamp up to which the log is read next.
    goal: Option<Arc<Cut>>,
    /// Mutations that were read and are not in frames yet.
    batch: std::vec::IntoIter<Arc<Mutation>>,
    last_epoch: Epoch,
    /// The cut of the newest timestamp that the node has heard of; `None` where that is not known.
    heard: Option<Arc<Cut>>,
    /// Ends of frames that `heard` does not cover, and what they weigh.
    ahead: VecDeque<(VbucketId, Position, usize)>,
    ahead_bytes: usize,
}

/// Why a stream ends.
enum End {
    /// Its reader is gone and wants to hear nothing.
    ReaderGone,
    /// Its reader is told.
    Failed(Error),
}

/// What sending comes to.
type Sent<T> = std::result::Result<T, End>;

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl MaintenanceStream {
    /// A stream that begins where the request says; `OutOfOrder` where that is not in the bucket's
    /// history.
    pub fn new(
        context: Arc<StreamContext>,
        bucket: Arc<Bucket>,
        catalog: watch::Receiver<Option<Arc<Catalog>>>,
        request: &SubscribeRequest,
        out: ByteSender<Result<StreamMessage>>,
    ) -> Result<Self> {
        let changed = bucket.watch();
        let (_, losses) = bucket.logs();
        let (end, then, (keeping, began)) = bucket.end();
        let vbuckets = keeping.kept.clone();
        let mut last_epoch = request.last_epoch;
        let (at, reading) = match &request.from {
            Some(from) => {
                bucket.check_place(from)?;
                (from.of(&vbuckets), Reading::Log { to: Arc::new(end), then })
            }
            None => {
                // Nothing before the newest timestamp concerns a node that begins here.
                if let Some(newest) = bucket.newest_epoch() {
                    last_epoch = last_epoch.max(Epoch(newest.epoch.0.saturating_sub(1)));
                }
                (end, Reading::Head(then))
            }
        };
        // After a break the node knows timestamps whose frames it has not taken yet.
        let heard = bucket.newest_epoch_until(last_epoch).map(|mark| mark.cut);
        Ok(Self {
            context,
            bucket,
            node: request.node,
            catalog,
            changed,
            out,
            catalog_cas: 0,
            indexes: BTreeMap::new(),
            vbuckets,
            keeping,
            began,
            at,
            logs: None,
            losses,
            reading,
            goal: None,
            batch: Vec::new().into_iter(),
            last_epoch,
            heard,
            ahead: VecDeque::new(),
            ahead_bytes: 0,
        })
    }

    /// Sends until the reader is gone. Cancelled: the stream ends; its reader opens a new one from its
    /// watermarks.
    pub async fn run(mut self) {
        if let Err(End::Failed(error)) = self.send_all().await {
            let _gone = self.out.send(Err(error), 0).await;
        }
    }

    async fn send_all(&mut self) -> Sent<()> {
        log_reader::check_kept(&self.context, &self.bucket, &self.vbuckets, &self.at).await?;
        self.indexes = self.wanted_indexes();
        let indexes = self.indexes.values().cloned().collect();
        let vbuckets = self.vbuckets.clone();
        self.send(StreamMessage::Begin { at: self.at.clone(), indexes, vbuckets }).await?;
        self.send_history().await?;
        self.send_ends().await?;
        loop {
            self.changed.borrow_and_update();
            if self.bucket.is_removed() {
                return Err(self.bucket.removed_error().into());
            }
            self.send_vbucket_changes().await?;
            self.send_history().await?;
            self.send_index_changes().await?;
            self.send_epochs().await?;
            if self.ahead_bytes < self.context.frames_ahead_bytes_max && self.send_frames().await? {
                continue;
            }
            tokio::select! {
                biased;
                () = self.out.closed() => return Err(End::ReaderGone),
                changed = self.catalog.changed() => self.still_there(changed)?,
                changed = self.changed.changed() => self.still_there(changed)?,
            }
        }
    }

    fn still_there(&self, changed: std::result::Result<(), watch::error::RecvError>) -> Sent<()> {
        changed.map_err(|_| Error::unavailable("the projector is ending").into())
    }

    async fn send(&self, message: StreamMessage) -> Sent<()> {
        let bytes = message.bytes().max(MESSAGE_BYTES_MIN);
        self.out.send(Ok(message), bytes).await.map_err(|_| End::ReaderGone)
    }

    fn wanted_indexes(&mut self) -> BTreeMap<IndexId, Arc<IndexInfo>> {
        let catalog = self.catalog.borrow_and_update().clone().unwrap_or_default();
        self.catalog_cas = catalog.cas;
        let wanted = catalog.indexes.iter().filter(|(_, index)| {
            index.bucket == self.bucket.info.id
                && matches!(index.state, IndexState::Backfill | IndexState::Maintenance)
                && self.context.router.concerns(self.node, index)
        });
        wanted.map(|(id, index)| (*id, Arc::clone(index))).collect()
    }

    /// Says on which branches the history was made, and ends where a piece of it was lost.
    async fn send_history(&mut self) -> Sent<()> {
        let (logs, losses) = self.bucket.logs();
        if losses != self.losses {
            let name = &self.bucket.info.name;
            let what = format!("a piece of the history of bucket {name} was lost");
            return Err(Error::unavailable(what).into());
        }
        if self.logs.as_ref() != Some(&logs) {
            self.logs = Some(Arc::clone(&logs));
            self.send(StreamMessage::History(logs)).await?;
        }
        Ok(())
    }

    /// Follows the hand-overs of vbuckets. One that the projector has taken over begins where it did so, and
    /// all its mutations since come by the head; the reading side sees to it that none was passed over.
    async fn send_vbucket_changes(&mut self) -> Sent<()> {
        let (keeping, began) = self.bucket.began();
        if Arc::ptr_eq(&keeping, &self.keeping) {
            return Ok(());
        }
        self.keeping = Arc::clone(&keeping);
        // One that has gone away and come back has a past that this stream has not seen.
        let before = std::mem::replace(&mut self.began, began.clone());
        if let Some(vbucket) = self.vbuckets.iter().find(|v| before.get(v) != began.get(v)) {
            let what = format!("vbucket {vbucket} was kept elsewhere meanwhile");
            return Err(Error::unavailable(what).into());
        }
        self.send_ends().await?;
        if let Some(vbucket) = self.vbuckets.iter().find(|v| !keeping.kept.contains(*v)) {
            let what =
                format!("vbucket {vbucket} is kept elsewhere; ask its new home for the rest");
            return Err(Error::unavailable(what).into());
        }
        for vbucket in keeping.kept.iter().filter(|vbucket| keeping.takes(*vbucket)) {
            if !self.vbuckets.contains(vbucket) {
                let at = began.get(&vbucket).copied().unwrap_or_default();
                self.vbuckets.insert(vbucket);
                self.at.set(vbucket, at);
                self.send(StreamMessage::StreamBegin { vbucket, at }).await?;
            }
        }
        Ok(())
    }

    /// Ends the vbuckets that are released and of which all was sent.
    async fn send_ends(&mut self) -> Sent<()> {
        if self.keeping.released.is_empty() {
            return Ok(());
        }
        let durable = self.bucket.durable();
        let here = |vbucket: &VbucketId| self.vbuckets.contains(*vbucket);
        let released: Vec<_> = self.keeping.released.iter().filter(here).collect();
        for vbucket in released {
            let at = self.at.get(vbucket);
            if at.seqno == durable.get(vbucket).seqno {
                self.vbuckets.remove(vbucket);
                self.send(StreamMessage::StreamEnd { vbucket, at }).await?;
            }
        }
        Ok(())
    }

    async fn send_index_changes(&mut self) -> Sent<()> {
        if self.catalog.borrow().as_ref().is_none_or(|catalog| catalog.cas == self.catalog_cas) {
            return Ok(());
        }
        let wanted = self.wanted_indexes();
        let before = std::mem::take(&mut self.indexes);
        for index in before.keys().filter(|index| !wanted.contains_key(index)) {
            self.send(StreamMessage::IndexLeave { index: *index }).await?;
        }
        for (id, index) in &wanted {
            // The state alone changes nothing for the frames.
            let same = before.get(id).is_some_and(|before| {
                (before.generation, &before.topology, &before.moves)
                    == (index.generation, &index.topology, &index.moves)
            });
            if !same {
                let (index, at) = (Arc::clone(index), self.at.clone());
                self.send(StreamMessage::IndexJoin { index, at }).await?;
            }
        }
        self.indexes = wanted;
        Ok(())
    }

    async fn send_epochs(&mut self) -> Sent<()> {
        for mark in self.bucket.epochs_after(self.last_epoch) {
            let cut = Arc::clone(&mark.cut);
            let includes = |logs: &Arc<FailoverLogs>| logs.includes_of(&self.vbuckets, &cut);
            let is_here = self.logs.as_ref().is_some_and(includes)
                && self.bucket.reaches(&self.vbuckets, &cut);
            if !is_here && !plant::is(Plant::DeadEpochSent) {
                // It was published before a loss: the rollback will put another in its place, or the producer of a
                // pushed bucket pushes again what is missing.
                break;
            }
            self.last_epoch = mark.epoch;
            self.send(StreamMessage::Epoch(mark)).await?;
            while let Some((vbucket, position, bytes)) = self.ahead.front()
                && cut.get(*vbucket).seqno >= position.seqno
            {
                self.ahead_bytes -= bytes;
                self.ahead.pop_front();
            }
            self.heard = Some(cut);
        }
        Ok(())
    }

    /// Sends the next frames; false if there are none.
    async fn send_frames(&mut self) -> Sent<bool> {
        if self.batch.as_slice().is_empty() {
            self.batch = self.next_batch().await?.into_iter();
        }
        if self.batch.as_slice().is_empty() {
            return Ok(false);
        }
        // After the mutations were read: none of them is of a history that is no more, nor its label of another; and
        // of a vbucket that was taken over meanwhile all of them are there.
        self.send_vbucket_changes().await?;
        self.send_history().await?;
        let frames = self.next_frames()?;
        for frame in &frames {
            let position = Position { vbuuid: frame.vbuuid, seqno: frame.to };
            let bytes = frame.bytes();
            self.at.set(frame.vbucket, position);
            let heard = self.heard.as_ref();
            if heard.is_none_or(|cut| cut.get(frame.vbucket).seqno < position.seqno) {
                self.ahead.push_back((frame.vbucket, position, bytes));
                self.ahead_bytes += bytes;
            }
        }
        if !frames.is_empty() {
            self.send(StreamMessage::Frames(frames)).await?;
        }
        self.send_ends().await?;
        Ok(true)
    }

    async fn next_batch(&mut self) -> Result<Vec<Arc<Mutation>>> {
        loop {
            match self.reading.clone() {
                Reading::Head(from) => match self.bucket.read_head(from, HEAD_READ_BYTES) {
                    Some((batch, next)) => {
                        self.reading = Reading::Head(next);
                        return Ok(batch);
                    }
                    None => {
                        let (to, then, _) = self.bucket.end();
                        tracing::debug!(node = %self.node, bucket = %self.bucket.info.name, "fell behind the head");
                        self.reading = Reading::Log { to: Arc::new(to), then };
                    }
                },
                Reading::Log { to, then } => {
                    let Some((vbucket, end)) = self.next_of_log(&to) else {
                        self.reading = Reading::Head(then);
                        continue;
                    };
                    let after = self.at.get(vbucket).seqno;
                    let bucket = self.bucket.info.id;
                    let range = LogRange { bucket, vbucket, after, to: end };
                    return log_reader::read(&self.context, &self.bucket, range).await;
                }
            }
        }
    }

    /// The vbucket that is read next, and up to where: to one timestamp after another, so that the reader can apply
    /// what it has instead of gathering all that it lacks.
    fn next_of_log(&mut self, to: &Cut) -> Option<(VbucketId, Seqno)> {
        let at = &self.at;
        let behind = |goal: &Cut| {
            let ends = to.iter().map(|(v, end)| (v, end.seqno.min(goal.get(v).seqno)));
            let here = |v: &VbucketId| self.vbuckets.contains(*v);
            ends.into_iter().find(|(v, end)| here(v) && at.get(*v).seqno < *end)
        };
        self.goal.as_deref().and_then(&behind).or_else(|| {
            self.goal = self.bucket.next_goal(&self.vbuckets, at);
            self.goal.as_deref().and_then(&behind).or_else(|| behind(to))
        })
    }

    /// One frame for each vbucket of the batch, or of as much of it as a message takes.
    fn next_frames(&mut self) -> Result<Vec<Frame>> {
        let indexes: Vec<_> = self.indexes.values().cloned().collect();
        let maker = KeyMaker {
            node: self.node,
            router: &*self.context.router,
            left_out: &self.context.left_out,
        };
        let logs = self.logs.clone().unwrap_or_default();
        frames(&maker, &indexes, &mut self.batch, (&self.at, &self.vbuckets), &logs)
    }
}
