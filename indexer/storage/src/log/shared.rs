//! What the callers of a log and its writer share.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use proto::Error;
use proto::env::Env;
use tokio::sync::{Notify, watch};

use crate::lock::lock;
use crate::log::lsn::Lsn;
use crate::log::pending::Pending;
use crate::log::segment::Segments;
use crate::log::tail::Tail;

/// How far the log is durable, or why it will never be again.
#[derive(Clone, Debug)]
pub struct Durable {
    /// All records that end at or before this are durable.
    pub lsn: Lsn,
    /// The first write or sync that failed; nothing is written after it.
    pub failed: Option<Error>,
}

/// What callers and the writer share.
pub(super) struct Shared {
    pub(super) env: Env,
    pub(super) dir: PathBuf,
    pub(super) record_bytes_max: usize,
    pub(super) pending: Mutex<Pending>,
    pub(super) wake_writer: Notify,
    pub(super) wake_appenders: Notify,
    pub(super) durable: watch::Sender<Durable>,
    pub(super) segments: Segments,
    /// The file that is written to; taken for each write.
    pub(super) tail: Mutex<Tail>,
}

impl Shared {
    pub(super) fn pending(&self) -> MutexGuard<'_, Pending> {
        lock(&self.pending)
    }

    pub(super) fn tail(&self) -> MutexGuard<'_, Tail> {
        lock(&self.tail)
    }
}
