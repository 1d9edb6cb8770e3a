//! The indexer service: follows the catalog, sends heartbeats, and answers scans and moves.

mod applied_watch;
mod catalog;
mod followers;
mod heartbeat;
mod indexer;

pub use indexer::{Indexer, Status};
