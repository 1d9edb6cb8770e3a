//! The corpus: for each target a folder of inputs, kept small. A folder contains samples of the
//! encoders of this and of earlier builds, and inputs that have found a bug (`found-…`).
#![allow(clippy::disallowed_methods, reason = "a tool that reads and writes its own files")]

use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::mutate::INPUT_BYTES_MAX;
use super::target::Target;

/// The maximum number of files of a target.
pub const FILES_MAX: usize = 64;
/// The maximum size of a target's files together, in bytes.
pub const BYTES_MAX: u64 = 128 << 10;
/// The maximum size of a sample in the corpus, in bytes.
const SAMPLE_BYTES_MAX: usize = 16 << 10;

/// The folder of a target.
pub fn dir(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target.name)
}

/// The files of a folder, in the order of their names.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths
}

/// Returns the valid inputs of a target: its samples and its files.
pub fn load(target: &Target) -> Vec<Vec<u8>> {
    let mut inputs = (target.samples)();
    for path in files(&dir(target)) {
        let bytes = std::fs::read(&path);
        inputs.push(bytes.unwrap_or_else(|error| panic!("reading {}: {error}", path.display())));
    }
    inputs.iter_mut().for_each(|input| input.truncate(INPUT_BYTES_MAX));
    // Later copies go, so that the order of the samples stays.
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for input in inputs {
        if !kept.contains(&input) {
            kept.push(input);
        }
    }
    kept
}

/// Writes the samples of a target that its folder lacks; returns their number. Earlier samples are
/// kept within the limits.
pub fn write_samples(target: &Target) -> std::io::Result<usize> {
    let dir = dir(target);
    std::fs::create_dir_all(&dir)?;
    let mut written = 0;
    for sample in (target.samples)().into_iter().filter(|it| it.len() <= SAMPLE_BYTES_MAX) {
        let path = dir.join(format!("{:016x}", xxh3_64(&sample)));
        if !path.exists() && files(&dir).len() < FILES_MAX {
            std::fs::write(path, sample)?;
            written += 1;
        }
    }
    Ok(written)
}
