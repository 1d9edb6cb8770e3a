//! Log sequence numbers.

/// Log sequence number: the number of record bytes logged before a place, since the log was
/// created.
pub type Lsn = u64;
