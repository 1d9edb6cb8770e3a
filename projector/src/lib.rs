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

mod backfill;
mod check;
pub mod config;
pub mod document_keys;
mod follow;
mod hand_over;
mod log_reader;
mod purge;
pub mod service;
pub mod source;
mod stream;
mod task_stream;

pub use config::Config;
pub use service::{Projector, Service};
