//! Flushes and merges: changes of the fragments, in two steps.
//!
//! 1. A change is *prepared*: its rows are written to a new file, and the file and its name are
//!    synced. This takes long, and other operations continue meanwhile.
//! 2. It is *installed*: the new manifest is computed, the caller writes it durably, the tables
//!    change for all readers, and the files that the manifest no longer names are deleted.
//!    Readers that still use these files can continue.
//!
//! A crash between the steps leaves a file that no manifest names; the next opening removes it.
//! If the write of the manifest fails, either the old or the new manifest may be on disk. So all
//! files that one of them names are kept until a later manifest is written, which does not name
//! the new file.
//!
//! One flush and one merge can be in progress at a time. A flush adds a fragment at the end, a
//! merge replaces neighbours. So the two do not conflict. Manifests are written one after
//! another, each with all earlier installed changes.

use std::ops::Range;
use std::sync::Arc;

use proto::Result;
use proto::lock::lock;
use storage::layers::{FRAGMENTS_MIN, choose_node};

use crate::table::dead::DeadList;
use crate::table::document_table::DocumentTable;
use crate::table::manifest::TableManifest;
use crate::table::retention::Retention;
use crate::table::rewrite::Rewrite;
use crate::table::runs::sources;
use crate::table::tables::{FragmentTable, Tables};

/// The number of rewinds in the dead list above which flushes and rewrites remove entries of the
/// list. Each read of a document checks all entries of its vbucket.
const REWINDS_MAX: usize = 64;

/// A prepared change of the fragments: a flush or a merge. If this value is dropped without being
/// installed, the table is unchanged.
#[derive(Debug)]
#[must_use = "a change counts when it is installed"]
pub struct TableChange<'a> {
    pub(super) table: &'a DocumentTable,
    pub(super) kind: ChangeKind,
    pub(super) written: Option<Arc<FragmentTable>>,
    /// True if a manifest on disk may name the change's new file.
    pub(super) may_be_named: bool,
}

/// The kinds of changes of the fragments.
#[derive(Debug)]
pub(super) enum ChangeKind {
    /// A flush: the runs in memory with places before `covered` become a fragment.
    Flush { covered: u64 },
    /// A merge of neighbouring fragments, which have these files, into one.
    Merge { files: Vec<u64> },
}

impl ChangeKind {
    fn applied_to(&self, tables: &mut Tables, written: Option<&Arc<FragmentTable>>) {
        let written = written.cloned();
        match self {
            Self::Flush { covered } => {
                tables.covered = *covered;
                tables.runs.retain(|run| run.places.first >= *covered);
                tables.fragments.extend(written);
            }
            Self::Merge { files } => {
                let is_first =
                    |fragment: &Arc<FragmentTable>| files.first() == Some(&fragment.entry.file);
                if let Some(at) = tables.fragments.iter().position(is_first) {
                    tables.fragments.splice(at..at + files.len(), written);
                }
            }
        }
        tables.prune_dead();
    }
}

impl TableChange<'_> {
    /// Installs the change, so that all readers use the new fragment. `write_manifest` must write
    /// the manifest durably, and must not change the table. After an error the table in memory is
    /// unchanged, but the manifest on disk may have the change.
    pub fn install(
        mut self,
        write_manifest: impl FnOnce(&TableManifest) -> Result<()>,
    ) -> Result<()> {
        let table = self.table;
        let mut doubtful = lock(&table.publication);
        let manifest = {
            let state = table.state.read();
            let mut next = (*state.tables).clone();
            self.kind.applied_to(&mut next, self.written.as_ref());
            next.manifest(state.next_file)
        };
        debug_assert!(manifest.check().is_ok(), "{manifest:?}");
        self.may_be_named = true;
        if let Err(error) = write_manifest(&manifest) {
            doubtful.extend(self.written.as_ref().map(|written| written.entry.file));
            return Err(error);
        }
        let unnamed = std::mem::take(&mut *doubtful);
        table.state.write().change_tables(|tables| {
            self.kind.applied_to(tables, self.written.as_ref());
        });
        drop(doubtful);
        table.discard(unnamed);
        if let ChangeKind::Merge { files } = &self.kind {
            table.discard(files.iter().copied());
        }
        Ok(())
    }

    /// Returns the size of the new file in bytes; 0 if no rows were left, so that there is no new
    /// file.
    pub fn bytes(&self) -> u64 {
        self.written.as_ref().map_or(0, |written| written.entry.bytes)
    }
}

impl Drop for TableChange<'_> {
    fn drop(&mut self) {
        if let (false, Some(written)) = (self.may_be_named, &self.written) {
            self.table.discard([written.entry.file]);
        }
        let mut state = self.table.state.write();
        match self.kind {
            ChangeKind::Flush { .. } => state.flushing = None,
            ChangeKind::Merge { .. } => state.is_merging = false,
        }
    }
}

impl DocumentTable {
    /// Returns true if a flush is needed: the memory is full, or the dead list is long because of
    /// versions in memory.
    pub fn needs_flush(&self) -> bool {
        let state = self.state.read();
        let is_full = state.memory_bytes() >= self.options.memtable_bytes;
        let overdue = overdue(&state.tables.dead);
        state.flushing.is_none()
            && (is_full || overdue.is_some_and(|up_to| up_to > state.tables.covered))
    }

    /// Prepares a flush of all versions in memory; `None` if there are none, or if another flush
    /// is in progress. `retention` returns which versions may still be read. It is called after
    /// the versions to flush are fixed, so that it is never too new for one of them.
    pub fn prepare_flush(
        &self,
        retention: impl FnOnce() -> Retention,
    ) -> Result<Option<TableChange<'_>>> {
        let (tables, covered) = {
            let mut state = self.state.write();
            let covered = state.next_place;
            if state.flushing.is_some() || covered == state.tables.covered {
                return Ok(None);
            }
            state.freeze();
            state.flushing = Some(covered);
            (Arc::clone(&state.tables), covered)
        };
        let kind = ChangeKind::Flush { covered };
        let mut change = TableChange { table: self, kind, written: None, may_be_named: false };
        if !tables.runs.is_empty() {
            let documents = tables.runs.iter().map(|run| run.documents).sum();
            let is_at_bottom = tables.fragments.is_empty();
            let runs = self.sort(&tables.runs)?;
            // The frozen memtables go now, unless a reader has them: the sorted runs have their versions.
            drop(tables);
            let (retention, dead) = self.rules(retention);
            let rewrite = Rewrite {
                dead: &dead,
                retention: Some(&retention),
                is_at_bottom,
                vbuckets: self.vbuckets,
                stop: None,
            };
            change.written = self.write_fragment((sources(runs.iter()), documents), &rewrite)?;
        }
        Ok(Some(change))
    }

    /// Returns what determines the versions that a rewrite may drop: the floors of the vbuckets,
    /// and the dead list. The floors are read first. A floor may be newer than a rewind. The
    /// versions that the rewind has removed must then be in the dead list, or they would hide
    /// older versions that are valid again.
    fn rules(&self, retention: impl FnOnce() -> Retention) -> (Retention, Arc<DeadList>) {
        let retention = retention();
        (retention, Arc::clone(&self.state.read().tables.dead))
    }

    /// Returns true if a merge is needed, because it makes reads cheaper or clears the dead list.
    pub fn needs_merge(&self) -> bool {
        let state = self.state.read();
        !state.is_merging && choose_fragments(&state.tables).is_some()
    }

    /// Prepares a merge of fragments; `None` if none is needed, or if another merge is in
    /// progress. `retention` returns which versions may still be read. It is called after the
    /// versions to merge are fixed.
    pub fn prepare_merge(
        &self,
        retention: impl FnOnce() -> Retention,
    ) -> Result<Option<TableChange<'_>>> {
        self.prepare_merge_of(choose_fragments, retention)
    }

    /// Prepares a merge of all fragments into one. `None` if there are fewer than two fragments
    /// and no dead (invalid) versions, or if another merge is in progress.
    pub fn prepare_full_merge(
        &self,
        retention: impl FnOnce() -> Retention,
    ) -> Result<Option<TableChange<'_>>> {
        let choose = |tables: &Tables| {
            let count = tables.fragments.len();
            let is_due = count > 1 || count == 1 && !tables.dead.is_empty();
            is_due.then_some(0..count)
        };
        self.prepare_merge_of(choose, retention)
    }

    /// Prepares a merge of the fragments that `choose` selects.
    pub(super) fn prepare_merge_of(
        &self,
        choose: impl FnOnce(&Tables) -> Option<Range<usize>>,
        retention: impl FnOnce() -> Retention,
    ) -> Result<Option<TableChange<'_>>> {
        let (tables, chosen) = {
            let mut state = self.state.write();
            if state.is_merging {
                return Ok(None);
            }
            let Some(chosen) = choose(&state.tables) else { return Ok(None) };
            state.is_merging = true;
            (Arc::clone(&state.tables), chosen)
        };
        let is_at_bottom = chosen.start == 0;
        let inputs = &tables.fragments[chosen];
        let files = inputs.iter().map(|fragment| fragment.entry.file).collect();
        let kind = ChangeKind::Merge { files };
        let mut change = TableChange { table: self, kind, written: None, may_be_named: false };
        let (retention, dead) = self.rules(retention);
        let rewrite = Rewrite {
            dead: &dead,
            retention: Some(&retention),
            is_at_bottom,
            vbuckets: self.vbuckets,
            stop: Some(&self.options.stop),
        };
        let documents = inputs.iter().map(|fragment| fragment.entry.documents).sum();
        let inputs = sources(inputs.iter().map(|fragment| &fragment.table));
        change.written = self.write_fragment((inputs, documents), &rewrite)?;
        Ok(Some(change))
    }
}

/// Returns the place of the newest rewind whose entries should be removed from the dead list;
/// `None` if the list is short.
fn overdue(dead: &DeadList) -> Option<u64> {
    if dead.len() <= REWINDS_MAX {
        return None;
    }
    let places = dead.places();
    let count = places.len().checked_sub(REWINDS_MAX + 1)?;
    places.into_iter().nth(count)
}

/// Chooses neighbouring fragments to merge. The oldest fragment that keeps overdue entries in the
/// dead list is chosen first, otherwise a range whose merge is worthwhile; `None` if there is
/// neither.
fn choose_fragments(tables: &Tables) -> Option<Range<usize>> {
    if let Some(up_to) = overdue(&tables.dead) {
        let is_dirty = |fragment: &Arc<FragmentTable>| {
            let mut entries = tables.dead.entries().filter(|entry| entry.before <= up_to);
            entries.any(|entry| fragment.may_have_dead_of(entry))
        };
        if let Some(at) = tables.fragments.iter().position(is_dirty) {
            return Some(at..at + 1);
        }
    }
    let bytes: Vec<u64> = tables.fragments.iter().map(|fragment| fragment.entry.bytes).collect();
    choose_node(&bytes, FRAGMENTS_MIN, u64::MAX)
}
