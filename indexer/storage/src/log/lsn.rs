//! The log sequence number, which identifies a position in a log.

/// Log sequence number of a position: the number of record bytes that were logged before it since
/// the log was created.
pub type Lsn = u64;
