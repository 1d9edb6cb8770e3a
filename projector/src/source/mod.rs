//! The embedded source: documents by id, and for each vbucket the log of all changes that made them.
//!
//! A [`DocumentStore`] keeps three things: a record of each bucket (definition and branches), its
//! documents, each with the seqno of its last change, and its change log by (vbucket, seqno). The two
//! implementations differ in where the bytes are: [`FjallStore`] on disk, and
//! its twin in memory for the simulation, which can lose what was never synced.
//!
//! What holds at every moment, and after any crash:
//!
//! - a [`Batch`] is in documents, log and records, or in none of them;
//! - nobody reads a batch before it is durable, so what is streamed cannot be lost;
//! - the seqnos of a vbucket's log have no gap, and its last one is the vbucket's position: positions are
//!   read from the log when a store is opened, never kept beside it;
//! - a log begins behind its *purge point*: what is at or before it was removed, so that logs are bounded
//!   (`crate::purge`). The point and the removal are one batch, and the last entry always stays;
//! - a vbucket of which something is here has a log or a purge point, and so an end beyond zero. One that is copied
//!   from elsewhere by its documents begins with the purge point, and one that is removed ends with it. A vbucket
//!   that is not here *as a whole* is known by that: it has an end and no branches ([`is_part`]).
//!
//! The calls block; they are made inside `Env::blocking`. Numbering, duplicate ids and the order of
//! writers are not the store's business but [`writer`]'s, and what is published to readers is
//! [`bucket`]'s.

pub mod backlog;
pub mod bucket;
mod check;
pub mod embedded;
pub mod mutation;
pub mod ownership;
mod pending;
pub mod push;
pub mod record;
pub mod store;
pub mod writer;

pub use mutation::{Mutation, parse_stored};
pub use record::BucketRecord;
#[cfg(test)]
pub use store::document_store::{Batch, BucketChanges};
pub use store::document_store::{
    DocumentSnapshot, DocumentStore, LogExtent, LogRange, StoredDocument,
};
pub use store::fjall::FjallStore;
#[cfg(any(test, feature = "testing"))]
pub use store::memory::MemoryStore;
