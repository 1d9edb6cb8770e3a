//! The state of a follower (the task that keeps one bucket's indexes up to date), and the queries
//! that several of its operations use.

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
    /// The end, in each vbucket, of the mutations that were received without a gap.
    pub watermarks: Cut,
    /// Bytes of received mutations that wait for their epoch.
    pub staged_bytes: u64,
}

/// The follower of one bucket: receives the bucket's stream of mutations and applies its epochs
/// to the node's indexes.
pub(super) struct Follower {
    pub(super) context: NodeContext,
    pub(super) incoming: IncomingMoves,
    pub(super) bucket: BucketId,
    pub(super) state: watch::Sender<FollowerStatus>,
    pub(super) queue: Option<MutationQueue>,
    /// The resync in progress, if any: the copies are compared with the source, because mutations
    /// are missing. It ends when the queue is replaced.
    pub(super) resync: Option<Resync>,
    pub(super) applied: Option<EpochMark>,
    /// The number of subscriptions in a row that the source refused because its history lacks the
    /// applied cut.
    pub(super) refusals: u32,
    /// The history of the source that the stream belongs to.
    pub(super) history: Option<Arc<FailoverLogs>>,
    /// The indexes whose mutations the stream carries.
    pub(super) fed: BTreeMap<LocalIndexId, StreamedIndex>,
    /// The newest revision, of each generation of an index, that a stream has carried.
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

/// An index whose mutations the stream carries.
pub(super) struct StreamedIndex {
    pub(super) info: Arc<IndexInfo>,
    /// The slices of the node, each with the cut from which the stream carries its mutations.
    pub(super) since: BTreeMap<SliceNo, Cut>,
}

impl Follower {
    /// Returns the bucket's indexes that are stored on this node.
    pub(super) fn stored(&self) -> Vec<StoredIndex> {
        let mut stored = self.context.store.indexes();
        stored.retain(|stored| stored.info.bucket == self.bucket);
        stored
    }

    /// Returns the queue of mutations; an error before the stream has begun.
    pub(super) fn queue(&mut self) -> Result<&mut MutationQueue> {
        self.queue
            .as_mut()
            .ok_or_else(|| Error::internal("a stream that does not begin with Begin"))
    }

    /// Drops all mutations that were received and not applied. The next stream begins at the
    /// applied cut.
    pub(super) fn forget_received(&mut self) {
        self.queue = None;
        self.resync = None;
        self.fed.clear();
        self.builds.clear();
        self.derived.clear();
    }

    /// Returns true if an epoch that waits for its mutations is dead. These mutations may be
    /// lost, so the wait would never end.
    pub(super) fn waits_for_dead_epoch(&self) -> bool {
        self.has_dead_epoch(|| self.queue.iter().flat_map(MutationQueue::waiting_epochs))
    }

    /// True if the catalog lists one of these epochs as dead.
    pub(super) fn has_dead_epoch<I: Iterator<Item = Epoch>>(&self, epochs: impl Fn() -> I) -> bool {
        let catalog = self.context.catalog.load();
        let bucket = catalog.buckets.get(&self.bucket);
        bucket.is_some_and(|bucket| policy::dead_range(bucket, epochs).is_some())
    }

    /// Publishes the progress, for heartbeats.
    pub(super) fn publish_state(&self) {
        if let Some(queue) = &self.queue {
            self.state.send_replace(FollowerStatus {
                watermarks: queue.watermarks().clone(),
                staged_bytes: queue.staged_bytes() as u64,
            });
        }
    }

    /// Returns the stored form of a generation of an index; `None` if it is not on this node.
    pub(super) fn find_stored(&self, index: &IndexInfo) -> Option<StoredIndex> {
        self.stored().into_iter().find(|stored| stored.id() == index.local_id())
    }
}

/// Returns how the columns of an index must be grouped in files, according to its definition.
pub fn grouping(index: &IndexInfo) -> Grouping {
    if index.spec.separate_included_columns { Grouping::Apart } else { Grouping::Together }
}
