//! Settings of a log.

use std::sync::Arc;

use crate::fragment::OpenFiles;
use crate::log::format::RECORD_BYTES_MAX;
use crate::log::lsn::Lsn;

/// When written records are synced: always, or only when a caller waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// At once, for each group.
    #[default]
    EachGroup,
    /// Records are synced when a caller of `CommitLog::wait_durable` waits, and before a segment is closed.
    OnDemand,
}

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Size above which a segment is closed. Release works in whole segments: smaller segments are
    /// released sooner, but each costs three syncs.
    pub segment_bytes: u64,
    /// When written records are synced.
    pub sync: SyncPolicy,
    /// Maximum record size; bounded by the maximum of the format.
    pub record_bytes_max: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        let record_bytes_max = RECORD_BYTES_MAX;
        Self { segment_bytes: 32 << 20, sync: SyncPolicy::default(), record_bytes_max }
    }
}

/// Settings of a direct log, and its opener's knowledge of its contents.
#[derive(Clone, Debug)]
pub struct DirectLogOptions {
    /// Size above which a segment is closed.
    pub segment_bytes: u64,
    /// The pool of open files, which logs can share; `None` for a small pool of its own.
    pub open_files: Option<Arc<OpenFiles>>,
    /// The id of the log; `None` if the opener does not know the log yet. A known log is never created.
    pub log_id: Option<u64>,
    /// The opener has all records before this LSN. Segments that end before it are not replayed.
    pub from: Lsn,
    /// The log was synced up to this LSN, as far as the opener knows: damage or missing records before it are never taken for the effect of
    /// a crash.
    pub synced: Lsn,
    /// The remedy for damage.
    pub hint: &'static str,
}
