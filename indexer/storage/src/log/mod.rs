//! The commit log of a node, shared by its slices: checksummed records in segment files.
//!
//! Callers append records to a buffer and go on; one writer takes all that has gathered, writes it with
//! one call and syncs it with another (group commit), and then tells how far the log is durable. A
//! record has a place, its [`Lsn`]: how many bytes of records were ever logged before it. It only
//! grows, over segments and restarts, and names the segment files:
//!
//! ```text
//! DIR/00000000000000000000.log      the records from LSN 0 on
//! DIR/00000000000067108931.log      those from LSN 67108931 on
//!
//! segment := "SXLG" version:u32 base:u64 crc:u32  record*                     (little endian)
//! record  := magic:u32 len:u32 payload_crc:u32 header_crc:u32 durable:u64  payload[len]
//! ```
//!
//! `header_crc` covers the rest of the header and the record's LSN, so that a length is believed only
//! if it is right, and a record only where it was written. `durable` is how far the log was known to be
//! synced when the record was written. It tells damage from a torn tail: what a crash may have torn
//! lies behind every `durable` ever written, so a bad record below the largest `durable` found behind it
//! is damage, which opening the log names; a bad record above it is the torn tail, and is cut off. A
//! writer with nothing to do appends a *mark*, a record without a payload that is never replayed, so
//! that the last records, too, have something behind them that vouches for them.
//!
//! What always holds of the files:
//!
//! - A record never crosses segments, and a segment begins where the one before it ends.
//! - A segment is created only after all of the one before it is synced, and gets its first record only
//!   after its header and its name are synced. So only the last segment can be torn, and one that is no
//!   longer than its header holds nothing.
//! - The oldest segment is removed first, and its removal is synced before the next one's: what a crash
//!   leaves has no gap. The last one is never removed, so that LSNs go on from it.
//!
//! A failed write or sync stops the log for good (what a disk keeps after a failed sync is not known);
//! who appends or waits is told. A disk that is full is waited for: the same write is done again.

mod describe;
mod format;
mod reader;
mod recover;
mod segment;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use proto::env::{Env, Task};
use proto::{Error, ErrorCode, Result};
use tokio::sync::{Notify, watch};

pub use describe::{RecordInfo, RecordState, SegmentInfo, describe};
pub(super) use format::SEGMENT_HEADER_BYTES;
use format::{RECORD_BYTES_MAX, RECORD_HEADER_BYTES};
use segment::Segments;
use writer::{Tail, Writer};

/// Appenders wait while more than this waits to be written: a disk that is slower than that for long
/// must slow the stream, and not fill the memory.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// A place in the log: bytes of records ever logged before it.
pub type Lsn = u64;

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

/// How far the log is durable, or why it will never be again.
#[derive(Clone, Debug)]
pub struct Durable {
    /// All records that end at or before this are durable.
    pub lsn: Lsn,
    /// The first write or sync that failed; nothing is written after it.
    pub failed: Option<Error>,
}

/// The log, open for appending. Dropping it stops the writer, waiting for a write that is on its way;
/// what was not yet durable may be lost.
pub struct CommitLog {
    shared: Arc<Shared>,
    _writer: Task,
}

/// What callers and the writer share.
struct Shared {
    env: Env,
    dir: PathBuf,
    record_bytes_max: usize,
    pending: Mutex<Pending>,
    wake_writer: Notify,
    wake_appenders: Notify,
    durable: watch::Sender<Durable>,
    segments: Segments,
    /// The file that is written to; taken for each write.
    tail: Mutex<Tail>,
}

/// What was appended and not yet given to the writer.
struct Pending {
    bytes: Vec<u8>,
    /// The LSN behind `bytes`.
    end: Lsn,
    /// The LSN behind the last record that is not a mark.
    data_end: Lsn,
    /// How far the last record in the log says that the log is durable.
    vouched: Lsn,
    /// How far the log is durable, as in the watch.
    durable: Lsn,
    /// How far somebody wants it to be.
    wanted: Lsn,
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

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        lock(&self.pending)
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        lock(&self.tail)
    }
}

impl Pending {
    /// Puts a record into the group and returns where it ends.
    fn put(&mut self, parts: &[&[u8]], len: usize, payload_crc: u32) -> Lsn {
        let header = format::Header::data(len as u32, payload_crc, self.durable);
        self.bytes.reserve(RECORD_HEADER_BYTES + len);
        self.bytes.extend_from_slice(&header.encode(self.end));
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.vouched = self.durable;
        self.end += (RECORD_HEADER_BYTES + len) as u64;
        self.data_end = self.end;
        self.end
    }

    /// Puts a mark into the group.
    fn put_mark(&mut self) {
        let header = format::Header::mark(self.durable);
        self.bytes.extend_from_slice(&header.encode(self.end));
        self.vouched = self.durable;
        self.end += RECORD_HEADER_BYTES as u64;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod tests;
