//! Settings of an indexer.

use std::path::PathBuf;
use std::time::Duration;

use proto::flow::AdmissionLimits;
use proto::model::node::NodeInfo;

use storage::StoreOptions;

/// What a move may take of a disk and a network that others use too.
const MOVE_BYTES_PER_S_MAX: u64 = 1 << 30;

/// Scans that step at once take a thread each: enough for many cores and disks, and an eighth of the threads that
/// blocking work has, so that epochs and flushes find one at any time.
const SCANS_MAX: usize = 64;
/// However little memory there is, so much is shared by scans, and may wait in a queue.
const BYTES_MIN: u64 = 8 << 20;

/// Settings of an indexer.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who it is and where others reach it.
    pub node: NodeInfo,
    /// Where it keeps its data.
    pub data_dir: PathBuf,
    /// Settings of the slice store.
    pub store: StoreOptions,
    /// How often it says what it has, when nothing happens.
    pub heartbeat: Duration,
    /// How long it waits before it tries a lost peer again.
    pub retry: Duration,
    /// Shard scans at once; one more waits, until its time-out.
    pub scans_max: usize,
    /// What all shard scans together may hold of blocks and rows, in bytes; `None`: an eighth of the store's memory.
    pub scans_memory_bytes: Option<usize>,
    /// What one may hold of them, in bytes; `None`: what all may.
    pub scan_memory_bytes: Option<usize>,
    /// What a bucket's stream may have waiting for its epoch, in bytes; `None`: an eighth of the store's memory.
    pub queue_bytes_max: Option<u64>,
    /// At most so many bytes a second are sent to the target of a move, for each move.
    pub move_bytes_per_s_max: u64,
}

impl Config {
    /// The usual settings.
    pub fn new(node: NodeInfo, data_dir: impl Into<PathBuf>) -> Self {
        Self {
            node,
            data_dir: data_dir.into(),
            store: StoreOptions::default(),
            heartbeat: Duration::from_secs(1),
            retry: Duration::from_millis(100),
            scans_max: SCANS_MAX,
            scans_memory_bytes: None,
            scan_memory_bytes: None,
            queue_bytes_max: None,
            move_bytes_per_s_max: MOVE_BYTES_PER_S_MAX,
        }
    }

    fn eighth_of_memory(&self) -> u64 {
        (self.store.memory_bytes / 8).max(BYTES_MIN)
    }

    /// What a bucket's stream may have waiting for its epoch, in bytes.
    pub fn queue_bytes_max(&self) -> u64 {
        self.queue_bytes_max.unwrap_or_else(|| self.eighth_of_memory())
    }

    /// How shard scans are admitted.
    pub fn scan_limits(&self) -> AdmissionLimits {
        let eighth = || usize::try_from(self.eighth_of_memory()).unwrap_or(usize::MAX);
        let bytes_max = self.scans_memory_bytes.unwrap_or_else(eighth);
        AdmissionLimits {
            what: format!("shard scans on node {}", self.node.id),
            count_max: self.scans_max,
            bytes_max,
            bytes_each_max: self.scan_memory_bytes.unwrap_or(bytes_max).min(bytes_max),
        }
    }
}
