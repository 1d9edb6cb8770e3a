//! The status of one process, with the status of the cluster as this process sees it.

use proto::flow::AdmissionStatus;
use proto::model::ids::NodeId;
use serde::Serialize;

use super::cluster_status::ClusterStatus;

/// The status that the HTTP port shows. `/status` is this value as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The status of this process.
    #[serde(flatten)]
    pub process: ProcessStatus,
    /// The status of the cluster.
    #[serde(flatten)]
    pub cluster: ClusterStatus,
}

/// The status of a process with ports for users.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessStatus {
    /// The version of the program.
    pub version: &'static str,
    /// The node number of the process's router.
    pub router: NodeId,
    /// The milliseconds since a coordinator last answered the router; `None` before the first
    /// catalog. If the catalog comes from the disk, the time counts from the last answer before
    /// the restart.
    pub catalog_age_ms: Option<u64>,
    /// True if the catalog comes from the router's data directory, because no coordinator has
    /// answered since the start.
    pub catalog_is_from_disk: bool,
    /// The scans of the process's router.
    pub scans: AdmissionStatus,
    /// The indexers of this process.
    pub local_indexers: Vec<indexer::Status>,
    /// The projectors of this process.
    pub local_projectors: Vec<projector::Status>,
    /// The work that the ports of the process have done.
    pub work: WorkStatus,
}

/// Counts of the work that the ports of a process have done since it started.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WorkStatus {
    /// The number of scans that were started.
    pub scans: u64,
    /// The number of rows that scans returned.
    pub scan_rows: u64,
    /// The number of requests to a second copy because of a slow node.
    pub hedges_begun: u64,
    /// The number of requests to a second copy that answered first.
    pub hedges_won: u64,
    /// The number of requests to a second copy that were not sent, because such requests are
    /// limited to 5 % of all scans.
    pub hedges_refused: u64,
    /// The number of documents that were written or deleted.
    pub documents_written: u64,
    /// The number of replicated commands that were sent.
    pub commands: u64,
}
