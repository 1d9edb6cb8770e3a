//! Settings of an indexer.

use std::path::PathBuf;
use std::time::Duration;

use proto::flow::AdmissionLimits;
use proto::model::node::NodeInfo;

use storage::StoreOptions;

/// Default rate limit of a move in bytes per second; scans and streams use the same disk and
/// network.
const MOVE_BYTES_PER_S_MAX: u64 = 1 << 30;

/// Default limit of concurrent shard scans. Each may use a blocking thread. The number suffices
/// for many cores and disks. It is an eighth of all blocking threads, so that epochs and flushes
/// always find one.
const SCANS_MAX: usize = 64;
/// Default size, in bytes, at which a batch of rows is full. A few hundred rows share the cost of
/// a batch.
const SCAN_BATCH_BYTES: usize = 64 << 10;
/// Minimum of the memory limit for scans, and of the limit for the queue of a bucket, in bytes.
const BYTES_MIN: u64 = 8 << 20;

/// Settings of an indexer.
#[derive(Clone, Debug)]
pub struct Config {
    /// The node's number and address.
    pub node: NodeInfo,
    /// The data directory.
    pub data_dir: PathBuf,
    /// Settings of the storage engine.
    pub store: StoreOptions,
    /// Longest time between two heartbeats. Heartbeats are also sent at once after some changes.
    pub heartbeat: Duration,
    /// Pause before another attempt to reach a peer.
    pub retry: Duration,
    /// Maximum number of concurrent shard scans. Further scans wait until their time-out.
    pub scans_max: usize,
    /// Memory limit of all shard scans together, in bytes; `None` means an eighth of the engine's
    /// memory.
    pub scan_memory_total_bytes: Option<usize>,
    /// Memory limit of one shard scan, in bytes; `None` uses the limit of all scans together.
    pub scan_memory_each_bytes: Option<usize>,
    /// Size, in bytes, at which a batch of rows of a shard scan is full. A batch has at least one
    /// row.
    pub scan_batch_bytes: usize,
    /// Limit of a bucket's received mutations that wait for their epoch, in bytes; `None` means
    /// an eighth of the engine's memory.
    pub queue_bytes_max: Option<u64>,
    /// Rate limit of each move, in bytes per second.
    pub move_bytes_per_s_max: u64,
}

impl Config {
    /// The default settings.
    pub fn new(node: NodeInfo, data_dir: impl Into<PathBuf>) -> Self {
        Self {
            node,
            data_dir: data_dir.into(),
            store: StoreOptions::default(),
            heartbeat: Duration::from_secs(1),
            retry: Duration::from_millis(100),
            scans_max: SCANS_MAX,
            scan_memory_total_bytes: None,
            scan_memory_each_bytes: None,
            scan_batch_bytes: SCAN_BATCH_BYTES,
            queue_bytes_max: None,
            move_bytes_per_s_max: MOVE_BYTES_PER_S_MAX,
        }
    }

    fn eighth_of_memory(&self) -> u64 {
        (self.store.memory_bytes / 8).max(BYTES_MIN)
    }

    /// Returns the limit of a bucket's received mutations that wait for their epoch, in bytes.
    pub fn queue_bytes_max(&self) -> u64 {
        self.queue_bytes_max.unwrap_or_else(|| self.eighth_of_memory())
    }

    /// Returns the limits for the admission of shard scans: their number and their memory.
    pub fn scan_limits(&self) -> AdmissionLimits {
        let eighth = || usize::try_from(self.eighth_of_memory()).unwrap_or(usize::MAX);
        let bytes_max = self.scan_memory_total_bytes.unwrap_or_else(eighth);
        AdmissionLimits {
            what: format!("shard scans on node {}", self.node.id),
            count_max: self.scans_max,
            bytes_max,
            bytes_each_max: self.scan_memory_each_bytes.unwrap_or(bytes_max).min(bytes_max),
        }
    }
}
