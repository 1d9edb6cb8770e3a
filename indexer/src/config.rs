//! Settings of an indexer.

use std::path::PathBuf;
use std::time::Duration;

use proto::index::NodeInfo;

use crate::slice::StoreOptions;

/// What a move may take of a disk and a network that others use too.
const MOVE_BYTES_PER_S_MAX: u64 = 1 << 30;

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
            move_bytes_per_s_max: MOVE_BYTES_PER_S_MAX,
        }
    }
}
