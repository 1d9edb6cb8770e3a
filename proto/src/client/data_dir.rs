//! Opens the data directory of a process: locks it, and checks its version and the node that it
//! belongs to.

use std::path::Path;
use std::sync::Arc;

use super::identity::NodeIdentity;
use crate::env::{Env, check_version, create_dir_durably};
use crate::error::{Error, Result};
use crate::model::node::NodeInfo;

/// A data directory, locked for this process.
pub struct DataDir {
    /// A guard that keeps the directory locked until it is dropped.
    pub lock: Box<dyn Send + Sync>,
    /// The identity stored in the directory.
    pub identity: Arc<NodeIdentity>,
    /// True if the directory contained data when it was opened.
    pub had_data: bool,
}

impl DataDir {
    /// Locks a directory, which is created if missing. Checks that its layout is `version` and
    /// that it belongs to the node. `has_data` runs under the lock; it returns whether the
    /// directory contains files that are written only after VERSION and IDENTITY. Blocks the
    /// thread.
    pub fn open(
        env: &Env,
        dir: &Path,
        version: &str,
        node: &NodeInfo,
        has_data: impl FnOnce() -> bool,
    ) -> Result<Self> {
        let here = |error: std::io::Error| {
            Error::from(error).context(format!("data directory {}", dir.display()))
        };
        create_dir_durably(&*env.fs, dir).map_err(here)?;
        let lock = env.fs.lock_dir(dir).map_err(here)?;
        let had_data = has_data();
        check_version(&*env.fs, dir, version, had_data)?;
        let identity = NodeIdentity::open(env, dir.to_owned(), node, had_data)?;
        Ok(Self { lock, identity: Arc::new(identity), had_data })
    }
}
