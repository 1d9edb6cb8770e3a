//! The record of the files that the manifests on disk name, by index. A named file must not be
//! deleted.
//!
//! Slices that were made in place share the fragments of the previous generation
//! ([`crate::edit::derive`]). Each generation retires a file when its lists do not name the file
//! any more, and the last of them deletes the file. While it is uncertain which of two manifests
//! of an index is on disk, the files of both count as named. The files of a manifest that will be
//! written count as named as well, because the previous generation may drop them meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::ids::LocalIndexId;

use crate::file_id::FileId;
use crate::manifest::index_manifest::IndexManifest;

/// The files that the manifests on disk name, by index.
#[derive(Debug, Default)]
pub struct NamedFiles {
    by_manifest: BTreeMap<LocalIndexId, BTreeSet<FileId>>,
    /// The files of other indexes that a manifest is about to name.
    reserved: BTreeMap<LocalIndexId, BTreeSet<FileId>>,
}

impl NamedFiles {
    /// Records that a manifest is being written: from now on this manifest or the previous one may
    /// be on disk, so the files of both count as named.
    pub fn note_write_begun(&mut self, manifest: &IndexManifest) {
        self.by_manifest.entry(manifest.info.local_id()).or_default().extend(manifest.files());
    }

    /// Records that a manifest is certainly on disk, and the previous one no longer is.
    pub fn note_durable(&mut self, manifest: &IndexManifest) {
        self.by_manifest.insert(manifest.info.local_id(), manifest.files());
    }

    /// Records that an index has no manifest on disk any more.
    pub fn remove_index(&mut self, index: LocalIndexId) {
        self.by_manifest.remove(&index);
    }

    /// Records files that the next manifest of an index will name. The caller holds the lock of
    /// another index's lists, which name these files now.
    pub fn reserve(&mut self, index: LocalIndexId, files: BTreeSet<FileId>) {
        self.reserved.insert(index, files);
    }

    /// Ends a reservation, after the manifest of the index was written or its write was abandoned.
    pub fn end_reservation(&mut self, index: LocalIndexId) {
        self.reserved.remove(&index);
    }

    /// Returns the files of `files` that a manifest names.
    pub fn named_among(&self, files: &[FileId]) -> BTreeSet<FileId> {
        let all = || self.by_manifest.values().chain(self.reserved.values());
        let is_named = |file: &&FileId| all().any(|named| named.contains(file));
        files.iter().filter(is_named).copied().collect()
    }
}
