//! Documents on disk, in an LSM tree (`fjall`).
//!
//! | keyspace | key | value |
//! |---|---|---|
//! | `meta` | `cas` | catalog cas, 8 bytes |
//! | `meta` | `bucket/` id (8 bytes) | `BucketRecord`, postcard |
//! | `meta` | `unique/` id (8 bytes) | `StoredId`, postcard |
//! | `docs-N` | document id | seqno (8 bytes), JSON |
//! | `meta` | `purged/` bucket (8 bytes), vbucket (2 bytes) | seqno (8 bytes) up to which the log was purged |
//! | `log-N` | vbucket (2 bytes), seqno (8 bytes) | kind, bytes of the log before, length of id, id, JSON |
//!
//! Integers are big-endian, so that a vbucket's log is a key range in the order of its seqnos. A batch is one `fjall`
//! batch: one journal record, which is synced before it is applied to the trees and before its version is visible.
//! Opening the store drops a torn record at the end of the journal.
//!
//! A purge is also a batch, of removals and purge points. It is not synced by itself, because a crash can only undo
//! it as a whole. The lookup of a log's first entry starts at the purge point and skips removed entries that are not
//! compacted yet.
//!
//! Keyspaces are created before the record that names them and dropped after it. A keyspace without a record, which a
//! crash may leave, is removed when the store is opened.

mod format;
mod log;
mod store;

pub use store::FjallStore;
