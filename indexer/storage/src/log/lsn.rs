//! Log sequence numbers.

/// Log sequence number: the number of record bytes that were ever logged before a place.
pub type Lsn = u64;
