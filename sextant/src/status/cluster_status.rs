//! The types of the cluster's status.

use std::borrow::Cow;
use std::sync::Arc;

use proto::flow::AdmissionStatus;
use proto::model::assignment::VbucketAssignment;
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, MoveId, NodeId, SliceNo, TopologyNo, TransactionId,
};
use proto::model::left_out::LeftOut;
use proto::model::rollback::{DeadEpochs, Rollback};
use proto::rpc::api::CoordinatorStatus;
use proto::{Error, Result};
use serde::{Serialize, Serializer};

/// The cluster, as the catalog and the coordinator know it.
#[derive(Clone, Debug, Serialize)]
pub struct ClusterStatus {
    /// Version of the catalog.
    pub cas: u64,
    /// Registered processes, by number.
    pub nodes: Vec<NodeStatus>,
    /// Buckets, by number.
    pub buckets: Vec<BucketStatus>,
    /// The copies of embedded buckets, by bucket; the leader of each first, then those in sync, then the joining ones.
    pub copies: Vec<CopyStatus>,
    /// Indexes, by number.
    pub indexes: Vec<IndexStatus>,
    /// The copies of slices in the topology, by index, slice and replica.
    pub slices: Vec<SliceStatus>,
    /// The moves in progress by index, then the ended ones, oldest first.
    pub moves: Vec<MoveStatus>,
    /// The last rollbacks of each bucket, oldest first, and the commits over several buckets that were halved by a loss.
    pub rollbacks: Vec<RollbackStatus>,
    /// The versions of data sets, by bucket and number.
    pub versions: Vec<VersionStatus>,
    /// The epochs that commits over several buckets hold for more than a second, the longest first.
    pub holds: Vec<HoldStatus>,
    /// The answer of the coordinator, from which all reports of nodes come.
    pub coordinator: CoordinatorAnswer,
}

/// The answer of the coordinator. Without its status all reports of nodes are missing.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum CoordinatorAnswer {
    /// The status of the leader, or of another member while no leader answers.
    Status(CoordinatorStatus),
    /// No member answers.
    Unavailable {
        /// The reason.
        #[serde(serialize_with = "as_text")]
        error: Error,
    },
    /// The coordinator was not called.
    NotAsked,
}

fn as_text<S: Serializer>(error: &Error, out: S) -> std::result::Result<S::Ok, S::Error> {
    out.collect_str(error)
}

impl CoordinatorAnswer {
    /// The status, if there is one.
    pub fn status(&self) -> Option<&CoordinatorStatus> {
        match self {
            Self::Status(status) => Some(status),
            Self::Unavailable { .. } | Self::NotAsked => None,
        }
    }

    /// An error if the coordinator did not answer.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Unavailable { error } => Err(error.clone()),
            Self::Status(_) | Self::NotAsked => Ok(()),
        }
    }
}

/// A registered process.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStatus {
    /// The id of the node.
    pub node: NodeId,
    /// The role of the node.
    pub role: &'static str,
    /// The address that other processes call, or a router's gRPC port for users, `host:port`.
    pub address: String,
    /// The failure zone of the node.
    pub zone: String,
    /// `alive`, `silent` (no heartbeat for five seconds), `draining, 12 slices left`, `drained`, `removed`, or `unknown` without an answer of
    /// the leader.
    pub state: Cow<'static, str>,
    /// Milliseconds since its last heartbeat, or since the leader began to lead; `None` without an answer of the leader.
    pub silent_ms: Option<u64>,
    /// Scans of a router, shard scans of an indexer.
    pub scans: Option<AdmissionStatus>,
    /// An indexer's progress in each bucket.
    pub buckets: Vec<NodeBucketStatus>,
    /// On a coordinator: whether it votes. On the router that answers: the age of its catalog, while no coordinator answers it.
    pub note: Option<String>,
}

/// The progress of an indexer in a bucket.
#[derive(Clone, Debug, Serialize)]
pub struct NodeBucketStatus {
    /// The bucket's name.
    pub bucket: String,
    /// The newest epoch applied.
    pub applied_epoch: Epoch,
    /// The newest epoch that would survive a crash.
    pub durable_epoch: Epoch,
    /// Bytes of mutations that wait for their epoch.
    pub queue_bytes: u64,
    /// Maximum of `queue_bytes`.
    pub queue_bytes_max: u64,
}

/// The status of a bucket.
#[derive(Clone, Debug, Serialize)]
pub struct BucketStatus {
    /// The number of the bucket.
    pub id: BucketId,
    /// The name of the bucket.
    pub name: String,
    /// Number of its vbuckets.
    pub vbuckets: u16,
    /// The kind of its source.
    pub source: &'static str,
    /// Number of its indexes.
    pub indexes: usize,
    /// The projectors of the bucket.
    pub projectors: Vec<ProjectorShare>,
    /// Number of vbuckets that are handed over.
    pub moving: usize,
    /// The number of copies in sync, and the desired number; `None` for a pushed bucket, as the next two.
    pub copies: Option<String>,
    /// Number of copies that have everything acknowledged, its leader included.
    pub copies_in_sync: Option<u64>,
    /// Number of copies that it should have.
    pub copies_wanted: Option<u64>,
    /// Milliseconds since its epochs are held by a commit over several buckets; 0 if they are not, or for less than a second. `None`
    /// without an answer of the leader.
    pub held_ms: Option<u64>,
    /// Number of its epochs that did not wait any longer for slow indexers, since the leader's term began. `None` without an answer of the
    /// leader.
    pub epochs_past_slow_indexers: Option<u64>,
    /// The owner of each vbucket, and the hand-overs.
    pub assignment: Arc<VbucketAssignment>,
    /// The rollback under way, as it is replicated.
    pub rollback: Option<Arc<Rollback>>,
    /// Epochs that rollbacks have removed, oldest first.
    pub dead: Arc<Vec<DeadEpochs>>,
}

/// A copy of an embedded bucket.
#[derive(Clone, Debug, Serialize)]
pub struct CopyStatus {
    /// The bucket's name.
    pub bucket: String,
    /// The id of the projector.
    pub projector: NodeId,
    /// `leader`, `in sync` or `joining`.
    pub role: &'static str,
    /// The number of the bucket's present leader, counted by the bucket.
    pub term: u64,
    /// Number of copies that the bucket should have.
    pub wanted_copies: u8,
    /// The projector that the bucket moves to.
    pub moving_to: Option<NodeId>,
}

/// A version of a data set.
#[derive(Clone, Debug, Serialize)]
pub struct VersionStatus {
    /// The bucket's name.
    pub bucket: String,
    /// The number of the version.
    pub number: u64,
    /// The name of the version.
    pub version: String,
    /// `loading`, `complete` (its indexes are built), `current`, `kept` or `failed`.
    pub state: &'static str,
    /// The documents in the partitions that are known; `None` for a version that failed, as the next four.
    pub documents: Option<u64>,
    /// The rows whose id a later row has too.
    pub duplicates: Option<u64>,
    /// The length of its documents.
    pub bytes: Option<u64>,
    /// The partitions that some projector has, of all.
    pub partitions: Option<String>,
    /// The pattern of its files.
    pub files: Option<String>,
    /// The reason why it waits or failed, or the partitions that it lacks.
    pub note: Option<String>,
}

/// The share of a projector in a bucket.
#[derive(Clone, Debug, Serialize)]
pub struct ProjectorShare {
    /// The projector.
    pub node: NodeId,
    /// Number of vbuckets that it owns.
    pub vbuckets: usize,
}

/// The status of an index.
#[derive(Clone, Debug, Serialize)]
pub struct IndexStatus {
    /// The number of the index.
    pub id: IndexId,
    /// The name of the index.
    pub name: String,
    /// The name of the bucket.
    pub bucket: String,
    /// The state of the index.
    pub state: &'static str,
    /// The columns of the index, as a scan returns them.
    pub columns: Vec<String>,
    /// Number of its slices.
    pub slices: u16,
    /// Number of further copies of each slice.
    pub replicas: u8,
    /// The statement that made it.
    pub definition: String,
    /// Number of its complete builds.
    pub generation: Generation,
    /// The number of its topology.
    pub topology: TopologyNo,
    /// For each slice the nodes that have it.
    pub placement: Vec<Vec<NodeId>>,
    /// Entries of all copies; `None` if no node has reported a slice.
    pub entries: Option<u64>,
    /// During a build: the percentage of the bucket's documents that was read, on average of all copies.
    pub built_percent: Option<u64>,
    /// During a build: the entries that the copies have counted so far.
    pub built_entries: Option<u64>,
    /// During a build: the seconds until the last copy has read all documents, at the pace so far; `None` while a copy has no estimate.
    pub seconds_left: Option<u64>,
    /// The number of documents left out because they exceed a limit, since the projectors started; a document counts with
    /// each of its versions. `None` without a report.
    pub left_out: Option<u64>,
    /// The documents that are left out, by the limit that they exceed.
    pub left_out_by_reason: Option<LeftOut>,
}

/// A copy of a slice in the topology.
#[derive(Clone, Debug, Serialize)]
pub struct SliceStatus {
    /// The index's name.
    pub index: String,
    /// The number of the slice.
    pub slice: SliceNo,
    /// The number of the copy.
    pub replica: usize,
    /// The node with the copy.
    pub node: NodeId,
    /// `ready`, `building`, `copying`, `troubled`, `silent` if the node is, or `unknown` without a report of the node.
    pub state: &'static str,
    /// Entries at the newest epoch.
    pub entries: Option<u64>,
    /// Bytes in memory and on disk.
    pub bytes: Option<u64>,
    /// The oldest epoch that it answers; `None` while it is being built.
    pub floor_epoch: Option<Epoch>,
    /// The origin of a slice that is being built, and the reason why it waits.
    pub note: Option<String>,
}

/// A move of a slice.
#[derive(Clone, Debug, Serialize)]
pub struct MoveStatus {
    /// The number of the move.
    #[serde(rename = "move")]
    pub id: MoveId,
    /// The index's name.
    pub index: String,
    /// The slice that moves.
    pub slice: SliceNo,
    /// The node that the slice leaves; `None` for an additional copy.
    pub from: Option<NodeId>,
    /// The node that gets the slice; `None` if a copy is removed.
    pub to: Option<NodeId>,
    /// The stage, or `ended` or `undone`.
    pub stage: &'static str,
    /// Bytes copied; `None` without a report of the target.
    pub bytes: Option<u64>,
    /// Percentage of the copy; 100 only when the topology has changed.
    pub percent: Option<u64>,
    /// Seconds until the end of the copy, at its present rate.
    pub seconds_left: Option<u64>,
    /// The reason why it waits, or why it was undone.
    pub note: Option<String>,
}

/// The epochs of a bucket that end before a commit over several buckets, since another one of these buckets does not have it yet.
#[derive(Clone, Debug, Serialize)]
pub struct HoldStatus {
    /// The name of the bucket whose epochs are held.
    pub bucket: String,
    /// The milliseconds since the commit was first reported to the leader.
    pub held_ms: u64,
    /// The transaction; the oldest one that waits for that other bucket.
    pub transaction: TransactionId,
    /// The name of the other bucket.
    pub waits_for: String,
    /// The projectors of the other bucket.
    pub projectors: Vec<NodeId>,
    /// The reason, as far as it is known.
    pub note: Option<String>,
}

/// A rollback of a bucket after its source lost a part of its history.
#[derive(Clone, Debug, Serialize)]
pub struct RollbackStatus {
    /// The bucket's name.
    pub bucket: String,
    /// The stage, or `ended`; or `halved` for a commit over several buckets of which this one has lost its part.
    pub stage: &'static str,
    /// The rollback point; `None` if there was none, or it is not known yet.
    pub back_to_epoch: Option<Epoch>,
    /// The newest epoch that was removed.
    pub dead_to_epoch: Option<Epoch>,
    /// The first epoch after the rollback.
    pub resumed_epoch: Option<Epoch>,
    /// On the last rollback of a bucket: the copies that are not restored yet, in words.
    pub rebuilding: Option<String>,
    /// A remark for users.
    pub note: Option<String>,
}
