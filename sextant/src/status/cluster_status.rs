//! The types that contain the status of the cluster.

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

/// The status of the cluster, from the catalog and the coordinator.
#[derive(Clone, Debug, Serialize)]
pub struct ClusterStatus {
    /// The number of the catalog's last change.
    pub cas: u64,
    /// The registered processes, by number.
    pub nodes: Vec<NodeStatus>,
    /// The buckets, by number.
    pub buckets: Vec<BucketStatus>,
    /// The copies of embedded buckets, by bucket: first the leader, then the copies in sync, then
    /// the joining ones.
    pub copies: Vec<CopyStatus>,
    /// The indexes, by number.
    pub indexes: Vec<IndexStatus>,
    /// The copies of slices in the topology (the present placement), by index, slice and replica.
    pub slices: Vec<SliceStatus>,
    /// The moves in progress by index, then the last ended ones, oldest first.
    pub moves: Vec<MoveStatus>,
    /// The last rollbacks of each bucket, oldest first. Also the commits over several buckets
    /// whose changes in one bucket are lost.
    pub rollbacks: Vec<RollbackStatus>,
    /// The versions of data sets, by bucket and number.
    pub versions: Vec<VersionStatus>,
    /// The buckets whose epochs wait for a commit over several buckets for more than a second,
    /// the longest wait first.
    pub holds: Vec<HoldStatus>,
    /// The answer of the coordinator, which contains the reports of all nodes.
    pub coordinator: CoordinatorAnswer,
}

/// The answer of the coordinator. Without it, the reports of all nodes are missing.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum CoordinatorAnswer {
    /// The status of the leading coordinator, or of another one if no leader answers.
    Status(CoordinatorStatus),
    /// No coordinator answers.
    Unavailable {
        /// The reason why there is no answer.
        #[serde(serialize_with = "as_text")]
        error: Error,
    },
    /// The coordinators were not called.
    NotAsked,
}

/// Serializes an error as its text.
fn as_text<S: Serializer>(error: &Error, out: S) -> std::result::Result<S::Ok, S::Error> {
    out.collect_str(error)
}

impl CoordinatorAnswer {
    /// Returns the status of the coordinator; `None` without an answer.
    pub fn status(&self) -> Option<&CoordinatorStatus> {
        match self {
            Self::Status(status) => Some(status),
            Self::Unavailable { .. } | Self::NotAsked => None,
        }
    }

    /// Returns an error if the coordinator did not answer.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Unavailable { error } => Err(error.clone()),
            Self::Status(_) | Self::NotAsked => Ok(()),
        }
    }
}

/// The status of a registered process.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStatus {
    /// The id of the node.
    pub node: NodeId,
    /// The role of the node.
    pub role: &'static str,
    /// The address that other processes call, `host:port`. For a router it is the gRPC port for
    /// users.
    pub address: String,
    /// The failure zone of the node.
    pub zone: String,
    /// `alive`, `silent` (no heartbeat for five seconds), `draining, 12 slices left`, `drained`,
    /// or `removed`. `unknown` if the leading coordinator does not answer.
    pub state: Cow<'static, str>,
    /// The milliseconds since the last heartbeat of the node. If the leader began to lead later,
    /// the milliseconds since then. `None` without an answer of the leader.
    pub silent_ms: Option<u64>,
    /// The scans of a router, or the shard scans of an indexer: running and waiting ones, and
    /// their limits.
    pub scans: Option<AdmissionStatus>,
    /// The progress of an indexer in each bucket.
    pub buckets: Vec<NodeBucketStatus>,
    /// A remark. For a coordinator, the remark is about whether it votes. For the router that
    /// answers, it is about the age of its catalog, while no coordinator answers the router.
    pub note: Option<String>,
}

/// The progress of an indexer in a bucket.
#[derive(Clone, Debug, Serialize)]
pub struct NodeBucketStatus {
    /// The bucket's name.
    pub bucket: String,
    /// The newest epoch that the indexer has applied.
    pub applied_epoch: Epoch,
    /// The newest applied epoch that a crash would not lose.
    pub durable_epoch: Epoch,
    /// The size of mutations that wait for their epoch, in bytes.
    pub queue_bytes: u64,
    /// The limit of `queue_bytes`.
    pub queue_bytes_max: u64,
}

/// The status of a bucket.
#[derive(Clone, Debug, Serialize)]
pub struct BucketStatus {
    /// The number of the bucket.
    pub id: BucketId,
    /// The name of the bucket.
    pub name: String,
    /// The number of vbuckets of the bucket.
    pub vbuckets: u16,
    /// The kind of the bucket's source, which numbers its mutations.
    pub source: &'static str,
    /// The number of indexes of the bucket.
    pub indexes: usize,
    /// The projectors of the bucket.
    pub projectors: Vec<ProjectorShare>,
    /// The number of vbuckets that are being handed over.
    pub moving: usize,
    /// The number of copies in sync and the desired number, as text; `None` for a pushed bucket.
    pub copies: Option<String>,
    /// The number of copies that have all acknowledged mutations; the leader's copy counts too.
    /// `None` for a pushed bucket.
    pub copies_in_sync: Option<u64>,
    /// The desired number of copies; `None` for a pushed bucket.
    pub copies_wanted: Option<u64>,
    /// The milliseconds for which the bucket's epochs have waited for a commit over several
    /// buckets; 0 for less than a second. `None` without an answer of the leader.
    pub held_ms: Option<u64>,
    /// The number of the bucket's epochs that were ended without waiting for slow indexers any
    /// longer, since the leader's term began. `None` without an answer of the leader.
    pub epochs_past_slow_indexers: Option<u64>,
    /// The owner of each vbucket, and the hand-overs in progress.
    pub assignment: Arc<VbucketAssignment>,
    /// The rollback in progress, if there is one.
    pub rollback: Option<Arc<Rollback>>,
    /// The ranges of epochs that rollbacks have removed from the bucket, oldest first.
    pub dead: Arc<Vec<DeadEpochs>>,
}

/// The status of a copy of an embedded bucket.
#[derive(Clone, Debug, Serialize)]
pub struct CopyStatus {
    /// The bucket's name.
    pub bucket: String,
    /// The projector with the copy.
    pub projector: NodeId,
    /// `leader`, `in sync` or `joining`.
    pub role: &'static str,
    /// The number of the bucket's present leadership, which increases with each change of the
    /// leader.
    pub term: u64,
    /// The desired number of copies of the bucket.
    pub wanted_copies: u8,
    /// The projector to which the bucket moves; `None` if it does not move.
    pub moving_to: Option<NodeId>,
}

/// The status of a version of a data set.
#[derive(Clone, Debug, Serialize)]
pub struct VersionStatus {
    /// The bucket's name.
    pub bucket: String,
    /// The number of the version.
    pub number: u64,
    /// The name of the version.
    pub version: String,
    /// `loading`, `complete` (its indexes are built), `current`, `kept` (older, but still
    /// readable) or `failed`.
    pub state: &'static str,
    /// The number of documents in the loaded partitions; `None` for a failed version.
    pub documents: Option<u64>,
    /// The number of rows that were replaced by a later row with the same id; `None` for a failed
    /// version.
    pub duplicates: Option<u64>,
    /// The size of the documents in bytes; `None` for a failed version.
    pub bytes: Option<u64>,
    /// The number of loaded partitions and the number of all partitions, as text; `None` for a
    /// failed version.
    pub partitions: Option<String>,
    /// The pattern of the version's files; `None` for a failed version.
    pub files: Option<String>,
    /// The reason why the version waits or has failed, or the list of its missing partitions.
    pub note: Option<String>,
}

/// The number of a bucket's vbuckets that a projector owns.
#[derive(Clone, Debug, Serialize)]
pub struct ProjectorShare {
    /// The projector.
    pub node: NodeId,
    /// The number of vbuckets that the projector owns.
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
    /// The columns of the index in the order of `SELECT *`.
    pub columns: Vec<String>,
    /// The number of slices of the index.
    pub slices: u16,
    /// The number of copies of each slice in addition to the first.
    pub replicas: u8,
    /// The statement that declares the index.
    pub definition: String,
    /// The number of the serving generation.
    pub generation: Generation,
    /// The number of the index's present topology (its placement).
    pub topology: TopologyNo,
    /// The nodes with a copy of each slice, by slice.
    pub placement: Vec<Vec<NodeId>>,
    /// The number of entries in all copies together; `None` if no node has reported a slice.
    pub entries: Option<u64>,
    /// During a build, the percentage of the bucket's documents that the copies have read, on
    /// average.
    pub built_percent: Option<u64>,
    /// During a build, the number of entries that the copies have counted so far.
    pub built_entries: Option<u64>,
    /// During a build, the estimated seconds until the last copy has read all documents; `None`
    /// if a copy has no estimate.
    pub seconds_left: Option<u64>,
    /// The number of versions of documents that are not in the index because they exceed a limit,
    /// counted since the projectors started. `None` without a report.
    pub left_out: Option<u64>,
    /// The number of these documents by the limit that they exceed.
    pub left_out_by_reason: Option<LeftOut>,
}

/// The status of a copy of a slice in the topology (the present placement).
#[derive(Clone, Debug, Serialize)]
pub struct SliceStatus {
    /// The index's name.
    pub index: String,
    /// The number of the slice.
    pub slice: SliceNo,
    /// The number of the copy, from 0.
    pub replica: usize,
    /// The node with the copy.
    pub node: NodeId,
    /// `ready`, `building`, `copying` or `troubled`; `silent` if the node of the copy is silent;
    /// `unknown` without a report of the node.
    pub state: &'static str,
    /// The number of entries at the newest epoch.
    pub entries: Option<u64>,
    /// The size in memory and on disk, in bytes.
    pub bytes: Option<u64>,
    /// The oldest epoch that a scan of the copy can read; `None` while the copy is being built.
    pub floor_epoch: Option<Epoch>,
    /// The source from which the copy is being built, and the reason why the build waits.
    pub note: Option<String>,
}

/// The status of a move of a slice.
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
    /// The node that receives the slice; `None` if a copy is only removed.
    pub to: Option<NodeId>,
    /// The stage of the move, or `ended` or `undone` afterwards.
    pub stage: &'static str,
    /// The number of copied bytes; `None` without a report of the target.
    pub bytes: Option<u64>,
    /// The progress of the move in percent. It is 100 only after the topology was changed.
    pub percent: Option<u64>,
    /// The estimated seconds until all data is copied, at the present rate.
    pub seconds_left: Option<u64>,
    /// The reason why the move waits, or why it was undone.
    pub note: Option<String>,
}

/// A hold: a bucket's epochs cannot advance past a commit over several buckets, because another
/// bucket of the commit has not received it yet.
#[derive(Clone, Debug, Serialize)]
pub struct HoldStatus {
    /// The name of the bucket whose epochs wait.
    pub bucket: String,
    /// The milliseconds since the commit was first reported to the leader.
    pub held_ms: u64,
    /// The transaction of the commit. If several commits wait for the other bucket, this is the
    /// oldest.
    pub transaction: TransactionId,
    /// The name of the other bucket, which has not received the commit.
    pub waits_for: String,
    /// The projectors of the other bucket.
    pub projectors: Vec<NodeId>,
    /// The reason of the wait, if it is known.
    pub note: Option<String>,
}

/// The status of a rollback of a bucket. A rollback follows when the source of the bucket has
/// lost a part of its history.
#[derive(Clone, Debug, Serialize)]
pub struct RollbackStatus {
    /// The bucket's name.
    pub bucket: String,
    /// The stage of the rollback, or `ended`. `halved` stands for a commit over several buckets
    /// whose changes in this bucket are lost.
    pub stage: &'static str,
    /// The epoch to which the bucket was rolled back; `None` if there was no such epoch or it is
    /// not known yet.
    pub back_to_epoch: Option<Epoch>,
    /// The newest epoch that the rollback has removed.
    pub dead_to_epoch: Option<Epoch>,
    /// The first epoch after the rollback.
    pub resumed_epoch: Option<Epoch>,
    /// A text about the copies that are not restored yet. Only for the last rollback of a bucket.
    pub rebuilding: Option<String>,
    /// A remark for users.
    pub note: Option<String>,
}
