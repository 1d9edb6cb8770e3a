//! An indexer as the other services see it: follows the catalog, reports, and answers scans and moves.

mod applied_watch;
mod catalog;
mod data_dir;
mod followers;
mod heartbeat;
mod indexer;

pub use indexer::{Indexer, Status};
