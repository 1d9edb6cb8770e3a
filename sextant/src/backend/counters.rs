//! What the SQL and gRPC ports count.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;

/// What the ports count, since the process began.
#[derive(Debug, Default)]
pub struct Counters {
    /// Scans begun.
    pub scans: Counter<u64, AtomicU64>,
    /// Rows handed out by scans.
    pub scan_rows: Counter<u64, AtomicU64>,
    /// Documents written or removed.
    pub documents: Counter<u64, AtomicU64>,
    /// Replicated commands.
    pub commands: Counter<u64, AtomicU64>,
}
