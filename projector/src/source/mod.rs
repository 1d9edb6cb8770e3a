//! The sources of buckets, with their documents, and the log of all changes of each vbucket.
//!
//! A [`DocumentStore`] holds three things: a record of each bucket (definition and branches), its
//! documents with the seqno of their last change, and its change log by (vbucket, seqno). There
//! are two implementations: [`documents::store::DiskStore`], and a model in memory for tests.
//!
//! The following holds at every moment and after any crash:
//!
//! - A [`Batch`] is in log and records, or in neither. The documents are updated in the order of
//!   the log; after a crash they include all changes in the log.
//! - No batch is readable before it is durable, so streamed mutations cannot be lost.
//! - The seqnos of a vbucket's log have no gap, and the last one is the vbucket's position.
//! - A log begins after its *purge point*. All entries up to the point were removed, so that logs
//!   are bounded (`crate::purge`). The point is set and the entries are removed in one step.
//! - A vbucket with any data has a log or a purge point, and so its end is greater than zero. If
//!   a vbucket is copied by its documents, its purge point is stored first; if a vbucket is
//!   removed, its purge point is removed last. A *partial* vbucket has an end and no branches
//!   ([`documents::record::is_partial`]).
//!
//! Everything that depends on the kind of a source (embedded or pushed) is defined by
//! [`kind::Source`]; [`registry`] lists the kinds.
//!
//! The calls block; callers use `Env::blocking`. The [`writer`] of each bucket is responsible for
//! numbering, duplicate ids and the order of writes, and [`bucket`] for the readers' view.

pub mod check;
pub mod commits;
pub mod embedded;
pub mod files;
pub mod groups;
pub mod kind;
mod pending;
pub mod push;
pub mod registry;
pub mod view;
pub mod writer;

#[cfg(test)]
pub use documents::Batch;
#[cfg(any(test, feature = "testing"))]
pub use documents::MemoryStore;
pub use documents::{
    AddSorted, BucketRecord, DocumentRef, DocumentSnapshot, DocumentStore, KnownLoss, LogExtent,
    LogRange, Mutation, StoredDocument, StoredId, parse_stored,
};
#[cfg(feature = "testing")]
pub use documents::{DamagedBucket, DamagedFiles};
