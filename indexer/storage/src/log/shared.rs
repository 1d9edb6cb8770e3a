//! State shared by the callers of a log and its writer.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use proto::Error;
use proto::env::Env;
use proto::lock::lock;
use tokio::sync::{Notify, watch};

use crate::log::lsn::Lsn;
use crate::log::pending::PendingRecords;
use crate::log::segment::Segments;
use crate::log::tail::TailSegment;

/// The position up to which a log is durable, and the reason why the log has stopped, if it has.
#[derive(Clone, Debug)]
pub struct DurableEnd {
    /// All records that end at or before this LSN are durable.
    pub lsn: Lsn,
    /// The error of the first failed write or sync; nothing is written after it.
    pub failed: Option<Error>,
}

/// State that the callers of a log and its writer share.
pub(super) struct LogState {
    pub(super) env: Env,
    pub(super) dir: PathBuf,
    pub(super) record_bytes_max: usize,
    pub(super) pending: Mutex<PendingRecords>,
    pub(super) wake_writer: Notify,
    pub(super) wake_appenders: Notify,
    pub(super) durable: watch::Sender<DurableEnd>,
    pub(super) segments: Segments,
    /// The last segment, to which records are written; locked during each write.
    pub(super) tail: Mutex<TailSegment>,
}

impl LogState {
    /// Locks the pending records.
    pub(super) fn pending(&self) -> MutexGuard<'_, PendingRecords> {
        lock(&self.pending)
    }

    /// Locks the last segment.
    pub(super) fn tail(&self) -> MutexGuard<'_, TailSegment> {
        lock(&self.tail)
    }
}
