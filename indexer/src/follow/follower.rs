//! The state of following one bucket, and the questions that all of its operations ask.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::cut::{Cut, EpochMark};
use proto::model::history::FailoverLogs;
use proto::model::ids::{BucketId, Epoch, IndexId, SliceNo};
use proto::model::index::IndexInfo;
use proto::{Error, Result};
use storage::{Grouping, StoredIndex};
use tokio::sync::watch;

use super::backfill::{Build, Built};
use super::comparison::Resync;
use super::policy;
use crate::context::NodeContext;
use crate::moves::Incoming;
use crate::queue::MutationQueue;

/// How a follower stands, for heartbeats.
#[derive(Clone, Debug, Default)]
pub struct FollowerStatus {
    /// The end of what was received without a gap.
    pub watermarks: Cut,
    /// Bytes that wait for their epoch.
    pub staged_bytes: u64,
}

/// The state of following one bucket.
pub(super) struct Follower {
    pub(super) context: NodeContext,
    pub(super) incoming: Incoming,
    pub(super) bucket: BucketId,
    pub(super) state: watch::Sender<FollowerStatus>,
    pub(super) queue: Option<MutationQueue>,
    /// What of the past the queue lacks is made up for; ends with the queue.
    pub(super) resync: Option<Resync>,
    pub(super) applied: Option<EpochMark>,
    /// How often the source has refused, one after another, what is applied here as a place in its history.
    pub(super) refusals: u32,
    /// The history that the stream belongs to.
    pub(super) history: Option<Arc<FailoverLogs>>,
    /// What the stream's frames are evaluated for.
    pub(super) fed: BTreeMap<IndexId, Fed>,
    /// The newest revision of each index that a stream has told.
    pub(super) revisions: BTreeMap<IndexId, u64>,
    pub(super) builds: BTreeMap<IndexId, Build>,
    /// So many builds were begun here.
    pub(super) builds_begun: u64,
    pub(super) built: async_channel::Sender<Built>,
}

/// An index in the stream.
pub(super) struct Fed {
    pub(super) info: Arc<IndexInfo>,
    /// Its slices here, and from which place on the frames have their mutations.
    pub(super) since: BTreeMap<SliceNo, Cut>,
}

impl Follower {
    /// The bucket's indexes that are here.
    pub(super) fn stored(&self) -> Vec<StoredIndex> {
        let mut stored = self.context.store.indexes();
        stored.retain(|stored| stored.info.bucket == self.bucket);
        stored
    }

    pub(super) fn queue(&mut self) -> Result<&mut MutationQueue> {
        self.queue
            .as_mut()
            .ok_or_else(|| Error::internal("a stream that does not begin with Begin"))
    }

    /// Forgets all that has come from streams: the next one begins behind what is applied.
    pub(super) fn forget_received(&mut self) {
        self.queue = None;
        self.resync = None;
        self.fed.clear();
        self.builds.clear();
    }

    /// Does an epoch that a rollback has taken back wait for its mutations? They may be lost, and never come.
    pub(super) fn waits_for_dead(&self) -> bool {
        self.has_dead(|| self.queue.iter().flat_map(MutationQueue::waiting))
    }

    /// Has a rollback that is known here taken back one of these epochs?
    pub(super) fn has_dead<I: Iterator<Item = Epoch>>(&self, epochs: impl Fn() -> I) -> bool {
        let catalog = self.context.catalog.load();
        let bucket = catalog.buckets.get(&self.bucket);
        bucket.is_some_and(|bucket| policy::dead_range(bucket, epochs).is_some())
    }

    pub(super) fn publish_state(&self) {
        if let Some(queue) = &self.queue {
            self.state.send_replace(FollowerStatus {
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
