//! The seams for the time of day and for random numbers.

/// Wall-clock time. For durations use `tokio::time`, which the simulation drives.
pub trait Clock: Send + Sync + 'static {
    /// Returns the milliseconds since 1970-01-01 UTC. May jump in either direction.
    fn unix_ms(&self) -> u64;
}

/// A source of random numbers.
pub trait Random: Send + Sync + 'static {
    /// Returns 64 random bits.
    fn next_u64(&self) -> u64;
}
