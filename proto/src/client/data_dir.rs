//! The data directory of a process: locked, and checked for its version and its owner.

use std::path::Path;
use std::sync::Arc;

use super::identity::NodeIdentity;
use crate::env::{Env, check_version, create_dir_durably};
use crate::error::{Error, Result};
use crate::model::node::NodeInfo;

/// A directory that is locked for this process.
pub struct DataDir {
    /// The lock of the directory, which is released when it is dropped.
    pub lock: Box<dyn Send + Sync>,
    /// The identity stored in the directory.
    pub identity: Arc<NodeIdentity>,
    /// True if the directory had data when it was opened.
    pub had_data: bool,
}

impl DataDir {
    /// Locks a directory, and checks that this build can read it (`version`) and that it belongs to
    /// the node. `has_data` is called under the lock, and returns whether the directory has files
    /// that are written after VERSION and IDENTITY. Blocks the thread.
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
