//! The lists of fragments of one index, and the open tables of these fragments.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::Result;

use crate::file_id::FileId;
use crate::files::data_files::DataFiles;
use crate::index::backfill::Backfill;
use crate::manifest::index_manifest::IndexManifest;
use crate::rows::columns::Columns;
use crate::tables::table::Table;

/// The lists of fragments of an index, and its backfill if it is being built.
pub struct FragmentLists {
    /// The manifest of the index, which contains the lists. During a build the manifest is in
    /// memory only.
    pub manifest: IndexManifest,
    /// Open fragments that the lists name, by file.
    pub tables: BTreeMap<FileId, Arc<Table>>,
    /// The backfill of a build in progress.
    pub backfill: Option<Backfill>,
    /// True if the index was dropped. No files may be written for it any more.
    pub is_dropped: bool,
}

/// Open fragments, by file.
type Tables = BTreeMap<FileId, Arc<Table>>;

/// Opens the back-index fragments that a manifest names.
pub fn open_back(manifest: &IndexManifest, files: &DataFiles) -> Result<Tables> {
    let groups = manifest.slices.values().flat_map(|lists| &lists.groups);
    let items = groups.flat_map(|group| &group.items);
    let mut tables = BTreeMap::new();
    for item in items.filter(|item| item.columns.intersects(Columns::BACK)) {
        open(&mut tables, item.file, manifest, files)?;
    }
    Ok(tables)
}

/// Opens a fragment and adds it to `tables`, if it is not there yet.
fn open(
    tables: &mut Tables,
    file: FileId,
    manifest: &IndexManifest,
    files: &DataFiles,
) -> Result<()> {
    if let Entry::Vacant(missing) = tables.entry(file) {
        let of = || format!("index {} ({})", manifest.info.spec.name, manifest.info.local_id());
        missing.insert(files.open(file).map_err(|error| error.context(of()))?);
    }
    Ok(())
}

impl FragmentLists {
    /// Removes and returns the tables that no list names any more.
    pub fn take_unnamed(&mut self) -> Vec<(FileId, Arc<Table>)> {
        let named: BTreeSet<FileId> = self.manifest.files();
        let unnamed: Vec<FileId> =
            self.tables.keys().filter(|file| !named.contains(file)).copied().collect();
        unnamed.into_iter().filter_map(|file| Some((file, self.tables.remove(&file)?))).collect()
    }

    /// Opens all listed fragments that are not open yet.
    pub fn open_rest(&mut self, files: &DataFiles) -> Result<()> {
        let named = self.manifest.files();
        named.into_iter().try_for_each(|file| open(&mut self.tables, file, &self.manifest, files))
    }
}
