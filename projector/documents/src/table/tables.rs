//! The immutable tables of a document table at one moment: runs (in memory) and fragments (on
//! disk), and the dead (invalid) versions in them.
//!
//! # Invariants
//!
//! - The places of each table are larger than those of all older tables, and those of runs are
//!   larger than those of fragments. So a read returns the valid version in the newest table that
//!   has one.
//! - No run has a version with a place that the fragments cover.
//! - If a table, or the memtable, may contain dead versions of an entry, the dead list has the
//!   entry.

use std::sync::Arc;

use proto::Result;
use proto::model::ids::Seqno;
use storage::fragment::OpenFragment;
use storage::layers::Table;

use crate::table::dead::{DeadEntry, DeadList};
use crate::table::lookup::{DocumentQuery, FoundVersion, find_in_table};
use crate::table::manifest::{FragmentEntry, TableManifest};
use crate::table::memory::Run;

/// An open fragment, with its entry in the manifest.
#[derive(Debug)]
pub(super) struct FragmentTable {
    pub entry: FragmentEntry,
    pub table: Arc<Table>,
}

impl FragmentTable {
    /// Creates the fragment that was just written. `file` is its id, `documents` its number of
    /// documents, and `cleaned` the number of the last dead list entry whose versions were
    /// removed from it.
    pub fn new((file, documents, cleaned): (u64, u64, u64), open: OpenFragment) -> Self {
        let entry = FragmentEntry {
            file,
            first: open.stats.oldest.0,
            last: open.stats.newest.0,
            versions: open.stats.rows,
            documents,
            bytes: open.fragment.file_bytes(),
            cleaned,
        };
        Self { entry, table: Arc::new(Table::from_fragment(open)) }
    }

    /// Returns true if the fragment may contain versions that an entry of the dead list selects.
    pub fn may_have_dead_of(&self, dead: &DeadEntry) -> bool {
        self.entry.first < dead.before && self.entry.cleaned < dead.number
    }
}

/// The tables of a document table at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    /// Fragments, oldest first.
    pub fragments: Vec<Arc<FragmentTable>>,
    /// Runs, oldest first.
    pub runs: Vec<Run>,
    pub dead: Arc<DeadList>,
    /// The place, in the order of versions, before which the fragments have all versions.
    pub covered: u64,
}

impl Tables {
    /// Looks up a document in the newest table that has a valid version of it; `None` if no table
    /// has one.
    pub fn find<T>(
        &self,
        wanted: &DocumentQuery<'_>,
        take: &impl Fn(Seqno, [&[u8]; 2]) -> T,
    ) -> Result<Option<FoundVersion<T>>> {
        for run in self.runs.iter().rev() {
            let found = run.find(wanted, &self.dead, take)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        for fragment in self.fragments.iter().rev() {
            let table = &fragment.table;
            if table.fragment().is_none_or(|file| file.may_contain(wanted.hash)) {
                let found = find_in_table(table, wanted, &self.dead, take)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// Removes the entries of the dead list that cannot select a version in any table.
    pub fn prune_dead(&mut self) {
        let mut dead = (*self.dead).clone();
        dead.retain(|entry| {
            let mut fragments = self.fragments.iter();
            // Runs and the memtable may hold places from `covered` on.
            entry.before > self.covered
                || fragments.any(|fragment| fragment.may_have_dead_of(entry))
        });
        if dead != *self.dead {
            self.dead = Arc::new(dead);
        }
    }

    /// Returns the approximate number of documents. A document with versions in several tables
    /// counts several times.
    pub fn documents_about(&self) -> u64 {
        let fragments = self.fragments.iter();
        let fragments = fragments.map(|one| (one.entry.documents, one.table.stats.tombstones));
        let runs = self.runs.iter().map(|run| (run.documents, run.tombstones()));
        // Most tombstones hide a version of an older table.
        fragments.chain(runs).fold(0, |sum: u64, (documents, tombstones)| {
            (sum + documents).saturating_sub(2 * tombstones)
        })
    }

    /// Returns the manifest of the fragments.
    pub fn manifest(&self, next_file: u64) -> TableManifest {
        TableManifest {
            fragments: self.fragments.iter().map(|fragment| fragment.entry.clone()).collect(),
            next_file,
            covered: self.covered,
            dead: (*self.dead).clone(),
        }
    }

    /// Returns true if the places of runs and fragments ascend from the oldest table to the
    /// newest.
    pub fn are_in_order(&self) -> bool {
        let fragments =
            self.fragments.iter().map(|fragment| (fragment.entry.first, fragment.entry.last));
        let runs = self.runs.iter().map(|run| (run.places.first, run.places.last));
        let mut behind = 0;
        let ascending = fragments.chain(runs.clone()).all(|(first, last)| {
            let fits = behind <= first && first <= last;
            behind = last + 1;
            fits
        });
        let covers = self.fragments.last().is_none_or(|last| last.entry.last < self.covered);
        ascending && covers && runs.clone().all(|(first, _)| first >= self.covered)
    }
}
