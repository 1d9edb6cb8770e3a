//! Settings of a log.

use crate::log::format::RECORD_BYTES_MAX;

/// When what was written is synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Each group, at once.
    #[default]
    EachGroup,
    /// When somebody waits in [`CommitLog::wait_durable`], and before a segment is closed.
    OnDemand,
}

/// How a log is written.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// A segment above this is closed and the next one begun. Segments are what is released: smaller
    /// ones are released sooner, and each costs three syncs.
    pub segment_bytes: u64,
    /// When what was written is synced.
    pub sync: SyncPolicy,
    /// Records above this are refused; no more than the format can have.
    pub record_bytes_max: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        let record_bytes_max = RECORD_BYTES_MAX;
        Self { segment_bytes: 32 << 20, sync: SyncPolicy::default(), record_bytes_max }
    }
}
