//! Describes a document table: its components and their sizes.

use serde::Serialize;

use crate::table::document_table::DocumentTable;
use crate::table::manifest::FragmentEntry;

/// The components of a document table and their sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableInfo {
    /// Number of versions in the memtable.
    pub memtable_versions: u64,
    /// Number of versions in runs.
    pub run_versions: u64,
    /// Number of runs.
    pub runs: usize,
    /// Memory of memtable and runs, in bytes.
    pub memory_bytes: usize,
    /// Memory of filters and sparse indexes, in bytes.
    pub index_bytes: usize,
    /// The fragments, oldest first.
    pub fragments: Vec<FragmentEntry>,
    /// Bytes of the fragments' files.
    pub disk_bytes: u64,
    /// Number of entries in the dead list.
    pub dead_entries: usize,
    /// The place, in the order of versions, before which the fragments have all versions.
    pub covered: u64,
    /// The place, in the order of versions, before which all versions were added to the table.
    pub reached: u64,
    /// The approximate number of documents; a replaced document may be counted twice.
    pub documents_about: u64,
}

impl DocumentTable {
    /// Describes the table.
    pub fn describe(&self) -> TableInfo {
        let state = self.state.read();
        let tables = &state.tables;
        let memtable = &state.memtable;
        let live = memtable.documents().saturating_sub(2 * memtable.tombstones());
        TableInfo {
            memtable_versions: memtable.versions(),
            run_versions: tables.runs.iter().map(|run| run.versions()).sum(),
            runs: tables.runs.len(),
            memory_bytes: state.memory_bytes(),
            index_bytes: tables.fragments.iter().map(|one| one.table.memory_bytes()).sum(),
            fragments: tables.fragments.iter().map(|fragment| fragment.entry.clone()).collect(),
            disk_bytes: tables.fragments.iter().map(|fragment| fragment.entry.bytes).sum(),
            dead_entries: tables.dead.len(),
            covered: tables.covered,
            reached: state.next_place,
            documents_about: tables.documents_about() + live,
        }
    }

    /// Returns the memory in bytes of the versions that no fragment has. The caller that adds
    /// versions must wait while this is above its limit.
    pub fn memory_bytes(&self) -> usize {
        self.state.read().memory_bytes()
    }

    /// Returns the place, in the order of versions, before which the fragments have all versions.
    pub fn covered(&self) -> u64 {
        self.state.read().tables.covered
    }
}
