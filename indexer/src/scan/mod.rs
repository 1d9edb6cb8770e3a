//! Shard scans: the scanner of a snapshot, and the table of open scans.

mod columns;
mod filter;
mod open_scans;
mod own_changes;
mod scanner;
mod scope;
mod walks;

pub use columns::check;
pub use open_scans::{Patience, Scans};
pub use own_changes::wait_for_own;
