//! Where an indexer keeps its files.
//!
//! ```text
//! DIR/VERSION                      of the layout
//! DIR/log/<lsn>.log                the commit log's segments
//! DIR/manifests/*.manifest         one per index, and one of the node
//! DIR/fragments/<id>.frag          the fragments
//! ```

use std::path::{Path, PathBuf};

use super::manifest::{FileId, fragment_name};

/// The file that names the version of the layout.
pub fn version_path(dir: &Path) -> PathBuf {
    dir.join("VERSION")
}

/// Where the segments of the commit log are.
pub fn log_dir(dir: &Path) -> PathBuf {
    dir.join("log")
}

/// Where the manifests are.
pub fn manifest_dir(dir: &Path) -> PathBuf {
    dir.join("manifests")
}

/// Where the fragments are.
pub fn fragment_dir(dir: &Path) -> PathBuf {
    dir.join("fragments")
}

/// The file of a fragment; the names sort as the ids do.
pub fn fragment_path(dir: &Path, id: u64) -> PathBuf {
    fragment_dir(dir).join(fragment_name(FileId(id)))
}
