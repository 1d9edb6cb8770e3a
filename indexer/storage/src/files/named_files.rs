//! The files that the manifests on disk name, by index.
//!
//! Slices that were made in place share the fragments of the previous generation ([`crate::edit::derive`]). Each generation retires a file
//! when its own lists do not name it any more, and the last of them deletes the file. While it is uncertain which of two manifests of an
//! index is on disk, the files of both are named. The files of a manifest that will be written are named as well, because the previous
//! generation may drop them meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::ids::LocalIndexId;

use crate::file_id::FileId;
use crate::manifest::index_manifest::IndexManifest;

/// The files that the manifests on disk name.
#[derive(Debug, Default)]
pub struct NamedFiles {
    by_manifest: BTreeMap<LocalIndexId, BTreeSet<FileId>>,
    /// The files of other indexes that a manifest is about to name.
    reserved: BTreeMap<LocalIndexId, BTreeSet<FileId>>,
}

impl NamedFiles {
    /// Records that a manifest is being written: from now on either this manifest or the previous
    /// one may be on disk.
    pub fn may_be_durable(&mut self, manifest: &IndexManifest) {
        self.by_manifest.entry(manifest.info.local_id()).or_default().extend(manifest.files());
    }

    /// Records that a manifest is on disk, and the previous one no longer is.
    pub fn is_durable(&mut self, manifest: &IndexManifest) {
        self.by_manifest.insert(manifest.info.local_id(), manifest.files());
    }

    /// Records that an index has no manifest on disk any more.
    pub fn forget(&mut self, index: LocalIndexId) {
        self.by_manifest.remove(&index);
    }

    /// Records the files that an index is about to name. The caller holds the lock of another
    /// index's lists that name them.
    pub fn reserve(&mut self, index: LocalIndexId, files: BTreeSet<FileId>) {
        self.reserved.insert(index, files);
    }

    /// Ends a reservation, after the manifest of the index was written or given up.
    pub fn end_reservation(&mut self, index: LocalIndexId) {
        self.reserved.remove(&index);
    }

    /// Returns those of `files` that a manifest names.
    pub fn among(&self, files: &[FileId]) -> BTreeSet<FileId> {
        let all = || self.by_manifest.values().chain(self.reserved.values());
        let is_named = |file: &&FileId| all().any(|named| named.contains(file));
        files.iter().filter(is_named).copied().collect()
    }
}
