//! Logs: checksummed records in segment files. [`CommitLog`] is the commit log of a node, shared by
//! its slices; [`DirectLog`] has the same format and blocks its callers.
//!
//! Callers of a commit log append records to a buffer and continue. One writer takes all buffered
//! records, writes them with one call, syncs them with another call (group commit), and then
//! publishes the position up to which the log is durable. The place of a record is its [`Lsn`]:
//! the number of record bytes that were ever logged before it. LSNs only grow, across segments and
//! restarts. A segment file is named by the LSN of its beginning:
//!
//! ```text
//! DIR/00000000000000000000.log      the records from LSN 0 on
//! DIR/00000000000067108931.log      those from LSN 67108931 on
//!
//! segment := "sxlg" version:u32 base:u64 log_id:u64 chain:u32 crc:u32  record*         (little endian)
//! record  := magic:u32 len:u32 payload_crc:u32 header_crc:u32 durable:u64  payload[len]
//! ```
//!
//! `log_id` is a random number that all segments of a log share. `chain` is a checksum over all
//! earlier segments: the CRC-32C over the `crc` of their headers and the `header_crc` of all their
//! records, in order (`log/chain.rs`). So a segment of another log, an older copy and an exchanged
//! segment are damage, and are never replayed. The chain of the first retained segment is trusted.
//!
//! `header_crc` covers the rest of the header and the record's LSN. So a wrong length is detected,
//! and so is a record that is not at the place where it was written.
//!
//! `durable` is the position up to which the log was known to be synced when the record was
//! written. This field distinguishes damage from a torn tail (records that a crash has left
//! incomplete). A crash can tear only data after every `durable` ever written. So a bad record
//! below the largest `durable` found after it is damage, which opening the log reports. A bad
//! record above it is the torn tail, which opening the log removes. An idle writer appends a
//! *mark*, a record without payload that is never replayed, so that a `durable` also covers the
//! last records.
//!
//! # Invariants (`log/invariants.rs`)
//!
//! - A record never crosses segments, and a segment begins where the segment before it ends.
//! - A new segment is created only after the segment before it is synced. Its first record follows
//!   only after its header and its name are synced. So only the last segment can be torn, and a
//!   segment that is no longer than its header has no records.
//! - The oldest segment is removed first, and its removal is synced before the next removal. So a
//!   crash leaves no gap.
//! - The last segment is never removed, so that LSNs continue from it.
//! - The log never contains a record after a failed write or sync.
//!
//! A failed write or sync stops the log for good, because the content of a disk after a failed sync
//! is unknown; appenders and waiters get the error. A full disk does not stop a commit log: the
//! writer retries the same write. It stops a direct log, whose caller opens it again.

mod chain;
pub(crate) mod commit_log;
pub(crate) mod describe;
pub(crate) mod direct_log;
pub(crate) mod format;
#[cfg(debug_assertions)]
mod invariants;
pub(crate) mod lsn;
pub(crate) mod options;
pub(crate) mod pending;
pub(crate) mod reader;
pub(crate) mod recover;
pub(crate) mod segment;
pub(crate) mod segment_files;
pub(crate) mod shared;
pub(crate) mod tail;
pub(crate) mod witness;
pub(crate) mod writer;

pub use commit_log::CommitLog;
pub use describe::{RecordInfo, RecordState, SegmentInfo, describe, scan_segment, segment_log_id};
pub use direct_log::DirectLog;
pub use lsn::Lsn;
pub use options::{DirectLogOptions, LogOptions, SyncPolicy};
pub use recover::{LogRecord, Replay};
pub use segment::{segment_bases, segment_path};
pub use shared::DurableEnd;
pub use witness::Witness;

/// Bytes of a record in addition to its payload.
pub const RECORD_OVERHEAD_BYTES: u64 = format::RECORD_HEADER_BYTES as u64;
/// Bytes of a segment before its first record.
pub const SEGMENT_OVERHEAD_BYTES: u64 = format::SEGMENT_HEADER_BYTES as u64;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod direct_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod tests;
