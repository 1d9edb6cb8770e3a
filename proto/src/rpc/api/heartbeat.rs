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

/// A lease holds the horizon back for at most this time after its epoch was superseded, even if it is renewed.
pub const LEASE_AGE_MS_MAX: u64 = 10 * 60 * 1000;

/// The heartbeat of a process, sent about once a second and at important changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The node; an unknown node must register first (`ErrorCode::Unknown`).
    pub node: NodeId,
    /// The proof that the process is the one that joined as this node; `None` for a process without a data directory.
    pub proof: Option<NodeProof>,
    /// The newest catalog that the node has applied (`Catalog::cas`); zero if there was none. A leader with an older one
    /// was restored from a copy.
    pub catalog_cas: u64,
    /// The report of its role.
    pub report: RoleReport,
}

impl Heartbeat {
    /// A heartbeat without a proof; the membership adds it.
    pub fn new(node: NodeId, catalog_cas: u64, report: impl Into<RoleReport>) -> Self {
        Self { node, proof: None, catalog_cas, report: report.into() }
    }
}

/// The part of a heartbeat that depends on the role of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RoleReport {
    /// A member of the coordinator.
    Coordinator,
    /// The partitions that a projector owns and loads.
    Projector(ProjectorReport),
    /// The progress and the load of an indexer.
    Indexer(IndexerReport),
    /// The reads of a router, which hold epochs.
    Router(RouterReport),
}

/// The report of a projector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectorReport {
    /// The vbuckets that it owns, by bucket: a leader that gives them to others was restored from a copy.
    pub owned: Vec<(BucketId, VbucketSet)>,
    /// The versions of data sets that it is loading, or could not load.
    pub loads: Vec<LoadReport>,
}

/// The report of an indexer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexerReport {
    /// The progress in each bucket that it follows.
    pub buckets: Vec<BucketProgress>,
    /// The state and the size of each copy of a slice that it has.
    pub slices: Vec<SliceProgress>,
    /// The moves of which it is the target.
    pub moves: Vec<MoveProgress>,
    /// The split points of slices that exceed the limit of their index: at most one for each index.
    pub split_points: Vec<SplitPoint>,
    /// The number of shard scans that run and wait.
    pub scans: AdmissionStatus,
}

/// The report of a router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterReport {
    /// Its leases: the epochs that running scans and tokens read, by bucket, the oldest first; a bounded number of them, without those
    /// that, to the router's knowledge, have been superseded for [`LEASE_AGE_MS_MAX`].
    pub leases: Vec<(BucketId, Epoch)>,
    /// The moments that transactions read, the oldest first; a bounded number of them. Each holds the epoch that is in force at it in
    /// every bucket, and none is reported for longer than [`LEASE_AGE_MS_MAX`].
    pub moments: Vec<Moment>,
    /// The oldest catalog (`Catalog::cas`) by which a running scan, a transaction or a token has chosen the generations that it
    /// reads, or the newest catalog without any. Zero if a scan has begun on a generation that had given way before.
    pub reads_since: u64,
    /// The number of scans that run and wait.
    pub scans: AdmissionStatus,
}

impl RoleReport {
    /// The role of the process.
    pub fn role(&self) -> Role {
        match self {
            Self::Coordinator => Role::Coordinator,
            Self::Projector(_) => Role::Projector,
            Self::Indexer(_) => Role::Indexer,
            Self::Router(_) => Role::Router,
        }
    }

    /// The report of a projector.
    pub fn projector(&self) -> Option<&ProjectorReport> {
        if let Self::Projector(report) = self { Some(report) } else { None }
    }

    /// The report of an indexer.
    pub fn indexer(&self) -> Option<&IndexerReport> {
        if let Self::Indexer(report) = self { Some(report) } else { None }
    }

    /// The report of a router.
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

/// A value of the partition expression that has about half of a slice's entries before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitPoint {
    /// The slice to split.
    pub slice: SliceId,
    /// The value as an encoded key part.
    pub at: Vec<u8>,
}

/// The progress of a projector's load of a data set version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// The version's bucket.
    pub bucket: BucketId,
    /// Rows that were read, and documents that were counted. It changes as long as the load gets on.
    pub steps: u64,
    /// The last error, if the load will be repeated or was given up. At most [`LOAD_TROUBLE_BYTES_MAX`].
    pub trouble: Option<String>,
}

/// The length limit of [`LoadReport::trouble`].
pub const LOAD_TROUBLE_BYTES_MAX: usize = 512;

/// A node without a heartbeat for this long is silent: no other process waits for it.
pub const SILENT_MS_MAX: u64 = 5_000;

/// The answer to a heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatReply {
    /// The nodes that have been silent for [`SILENT_MS_MAX`], by number.
    pub silent: Vec<NodeId>,
    /// The index of the log that the leader has applied: a moment that is past.
    pub moment: u64,
}

/// The progress of an indexer in one bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketProgress {
    /// The bucket of the progress report.
    pub bucket: BucketId,
    /// The end of the mutations received without a gap.
    pub high_watermark: Cut,
    /// The newest epoch applied.
    pub applied: Epoch,
    /// The newest epoch that would survive a crash.
    pub durable: Epoch,
    /// Bytes waiting to be applied.
    pub queue_bytes: u64,
    /// Maximum bytes that may wait.
    pub queue_bytes_max: u64,
}

/// The state of a slice on an indexer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceProgress {
    /// The slice of the progress report.
    pub slice: SliceId,
    /// The oldest epoch that it answers; `None` while it is being built.
    pub floor: Option<Epoch>,
    /// Entries at the newest epoch.
    pub entries: u64,
    /// Bytes in memory and on disk.
    pub bytes: u64,
    /// The part of `bytes` that the entries at the newest epoch take, by the mean size of a stored entry; `None` until the entries of a
    /// slice that arrived or was split are counted.
    pub live_bytes: Option<u64>,
    /// During a build from the source: the percentage of the documents that was read.
    pub built_percent: Option<u8>,
    /// During a build from the source: the seconds until all documents are read, at the pace so far; `None` while it is not known.
    pub seconds_left: Option<u64>,
    /// During a build: the node whose copy the files come from; `None` if it is built from the source.
    pub copied_from: Option<NodeId>,
    /// The reason that blocks its build, if any.
    pub trouble: Option<String>,
}
