//! Shard scans: the scanner that reads a snapshot of slices, its filter, and the table of open
//! scans.

mod columns;
mod filter;
mod open_scans;
mod own_changes;
mod scanner;
mod scope;
mod walks;

pub use columns::check_scan;
pub use open_scans::{ScanTimeouts, Scans};
pub use own_changes::wait_for_own_changes;
