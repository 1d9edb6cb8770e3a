//! The projector: keeps the documents of embedded and pushed buckets, evaluates the expressions of
//! indexes over them, and streams the resulting key-versions to indexers. It never knows where an index
//! lives: the router, inward, tells it which node gets what.
//!
//! ```text
//!  write, push ─▶ check ─▶ writer (numbers, group commit) ─▶ DocumentStore
//!                             │ publishes
//!                             ▼
//!                          Bucket (durable cut, head, timestamps) ◀─ follow (catalog, epochs)
//!                             │                          └─▶ follow (SYNC) ─▶ coordinator
//!                             ▼
//!                   stream, backfill ─▶ document_keys ─▶ indexers
//!
//!  purge (keeps change logs within their bound) ─▶ DocumentStore
//! ```

mod config;
mod feed;
mod follow;
mod hand_over;
mod keys;
mod projector;
mod purge;
mod service;
mod source;

pub use config::Config;
pub use projector::Projector;
pub use service::Service;
pub use source::{DocumentStore, FjallStore};

/// The store in memory and what is in a store, for tests.
#[cfg(feature = "testing")]
pub mod testing {
    pub use crate::source::{BucketRecord, DocumentStore, MemoryStore, Mutation, StoredDocument};
}
