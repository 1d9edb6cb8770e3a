//! The data directory: locked by one process, and checked for its version and its owner.

use std::sync::Arc;

use proto::client::NodeIdentity;
use proto::env::{Env, check_version, create_dir_durably};
use proto::{Error, Result};

use crate::config::Config;

/// The content of the data directory's VERSION file.
const DATA_VERSION: &str = "sextant indexer data 5\n";

/// A node's directory, locked for this process.
pub(super) struct DataDir {
    pub(super) lock: Box<dyn Send + Sync>,
    pub(super) identity: Arc<NodeIdentity>,
}

/// Locks the directory for this process, and checks that this build can read it and that it is the node's.
pub(super) fn open_data_dir(env: &Env, config: &Config) -> Result<DataDir> {
    let dir = &config.data_dir;
    let here = |error: std::io::Error| {
        Error::from(error).context(format!("data directory {}", dir.display()))
    };
    create_dir_durably(&*env.fs, dir).map_err(here)?;
    let lock = env.fs.lock_dir(dir).map_err(here)?;
    // Written after both files.
    let has_data = env.fs.exists(&storage::layout::manifest_dir(dir));
    check_version(&*env.fs, dir, DATA_VERSION, has_data)?;
    let identity = NodeIdentity::open(env, dir.clone(), &config.node, has_data)?;
    Ok(DataDir { lock, identity: Arc::new(identity) })
}
