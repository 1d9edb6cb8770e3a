//! Settings of a router.

use std::time::Duration;

use proto::model::node::NodeInfo;

/// Half of the sessions that a process has: most statements are short.
const SCANS_MAX: usize = 512;
/// Room for [`SCANS_MAX`] scans of three nodes each, or for some of hundreds of nodes.
const SCANS_MEMORY_BYTES: usize = 512 << 20;

/// Settings of a router.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who it is.
    pub node: NodeInfo,
    /// How often it reports its leases.
    pub heartbeat: Duration,
    /// How long it waits before it tries a lost peer again.
    pub retry: Duration,
    /// Scans at once; one more waits, until its time-out.
    pub scans_max: usize,
    /// What all scans together may hold of rows on their way, in bytes.
    pub scans_memory_bytes: usize,
    /// What one scan may hold of them.
    pub scan_memory_bytes: usize,
}

impl Config {
    /// The usual settings.
    pub fn new(node: NodeInfo) -> Self {
        Self {
            node,
            heartbeat: Duration::from_millis(500),
            retry: Duration::from_millis(100),
            scans_max: SCANS_MAX,
            scans_memory_bytes: SCANS_MEMORY_BYTES,
            scan_memory_bytes: SCANS_MEMORY_BYTES / 4,
        }
    }
}
