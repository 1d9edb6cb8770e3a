//! The documents of a projector: for each bucket the current documents by id, and the change log
//! that they are derived from.
//!
//! # Overview
//!
//! Each bucket has one *change log* (`change_log`). Each change of the bucket is a record of that
//! log: mutations, new branches, rewinds, purge points, copied and removed vbuckets. A group of
//! statements is one record, one write and one sync, so a crash keeps all of it or nothing.
//!
//! The *document table* (`table`) is derived from the log: all documents by id, with those older
//! versions that a rewind or a snapshot can still need. A change is added to the table after the
//! log was synced: first in memory, and later the table is flushed to fragments of the storage
//! engine. The table's manifest has the LSN up to which the fragments are complete. When a bucket
//! is opened, later records of the log are replayed.
//!
//! # Invariants
//!
//! - No mutation is readable before its record is synced.
//! - A segment of the log is removed only when the table's manifest covers it, and when all its
//!   mutations are purged.
//! - The seqnos of a vbucket have no gap between its purge point and its end.
pub mod change_log;
pub mod document_store;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
#[cfg(any(test, feature = "testing"))]
pub mod memory;
pub mod mutation;
pub mod ownership;
pub mod record;
pub mod rules;
pub mod store;
pub mod table;

pub use document_store::{
    AddSorted, Batch, DamagedBucket, DamagedFiles, DocumentRef, DocumentSnapshot, DocumentStore,
    KnownLoss, LogExtent, LogRange, ShowBatch, StoredDocument,
};
#[cfg(any(test, feature = "testing"))]
pub use memory::MemoryStore;
pub use mutation::{Mutation, parse_stored};
pub use record::{BucketRecord, StoredId};
