//! Where an indexer keeps its files.
//!
//! ```text
//! DIR/VERSION                      of the layout
//! DIR/log/*.log                    the commit log's segments
//! DIR/manifests/*.manifest         one per index, and one of the node
//! DIR/fragments/<20 digits>.frag   the fragments, by id
//! ```

use std::path::{Path, PathBuf};

/// How the name of a log segment ends.
pub const LOG_EXTENSION: &str = "log";
/// How the name of a manifest ends.
pub const MANIFEST_EXTENSION: &str = "manifest";
/// How the name of a fragment ends.
pub const FRAGMENT_EXTENSION: &str = "frag";

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

/// The file of a fragment; the names sort as the ids do. `dir` is the indexer's.
pub fn fragment_path(dir: &Path, id: u64) -> PathBuf {
    fragment_dir(dir).join(format!("{id:020}.{FRAGMENT_EXTENSION}"))
}

/// The fragment that a file's name stands for, if it does.
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
    fn a_fragments_name_says_its_id_and_other_names_say_none() {
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
