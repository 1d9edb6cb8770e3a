//! The interface of the coordinator: the calls, and the messages in them.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::heartbeat::{BucketProgress, Heartbeat, HeartbeatReply, SliceProgress};
use super::members::{CoordinatorChange, CoordinatorChanged, CoordinatorMembers};
use super::streams::ResultStream;
use crate::error::{Error, Result};
use crate::flow::AdmissionStatus;
use crate::model::assignment::VbucketSet;
use crate::model::catalog::Catalog;
use crate::model::cut::{Cut, EpochMark};
use crate::model::identity::ClusterId;
use crate::model::ids::{
    BucketId, Epoch, LocalIndexId, NodeId, SliceNo, TopologyNo, TransactionId,
};
use crate::model::index::IndexInfo;
use crate::model::joint::{JointCommit, PartlyLostCommit};
use crate::model::left_out::LeftOut;
use crate::model::moment::Moment;
use crate::model::moves::{MoveProgress, RebalancePlan, RebalanceRequest};
use crate::model::open_commit::OpenCommit;
use crate::model::pushed_commit::PushedCommit;
use crate::model::topology::IndexTopology;
use crate::model::users::Users;
use crate::rpc::command::{AppliedCommand, Proposal};

/// The interface of the replicated coordinator, which any of its members offers. A follower
/// forwards calls that only the leader can answer; while there is no leader, these fail with
/// `ErrorCode::NotLeader`.
#[async_trait]
pub trait CoordinatorApi: Send + Sync + 'static {
    /// Runs a command. Returns when a majority has committed it and it was applied. A repeated
    /// call with the same request id returns the first result.
    async fn propose(&self, proposal: Proposal) -> Result<AppliedCommand>;

    /// Reports the durable positions of a projector's buckets (the call SYNC). The leader keeps
    /// them in memory. With the next promotion it publishes them as stability timestamps.
    async fn sync(&self, report: SyncReport) -> Result<SyncReply>;

    /// Reports that a process is alive, with its progress and leases. The leader keeps the report
    /// in memory.
    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<HeartbeatReply>;

    /// Returns the oldest and the newest published epoch that cover a cut. New scans can read
    /// both. If no epoch covers the cut, one is promoted immediately; concurrent callers for a
    /// bucket share one promotion. If the positions are ahead of the last SYNC, the call waits
    /// for SYNC, and fails with `Cancelled` after `timeout_ms`. Returns `InvalidParameter` if a
    /// position or the history no longer exists at the source.
    ///
    /// A member that has not received the epoch `at_least` forwards the call to the leader. With
    /// `history`, the fingerprint of the source's failover logs, the call waits until the
    /// coordinator has received that history, because after a loss an epoch from before it is no
    /// valid answer.
    async fn epoch_covering(
        &self,
        bucket: BucketId,
        cut: Cut,
        history: Option<u64>,
        at_least: Epoch,
        timeout_ms: u64,
    ) -> Result<CoveringEpochs>;

    /// Opens a stream of the catalog, now and after each change. If requested, the stream also
    /// contains the epochs: all retained ones, then each new one, in order. Each message
    /// describes what this member has applied.
    async fn watch(&self, wanted: WatchKind) -> Result<ResultStream<WatchMessage>>;

    /// Returns the status of this member and of its leader.
    async fn status(&self) -> Result<CoordinatorStatus>;

    /// Plans a rebalance from the nodes' heartbeats, and begins it unless only the plan is
    /// requested. A repeated call plans only the moves that are still missing.
    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan>;

    /// Returns a past or present topology of an index by its number. Returns `SnapshotTooOld` if
    /// it is no longer remembered.
    async fn topology(&self, index: LocalIndexId, number: TopologyNo)
    -> Result<Arc<IndexTopology>>;

    /// Returns the stability timestamp of an epoch. Returns `None` if the epoch is no longer
    /// retained, or was undone by a rollback. An epoch is retained if it is not older than the
    /// horizon, or a lease protects it.
    async fn epoch_mark(&self, bucket: BucketId, epoch: Epoch) -> Result<Option<EpochMark>>;

    /// Fixes a moment that covers all writes that were acknowledged before the call, in all
    /// buckets. Returns the moment with the epoch in force in one bucket, which is at least
    /// `at_least`.
    ///
    /// The leader queries all projectors, and immediately promotes the positions that no epoch
    /// covers. Concurrent callers share one round of queries. A bucket keeps its present epoch if
    /// its projector does not answer within [`MOMENT_HOLD_MS`], or if it is being rolled back.
    /// For the requested bucket, the call instead waits until `timeout_ms`, and then fails with
    /// `Unavailable`.
    async fn moment(
        &self,
        bucket: BucketId,
        at_least: Epoch,
        timeout_ms: u64,
    ) -> Result<FixedMoment>;

    /// Returns the epoch in force in a bucket at a moment. A member that has not reached the
    /// moment forwards the call to the leader. Returns `SnapshotTooOld` if the moment is not
    /// retained, or if the bucket was created after it; the message distinguishes the two.
    async fn epoch_at(&self, bucket: BucketId, moment: Moment) -> Result<Epoch>;

    /// Receives Raft messages from another member, which the coordinator crate encodes. Messages
    /// may be lost.
    async fn raft(&self, messages: Vec<Bytes>) -> Result<()>;

    /// Returns the members of the coordinator. Returns `NotLeader` if this member has no
    /// connection to a leader, because its list may then be out of date.
    async fn members(&self) -> Result<CoordinatorMembers> {
        Err(Error::internal("this coordinator does not tell its members"))
    }

    /// Adds or removes a member. A repeated call has no further effect. The call returns when the
    /// change is made; for a new member, when it votes or some seconds have passed.
    async fn change_members(&self, _change: CoordinatorChange) -> Result<CoordinatorChanged> {
        Err(Error::internal("this coordinator does not change its members"))
    }
}

/// The range of published epochs that cover a cut, as one member of the coordinator knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoveringEpochs {
    /// The oldest readable epoch that covers the cut.
    pub oldest: Epoch,
    /// The newest epoch known to this member. All epochs from `oldest` to this one cover the cut.
    /// A later epoch may not cover it, because a rollback may have undone `oldest` since.
    pub newest: Epoch,
}

/// The time in milliseconds that a moment waits for the projector of a bucket. Longer than a call
/// and a commit on a busy disk.
pub const MOMENT_HOLD_MS: u64 = 500;

/// A moment that the leader has fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedMoment {
    /// The moment, an index of the coordinators' log.
    pub at: u64,
    /// The epoch in force in the requested bucket.
    pub epoch: Epoch,
}

/// The report of one bucket in a SYNC call. Its cut is closed: no statement and no transaction
/// has mutations on both sides of the cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketReport {
    /// The bucket of the report.
    pub bucket: BucketId,
    /// The vbuckets of the bucket that the projector owns.
    pub kept: VbucketSet,
    /// The end of the durable history of these vbuckets.
    pub cut: Cut,
    /// The open commits: those with a part in the cut that no epoch has yet.
    pub open: Vec<OpenCommit>,
    /// Earlier closed cuts, ascending, each before an open joint commit: an epoch can end at them
    /// if it must not include the commit.
    pub before: Vec<Cut>,
}

impl BucketReport {
    /// Creates the report of a bucket without open commits.
    pub fn new(bucket: BucketId, kept: VbucketSet, cut: Cut) -> Self {
        Self { bucket, kept, cut, open: Vec::new(), before: Vec::new() }
    }

    /// Returns the open joint commits.
    pub fn joint(&self) -> Vec<&JointCommit> {
        self.open.iter().filter_map(OpenCommit::joint).collect()
    }

    /// Returns the open commits of a producer.
    pub fn pushed(&self) -> Vec<&PushedCommit> {
        self.open.iter().filter_map(OpenCommit::pushed).collect()
    }
}

/// The SYNC report of a projector for some of its buckets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncReport {
    /// The projector that reports.
    pub projector: NodeId,
    /// The durable positions by bucket. They are absolute values, so that a lost report is
    /// harmless.
    pub buckets: Vec<BucketReport>,
    /// The number of documents that each index has left out, counted since the projector started.
    pub left_out: Vec<(LocalIndexId, LeftOut)>,
    /// The last joint commits of which this projector has found that another bucket has lost its
    /// part, since it started.
    pub halved: Vec<PartlyLostCommit>,
}

/// The answer to SYNC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncReply {
    /// For each reported bucket, the newest epoch that is durable on all copies of its indexes.
    /// No indexer will request the mutations up to this epoch again. A bucket is missing while
    /// its epoch is unknown. The epoch may decrease when copies are added, so a source stores the
    /// highest one.
    pub durable: Vec<(BucketId, Epoch)>,
}

/// The kind of messages that a watch sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WatchKind {
    /// The catalog, now and after each change.
    Catalog,
    /// The catalog and the stability timestamps of all buckets. A cut has a position for each
    /// vbucket, so the timestamps are most of the bytes of such a watch.
    CatalogAndEpochs,
    /// The users, with their privileges and the hashes of their secrets.
    Users,
}

/// A message of a watch (the stream from a coordinator to a process).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum WatchMessage {
    /// The present catalog.
    Catalog(Arc<Catalog>),
    /// New stability timestamps, ascending for each bucket.
    Epochs(Vec<EpochMark>),
    /// The present users.
    Users {
        /// The cluster that the users belong to; `None` before it is founded.
        cluster: Option<ClusterId>,
        /// The users, with secrets and grants.
        users: Arc<Users>,
    },
}

/// The status of a coordinator member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorStatus {
    /// The member itself.
    pub node: NodeId,
    /// The leader that the member follows; `None` if it has none.
    pub leader: Option<NodeId>,
    /// The present Raft term of the member.
    pub term: u64,
    /// The last position of the log that is committed.
    pub committed: u64,
    /// The last position of the log that the member has applied.
    pub applied: u64,
    /// The `cas` of the catalog that the member sends to its watchers.
    pub catalog_cas: u64,
    /// True on the leader once every node has reported since its term began. Until then nodes can
    /// neither join nor leave.
    pub active: bool,
    /// On the leader: the differences between the topology and the slices that indexers report,
    /// as text for operators.
    pub differences: Vec<String>,
    /// On the leader: a record of each node and its last heartbeat, including nodes that have
    /// sent none.
    pub nodes: Vec<NodeStatus>,
    /// On the leader: the documents that each index has left out, counted since the start of the
    /// projectors.
    pub left_out: Vec<(LocalIndexId, LeftOut)>,
    /// On the leader: the joint commits of which projectors have found one part lost, since they
    /// started.
    pub halved: Vec<PartlyLostCommit>,
    /// On the leader: the waits of epochs for commits over several buckets, the longest wait
    /// first; at most [`HOLDS_MAX`].
    pub holds: Vec<EpochWait>,
    /// The members of the coordinator, with their addresses.
    pub members: Box<CoordinatorMembers>,
    /// On the leader: the reasons why versions of data sets are not current yet, by the versions'
    /// buckets.
    pub version_waits: Vec<(BucketId, String)>,
    /// On the leader: for each bucket, the number of epochs that were published without waiting
    /// longer for slow indexers, since its term began.
    pub past_slow: Vec<(BucketId, u64)>,
}

/// A wait of a bucket's epochs: they end before a commit, because another bucket of that commit
/// does not have its part yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochWait {
    /// The bucket whose epochs wait.
    pub bucket: BucketId,
    /// The transaction of the oldest commit that the other bucket lacks.
    pub transaction: TransactionId,
    /// The other bucket, which lacks the commit.
    pub waits_for: BucketId,
    /// Milliseconds since the commit was first reported to the leader; at least [`HELD_MS_MIN`].
    pub held_ms: u64,
}

/// The time in milliseconds after which a waiting commit is listed in the status. Usually the next
/// reports of projectors end a wait.
pub const HELD_MS_MIN: u64 = 1_000;
/// The maximum number of listed waits in a status.
pub const HOLDS_MAX: usize = 1_000;

/// The leader's record of a node's last heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The node that the record describes.
    pub node: NodeId,
    /// Milliseconds since the node's last heartbeat, or since the leader's term began. For a
    /// member of the coordinator: milliseconds since its last message.
    pub silent_ms: u64,
    /// The indexer's progress in each bucket; empty for other roles.
    pub buckets: Vec<BucketProgress>,
    /// The progress of the node's slices, if it is an indexer.
    pub slices: Vec<SliceProgress>,
    /// The moves whose target is the node, if it is an indexer.
    pub moves: Vec<MoveProgress>,
    /// The numbers of running and waiting scans of the node, if it is a router or an indexer.
    pub scans: Option<AdmissionStatus>,
}

/// The progress of an index build, over all copies of its slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildStatus {
    /// The average percentage of documents that the copies have read; less than 100.
    pub percent: u8,
    /// The number of entries that all copies have so far.
    pub entries: u64,
    /// The seconds until the last copy has read all documents; `None` while a copy has no estimate.
    pub seconds_left: Option<u64>,
}

impl CoordinatorStatus {
    /// Returns the progress of an index build from the heartbeats of its nodes; `None` if no node
    /// reports any.
    pub fn build_status(&self, index: &IndexInfo) -> Option<BuildStatus> {
        let (mut copies, mut percents, mut entries, mut seconds_left) = (0, 0, None, Some(0));
        for (slice, nodes) in (0..).map(SliceNo).zip(&index.topology.placement) {
            let id = index.local_id().slice(slice);
            for node in nodes {
                let report = self.nodes.iter().find(|report| report.node == *node);
                let slices = report.map_or(&[][..], |report| &report.slices);
                let told = slices.iter().find(|told| told.slice == id);
                copies += 1;
                let (percent, seconds) = told.map_or((0, None), |told| match told.floor {
                    Some(_) => (100, Some(0)),
                    None => (told.built_percent.map_or(0, u64::from), told.seconds_left),
                });
                percents += percent;
                seconds_left = seconds_left.zip(seconds).map(|(known, more)| more.max(known));
                entries = told.map(|told| told.entries + entries.unwrap_or(0)).or(entries);
            }
        }
        let percent = percents.checked_div(copies)?.min(99) as u8;
        entries.map(|entries| BuildStatus { percent, entries, seconds_left })
    }
}
