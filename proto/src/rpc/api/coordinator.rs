//! The interface of the coordinator.

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
use crate::model::joint::{HalvedCommit, JointMark};
use crate::model::left_out::LeftOut;
use crate::model::moment::Moment;
use crate::model::moves::{MoveProgress, RebalancePlan, RebalanceRequest};
use crate::model::pushed_commit::PushedCommit;
use crate::model::topology::IndexTopology;
use crate::model::users::Users;
use crate::rpc::command::{AppliedCommand, Proposal};

/// The replicated coordinator, through any of its members; a follower forwards to the leader what only
/// the leader can answer (`ErrorCode::NotLeader` while there is none).
#[async_trait]
pub trait CoordinatorApi: Send + Sync + 'static {
    /// Runs a command; answers after the outcome is committed by a majority and applied. The same
    /// request id again gives the first answer.
    async fn propose(&self, proposal: Proposal) -> Result<AppliedCommand>;

    /// SYNC: a projector reports the durable positions of its buckets. The leader keeps them in memory and promotes them
    /// to a stability timestamp within a tick.
    async fn sync(&self, report: SyncReport) -> Result<SyncReply>;

    /// A process reports that it is alive and what it has; the leader keeps the report in memory. It also renews leases.
    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<HeartbeatReply>;

    /// Returns the oldest and the newest published epoch that cover a cut, and promotes one at once if there is none. Both are
    /// readable for new scans. A member that does not have the epoch `at_least` yet forwards the call to the leader. All callers that
    /// wait for a bucket at the same time share one promotion. The positions may be ahead of the last SYNC: the call then waits
    /// for SYNC, and fails with `Cancelled` after `timeout_ms`. With `history`, the fingerprint of the source's failover
    /// logs, the call waits until the coordinator knows that history, because an epoch from before a loss does not answer a
    /// question asked after it. `InvalidParameter` if a position or the history no longer exists at the source.
    async fn epoch_covering(
        &self,
        bucket: BucketId,
        cut: Cut,
        history: Option<u64>,
        at_least: Epoch,
        timeout_ms: u64,
    ) -> Result<CoveringEpochs>;

    /// Streams the catalog (now and after each change) and, if requested, the epochs (all retained ones, then each new one,
    /// in order). Every message describes an applied state of this member.
    async fn watch(&self, wanted: WatchKind) -> Result<ResultStream<WatchMessage>>;

    /// The status of this member and of its leader.
    async fn status(&self) -> Result<CoordinatorStatus>;

    /// Plans a rebalance from the nodes' heartbeats, and begins it unless it is a dry run. A repeated call plans the
    /// moves that are still missing.
    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan>;

    /// Returns a past or present state of an index's topology; `SnapshotTooOld` if it is no longer remembered.
    async fn topology(&self, index: LocalIndexId, number: TopologyNo)
    -> Result<Arc<IndexTopology>>;

    /// Returns the stability timestamp of an epoch that is retained: a lease protects it, or it is not older than the horizon. `None` if
    /// it is not, or was undone by a rollback.
    async fn epoch_mark(&self, bucket: BucketId, epoch: Epoch) -> Result<Option<EpochMark>>;

    /// Fixes a moment that covers everything that was acknowledged before the call, in all buckets, and returns it with the epoch in
    /// force in one bucket. The leader queries all projectors, and promotes at once the positions that no epoch covers; all callers that
    /// wait at the same time share one round of questions. A bucket that does not answer within [`MOMENT_HOLD_MS`], or is being rolled
    /// back, keeps the epoch that it has, unless it is the requested bucket, which is waited for until `timeout_ms` (`Unavailable`). The
    /// epoch is at least `at_least`.
    async fn moment(
        &self,
        bucket: BucketId,
        at_least: Epoch,
        timeout_ms: u64,
    ) -> Result<FixedMoment>;

    /// Returns the epoch in force in a bucket at a moment. A member that has not reached the moment forwards the call
    /// to the leader. The error is `SnapshotTooOld` if the moment is not retained, or the bucket is younger than it;
    /// the message says which.
    async fn epoch_at(&self, bucket: BucketId, moment: Moment) -> Result<Epoch>;

    /// Raft's messages from another member, unreliable; packed by the coordinator crate.
    async fn raft(&self, messages: Vec<Bytes>) -> Result<()>;

    /// Returns the members. The error is `NotLeader` while this member knows no leader, because its list may be old.
    async fn members(&self) -> Result<CoordinatorMembers> {
        Err(Error::internal("this coordinator does not tell its members"))
    }

    /// Changes the members. A repeated call has no further effect. Returns when the change is made and, for a new member, when it votes or
    /// some seconds have passed.
    async fn change_members(&self, _change: CoordinatorChange) -> Result<CoordinatorChanged> {
        Err(Error::internal("this coordinator does not change its members"))
    }
}

/// The published epochs that cover a cut, in the state of one member of the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoveringEpochs {
    /// The oldest readable epoch that covers the cut.
    pub oldest: Epoch,
    /// The newest epoch. All epochs from the oldest to this one cover the cut. A later epoch may not: a rollback that this member does not
    /// know yet may have undone the oldest.
    pub newest: Epoch,
}

/// The time that a moment waits for a bucket whose projector does not answer, in milliseconds: longer than a call and a commit on a busy
/// disk.
pub const MOMENT_HOLD_MS: u64 = 500;

/// A moment that the leader has fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedMoment {
    /// The index of the coordinators' log.
    pub at: u64,
    /// The epoch in force in the requested bucket.
    pub epoch: Epoch,
}

/// SYNC of a bucket. It ends at a participant-closed cut: no statement and no transaction has mutations on both sides of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketReport {
    /// The bucket of the report.
    pub bucket: BucketId,
    /// The vbuckets that the projector owns.
    pub kept: VbucketSet,
    /// The end of their durable history.
    pub cut: Cut,
    /// The open joint commits: all that are in the cut and in no epoch.
    pub joint: Vec<JointMark>,
    /// Earlier closed cuts, ascending, each before an open joint commit: where an epoch can end without it.
    pub before: Vec<Cut>,
    /// The open commits of a producer: those that no epoch has, with a part in the cut.
    pub pushed: Vec<PushedCommit>,
}

impl BucketReport {
    /// The report of a bucket without open commits.
    pub fn new(bucket: BucketId, kept: VbucketSet, cut: Cut) -> Self {
        let (joint, before, pushed) = Default::default();
        Self { bucket, kept, cut, joint, before, pushed }
    }
}

/// SYNC for some buckets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncReport {
    /// The projector that reports.
    pub projector: NodeId,
    /// Durable positions by bucket: absolute values, so that a lost report does no harm.
    pub buckets: Vec<BucketReport>,
    /// The documents that indexes have left out since the projector started: absolute counts as well.
    pub left_out: Vec<(LocalIndexId, LeftOut)>,
    /// The last commits that the projector has found to be halved since it started.
    pub halved: Vec<HalvedCommit>,
}

/// The answer to SYNC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncReply {
    /// For each reported bucket, the newest epoch that is durable on all copies of its indexes. No indexer requests the mutations up to it
    /// again. A bucket is missing while the leader does not know the epoch. The epoch may become smaller when copies are added, so a source
    /// keeps the highest one.
    pub durable: Vec<(BucketId, Epoch)>,
}

/// The contents of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WatchKind {
    /// The catalog, as of the last change.
    Catalog,
    /// The catalog and the stability timestamps of all buckets. A cut has a position for each vbucket, so these are most of the
    /// bytes of a watch.
    CatalogAndEpochs,
    /// The users, with their privileges and the hashes of their secrets.
    Users,
}

/// A message of a watch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum WatchMessage {
    /// The catalog as it is now.
    Catalog(Arc<Catalog>),
    /// New stability timestamps, ascending for each bucket.
    Epochs(Vec<EpochMark>),
    /// The users as they are now.
    Users {
        /// The cluster whose users they are; `None` before it is founded.
        cluster: Option<ClusterId>,
        /// The users, with secrets and grants.
        users: Arc<Users>,
    },
}

/// The status of a coordinator member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorStatus {
    /// Itself.
    pub node: NodeId,
    /// The leader that the member follows, if it knows one.
    pub leader: Option<NodeId>,
    /// Raft's term.
    pub term: u64,
    /// The last log position committed.
    pub committed: u64,
    /// The last log position applied.
    pub applied: u64,
    /// The `cas` of the catalog that the member sends to its watchers.
    pub catalog_cas: u64,
    /// On the leader: true once every node has reported since its term began. Until then it is in `bootstrap`, and
    /// nodes neither join nor leave.
    pub active: bool,
    /// On the leader: differences between the topology and the slices that indexers report, as text.
    pub differences: Vec<String>,
    /// On the leader: the last heartbeat of each node, also of nodes without a heartbeat.
    pub nodes: Vec<NodeStatus>,
    /// On the leader: the documents that each index has left out, as projectors have counted them since they started.
    pub left_out: Vec<(LocalIndexId, LeftOut)>,
    /// On the leader: the commits that projectors have found to be halved since they started.
    pub halved: Vec<HalvedCommit>,
    /// On the leader: the epochs that commits over several buckets hold, the longest first; at most [`HOLDS_MAX`].
    pub holds: Vec<EpochHold>,
    /// The members of the coordinator.
    pub members: Box<CoordinatorMembers>,
    /// On the leader: the reasons why versions of data sets wait, by the versions' buckets.
    pub version_waits: Vec<(BucketId, String)>,
    /// On the leader: the epochs of each bucket that did not wait any longer for slow indexers, since its term began.
    pub past_slow: Vec<(BucketId, u64)>,
}

/// The epochs of a bucket end before a commit, since another bucket of that commit does not have it yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochHold {
    /// The bucket whose epochs are held.
    pub bucket: BucketId,
    /// The oldest commit that waits for that other bucket.
    pub transaction: TransactionId,
    /// The other bucket.
    pub waits_for: BucketId,
    /// The milliseconds since the commit was first reported to the leader; at least [`HELD_MS_MIN`].
    pub held_ms: u64,
}

/// The epochs of a bucket are held when a commit waits for longer than this. Others end with the next reports of projectors.
pub const HELD_MS_MIN: u64 = 1_000;
/// The maximum number of holds in a status.
pub const HOLDS_MAX: usize = 1_000;

/// The leader's knowledge of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The node of the status.
    pub node: NodeId,
    /// Milliseconds since its last heartbeat, or since the leader's term began. For a member of the coordinator: since its
    /// last message.
    pub silent_ms: u64,
    /// Its buckets, if it is an indexer.
    pub buckets: Vec<BucketProgress>,
    /// The progress of the node's slices, if it is an indexer.
    pub slices: Vec<SliceProgress>,
    /// The moves of which it is the target, if it is an indexer.
    pub moves: Vec<MoveProgress>,
    /// The admission of the node's scans, if it is a router or an indexer.
    pub scans: Option<AdmissionStatus>,
}

/// The progress of an index build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildStatus {
    /// The percentage, on average of all copies; below 100.
    pub percent: u8,
    /// The number of entries of all copies so far.
    pub entries: u64,
    /// The seconds until the last copy has read all documents; `None` while a copy has no estimate.
    pub seconds_left: Option<u64>,
}

impl CoordinatorStatus {
    /// The progress of an index build, from the reports of its nodes; `None` without a report.
    pub fn build_of(&self, index: &IndexInfo) -> Option<BuildStatus> {
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
