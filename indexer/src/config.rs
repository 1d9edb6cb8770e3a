//! Settings of an indexer.

use std::path::PathBuf;
use std::time::Duration;

use proto::index::NodeInfo;

use crate::slice::StoreOptions;

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
        }
    }
}
