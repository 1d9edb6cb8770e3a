//! Follows one bucket: keeps a subscription to its projector open, feeds the mutation queue, applies
//! epochs, and builds the indexes that join the stream.
//!
//! The task is cancelled by dropping it: what it had not applied is asked for again from the
//! watermarks. After any error it opens a new stream, from the end of what was received; a hole or
//! `DropData` does the same.
//!
//! All that it compares with the stream's positions belongs to the stream's history: what does not is
//! given up first ([`rollback`]). A copy for which the history has been purged is compared with a snapshot
//! ([`resync`]).

mod builds;
mod joins;
mod resync;
mod rollback;

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures::StreamExt;
use proto::api::{Directory, ProjectorApi};
use proto::cut::{Cut, EpochMark};
use proto::env::{Env, Task};
use proto::history::FailoverLogs;
use proto::ids::{BucketId, Epoch, IndexId, SliceNo};
use proto::index::{Catalog, IndexInfo};
use proto::mutation::{StreamMessage, SubscribeRequest};
use proto::source::source_of;
use proto::{Error, ErrorCode, Result};
use tokio::sync::watch;

use self::builds::{Build, Built};
use self::resync::Resync;
use crate::config::Config;
use crate::moves::Incoming;
use crate::queue::MutationQueue;
use crate::rules;
use storage::{Grouping, SliceStore, StorageEngine};

/// How often moves that wait to be installed are looked at, when nothing else happens.
const LOOK_AT_MOVES: std::time::Duration = std::time::Duration::from_millis(100);

/// What the followers share with the service.
#[derive(Clone)]
pub struct Shared {
    /// Settings.
    pub config: Config,
    /// The seams.
    pub env: Env,
    /// The other services.
    pub directory: Arc<dyn Directory>,
    /// The slices.
    pub store: Arc<dyn SliceStore>,
    /// The slices as files, for moves; the same store.
    pub fragments: Arc<StorageEngine>,
    /// The moves to this node.
    pub incoming: Incoming,
    /// Counts the catalogs taken.
    pub catalog_taken: watch::Sender<u64>,
    /// The newest catalog.
    pub catalog: Arc<ArcSwap<Catalog>>,
    /// Counts the epochs applied, and changes of which slices there are.
    pub applied: watch::Sender<u64>,
    /// Counts changes of which slices there are and can be read.
    pub slices: watch::Sender<u64>,
}

impl Shared {
    /// The source of a bucket, as the catalog has it now.
    fn source(&self, bucket: BucketId) -> Result<Arc<dyn ProjectorApi>> {
        let catalog = self.catalog.load();
        let unknown = || Error::unavailable(format!("bucket {bucket} is not known here"));
        let info = catalog.buckets.get(&bucket).ok_or_else(unknown)?;
        source_of(&*self.directory, info, |node| catalog.nodes.get(&node).cloned())
    }

    /// An index was built, dropped or begun.
    pub fn slices_changed(&self) {
        self.slices.send_modify(|count| *count += 1);
        self.applied.send_modify(|count| *count += 1);
    }
}

/// How a follower stands, for heartbeats.
#[derive(Clone, Debug, Default)]
pub struct FollowerState {
    /// The end of what was received without a gap.
    pub watermarks: Cut,
    /// Bytes that wait for their epoch.
    pub staged_bytes: u64,
}

struct Follower {
    shared: Shared,
    bucket: BucketId,
    state: watch::Sender<FollowerState>,
    queue: Option<MutationQueue>,
    /// What of the past the queue lacks is made up for; ends with the queue.
    resync: Option<Resync>,
    applied: Option<EpochMark>,
    /// How often the source has refused, one after another, what is applied here as a place in its history.
    refusals: u32,
    /// The history that the stream belongs to.
    history: Option<Arc<FailoverLogs>>,
    /// What the stream's frames are evaluated for.
    fed: BTreeMap<IndexId, Fed>,
    /// The newest revision of each index that a stream has told.
    revisions: BTreeMap<IndexId, u64>,
    builds: BTreeMap<IndexId, Build>,
    /// So many builds were begun here.
    builds_begun: u64,
    built: async_channel::Sender<Built>,
}

/// An index in the stream.
struct Fed {
    info: Arc<IndexInfo>,
    /// Its slices here, and from which place on the frames have their mutations.
    since: BTreeMap<SliceNo, Cut>,
}

/// Follows a bucket until the task is dropped.
pub fn follow(shared: Shared, bucket: BucketId) -> (Task, watch::Receiver<FollowerState>) {
    let (state, watched) = watch::channel(FollowerState::default());
    let (built, builds_done) = async_channel::bounded(16);
    let env = shared.env.clone();
    let applied = shared.store.applied().into_iter().find(|mark| mark.bucket == bucket);
    let mut follower = Follower {
        bucket,
        queue: None,
        resync: None,
        applied,
        refusals: 0,
        history: None,
        fed: BTreeMap::new(),
        revisions: BTreeMap::new(),
        builds: BTreeMap::new(),
        builds_begun: 0,
        built,
        state,
        shared,
    };
    let task = env.spawn("follower", async move {
        loop {
            let error = match follower.run(&builds_done).await {
                Ok(()) => Error::unavailable("the stream ended"),
                Err(error) => error,
            };
            match error.is_retry() {
                true => tracing::debug!(bucket = %follower.bucket, %error, "following a bucket"),
                false => tracing::warn!(bucket = %follower.bucket, %error, "following a bucket"),
            }
            if error.code == ErrorCode::HistoryPurged {
                follower.begin_resync(&error);
            }
            tokio::time::sleep(follower.shared.config.retry).await;
        }
    });
    (task, watched)
}

impl Follower {
    /// One subscription, from its beginning to its end.
    async fn run(&mut self, builds_done: &async_channel::Receiver<Built>) -> Result<()> {
        self.go_back().await?;
        self.drop_stale_rebuilds().await?;
        self.history = None;
        if let Some(queue) = &mut self.queue {
            queue.forget_epochs();
        }
        let request = self.subscribe_request();
        let source = self.shared.source(self.bucket)?;
        let mut stream = match source.subscribe(request).await {
            Ok(stream) => stream,
            Err(error) => {
                if error.code == ErrorCode::OutOfOrder {
                    self.not_in_history().await?;
                }
                return Err(error);
            }
        };
        self.refusals = 0;
        let mut moves = self.shared.incoming.changes();
        let mut catalog = self.shared.catalog_taken.subscribe();
        loop {
            // In a bucket at rest no message reminds of them.
            let waits = self.shared.incoming.waits(self.bucket);
            tokio::select! {
                biased;
                _ = catalog.changed() => if self.must_go_back() || self.waits_for_dead() {
                    return Err(Error::unavailable("the bucket is rolled back"));
                },
                _ = moves.changed() => {}
                () = tokio::time::sleep(LOOK_AT_MOVES), if waits => {}
                done = builds_done.recv() => {
                    if let Ok(done) = done {
                        self.build_done(done).await?;
                    }
                }
                compared = Resync::compared(&mut self.resync) => self.compared(compared).await?,
                message = stream.next() => match message {
                    Some(message) => self.message(message?).await?,
                    None => return Ok(()),
                },
            }
            self.install_arrived().await;
            self.rebuild_hopeless().await?;
            self.publish_state();
        }
    }

    fn subscribe_request(&self) -> SubscribeRequest {
        let applied = self.applied.as_ref();
        let has_slices =
            self.shared.store.indexes().iter().any(|stored| stored.info.bucket == self.bucket);
        // Without slices nothing of the past is needed: the stream begins at the source's present.
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
        SubscribeRequest { node: self.shared.config.node.id, bucket: self.bucket, from, last_epoch }
    }

    async fn message(&mut self, message: StreamMessage) -> Result<()> {
        match message {
            StreamMessage::Begin { at, indexes, .. } => {
                let applied = self.applied.as_ref().map(|mark| mark.epoch).unwrap_or_default();
                let queue =
                    self.queue.get_or_insert_with(|| MutationQueue::new(at.clone(), applied));
                if *queue.watermarks() != at {
                    return Err(Error::internal(format!(
                        "bucket {}: the stream does not begin at the watermarks",
                        self.bucket
                    )));
                }
                self.builds.retain(|build, _| indexes.iter().any(|index| index.id == *build));
                self.builds.values_mut().for_each(|build| rules::rejoin(&mut build.joined, &at));
                self.drop_stale_rebuilds().await?;
                self.fed.clear();
                for stored in self.stored() {
                    if !indexes.iter().any(|index| index.id == stored.info.id) {
                        self.leave(&stored).await?;
                    }
                }
                for index in indexes {
                    self.join(index, &at).await?;
                }
                self.compare_copies(&at);
            }
            StreamMessage::History(logs) => {
                self.history = Some(logs);
                self.check_compared()?;
                self.finish_builds().await?;
            }
            StreamMessage::IndexJoin { index, at } => self.join(index, &at).await?,
            StreamMessage::IndexLeave { index } => {
                self.builds.remove(&index);
                self.fed.remove(&index);
                self.shared.fragments.drop_rebuild(index).await?;
                if let Some(stored) = self.stored().into_iter().find(|s| s.info.id == index) {
                    self.leave(&stored).await?;
                }
            }
            StreamMessage::Frames(frames) => {
                for frame in frames {
                    self.queue()?.frame(frame).map_err(|hole| {
                        let text = format!("bucket {}: {hole:?} in the stream", self.bucket);
                        Error::new(ErrorCode::DropData, text)
                    })?;
                }
                self.apply_ready().await?;
                self.bound_backlog().await?;
            }
            StreamMessage::Epoch(mark) => {
                self.check_follows(&mark)?;
                if self.has_dead(|| std::iter::once(mark.epoch)) {
                    return Err(Error::unavailable("the projector has not heard of a rollback"));
                }
                self.queue()?.epoch(mark);
                self.apply_ready().await?;
            }
            StreamMessage::StreamBegin { vbucket, .. }
            | StreamMessage::StreamEnd { vbucket, .. } => {
                // What the streams of several projectors are made one by does not give these on.
                return Err(Error::unavailable(format!("vbucket {vbucket} has another home now")));
            }
            StreamMessage::DropData => {
                return Err(Error::new(ErrorCode::DropData, "the node fell behind the stream"));
            }
        }
        Ok(())
    }

    fn queue(&mut self) -> Result<&mut MutationQueue> {
        self.queue
            .as_mut()
            .ok_or_else(|| Error::internal("a stream that does not begin with Begin"))
    }

    async fn apply_ready(&mut self) -> Result<()> {
        while let Some(batch) = self.next_ready()? {
            let mark = batch.mark.clone();
            if let Err(error) = self.shared.store.apply(batch).await {
                match error.code {
                    // It would come again as it is.
                    ErrorCode::OverLimit => self.give_up_gathering(&error).await?,
                    // The queue has given the epoch away: begin again behind the last applied one.
                    _ => self.forget_received(),
                }
                return Err(error);
            }
            self.applied = Some(mark);
            self.resync = None;
            self.shared.applied.send_modify(|count| *count += 1);
            self.finish_builds().await?;
        }
        Ok(())
    }

    /// Does an epoch that a rollback has taken back wait for its mutations? They may be lost, and never come.
    fn waits_for_dead(&self) -> bool {
        self.has_dead(|| self.queue.iter().flat_map(MutationQueue::waiting))
    }

    /// Has a rollback that is known here taken back one of these epochs?
    fn has_dead<I: Iterator<Item = Epoch>>(&self, epochs: impl Fn() -> I) -> bool {
        let catalog = self.shared.catalog.load();
        let bucket = catalog.buckets.get(&self.bucket);
        bucket.is_some_and(|bucket| rules::dead_range(bucket, epochs).is_some())
    }

    fn publish_state(&self) {
        if let Some(queue) = &self.queue {
            self.state.send_replace(FollowerState {
                watermarks: queue.watermarks().clone(),
                staged_bytes: queue.staged_bytes() as u64,
            });
        }
    }
}

/// How an index wants its columns divided.
pub fn grouping(index: &IndexInfo) -> Grouping {
    if index.spec.include_apart { Grouping::Apart } else { Grouping::Together }
}

#[cfg(test)]
mod cluster;
#[cfg(test)]
mod played;
#[cfg(test)]
mod restore_tests;
#[cfg(test)]
#[path = "follower_tests.rs"]
mod tests;
