//! The storage engine of a node: the entries of its slices with all their versions, and the back
//! index, which maps a document to its entries.
//!
//! # Overview
//!
//! One writer per bucket applies *epochs*. An epoch is one record of the commit log. Its changes
//! are compared with the back index and become one sorted, immutable *run* per index, in memory. A
//! flush turns runs into *fragments* (files), and a manifest names the fragments of each slice.
//! Compactions merge fragments. Readers take an `Arc` of the newest `IndexVersion` of an index, so
//! readers and writers never wait for each other.
//!
//! An epoch becomes visible in two steps: first the runs of all indexes are published, then the
//! committed epoch of the bucket moves. A scan reads at a committed epoch, so it sees all changes
//! of an epoch or none. An epoch is visible before it is durable. That is safe: after a crash the
//! source's stream sends lost mutations again, and applying them again gives the same result (I1).
//!
//! # Invariants
//!
//! - A run is removed from memory only after its rows are in synced fragments that a synced
//!   manifest names.
//! - A segment of the log is released only after all rows of all its epochs, in every index, are in
//!   such fragments.
//! - A manifest never names a fragment that is not synced. A fragment that no manifest names is
//!   deleted at the next start.
//! - No reader sees an epoch above the bucket's committed epoch, and none that a rollback has
//!   removed.
//! - No version is dropped that a read of an epoch at or above the horizon, or of a rollback point,
//!   still needs (I5).
//!
//! Debug builds check the invariants of manifests and of the log at each write
//! (`manifest/invariants.rs`, `log/invariants.rs`).
//!
//! # Layers
//!
//! Imports run downwards only:
//!
//! ```text
//! engine     the facade: [`StorageEngine`]
//! late_commit changes of open transactions, and their own views
//! recover    open after a restart        verify   check a data directory
//! build      backfill, rebuild, compare  edit     split, drop, regroup, rollback, moves
//! maintain   flush, compaction, release of the log, background work
//! apply      an epoch's changes
//! node       indexes, buckets, counters  index    the state of one index
//! files      fragment files, manifests on disk
//! read       cursors, merges, look-ups, versions, snapshots
//! manifest   lists of fragments          log      the commit log
//! tables     runs and fragments          fragment tables in files
//! rows       rows, blocks, columns
//! ```
//!
//! A fragment, a log segment and a manifest are plain formats: `log`, `manifest`, `fragment` and
//! `rows` do not depend on indexes, so a store of other data can use them, such as a projector's
//! store of documents. `layers` re-exports the modules that such a store needs.

mod apply;
mod batch;
mod build;
mod counters;
mod edit;
mod engine;
mod file_id;
mod files;
pub mod fragment;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod index;
mod late_commit;
pub mod layers;
pub mod layout;
pub mod log;
mod log_record;
mod maintain;
pub mod manifest;
mod merge_policy;
mod node;
mod options;
mod read;
mod recover;
mod retention;
mod rows;
mod slice_store;
mod tables;
pub mod verify;

pub use batch::{EpochBatch, VbucketMutations};
pub use build::compare::Comparison;
pub use counters::Counters;
pub use edit::derive::{EstimatedSlice, SliceCut};
pub use edit::export::{Export, PartRange};
pub use edit::install::InstallRefusal;
pub use edit::receive::ReceivedFiles;
pub use engine::storage_engine::StorageEngine;
pub use index::load_state::LoadState;
pub use late_commit::store::{LateCommitCounters, LateCommitStore};
pub use options::StoreOptions;
pub use read::rows::{Bounds, Rows, WalkStep};
pub use read::snapshot::Snapshot;
pub use rows::columns::Grouping;
pub use slice_store::{SliceStore, StoredIndex};
