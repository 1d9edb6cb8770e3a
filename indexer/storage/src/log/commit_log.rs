//! The commit log of a node: appends records, and tells its callers up to which record the log is
//! durable.

use std::path::Path;
use std::sync::{Arc, Mutex};

use proto::env::{Env, Task};
use proto::{Error, ErrorCode, Result};
use tokio::sync::{Notify, watch};

use crate::log::format::RECORD_BYTES_MAX;
use crate::log::lsn::Lsn;
use crate::log::options::LogOptions;
use crate::log::pending::PendingRecords;
use crate::log::recover::Recovery;
use crate::log::segment::Segments;
use crate::log::shared::{DurableEnd, LogState};
use crate::log::tail::TailSegment;
use crate::log::writer::LogWriter;

/// Bytes of pending records above which appenders wait: a slow disk must slow the stream down
/// instead of filling the memory.
pub(super) const PENDING_BYTES_MAX: usize = 64 << 20;

/// The advice in errors about a damaged log of an indexer.
const HINT: &str =
    "restore the file, or remove the node's data directory: the slices are then rebuilt";

/// The log, open for appending. Dropping the log stops the writer after the write in progress;
/// records that are not durable may be lost.
pub struct CommitLog {
    shared: Arc<LogState>,
    _writer: Task,
}

impl CommitLog {
    /// Opens or creates the log in a directory. Passes each record and the LSN of its end to
    /// `replay`, in order. Blocks the thread.
    pub fn open(
        env: &Env,
        dir: &Path,
        options: LogOptions,
        replay: &mut dyn FnMut(Lsn, &[u8]) -> Result<()>,
    ) -> Result<Self> {
        let recovery = Recovery {
            fs: &*env.fs,
            dir,
            from: 0,
            log_id: None,
            witness: None,
            synced: 0,
            random: &*env.random,
            hint: HINT,
        };
        let found = recovery.open_log(&mut |record| replay(record.end, record.payload))?;
        let shared = Arc::new(LogState {
            env: env.clone(),
            dir: dir.to_path_buf(),
            record_bytes_max: options.record_bytes_max.min(RECORD_BYTES_MAX),
            pending: Mutex::new(PendingRecords {
                bytes: Vec::new(),
                end: found.end,
                data_end: found.data_end,
                vouched: found.vouched,
                durable: found.end,
                wanted: 0,
            }),
            wake_writer: Notify::new(),
            wake_appenders: Notify::new(),
            durable: watch::Sender::new(DurableEnd { lsn: found.end, failed: None }),
            segments: Segments::new(found.bases),
            tail: Mutex::new(TailSegment::new(found.tail, options.segment_bytes, found.end)),
        });
        // Without it epochs and their waiters would hang for ever.
        let writer = LogWriter::new(Arc::clone(&shared), options.sync);
        Ok(Self { shared, _writer: env.spawn_service("commit-log", writer.run()) })
    }

    /// Appends a record and returns the LSN of its end. Waits while too many bytes are pending.
    /// The record is durable once [`Self::durable`] reaches that LSN. `OverLimit` if the record is
    /// too long.
    pub async fn append(&self, payload: &[u8]) -> Result<Lsn> {
        self.append_parts(&[payload]).await
    }

    /// Appends a record like [`Self::append`]. Its payload is the concatenation of `parts`; each
    /// part is copied once.
    pub async fn append_parts(&self, parts: &[&[u8]]) -> Result<Lsn> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let most = self.shared.record_bytes_max;
        if len > most {
            let message = format!("log record of {len} bytes exceeds the limit of {most} bytes");
            return Err(Error::new(ErrorCode::OverLimit, message));
        }
        let crc = parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part));
        loop {
            let waiting = self.shared.wake_appenders.notified();
            if let Some(failed) = &self.shared.durable.borrow().failed {
                return Err(failed.clone());
            }
            {
                let mut pending = self.shared.pending();
                let has_room = pending.bytes.len() + len <= PENDING_BYTES_MAX;
                if pending.bytes.is_empty() || has_room {
                    let end = pending.put(parts, len, crc);
                    self.shared.wake_writer.notify_one();
                    return Ok(end);
                }
            }
            waiting.await;
        }
    }

    /// Returns the LSN of the end of the last record or mark (a record without payload).
    pub fn end(&self) -> Lsn {
        self.shared.pending().end
    }

    /// Returns the number of bytes of records that wait to be written.
    pub fn pending_bytes(&self) -> u64 {
        self.shared.pending().bytes.len() as u64
    }

    /// Returns a receiver of the position up to which the log is durable. The receiver does not
    /// cause a sync, see [`crate::log::SyncPolicy::OnDemand`].
    pub fn durable(&self) -> watch::Receiver<DurableEnd> {
        self.shared.durable.subscribe()
    }

    /// Syncs the log up to an LSN, and waits for the sync.
    pub async fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        let mut durable = self.durable();
        {
            let mut pending = self.shared.pending();
            pending.wanted = pending.wanted.max(lsn);
        }
        self.shared.wake_writer.notify_one();
        let seen = durable
            .wait_for(|durable| durable.lsn >= lsn || durable.failed.is_some())
            .await
            .map_err(|_| Error::internal("the commit log is closed"))?;
        match &seen.failed {
            Some(failed) if seen.lsn < lsn => Err(failed.clone()),
            _ => Ok(()),
        }
    }

    /// Makes all records durable that were appended before the call.
    pub async fn sync(&self) -> Result<()> {
        let data_end = self.shared.pending().data_end;
        self.wait_durable(data_end).await
    }

    /// Removes the segments whose records all end at or before `lsn`, except the last segment.
    /// Blocks the thread.
    pub fn release(&self, lsn: Lsn) -> Result<()> {
        self.shared.segments.release(&*self.shared.env.fs, &self.shared.dir, lsn)
    }

    /// Returns the size in bytes of the segments that were not released.
    pub fn retained_bytes(&self) -> u64 {
        self.shared.segments.retained_bytes(self.end())
    }
}

impl Drop for CommitLog {
    fn drop(&mut self) {
        // Waits for a write in progress, which must not overlap with the next opening of the files.
        self.shared.tail().close();
    }
}
