//! The files that the manifests on disk name, by index.
//!
//! Slices that were made in place share the fragments of the generation before ([`crate::edit::derive`]). Each generation retires a file
//! when its own lists do not name it any more, and the file goes with the last of them. While it is uncertain which of two manifests of an
//! index is on disk, the files of both are named.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::ids::LocalIndexId;

use crate::file_id::FileId;
use crate::manifest::index_manifest::IndexManifest;

/// The files that the manifests on disk name.
#[derive(Debug, Default)]
pub struct NamedFiles(BTreeMap<LocalIndexId, BTreeSet<FileId>>);

impl NamedFiles {
    /// Notes that a manifest is being written: from now on it may be on disk, and the one before still is.
    pub fn may_be_durable(&mut self, manifest: &IndexManifest) {
        self.0.entry(manifest.info.local_id()).or_default().extend(manifest.files());
    }

    /// Notes that a manifest is on disk, and the one before is not.
    pub fn is_durable(&mut self, manifest: &IndexManifest) {
        self.0.insert(manifest.info.local_id(), manifest.files());
    }

    /// Notes that an index has no manifest on disk any more.
    pub fn forget(&mut self, index: LocalIndexId) {
        self.0.remove(&index);
    }

    /// The named ones among some files.
    pub fn among(&self, files: &[FileId]) -> BTreeSet<FileId> {
        let is_named = |file: &&FileId| self.0.values().any(|named| named.contains(file));
        files.iter().filter(is_named).copied().collect()
    }
}
