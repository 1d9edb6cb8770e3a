//! Heartbeats: the reports of the processes to the leader, by role.

use serde::{Deserialize, Serialize};

use crate::flow::AdmissionStatus;
use crate::model::assignment::VbucketSet;
use crate::model::cut::Cut;
use crate::model::identity::NodeProof;
use crate::model::ids::{BucketId, Epoch, NodeId, SliceId};
use crate::model::moment::Moment;
use crate::model::moves::MoveProgress;
use crate::model::node::Role;

/// The maximum time, in ms, for which a lease of a superseded epoch keeps the horizon from
/// advancing, even if the lease is renewed. The time begins when the next epoch is published.
pub const LEASE_AGE_MS_MAX: u64 = 10 * 60 * 1000;

/// The heartbeat of a process, sent about once a second and at important changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The id of the node; an unknown node must register first (`ErrorCode::Unknown`).
    pub node: NodeId,
    /// The proof that the process is the one that joined as this node; `None` for a process without a data directory.
    pub proof: Option<NodeProof>,
    /// The newest catalog that the node has applied (`Catalog::cas`); zero if none. A leader with
    /// an older catalog was restored from an older copy of its data.
    pub catalog_cas: u64,
    /// The part that depends on the role of the process.
    pub report: RoleReport,
}

impl Heartbeat {
    /// Creates a heartbeat without a proof; the membership adds it.
    pub fn new(node: NodeId, catalog_cas: u64, report: impl Into<RoleReport>) -> Self {
        Self { node, proof: None, catalog_cas, report: report.into() }
    }
}

/// The part of a heartbeat that depends on the role of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RoleReport {
    /// A member of the coordinator reports nothing more.
    Coordinator,
    /// The vbuckets that a projector owns, and its loads of partitions.
    Projector(ProjectorReport),
    /// The progress and the load of an indexer.
    Indexer(IndexerReport),
    /// The leases of a router.
    Router(RouterReport),
}

/// The report of a projector in its heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectorReport {
    /// The vbuckets that the projector owns, by bucket. If the leader's catalog assigns them to
    /// others, the leader was restored from an older copy of its data.
    pub owned: Vec<(BucketId, VbucketSet)>,
    /// The versions of data sets that the projector is loading, or could not load.
    pub loads: Vec<LoadReport>,
}

/// The report of an indexer in its heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexerReport {
    /// The progress in each bucket that the indexer follows.
    pub buckets: Vec<BucketProgress>,
    /// The state and the size of each copy of a slice on the indexer.
    pub slices: Vec<SliceProgress>,
    /// The moves whose target is the indexer.
    pub moves: Vec<MoveProgress>,
    /// Split points for slices that are larger than the limit of their index: at most one for
    /// each index.
    pub split_points: Vec<SplitPoint>,
    /// The numbers of running and waiting shard scans.
    pub scans: AdmissionStatus,
}

/// The report of a router in its heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterReport {
    /// The router's leases: the epochs that running scans and tokens read, by bucket, the oldest
    /// first. Their number is bounded. Epochs that were superseded more than [`LEASE_AGE_MS_MAX`]
    /// ago are omitted.
    pub leases: Vec<(BucketId, Epoch)>,
    /// The moments that transactions read, the oldest first. A moment leases, in every bucket,
    /// the epoch in force at the moment. Their number is bounded, and no moment is reported for
    /// longer than [`LEASE_AGE_MS_MAX`].
    pub moments: Vec<Moment>,
    /// The oldest catalog (`Catalog::cas`) from which a running scan, transaction or token has
    /// chosen the generation of an index. Without any, the newest catalog. Zero if a scan has
    /// begun on a generation that had been replaced before.
    pub reads_since: u64,
    /// The numbers of running and waiting scans.
    pub scans: AdmissionStatus,
}

impl RoleReport {
    /// Returns the role to which the report belongs.
    pub fn role(&self) -> Role {
        match self {
            Self::Coordinator => Role::Coordinator,
            Self::Projector(_) => Role::Projector,
            Self::Indexer(_) => Role::Indexer,
            Self::Router(_) => Role::Router,
        }
    }

    /// Returns the report of a projector; `None` for another role.
    pub fn projector(&self) -> Option<&ProjectorReport> {
        if let Self::Projector(report) = self { Some(report) } else { None }
    }

    /// Returns the report of an indexer; `None` for another role.
    pub fn indexer(&self) -> Option<&IndexerReport> {
        if let Self::Indexer(report) = self { Some(report) } else { None }
    }

    /// Returns the report of a router; `None` for another role.
    pub fn router(&self) -> Option<&RouterReport> {
        if let Self::Router(report) = self { Some(report) } else { None }
    }
}

impl From<ProjectorReport> for RoleReport {
    fn from(report: ProjectorReport) -> Self {
        Self::Projector(report)
    }
}

impl From<IndexerReport> for RoleReport {
    fn from(report: IndexerReport) -> Self {
        Self::Indexer(report)
    }
}

impl From<RouterReport> for RoleReport {
    fn from(report: RouterReport) -> Self {
        Self::Router(report)
    }
}

/// A value of the partition expression at which a slice can be split: about half of the slice's
/// entries are before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitPoint {
    /// The slice to split.
    pub slice: SliceId,
    /// The value as an encoded key part.
    pub at: Vec<u8>,
}

/// The progress of a projector that loads a version of a data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// The version's bucket.
    pub bucket: BucketId,
    /// The number of rows read and documents counted so far. It grows while the load makes
    /// progress.
    pub steps: u64,
    /// The last error, if the projector repeats the load or has given it up; at most
    /// [`LOAD_TROUBLE_BYTES_MAX`] bytes.
    pub trouble: Option<String>,
}

/// The length limit of [`LoadReport::trouble`] in bytes.
pub const LOAD_TROUBLE_BYTES_MAX: usize = 512;

/// The time in milliseconds without a heartbeat after which a node counts as silent: no other
/// process waits for it.
pub const SILENT_MS_MAX: u64 = 5_000;

/// The answer to a heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatReply {
    /// The nodes that have sent no heartbeat for [`SILENT_MS_MAX`], by number.
    pub silent: Vec<NodeId>,
    /// The index of the last log entry that the leader has applied, which is a moment in the past
    /// ([`crate::model::moment`]).
    pub moment: u64,
}

/// The progress of an indexer in one bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketProgress {
    /// The bucket of the progress report.
    pub bucket: BucketId,
    /// The position up to which the indexer has received all mutations.
    pub high_watermark: Cut,
    /// The newest epoch that the indexer has applied.
    pub applied: Epoch,
    /// The newest epoch that would survive a crash of the indexer.
    pub durable: Epoch,
    /// Bytes of received mutations that are not applied yet.
    pub queue_bytes: u64,
    /// The limit of `queue_bytes`.
    pub queue_bytes_max: u64,
}

/// The progress and the size of a slice on an indexer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceProgress {
    /// The slice that the record describes.
    pub slice: SliceId,
    /// The oldest epoch that can be read in the slice; `None` while it is being built.
    pub floor: Option<Epoch>,
    /// Number of entries at the newest epoch.
    pub entries: u64,
    /// Bytes that the slice takes in memory and on disk.
    pub bytes: u64,
    /// The bytes of the entries at the newest epoch, computed from the mean size of a stored
    /// entry. `None` while the entries of a slice that has arrived or was split are not counted
    /// yet.
    pub live_bytes: Option<u64>,
    /// During a build from the source, the percentage of the documents that were read.
    pub built_percent: Option<u8>,
    /// During a build from the source, the seconds until all documents are read, at the average
    /// speed so far; `None` while unknown.
    pub seconds_left: Option<u64>,
    /// During a copy from another node: that node. `None` during a build from the source.
    pub copied_from: Option<NodeId>,
    /// The reason why the build of the slice cannot continue, if any.
    pub trouble: Option<String>,
}
