//! Places in the log.

/// A place in the log: bytes of records ever logged before it.
pub type Lsn = u64;
