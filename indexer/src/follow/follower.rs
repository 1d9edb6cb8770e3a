//! The state of a follower, and the queries that several of its operations use.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::cut::{Cut, EpochMark};
use proto::model::history::FailoverLogs;
use proto::model::ids::{BucketId, Epoch, LocalIndexId, SliceNo};
use proto::model::index::IndexInfo;
use proto::{Error, Result};
use storage::{Grouping, SliceStore, StoredIndex};
use tokio::sync::watch;

use super::backfill::{Build, BuildCompletion};
use super::comparison::Resync;
use super::policy;
use super::transactions::OpenTransactions;
use crate::context::NodeContext;
use crate::moves::IncomingMoves;
use crate::queue::MutationQueue;

/// The progress of a follower, for heartbeats.
#[derive(Clone, Debug, Default)]
pub struct FollowerStatus {
    /// The end of the mutations received without a gap.
    pub watermarks: Cut,
    /// Bytes of frames that wait for their epoch.
    pub staged_bytes: u64,
}

/// The follower of one bucket.
pub(super) struct Follower {
    pub(super) context: NodeContext,
    pub(super) incoming: IncomingMoves,
    pub(super) bucket: BucketId,
    pub(super) state: watch::Sender<FollowerStatus>,
    pub(super) queue: Option<MutationQueue>,
    /// A resync in progress, which replaces the missing history; it ends when the queue is
    /// replaced.
    pub(super) resync: Option<Resync>,
    pub(super) applied: Option<EpochMark>,
    /// Number of consecutive refusals because the applied cut is not in the source's history.
    pub(super) refusals: u32,
    /// The history that the stream belongs to.
    pub(super) history: Option<Arc<FailoverLogs>>,
    /// The indexes that the stream carries.
    pub(super) fed: BTreeMap<LocalIndexId, StreamedIndex>,
    /// The newest revision of each generation of an index that a stream has named.
    pub(super) revisions: BTreeMap<LocalIndexId, u64>,
    pub(super) builds: BTreeMap<LocalIndexId, Build>,
    /// Generations whose slices are to be made in place from those of another generation.
    pub(super) derived: BTreeMap<LocalIndexId, Arc<IndexInfo>>,
    /// The number of builds begun so far.
    pub(super) builds_begun: u64,
    pub(super) built: async_channel::Sender<BuildCompletion>,
    /// The changes of open transactions.
    pub(super) transactions: OpenTransactions,
}

/// An index that the stream carries.
pub(super) struct StreamedIndex {
    pub(super) info: Arc<IndexInfo>,
    /// The node's slices, each with the cut from which the frames carry its mutations.
    pub(super) since: BTreeMap<SliceNo, Cut>,
}

impl Follower {
    /// Returns the bucket's indexes on this node.
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

    /// Drops all received and unapplied mutations: the next stream begins at the applied cut.
    pub(super) fn forget_received(&mut self) {
        self.queue = None;
        self.resync = None;
        self.fed.clear();
        self.builds.clear();
        self.derived.clear();
    }

    /// Returns true if a dead epoch waits for its mutations, which may be lost.
    pub(super) fn waits_for_dead(&self) -> bool {
        self.has_dead(|| self.queue.iter().flat_map(MutationQueue::waiting))
    }

    /// True if the catalog lists one of these epochs as dead.
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

    /// Finds a generation of an index on this node.
    pub(super) fn stored_as(&self, index: &IndexInfo) -> Option<StoredIndex> {
        self.stored().into_iter().find(|stored| stored.id() == index.local_id())
    }
}

/// The column groups that an index's definition requires.
pub fn grouping(index: &IndexInfo) -> Grouping {
    if index.spec.separate_included_columns { Grouping::Apart } else { Grouping::Together }
}
