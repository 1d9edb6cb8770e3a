//! Settings of a router.

use std::time::Duration;

use proto::model::identity::NodeProof;
use proto::model::node::NodeInfo;
use proto::rpc::scan::HedgeAfter;

/// Default number of concurrent scans: half of the sessions that a process allows, since most
/// statements are short.
const SCANS_MAX: usize = 512;
/// Default memory limit in bytes: enough for [`SCANS_MAX`] scans of three nodes each, or for a few
/// scans of hundreds of nodes.
const SCAN_MEMORY_TOTAL_BYTES: usize = 512 << 20;

/// Default number of bytes that a shard scan may read before they are needed: two full batches.
const SCAN_AHEAD_BYTES: usize = 128 << 10;

/// Settings of a router.
#[derive(Clone, Debug)]
pub struct Config {
    /// The router itself.
    pub node: NodeInfo,
    /// Time between two heartbeats, which renew the leases.
    pub heartbeat: Duration,
    /// Pause before a new attempt to connect to a lost peer.
    pub retry: Duration,
    /// Maximum number of concurrent scans; further scans wait until their time-out.
    pub scans_max: usize,
    /// Memory limit of all scans together for rows in flight, in bytes.
    pub scan_memory_total_bytes: usize,
    /// Memory limit of each scan, in bytes.
    pub scan_memory_each_bytes: usize,
    /// Maximum number of bytes that a shard scan may read before they are needed.
    pub scan_ahead_bytes: usize,
    /// The time after which another copy is queried in parallel with a slow node. The setting of a
    /// session overrides it.
    pub hedge_after: HedgeAfter,
    /// A random number of this process, or of its data directory. With it, the coordinators refuse
    /// another process that uses the same node id; `None` disables this check.
    pub mark: Option<NodeProof>,
}

impl Config {
    /// Creates the default settings.
    pub fn new(node: NodeInfo) -> Self {
        Self {
            node,
            heartbeat: Duration::from_millis(500),
            retry: Duration::from_millis(100),
            scans_max: SCANS_MAX,
            scan_memory_total_bytes: SCAN_MEMORY_TOTAL_BYTES,
            scan_memory_each_bytes: SCAN_MEMORY_TOTAL_BYTES / 4,
            scan_ahead_bytes: SCAN_AHEAD_BYTES,
            hedge_after: HedgeAfter::Usual,
            mark: None,
        }
    }
}
