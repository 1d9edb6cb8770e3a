//! The document table: the documents of one bucket by id, with the older versions that a read can
//! still need.
//!
//! # Overview
//!
//! The table is derived from the change log of its bucket. Each mutation is a *version* of a
//! document, and has a *place*: a number that grows along the log. The table is log-structured.
//! Versions go into a hash table in memory (the *memtable*). A flush writes them, sorted by id,
//! into an immutable file (a *fragment*), and merges make one fragment out of neighbouring ones.
//! The files, their blocks, filters and checksums are those of the storage engine
//! (`storage::fragment`); `version` defines the contents of a row.
//!
//! ```text
//! feed ──► memtable ──freeze──► runs ──flush──► fragments ──merge──► fewer fragments
//!             places grow from right to left ◄────────────────────────────────────
//! ```
//!
//! A read searches the memtable, then runs and fragments from the newest to the oldest. The first
//! *valid* version that is found is the result. A version is valid if no rewind has made it
//! *dead*, and, for a read as of a cut, if its seqno is in the cut. A walk merges all tables of
//! one moment by id.
//!
//! A rewind of a vbucket changes no row. It adds an entry to the *dead list* (`dead`), and merges
//! remove the versions that the entry selects. Merges also drop the versions that are visible in
//! no state at or above the *floor* of their vbucket (`retention`).
//!
//! The table has no log and no manifest file. Its caller writes the [`TableManifest`] durably,
//! and after an opening adds all versions from [`TableManifest::covered`] on.
//!
//! # Duties of the caller
//!
//! - Versions and dead versions are added in the order of the log, by one thread at a time.
//! - A rewind returns to a seqno at or above the floor of its vbucket. Only the removal of a
//!   vbucket returns to 0, and the vbucket then has a new floor.
//! - After a floor was passed to a flush or a merge, no read and no rewind uses a smaller seqno
//!   of earlier versions.
//! - While memory is above a bound of the caller's choice ([`DocumentTable::memory_bytes`]), the
//!   caller adds no versions.
//!
//! # Invariants
//!
//! - The places of each table are larger than those of all older tables. So the first valid
//!   version that a read finds is the newest.
//! - A manifest names only fragments that are synced. A fragment that no manifest names is
//!   removed at the next opening.
//! - A run leaves memory only when a durable manifest names the fragment that has its versions.
//! - An entry is removed from the dead list only when it selects no version in a table, and none
//!   that may be added again.
//! - Readers use immutable tables. They wait only for the addition of one small batch to the
//!   memtable. A large batch becomes separate runs, which are built without a lock.
//!
//! Debug builds check the order of the places at each change (`tables`), and the manifest at each
//! write.

mod change;
mod dead;
mod describe;
mod document_table;
mod files;
mod lookup;
mod manifest;
mod memory;
mod options;
mod retention;
mod rewrite;
mod runs;
mod sorted;
mod tables;
mod verify;
mod version;
mod walk;
mod write;
mod yielding_lock;

pub use change::TableChange;
pub use dead::DeadVersions;
pub use describe::TableInfo;
pub use document_table::{DocumentTable, MadeRuns};
pub use manifest::{FragmentEntry, TableManifest};
pub use options::TableOptions;
pub use retention::Retention;
pub use sorted::SortedRows;
pub use verify::{unnamed_fragments, verify};
pub use version::{StoredVersion, VersionRef};
pub use walk::{DocumentChunk, DocumentWalk, TableMoment, WalkedDocument};

#[cfg(test)]
mod tests;
