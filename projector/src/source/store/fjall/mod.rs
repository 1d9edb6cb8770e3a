//! Documents on disk, in an LSM tree (`fjall`).
//!
//! | keyspace | key | value |
//! |---|---|---|
//! | `meta` | `cas` | catalog cas, 8 bytes |
//! | `meta` | `bucket/` id (8 bytes) | [`BucketRecord`], postcard |
//! | `docs-N` | document id | seqno (8 bytes), JSON |
//! | `meta` | `purged/` bucket (8 bytes), vbucket (2 bytes) | seqno (8 bytes) up to which the log was purged |
//! | `log-N` | vbucket (2 bytes), seqno (8 bytes) | kind, bytes of the log before, length of id, id, JSON |
//!
//! Integers are big-endian, so that a vbucket's log is a range in the order of its seqnos. A batch is
//! one `fjall` batch: one journal record, synced before it is applied to the trees and before its
//! version is visible. A torn record at the end of the journal is dropped when the store is opened.
//!
//! A purge is a batch too, of removals and purge points; it is not synced by itself, since what a crash takes of it
//! is whole again. The look-up of a log's first entry goes by the purge point, past what was removed and not yet
//! merged away.
//!
//! Keyspaces are made before the record that names them and dropped after it; what a crash leaves in
//! between has no record and is removed when the store is opened.

mod format;
mod log;
mod store;

pub use store::FjallStore;
