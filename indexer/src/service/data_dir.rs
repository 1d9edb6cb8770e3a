//! The data directory: locked by one process, and checked for its version.

use std::path::Path;

use proto::env::{Env, OpenMode, create_dir_durably};
use proto::{Error, ErrorCode, Result};

/// The content of the data directory's VERSION file.
const DATA_VERSION: &str = "sextant indexer data 5\n";

/// Locks the directory for this process and checks that this build can read it.
pub(super) fn open_data_dir(env: &Env, dir: &Path) -> Result<Box<dyn Send + Sync>> {
    let here = |error: std::io::Error| {
        Error::from(error).context(format!("data directory {}", dir.display()))
    };
    create_dir_durably(&*env.fs, dir).map_err(here)?;
    let lock = env.fs.lock_dir(dir).map_err(here)?;
    let path = dir.join("VERSION");
    let file = env.fs.open(&path, OpenMode::Create).map_err(here)?;
    let mut found = vec![0; file.len().map_err(here)?.min(1024) as usize];
    file.read_exact_at(&mut found, 0).map_err(here)?;
    if found.is_empty() {
        file.write_all_at(DATA_VERSION.as_bytes(), 0).map_err(here)?;
        file.sync().and_then(|()| env.fs.sync_dir(dir)).map_err(here)?;
    } else if found != DATA_VERSION.as_bytes() {
        let found = String::from_utf8_lossy(&found);
        return Err(Error::new(
            ErrorCode::Version,
            format!(
                "{} holds {:?}, this build reads {:?}",
                path.display(),
                found.trim(),
                DATA_VERSION.trim()
            ),
        )
        .with_hint("use a directory of this version, or an empty one"));
    }
    Ok(lock)
}
