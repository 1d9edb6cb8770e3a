//! Settings of a log.

use std::sync::Arc;

use crate::fragment::OpenFiles;
use crate::log::format::RECORD_BYTES_MAX;
use crate::log::lsn::Lsn;

/// The rule that decides when written records are synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Each group of records is synced as soon as it is written.
    #[default]
    EachGroup,
    /// Records are synced when a caller of `CommitLog::wait_durable` waits, and before a segment
    /// is closed.
    OnDemand,
}

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Size in bytes above which a segment is closed. A release removes only complete segments:
    /// smaller segments are released sooner, but each costs three syncs.
    pub segment_bytes: u64,
    /// The rule that decides when written records are synced.
    pub sync: SyncPolicy,
    /// Maximum payload of a record in bytes; the format has a maximum too.
    pub record_bytes_max: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        let record_bytes_max = RECORD_BYTES_MAX;
        Self { segment_bytes: 32 << 20, sync: SyncPolicy::default(), record_bytes_max }
    }
}

/// The settings of a direct log, and the contents that its opener expects.
#[derive(Clone, Debug)]
pub struct DirectLogOptions {
    /// Size above which a segment is closed, in bytes.
    pub segment_bytes: u64,
    /// The pool of open files, which logs can share; `None` for a small separate pool.
    pub open_files: Option<Arc<OpenFiles>>,
    /// The expected id of the log; `None` if the opener does not know it. If an id is expected,
    /// the log must exist and is never created.
    pub log_id: Option<u64>,
    /// The LSN before which the opener needs no record. Segments that end before it are not
    /// replayed.
    pub from: Lsn,
    /// The LSN up to which the opener knows the log to be synced: damage or missing records before
    /// it are never taken for the effect of a crash.
    pub synced: Lsn,
    /// The advice in errors about a damaged log.
    pub hint: &'static str,
}
