//! Scans of shards: the walk over a snapshot, and the table of those that are open.

mod open_scans;
mod scanner;

pub use open_scans::{Patience, Scans};
pub use scanner::check;
