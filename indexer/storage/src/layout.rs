//! Directory layout of an indexer.
//!
//! ```text
//! DIR/VERSION                      the version of the layout
//! DIR/log/*.log                    the commit log's segments
//! DIR/manifests/*.manifest         one per index, and one of the node
//! DIR/fragments/<20 digits>.frag   the fragments, by id
//! ```

use std::path::{Path, PathBuf};

/// Extension of a log segment.
pub const LOG_EXTENSION: &str = "log";
/// The file name extension of a manifest.
pub const MANIFEST_EXTENSION: &str = "manifest";
/// The file name extension of a fragment.
pub const FRAGMENT_EXTENSION: &str = "frag";

/// The content of the file VERSION, which names the format of an indexer's data directory.
pub const DATA_VERSION: &str = "sextant indexer, format 1\n";

/// Returns the path of the file that names the format of the data directory.
pub fn version_path(dir: &Path) -> PathBuf {
    dir.join("VERSION")
}

/// Returns the directory of the commit log's segments.
pub fn log_dir(dir: &Path) -> PathBuf {
    dir.join("log")
}

/// Returns the directory of the manifests.
pub fn manifest_dir(dir: &Path) -> PathBuf {
    dir.join("manifests")
}

/// Returns the directory of the fragments.
pub fn fragment_dir(dir: &Path) -> PathBuf {
    dir.join("fragments")
}

/// Returns the path of a fragment in an indexer's directory `dir`. File names sort in the order of
/// the ids.
pub fn fragment_path(dir: &Path, id: u64) -> PathBuf {
    fragment_dir(dir).join(format!("{id:020}.{FRAGMENT_EXTENSION}"))
}

/// Returns the fragment id that a file name contains; `None` for other files.
pub fn fragment_id(path: &Path) -> Option<u64> {
    let stem = path.file_stem()?.to_str()?;
    let is_id = stem.len() == 20 && stem.bytes().all(|byte| byte.is_ascii_digit());
    let is_fragment = path.extension()? == FRAGMENT_EXTENSION;
    if is_id && is_fragment { stem.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fragment_names_have_an_id() {
        for id in [0, 7, u64::MAX] {
            assert_eq!(fragment_id(&fragment_path(Path::new("data"), id)), Some(id));
        }
        for name in ["7.frag", "00000000000000000007.log", "0000000000000000000x.frag", "+"] {
            assert_eq!(fragment_id(Path::new(name)), None, "{name}");
        }
        let above_all = Path::new("99999999999999999999.frag");
        assert_eq!(fragment_id(above_all), None);
    }
}
