//! Counters of the SQL and gRPC ports.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use proto::lock::lock;
use proto::model::ids::IndexId;
use tokio::time::Instant;

/// The upper bounds of the classes of a latency histogram, in seconds.
const LATENCY_S: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// The maximum number of indexes with counters. When it is exceeded, the counters of dropped
/// indexes are removed. The catalog has at most half as many indexes.
const INDEXES_MAX: usize = 4096;

/// Counters of the SQL and gRPC ports since the process started.
#[derive(Debug)]
pub struct Counters {
    /// The number of scans started.
    pub scans: Counter<u64, AtomicU64>,
    /// The number of rows returned by scans.
    pub scan_rows: Counter<u64, AtomicU64>,
    /// The number of documents written or deleted.
    pub documents: Counter<u64, AtomicU64>,
    /// The number of replicated commands.
    pub commands: Counter<u64, AtomicU64>,
    /// The times from a request for a scan until the scan has its epoch and requests its first
    /// rows.
    pub scan_start: Histogram,
    /// The times from the start of a scan to its end, including the time that the client takes to
    /// read the rows.
    pub scan_whole: Histogram,
    /// The durations of writes.
    pub write: Histogram,
    /// The durations of replicated commands.
    pub command: Histogram,
    index_scans: Mutex<BTreeMap<IndexId, u64>>,
    /// The number of errors by SQLSTATE. All SQLSTATEs are constants of the program, so their
    /// number is bounded.
    errors: Mutex<BTreeMap<&'static str, u64>>,
}

impl Default for Counters {
    fn default() -> Self {
        let latency = || Histogram::new(LATENCY_S);
        Self {
            scans: Counter::default(),
            scan_rows: Counter::default(),
            documents: Counter::default(),
            commands: Counter::default(),
            scan_start: latency(),
            scan_whole: latency(),
            write: latency(),
            command: latency(),
            index_scans: Mutex::default(),
            errors: Mutex::default(),
        }
    }
}

impl Counters {
    /// Counts a scan that was requested at the time `asked` and has begun.
    pub fn scan_begun(&self, index: IndexId, asked: Instant) {
        self.scans.inc();
        self.scan_start.observe(asked.elapsed().as_secs_f64());
        let mut scans = lock(&self.index_scans);
        if scans.len() < INDEXES_MAX || scans.contains_key(&index) {
            *scans.entry(index).or_default() += 1;
        }
    }

    /// Counts an error that is returned to a client.
    pub fn count_error(&self, sqlstate: &'static str) {
        *lock(&self.errors).entry(sqlstate).or_default() += 1;
    }

    /// Returns the number of scans of each index for which `exists` returns true. Removes the
    /// counts of all other indexes.
    pub fn index_scans(&self, exists: impl Fn(IndexId) -> bool) -> BTreeMap<IndexId, u64> {
        let mut scans = lock(&self.index_scans);
        scans.retain(|index, _| exists(*index));
        scans.clone()
    }

    /// Returns the number of errors by SQLSTATE.
    pub fn errors(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.errors).clone()
    }
}
