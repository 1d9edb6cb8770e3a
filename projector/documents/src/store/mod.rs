//! The document store on disk: the manifest of the source, which lists the buckets, and for each
//! bucket its change log, its document table and its checkpoint.
//!
//! ```text
//! DIR/VERSION                       the version of the layout
//! DIR/source.1, source.2            the manifest of the source (`source_manifest`)
//! DIR/buckets/<number>/log/         the change log
//! DIR/buckets/<number>/fragments/   the document table
//! DIR/buckets/<number>/checkpoint.1, checkpoint.2
//! ```
//!
//! # Overview
//!
//! Each change of a bucket is one group of its change log. After the sync of the group its
//! versions are added to the table, where readers find them. While a batch of mutations waits
//! between the sync and the table, the next batch may already be logged (`bucket_store`). A
//! *checkpoint* contains the LSN up to which the table's fragments are complete, and the
//! positions and the record of the bucket at that LSN. A start reads the checkpoint and replays
//! the groups after it.
//!
//! # Invariants
//!
//! - A checkpoint is written after the fragments that it names and the part of the log that it
//!   covers are synced.
//! - A segment of the log is released after the checkpoint that covers it is written.
//! - The floor of the table's retention, below which a merge may drop old versions, is a durable
//!   purge point. So a version that a merge has dropped is not needed after a crash.
//! - The manifest of the source names an end of each log, up to which the log was synced before.
//!   A log that ends earlier has lost data: the bucket is *damaged*, like a bucket with a damaged
//!   file. Its files are kept until a new copy is complete, and its end is not reported to the
//!   coordinators (`damaged`).
//!
//! An older copy of the whole directory opens without an error: only the coordinators can detect
//! it. Damage of the manifest of the source, or a directory that the manifest does not name,
//! prevents the projector's start.
mod batches;
mod bucket_store;
mod checkpoint;
mod damaged;
mod describe;
mod disk_store;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzz;
mod lost_commits;
mod maintain;
mod one_step;
mod options;
mod paired_file;
mod recover;
mod replay;
mod sorted;
mod source_manifest;
mod verify;
mod walk;

pub use describe::{PairedContents, describe};
pub use disk_store::DiskStore;
pub use lost_commits::LostCommit;
pub use options::DiskStoreOptions;
pub use recover::{RecoveredBucket, RecoveryOutcome, recover};
pub use verify::{check_format, is_data_dir, verify};

#[cfg(test)]
mod tests;
