//! The commit log of a node, shared by its slices: checksummed records in segment files.
//!
//! Callers append records to a buffer and go on; one writer takes all that has gathered, writes it with
//! one call and syncs it with another (group commit), and then tells how far the log is durable. A
//! record has a place, its [`Lsn`]: how many bytes of records were ever logged before it. It only
//! grows, over segments and restarts, and names the segment files:
//!
//! ```text
//! DIR/00000000000000000000.log      the records from LSN 0 on
//! DIR/00000000000067108931.log      those from LSN 67108931 on
//!
//! segment := "SXLG" version:u32 base:u64 crc:u32  record*                     (little endian)
//! record  := magic:u32 len:u32 payload_crc:u32 header_crc:u32 durable:u64  payload[len]
//! ```
//!
//! `header_crc` covers the rest of the header and the record's LSN, so that a length is believed only
//! if it is right, and a record only where it was written. `durable` is how far the log was known to be
//! synced when the record was written. It tells damage from a torn tail: what a crash may have torn
//! lies behind every `durable` ever written, so a bad record below the largest `durable` found behind it
//! is damage, which opening the log names; a bad record above it is the torn tail, and is cut off. A
//! writer with nothing to do appends a *mark*, a record without a payload that is never replayed, so
//! that the last records, too, have something behind them that vouches for them.
//!
//! What always holds of the files:
//!
//! - A record never crosses segments, and a segment begins where the one before it ends.
//! - A segment is created only after all of the one before it is synced, and gets its first record only
//!   after its header and its name are synced. So only the last segment can be torn, and one that is no
//!   longer than its header holds nothing.
//! - The oldest segment is removed first, and its removal is synced before the next one's: what a crash
//!   leaves has no gap. The last one is never removed, so that LSNs go on from it.
//!
//! A failed write or sync stops the log for good (what a disk keeps after a failed sync is not known);
//! who appends or waits is told. A disk that is full is waited for: the same write is done again.

pub(crate) mod commit_log;
pub(crate) mod describe;
pub(crate) mod format;
pub(crate) mod lsn;
pub(crate) mod options;
pub(crate) mod pending;
pub(crate) mod reader;
pub(crate) mod recover;
pub(crate) mod segment;
pub(crate) mod shared;
pub(crate) mod tail;
pub(crate) mod writer;

pub use commit_log::CommitLog;
pub use describe::{RecordInfo, RecordState, SegmentInfo, describe};
pub use lsn::Lsn;
pub use options::{LogOptions, SyncPolicy};
pub use shared::Durable;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod tests;
