//! The loop of a follower: it opens one subscription after another, handles each message, and applies each epoch.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use futures::StreamExt;
use proto::env::Task;
use proto::model::cut::Cut;
use proto::model::ids::BucketId;
use proto::model::index::IndexInfo;
use proto::rpc::api::ResultStream;
use proto::rpc::mutation::{CommitMarker, StreamMessage, SubscribeRequest};
use proto::{Error, ErrorCode, Result};
use storage::SliceStore;
use tokio::sync::watch;

use super::backfill::BuildCompletion;
use super::comparison::Resync;
use super::follower::{Follower, FollowerStatus};
use super::policy;
use super::transactions::OpenTransactions;
use crate::context::NodeContext;
use crate::moves::IncomingMoves;
use crate::queue::MutationQueue;

/// The interval at which the follower of an idle bucket checks for copied slices to install.
const LOOK_AT_MOVES: std::time::Duration = std::time::Duration::from_millis(100);

/// Starts the follower of a bucket. Returns its task, which runs until it is dropped, and its
/// progress.
pub fn spawn_follower(
    context: NodeContext,
    incoming: IncomingMoves,
    bucket: BucketId,
) -> (Task, watch::Receiver<FollowerStatus>) {
    let (state, watched) = watch::channel(FollowerStatus::default());
    let (built, builds_done) = async_channel::bounded(16);
    let env = context.env.clone();
    let applied = context.store.applied().into_iter().find(|mark| mark.bucket == bucket);
    let follower = Follower {
        bucket,
        queue: None,
        resync: None,
        applied,
        refusals: 0,
        history: None,
        fed: BTreeMap::new(),
        revisions: BTreeMap::new(),
        builds: BTreeMap::new(),
        derived: BTreeMap::new(),
        builds_begun: 0,
        built,
        state,
        transactions: OpenTransactions::new(&context, bucket),
        context,
        incoming,
    };
    // An epoch that a panic left half applied must not be followed by another.
    let task = env.spawn_service("follower", follower.run_for_ever(builds_done));
    (task, watched)
}

impl Follower {
    /// Runs one subscription after another, with a pause after each.
    async fn run_for_ever(
        mut self,
        builds_done: async_channel::Receiver<BuildCompletion>,
    ) -> Infallible {
        // A projector may know of a DROP BUCKET before this node does, and then answers that the bucket does not exist.
        let mut was_unknown = false;
        loop {
            let error = match self.run(&builds_done).await {
                Ok(()) => Error::unavailable("the stream ended"),
                Err(error) => error,
            };
            let is_unknown = error.code == ErrorCode::Unknown;
            let is_drop = self.is_dropped() || (is_unknown && !was_unknown);
            was_unknown = is_unknown;
            match error.is_retry() || is_drop {
                true => tracing::debug!(bucket = %self.bucket, %error, "following a bucket"),
                false => tracing::warn!(bucket = %self.bucket, %error, "following a bucket"),
            }
            if error.code == ErrorCode::HistoryPurged {
                self.begin_resync(&error);
            }
            tokio::time::sleep(self.context.config.retry).await;
        }
    }

    /// Returns true if the newest catalog does not contain the bucket, so that errors are the
    /// expected result of its drop.
    fn is_dropped(&self) -> bool {
        !self.context.catalog.load().buckets.contains_key(&self.bucket)
    }

    /// Runs one subscription from its beginning to its end or to an error.
    async fn run(&mut self, builds_done: &async_channel::Receiver<BuildCompletion>) -> Result<()> {
        self.roll_back_dead_epochs().await?;
        self.resync_unknown_epoch();
        self.drop_stale_rebuilds().await?;
        self.history = None;
        if self.queue.as_ref().is_some_and(MutationQueue::has_commits) {
            // The transactions end with their stream. The next stream carries their commits as mutations, from the applied cut on.
            self.forget_received();
        }
        if let Some(queue) = &mut self.queue {
            queue.forget_epochs();
        }
        let mut stream = self.subscribe().await?;
        let mut moves = self.incoming.changes();
        let mut catalog = self.context.catalog_taken.subscribe();
        loop {
            // An idle bucket has no message that would trigger their installation.
            let waits = self.incoming.has_slice_to_install(self.bucket) || self.waits_to_derive();
            tokio::select! {
                biased;
                _ = catalog.changed() => if self.must_go_back() || self.waits_for_dead_epoch() {
                    return Err(Error::unavailable("the bucket is rolled back"));
                },
                _ = moves.changed() => {}
                () = tokio::time::sleep(LOOK_AT_MOVES), if waits => {}
                done = builds_done.recv() => {
                    if let Ok(done) = done {
                        self.record_snapshot_end(done).await?;
                    }
                }
                compared = Resync::comparison_result(&mut self.resync) => {
                    self.store_comparison(compared).await?;
                    self.apply_ready_epochs().await?;
                    self.bound_backlog().await?;
                }
                message = stream.next() => match message {
                    Some(message) => self.handle_message(message?).await?,
                    None => return Ok(()),
                },
            }
            self.install_copied_slices().await;
            self.make_derived().await?;
            self.rebuild_lost_slices().await?;
            self.publish_state();
        }
    }

    /// Opens a stream of the bucket, and counts refusals.
    async fn subscribe(&mut self) -> Result<ResultStream<StreamMessage>> {
        let source = self.context.projector_of(self.bucket)?;
        let subscribed = source.subscribe(self.subscribe_request()).await;
        match &subscribed {
            Ok(_) => self.refusals = 0,
            Err(error) if error.code == ErrorCode::OutOfOrder => {
                self.handle_lost_position().await?
            }
            Err(_) => {}
        }
        subscribed
    }

    /// Returns the request for a stream that continues after the received or applied mutations.
    fn subscribe_request(&self) -> SubscribeRequest {
        let applied = self.applied.as_ref();
        let has_slices =
            self.context.store.indexes().iter().any(|stored| stored.info.bucket == self.bucket);
        // Without slices the past is not needed: the stream begins at the source's present.
        let from = match &self.queue {
            Some(queue) => Some(queue.watermarks().clone()),
            None if self.resync.is_some() => None,
            None if has_slices => applied.map(|mark| Cut::clone(&mark.cut)),
            None => None,
        };
        let last_epoch = match &self.queue {
            Some(queue) => queue.newest_epoch(),
            None => applied.map(|mark| mark.epoch).unwrap_or_default(),
        };
        SubscribeRequest {
            node: self.context.config.node.id,
            bucket: self.bucket,
            from,
            last_epoch,
        }
    }

    /// Handles a message of the stream.
    async fn handle_message(&mut self, message: StreamMessage) -> Result<()> {
        match message {
            StreamMessage::Begin { at, indexes, .. } => self.begin(at, indexes).await?,
            StreamMessage::History(logs) => {
                self.history = Some(logs);
                self.check_compared()?;
                self.finish_builds().await?;
            }
            StreamMessage::IndexJoin { index, at } => self.join(index, &at).await?,
            StreamMessage::IndexLeave { index } => {
                self.builds.remove(&index);
                self.derived.remove(&index);
                self.fed.remove(&index);
                self.transactions.leave(index);
                self.context.store.drop_rebuild(index).await?;
                if let Some(stored) = self.stored().into_iter().find(|s| s.id() == index) {
                    self.drop_left_index(&stored).await?;
                }
            }
            StreamMessage::Frames(frames) => {
                for frame in frames {
                    self.queue()?.add_frame(frame).map_err(|hole| {
                        let text = format!("bucket {}: {hole:?} in the stream", self.bucket);
                        Error::new(ErrorCode::DropData, text)
                    })?;
                }
                self.apply_ready_epochs().await?;
                self.bound_backlog().await?;
            }
            StreamMessage::Epoch(mark) => {
                self.check_follows(&mark)?;
                if self.has_dead_epoch(|| std::iter::once(mark.epoch)) {
                    return Err(Error::unavailable("the projector has not heard of a rollback"));
                }
                self.queue()?.add_epoch(mark);
                self.apply_ready_epochs().await?;
            }
            StreamMessage::Bodies(bodies) => self.transactions.add_changes(bodies).await?,
            StreamMessage::TransactionBack { transaction, to } => {
                self.transactions.roll_back_to(transaction, to).await?;
            }
            StreamMessage::Committing { transaction, place } => {
                self.transactions.prepare(transaction, place);
            }
            StreamMessage::Committed(marker) => self.add_commit_marker(marker)?,
            StreamMessage::TransactionsEnded(ended) => self.transactions.end(&ended),
            StreamMessage::StreamBegin { vbucket, .. }
            | StreamMessage::StreamEnd { vbucket, .. } => {
                // The merge of several projectors' streams consumes these messages.
                return Err(Error::unavailable(format!("vbucket {vbucket} has another owner now")));
            }
        }
        Ok(())
    }

    /// Adds the marker of a commit to the queue. Returns an error if the node lacks changes of
    /// the transaction, or during a resync, whose corrections must precede all mutations. The
    /// follower then opens another stream, which carries the commit's mutations.
    fn add_commit_marker(&mut self, marker: CommitMarker) -> Result<()> {
        if self.resync.is_some() {
            let text = format!("bucket {}: a commit during a resync", self.bucket);
            return Err(Error::new(ErrorCode::DropData, text));
        }
        self.transactions.keep_committed(&marker)?;
        self.queue()?.add_commit_marker(marker);
        Ok(())
    }

    /// Handles the beginning of a stream, which must continue where the received mutations end.
    async fn begin(&mut self, at: Cut, indexes: Vec<Arc<IndexInfo>>) -> Result<()> {
        let applied = self.applied.as_ref().map(|mark| mark.epoch).unwrap_or_default();
        let queue = self.queue.get_or_insert_with(|| MutationQueue::new(at.clone(), applied));
        if *queue.watermarks() != at {
            return Err(Error::internal(format!(
                "bucket {}: the stream does not begin at the watermarks",
                self.bucket
            )));
        }
        self.builds.retain(|build, _| indexes.iter().any(|index| index.local_id() == *build));
        self.builds.values_mut().for_each(|build| policy::lower_join_cut(&mut build.joined, &at));
        self.drop_stale_rebuilds().await?;
        self.derived.clear();
        self.fed.clear();
        self.transactions.drop_all();
        for stored in self.stored() {
            if !indexes.iter().any(|index| index.local_id() == stored.id()) {
                self.drop_left_index(&stored).await?;
            }
        }
        for index in indexes {
            self.join(index, &at).await?;
        }
        self.compare_copies(&at);
        Ok(())
    }

    /// Applies all epochs whose mutations were received.
    async fn apply_ready_epochs(&mut self) -> Result<()> {
        while let Some(batch) = self.next_ready_epoch()? {
            let mark = batch.mark.clone();
            if let Err(error) = self.context.store.apply(batch).await {
                match error.code {
                    // A new stream would bring the same epoch again.
                    ErrorCode::OverLimit => self.handle_oversized_epoch(&error).await?,
                    // The queue no longer has the epoch: start again after the last applied one.
                    _ => self.forget_received(),
                }
                return Err(error);
            }
            self.applied = Some(mark);
            self.resync = None;
            self.context.applied.send_modify(|count| *count += 1);
            self.finish_builds().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
