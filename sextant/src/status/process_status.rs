//! The status of one process, and of the cluster in its view.

use proto::flow::AdmissionStatus;
use proto::model::ids::NodeId;
use serde::Serialize;

use super::cluster_status::ClusterStatus;

/// All that the HTTP port shows; `/status` is this value as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The status of this process.
    #[serde(flatten)]
    pub process: ProcessStatus,
    /// The status of the cluster.
    #[serde(flatten)]
    pub cluster: ClusterStatus,
}

/// A process with ports for users.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessStatus {
    /// The version of the program.
    pub version: &'static str,
    /// The number of its router.
    pub router: NodeId,
    /// Milliseconds since a coordinator has answered its router; `None` before the first catalog. A kept catalog is as old as the last answer before.
    pub catalog_age_ms: Option<u64>,
    /// True if that catalog comes from the router's data directory, because no coordinator has answered since its start.
    pub catalog_is_from_disk: bool,
    /// The scans of its router.
    pub scans: AdmissionStatus,
    /// The indexers of this process.
    pub local_indexers: Vec<indexer::Status>,
    /// The projectors of this process.
    pub local_projectors: Vec<projector::Status>,
    /// The work of its ports.
    pub work: WorkStatus,
}

/// The work of the ports of a process since it started.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WorkStatus {
    /// Scans started.
    pub scans: u64,
    /// Rows returned by scans.
    pub scan_rows: u64,
    /// Requests to another copy beside a slow node.
    pub hedges_begun: u64,
    /// The parallel requests that answered first.
    pub hedges_won: u64,
    /// The parallel requests that were not sent, because their number is limited to 5 % of all scans.
    pub hedges_refused: u64,
    /// Documents written or deleted.
    pub documents_written: u64,
    /// Replicated commands.
    pub commands: u64,
}
