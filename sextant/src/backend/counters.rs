//! Counters of the SQL and gRPC ports.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;

/// Counters of the SQL and gRPC ports since the process started.
#[derive(Debug, Default)]
pub struct Counters {
    /// Scans started.
    pub scans: Counter<u64, AtomicU64>,
    /// Rows returned by scans.
    pub scan_rows: Counter<u64, AtomicU64>,
    /// Documents written or deleted.
    pub documents: Counter<u64, AtomicU64>,
    /// Replicated commands.
    pub commands: Counter<u64, AtomicU64>,
}
