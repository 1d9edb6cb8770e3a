//! Shard scans: the scanner of a snapshot, and the table of open scans.

mod columns;
mod filter;
mod open_scans;
mod own;
mod scanner;
mod scope;
mod walks;

pub use columns::check;
pub use open_scans::{Patience, Scans};
pub use own::wait_for_own;
