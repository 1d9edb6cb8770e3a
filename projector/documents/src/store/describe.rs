//! Describes a manifest or a checkpoint for `sextant inspect`.

use std::path::Path;

use proto::Result;
use proto::env::FileSystem;
use serde::Serialize;

use super::checkpoint::Checkpoint;
use super::paired_file::{FileKind, kind_of, read_copy};
use super::source_manifest::SourceManifest;

/// The decoded contents of a file that is stored in two copies.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PairedContents {
    /// The manifest of a source.
    Source(SourceManifest),
    /// The checkpoint of a bucket.
    Checkpoint(Box<Checkpoint>),
}

/// Reads one copy of a manifest or a checkpoint.
pub fn describe(fs: &dyn FileSystem, path: &Path) -> Result<PairedContents> {
    Ok(match kind_of(fs, path)? {
        FileKind::Source => PairedContents::Source(read_copy(fs, path, FileKind::Source)?),
        FileKind::Checkpoint => {
            PairedContents::Checkpoint(Box::new(read_copy(fs, path, FileKind::Checkpoint)?))
        }
    })
}
