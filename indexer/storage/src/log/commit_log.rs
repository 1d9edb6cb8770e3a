//! The log as its callers have it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use proto::env::{Env, Task};
use proto::{Error, ErrorCode, Result};
use tokio::sync::{Notify, watch};

use crate::log::format::RECORD_BYTES_MAX;
use crate::log::lsn::Lsn;
use crate::log::options::LogOptions;
use crate::log::pending::Pending;
use crate::log::recover;
use crate::log::segment::Segments;
use crate::log::shared::{Durable, Shared};
use crate::log::tail::Tail;
use crate::log::writer::Writer;

/// Appenders wait while more than this waits to be written: a disk that is slower than that for long
/// must slow the stream, and not fill the memory.
pub(super) const PENDING_BYTES_MAX: usize = 64 << 20;

/// The log, open for appending. Dropping it stops the writer, waiting for a write that is on its way;
/// what was not yet durable may be lost.
pub struct CommitLog {
    shared: Arc<Shared>,
    _writer: Task,
}

impl CommitLog {
    /// Opens or creates the log in a directory and hands each of its records to `replay`, in order,
    /// with the LSN at which it ends. Blocks.
    pub fn open(
        env: &Env,
        dir: &Path,
        options: LogOptions,
        replay: &mut dyn FnMut(Lsn, &[u8]) -> Result<()>,
    ) -> Result<Self> {
        let found = recover::recover(&*env.fs, dir, replay)?;
        let shared = Arc::new(Shared {
            env: env.clone(),
            dir: dir.to_path_buf(),
            record_bytes_max: options.record_bytes_max.min(RECORD_BYTES_MAX),
            pending: Mutex::new(Pending {
                bytes: Vec::new(),
                end: found.end,
                data_end: found.data_end,
                vouched: found.vouched,
                durable: found.end,
                wanted: 0,
            }),
            wake_writer: Notify::new(),
            wake_appenders: Notify::new(),
            durable: watch::Sender::new(Durable { lsn: found.end, failed: None }),
            segments: Segments::new(found.bases),
            tail: Mutex::new(Tail::new(found.tail, options.segment_bytes, found.end)),
        });
        let writer = Writer::new(Arc::clone(&shared), options.sync);
        Ok(Self { shared, _writer: env.spawn("commit-log", writer.run()) })
    }

    /// Appends a record and says where it ends; waits while too much is pending. It is durable when
    /// [`Self::durable`] has reached that place. `OverLimit` where it is too long.
    pub async fn append(&self, payload: &[u8]) -> Result<Lsn> {
        self.append_parts(&[payload]).await
    }

    /// As [`Self::append`], for a payload in parts: each is copied once, into the group.
    pub async fn append_parts(&self, parts: &[&[u8]]) -> Result<Lsn> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let most = self.shared.record_bytes_max;
        if len > most {
            let message = format!("a log record of {len} bytes, {most} are the most");
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

    /// Where the last record ends, or the mark behind it.
    pub fn end(&self) -> Lsn {
        self.shared.pending().end
    }

    /// Bytes of records that wait to be written.
    pub fn pending_bytes(&self) -> u64 {
        self.shared.pending().bytes.len() as u64
    }

    /// How far the log is durable, to be watched. Watching makes nothing durable:
    /// see [`SyncPolicy::OnDemand`].
    pub fn durable(&self) -> watch::Receiver<Durable> {
        self.shared.durable.subscribe()
    }

    /// Waits until a place is durable, and has the log synced for it.
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

    /// Makes all that was appended before durable.
    pub async fn sync(&self) -> Result<()> {
        let data_end = self.shared.pending().data_end;
        self.wait_durable(data_end).await
    }

    /// Nobody needs the records that end at or before `lsn` any more: removes the segments that hold
    /// no others, but never the last. Blocks.
    pub fn release(&self, lsn: Lsn) -> Result<()> {
        self.shared.segments.release(&*self.shared.env.fs, &self.shared.dir, lsn)
    }

    /// Bytes of the segments that were not released.
    pub fn held_bytes(&self) -> u64 {
        self.shared.segments.held_bytes(self.end())
    }
}

impl Drop for CommitLog {
    fn drop(&mut self) {
        // A write that runs on a thread of its own must not meet the next one who opens the files.
        self.shared.tail().close();
    }
}
