//! Shard scans: the scanner of a snapshot, and the table of open scans.

mod open_scans;
mod scanner;

pub use open_scans::{Patience, Scans};
pub use scanner::check;
