//! The lists of fragments of one index, and the tables that they name.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::Result;

use crate::file_id::FileId;
use crate::files::data_files::Files;
use crate::index::backfill::Bulk;
use crate::manifest::index_manifest::IndexManifest;
use crate::rows::columns::Columns;
use crate::tables::table::Table;

/// The lists of fragments as they are on disk, and a build's.
pub struct Structure {
    /// As it is on disk, unless the index is being built.
    pub manifest: IndexManifest,
    /// The tables that the lists name.
    pub tables: BTreeMap<FileId, Arc<Table>>,
    /// A build in progress.
    pub bulk: Option<Bulk>,
    /// The index was dropped: nothing may be written any more.
    pub dropped: bool,
}

type Tables = BTreeMap<FileId, Arc<Table>>;

/// Opens the fragments of the back index.
pub fn open_back(manifest: &IndexManifest, files: &Files) -> Result<Tables> {
    let groups = manifest.slices.values().flat_map(|lists| &lists.groups);
    let items = groups.flat_map(|group| &group.items);
    let mut tables = BTreeMap::new();
    for item in items.filter(|item| item.columns.intersects(Columns::BACK)) {
        open(&mut tables, item.file, manifest, files)?;
    }
    Ok(tables)
}

fn open(tables: &mut Tables, file: FileId, manifest: &IndexManifest, files: &Files) -> Result<()> {
    if let Entry::Vacant(missing) = tables.entry(file) {
        let of = || format!("index {} ({})", manifest.info.spec.name, manifest.info.id);
        missing.insert(files.open(file).map_err(|error| error.context(of()))?);
    }
    Ok(())
}

impl Structure {
    /// Forgets the tables that no list names any more, and returns them.
    pub fn take_unnamed(&mut self) -> Vec<(FileId, Arc<Table>)> {
        let named: BTreeSet<FileId> = self.manifest.files();
        let unnamed: Vec<FileId> =
            self.tables.keys().filter(|file| !named.contains(file)).copied().collect();
        unnamed.into_iter().filter_map(|file| Some((file, self.tables.remove(&file)?))).collect()
    }

    /// Opens the fragments that are named and not open yet.
    pub fn open_rest(&mut self, files: &Files) -> Result<()> {
        let named = self.manifest.files();
        named.into_iter().try_for_each(|file| open(&mut self.tables, file, &self.manifest, files))
    }
}
