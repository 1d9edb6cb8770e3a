//! A maintenance stream, which sends all mutations of a bucket to one node, converted into the
//! entries of the node's indexes.
//!
//! A stream has a position in each vbucket (`at`) and reads from the head (the newest mutations,
//! in memory) or from the log (`reader`). If the log was purged meanwhile, the stream ends with
//! `HistoryPurged`.
//!
//! Every batch becomes one frame per touched vbucket, which covers the seqnos after `at` up to
//! the batch's last one. A frame is sent even if it has nothing for the node, so the frames have
//! no gaps (invariant I2). Other messages are sent only between two batches: indexes that join or
//! leave, and stability timestamps as soon as they are received. The frames before `IndexJoin`
//! lack the index and the frames after it have it, so `at` is the exact border.
//!
//! If only a few mutations are read, they are not sent immediately but collected for [`GATHER`].
//! No node needs them before a timestamp covers them, and a frame for each small write would cost
//! more than the write. A timestamp makes the stream send them at once.
//!
//! The changes of open transactions are sent in addition to frames (`bodies`). If the node has
//! all changes of a large commit already, a marker replaces the mutations (`markers`).
//!
//! One task per stream writes into a channel that is bounded in bytes and waits there for its
//! reader. A slow reader delays no other stream: the head advances, and the stream then reads the
//! log. The bytes of frames beyond the last announced timestamp are bounded as well
//! (`frames_ahead`); beyond the limit the stream waits for the next timestamp.

mod mutations;
mod vbuckets;

use std::sync::Arc;
use std::time::Duration;

use proto::flow::ByteSender;
use proto::model::assignment::VbucketSet;
use proto::model::catalog::Catalog;
use proto::model::cut::Cut;
use proto::model::history::FailoverLogs;
use proto::model::ids::{Epoch, NodeId};
use proto::plant::{self, Plant};
use proto::rpc::mutation::{StreamMessage, SubscribeRequest};
use proto::{Error, Result};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::feed::bodies::{Bodies, BodiesReceiver};
use crate::feed::context::{MESSAGE_BYTES, StreamContext};
use crate::feed::frames_ahead::FramesAhead;
use crate::feed::indexes::{IndexChanges, StreamIndexes};
use crate::feed::log_reader;
use crate::feed::markers::Markers;
use crate::feed::reader::{ReadFrom, Reader};
use crate::source::Mutation;
use crate::source::view::bucket::{Bucket, JoinedAt};
use documents::ownership::Ownership;

/// The smallest size in bytes that a message counts in the channel to the reader. So only a few
/// messages can wait for the reader, and new mutations gather in the next message.
const MESSAGE_BYTES_MIN: usize = MESSAGE_BYTES / 2;

/// The cost of index expressions up to which frames are packed on the stream's own thread: a few
/// thousand small documents, less than a millisecond. The move to another thread would delay each
/// write.
const INLINE_COST: u64 = 1 << 20;

/// The time for which a few mutations are collected: a fraction of the interval between two
/// timestamps.
const GATHER: Duration = Duration::from_millis(4);
/// The number of bytes from which mutations are sent without being collected.
const FEW_BYTES: usize = 64 << 10;

/// A maintenance stream: its position, its indexes, and its pending messages.
pub struct MaintenanceStream {
    context: Arc<StreamContext>,
    bucket: Arc<Bucket>,
    node: NodeId,
    catalog: watch::Receiver<Option<Arc<Catalog>>>,
    changed: watch::Receiver<u64>,
    turned: watch::Receiver<u64>,
    out: ByteSender<Result<StreamMessage>>,
    indexes: StreamIndexes,
    /// The vbuckets that the stream carries.
    vbuckets: VbucketSet,
    /// The ownership from which `vbuckets` were taken.
    ownership: Arc<Ownership>,
    /// The positions at which vbuckets have joined the stream. Vbuckets that the projector has
    /// always owned are not listed.
    joined_at: JoinedAt,
    at: Cut,
    /// The branches of the history that the stream has announced. The stream ends when a part of
    /// this history is lost.
    logs: Option<Arc<FailoverLogs>>,
    losses: u64,
    reader: Reader,
    /// Mutations that were read and are not in frames yet.
    batch: std::vec::IntoIter<Arc<Mutation>>,
    /// True if the last frames cost more than [`INLINE_COST`].
    is_costly: bool,
    /// The time until which further mutations are collected before a frame is sent.
    gathers_until: Instant,
    last_epoch: Epoch,
    ahead: FramesAhead,
    bodies: Bodies,
    markers: Markers,
}

/// The reasons for which a stream ends.
enum StreamEnd {
    /// The reader has dropped the stream.
    ReaderGone,
    /// The stream has failed; its reader receives the error.
    Failed(Error),
}

/// The result of sending a message; the error is the reason for which the stream ends.
type SendResult<T> = std::result::Result<T, StreamEnd>;

impl From<Error> for StreamEnd {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl MaintenanceStream {
    /// Creates a stream that begins at the requested position. The error is `OutOfOrder` if the
    /// position is not in the bucket's history.
    pub fn new(
        context: Arc<StreamContext>,
        bucket: Arc<Bucket>,
        catalog: watch::Receiver<Option<Arc<Catalog>>>,
        request: &SubscribeRequest,
        out: ByteSender<Result<StreamMessage>>,
    ) -> Result<Self> {
        let (changed, turned) = (bucket.watch(), bucket.watch_without_mutations());
        let (_, losses) = bucket.logs();
        let (end, then, (ownership, joined_at)) = bucket.end();
        let vbuckets = ownership.owned.clone();
        let mut last_epoch = request.last_epoch;
        let (at, read_from) = match &request.from {
            Some(from) => {
                bucket.check_place(from)?;
                (from.only_vbuckets(&vbuckets), ReadFrom::Log { to: Arc::new(end), then })
            }
            None => {
                // A node that begins here needs nothing before the newest timestamp.
                if let Some(newest) = bucket.newest_epoch() {
                    last_epoch = last_epoch.max(Epoch(newest.epoch.0.saturating_sub(1)));
                }
                (end, ReadFrom::Head(then))
            }
        };
        // After an interruption the node knows timestamps whose frames it has not received yet.
        let announced = bucket.newest_epoch_until(last_epoch).map(|mark| mark.cut);
        let node = request.node;
        let reader = Reader::new(Arc::clone(&context), Arc::clone(&bucket), node, read_from);
        let router = Arc::clone(&context.router);
        let indexes = StreamIndexes::new(bucket.info.id, node, router);
        Ok(Self {
            context,
            bucket,
            node,
            catalog,
            changed,
            turned,
            out,
            indexes,
            vbuckets,
            ownership,
            joined_at,
            at,
            logs: None,
            losses,
            reader,
            batch: Vec::new().into_iter(),
            is_costly: false,
            gathers_until: Instant::now(),
            last_epoch,
            ahead: FramesAhead::new(announced),
            bodies: Bodies::default(),
            markers: Markers::default(),
        })
    }

    /// Sends messages until the reader drops the stream or the stream fails. Safe to cancel: the
    /// reader then opens a new stream at the positions that it has received.
    pub async fn run(mut self) {
        if let Err(StreamEnd::Failed(error)) = self.send_all().await {
            let _gone = self.out.send(Err(error), 0).await;
        }
    }

    async fn send_all(&mut self) -> SendResult<()> {
        log_reader::check_not_purged(&self.context, &self.bucket, &self.vbuckets, &self.at).await?;
        self.indexes.follow(&mut self.catalog);
        let indexes = self.indexes.all();
        let vbuckets = self.vbuckets.clone();
        self.send(StreamMessage::Begin { at: self.at.clone(), indexes, vbuckets }).await?;
        self.send_history().await?;
        self.send_ends().await?;
        loop {
            self.turned.borrow_and_update();
            self.changed.borrow_and_update();
            if self.bucket.is_removed() {
                return Err(self.bucket.removed_error().into());
            }
            self.send_vbucket_changes().await?;
            self.send_history().await?;
            self.send_index_changes().await?;
            self.send_epochs().await?;
            let has_bodies = self.send_bodies().await?;
            if self.ahead.bytes() < self.context.frames_ahead_bytes_max
                && self.send_frames().await?
                && !self.is_gathering()
                || has_bodies
            {
                continue;
            }
            tokio::select! {
                biased;
                () = self.out.closed() => return Err(StreamEnd::ReaderGone),
                changed = self.catalog.changed() => self.check_not_stopping(changed)?,
                turned = self.turned.changed() => self.check_not_stopping(turned)?,
                changed = changed_after(&mut self.changed, self.gathers_until) => {
                    self.check_not_stopping(changed)?;
                }
            }
        }
    }

    /// Returns true while mutations are collected before they are sent: all earlier ones were
    /// sent, and the last ones were few.
    fn is_gathering(&self) -> bool {
        self.batch.as_slice().is_empty() && Instant::now() < self.gathers_until
    }

    /// Returns an error if a watched channel was closed, because the projector is stopping.
    fn check_not_stopping(
        &self,
        changed: std::result::Result<(), watch::error::RecvError>,
    ) -> SendResult<()> {
        changed.map_err(|_| Error::unavailable("the projector is stopping").into())
    }

    async fn send(&self, message: StreamMessage) -> SendResult<()> {
        let bytes = message.bytes().max(MESSAGE_BYTES_MIN);
        self.out.send(Ok(message), bytes).await.map_err(|_| StreamEnd::ReaderGone)
    }

    async fn send_index_changes(&mut self) -> SendResult<()> {
        if !self.indexes.is_older_than(&self.catalog) || self.markers.has_uncovered_marker() {
            return Ok(());
        }
        let IndexChanges { left, joined } = self.indexes.follow(&mut self.catalog);
        for index in left {
            self.send(StreamMessage::IndexLeave { index }).await?;
        }
        for index in joined {
            // The node lacks what open transactions have for it.
            self.bodies.restart_all();
            let at = self.at.clone();
            self.send(StreamMessage::IndexJoin { index, at }).await?;
        }
        Ok(())
    }

    /// Sends the stability timestamps that have arrived.
    async fn send_epochs(&mut self) -> SendResult<()> {
        for mark in self.bucket.epochs_after(self.last_epoch) {
            let cut = Arc::clone(&mark.cut);
            let includes = |logs: &Arc<FailoverLogs>| logs.includes_vbuckets(&self.vbuckets, &cut);
            let is_here = self.logs.as_ref().is_some_and(includes)
                && self.bucket.has_all_of_cut(&self.vbuckets, &cut);
            if !is_here && !plant::is(Plant::DeadEpochSent) {
                // The timestamp is from before a loss. Either a rollback replaces it, or the producer of a pushed
                // bucket pushes the missing mutations again.
                break;
            }
            self.last_epoch = mark.epoch;
            self.send(StreamMessage::Epoch(mark)).await?;
            self.ahead.announce(cut);
        }
        Ok(())
    }

    /// Sends what has happened in open transactions: ends, rollbacks, and at most one message of
    /// changes. Returns false if there was nothing to send.
    async fn send_bodies(&mut self) -> SendResult<bool> {
        let about = self.bodies.read(&self.bucket.transactions);
        // Not earlier, because a transaction that has ended by a commit is published by now.
        self.markers.follow(&self.bucket, (&self.at, &self.vbuckets));
        let gone = self.bodies.forget_ended(&self.markers);
        let has_news = !about.is_empty() || gone.is_some();
        for message in about.into_iter().chain(gone) {
            self.send(message).await?;
        }
        let receiver = || BodiesReceiver {
            context: Arc::clone(&self.context),
            node: self.node,
            indexes: self.indexes.all(),
            fields: self.indexes.fields(),
        };
        let Some(bodies) = self.bodies.next(receiver, INLINE_COST).await? else {
            return Ok(has_news);
        };
        self.send(bodies).await?;
        Ok(true)
    }
}

/// Sleeps until `moment`, and then waits for a change. Returns when `moment` has passed if there
/// was a change before.
async fn changed_after(
    changed: &mut watch::Receiver<u64>,
    moment: Instant,
) -> std::result::Result<(), watch::error::RecvError> {
    tokio::time::sleep_until(moment).await;
    changed.changed().await
}
