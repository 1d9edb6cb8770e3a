//! The commit log of a node, shared by its slices: one append-only file of checksummed records.
//!
//! Callers append records to a buffer and go on; one writer takes all that has gathered, writes it with
//! one call and syncs it with another (group commit), and then tells how far the log is durable. A
//! record is replayed after a crash only if it is whole.
//!
//! ```text
//! file   := "SXLG" version:u32  record*
//! record := magic:u32  len:u32  crc:u32  durable:u64  payload[len]      (little endian)
//! ```
//!
//! `crc` is CRC-32C over `len`, `durable` and the payload. `durable` is how far the log was known to
//! be synced when the record was written: it tells damage from a torn tail. What a crash may have torn
//! lies behind every `durable` ever written, since nothing is written behind an unsynced group that
//! claims more; so a bad record below the largest `durable` found in the file is damage, and opening
//! the log says where; a bad record above it is the torn tail, and is cut off.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use proto::env::{Env, File, OpenMode, Task};
use proto::{Error, ErrorCode, Result};
use tokio::sync::{Notify, watch};

const FILE_MAGIC: &[u8; 4] = b"SXLG";
const VERSION: u32 = 1;
const FILE_HEADER_BYTES: u64 = 8;
const RECORD_MAGIC: u32 = 0x5ec0_4d11;
const RECORD_HEADER_BYTES: usize = 20;
/// A record above this is damage: an epoch of this size would not have been accepted.
const RECORD_BYTES_MAX: usize = 1 << 30;
/// Appenders wait while more than this waits to be written.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// A place in the log: the offset behind a record.
pub type Lsn = u64;

/// The log, open for appending. Dropping it stops the writer; what was not yet durable may be lost.
pub struct CommitLog {
    shared: Arc<Shared>,
    _writer: Task,
}

struct Shared {
    pending: Mutex<Pending>,
    wake_writer: Notify,
    wake_appenders: Notify,
    durable: watch::Sender<Durable>,
}

struct Pending {
    bytes: Vec<u8>,
    /// The offset behind `bytes`.
    end: Lsn,
}

/// How far the log is durable, or why it will never be again.
#[derive(Clone, Debug)]
pub struct Durable {
    /// All records that end at or before this are durable.
    pub lsn: Lsn,
    /// The first write or sync that failed; nothing is written after it.
    pub failed: Option<Error>,
}

impl CommitLog {
    /// Opens or creates the log and hands each of its records to `replay`, in order.
    pub fn open(
        env: &Env,
        path: &Path,
        replay: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<Self> {
        let file = open_file(env, path)?;
        let end = recover(&*file, path, replay)?;
        let shared = Arc::new(Shared {
            pending: Mutex::new(Pending { bytes: Vec::new(), end }),
            wake_writer: Notify::new(),
            wake_appenders: Notify::new(),
            durable: watch::Sender::new(Durable { lsn: end, failed: None }),
        });
        let writer = env
            .spawn("commit-log", write_groups(env.clone(), Arc::clone(&shared), file, path.into()));
        Ok(Self { shared, _writer: writer })
    }

    /// Appends a record and says where it ends; waits while too much is pending. It is durable when
    /// [`Self::durable`] has reached that place.
    pub async fn append(&self, payload: &[u8]) -> Result<Lsn> {
        if payload.len() > RECORD_BYTES_MAX {
            let message =
                format!("a log record of {} bytes, {RECORD_BYTES_MAX} are the most", payload.len());
            return Err(Error::new(ErrorCode::OverLimit, message));
        }
        loop {
            let waiting = self.shared.wake_appenders.notified();
            {
                let durable = self.shared.durable.borrow();
                if let Some(failed) = &durable.failed {
                    return Err(failed.clone());
                }
                let mut pending = self.shared.lock();
                if pending.bytes.is_empty()
                    || pending.bytes.len() + payload.len() <= PENDING_BYTES_MAX
                {
                    put_record(&mut pending.bytes, durable.lsn, payload);
                    pending.end += (RECORD_HEADER_BYTES + payload.len()) as u64;
                    self.shared.wake_writer.notify_one();
                    return Ok(pending.end);
                }
            }
            waiting.await;
        }
    }

    /// How far the log is durable, to be watched.
    pub fn durable(&self) -> watch::Receiver<Durable> {
        self.shared.durable.subscribe()
    }

    /// Waits until a place is durable.
    pub async fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        let mut durable = self.durable();
        let seen = durable
            .wait_for(|durable| durable.lsn >= lsn || durable.failed.is_some())
            .await
            .map_err(|_| Error::internal("the commit log is closed"))?;
        match &seen.failed {
            Some(failed) if seen.lsn < lsn => Err(failed.clone()),
            _ => Ok(()),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

async fn write_groups(env: Env, shared: Arc<Shared>, file: Arc<dyn File>, path: PathBuf) {
    loop {
        let (bytes, end) = {
            let mut pending = shared.lock();
            (std::mem::take(&mut pending.bytes), pending.end)
        };
        shared.wake_appenders.notify_waiters();
        if bytes.is_empty() {
            shared.wake_writer.notified().await;
            continue;
        }
        let file = Arc::clone(&file);
        let written = env.blocking(move || {
            file.write_all_at(&bytes, end - bytes.len() as u64)?;
            file.sync()
        });
        match written.await {
            Ok(()) => shared.durable.send_modify(|durable| durable.lsn = end),
            Err(error) => {
                let error = Error::from(error).context(format!("writing {}", path.display()));
                tracing::error!(%error, "the commit log stops; the node serves what it has");
                shared.durable.send_modify(|durable| durable.failed = Some(error));
                shared.wake_appenders.notify_waiters();
                return;
            }
        }
    }
}

fn put_record(out: &mut Vec<u8>, durable: Lsn, payload: &[u8]) {
    let len = payload.len() as u32;
    out.extend_from_slice(&RECORD_MAGIC.to_le_bytes());
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&checksum(len, durable, payload).to_le_bytes());
    out.extend_from_slice(&durable.to_le_bytes());
    out.extend_from_slice(payload);
}

fn checksum(len: u32, durable: Lsn, payload: &[u8]) -> u32 {
    let crc = crc32c::crc32c(&len.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(crc, &durable.to_le_bytes()), payload)
}

fn open_file(env: &Env, path: &Path) -> Result<Arc<dyn File>> {
    let doing = || format!("opening {}", path.display());
    let open = || -> std::io::Result<Arc<dyn File>> {
        let file = env.fs.open(path, OpenMode::Create)?;
        // A file without a whole header was being created when the process died.
        if file.len()? < FILE_HEADER_BYTES {
            let mut header = FILE_MAGIC.to_vec();
            header.extend_from_slice(&VERSION.to_le_bytes());
            file.set_len(0)?;
            file.write_all_at(&header, 0)?;
            file.sync()?;
            if let Some(parent) = path.parent() {
                env.fs.sync_dir(parent)?;
            }
        }
        Ok(file)
    };
    let file = open().map_err(|error| Error::from(error).context(doing()))?;
    let mut header = [0; FILE_HEADER_BYTES as usize];
    file.read_exact_at(&mut header, 0).map_err(|error| Error::from(error).context(doing()))?;
    if &header[..4] != FILE_MAGIC {
        return Err(Error::new(ErrorCode::Corrupt, "not a commit log").context(doing()));
    }
    match u32::from_le_bytes([header[4], header[5], header[6], header[7]]) {
        VERSION => Ok(file),
        other => Err(Error::new(
            ErrorCode::Version,
            format!("its format version is {other}, this build reads {VERSION}"),
        )
        .context(doing())),
    }
}

/// Replays whole records; cuts off a torn tail; returns the offset behind the last whole record.
fn recover(
    file: &dyn File,
    path: &Path,
    replay: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<Lsn> {
    let here = |error: Error| error.context(format!("reading {}", path.display()));
    let len = file.len().map_err(|error| here(error.into()))?;
    let mut at = FILE_HEADER_BYTES;
    while at < len {
        let Some((payload, _)) = read_record(file, at, len).map_err(here)? else {
            let durable = largest_durable(file, at + 1, len).map_err(here)?;
            if at < durable {
                let message = format!(
                    "record at offset {at} is damaged, though the log was synced up to {durable}"
                );
                return Err(here(Error::new(ErrorCode::Corrupt, message)).with_hint(
                    "restore the file, or remove the node's data directory: its slices are rebuilt",
                ));
            }
            tracing::warn!(path = %path.display(), offset = at, bytes = len - at, "torn tail dropped");
            file.set_len(at).and_then(|()| file.sync()).map_err(|error| here(error.into()))?;
            return Ok(at);
        };
        replay(&payload)
            .map_err(|error| error.context(format!("record at offset {at}")))
            .map_err(here)?;
        at += (RECORD_HEADER_BYTES + payload.len()) as u64;
    }
    Ok(at)
}

/// The record at an offset with its `durable`, `None` if there is no whole one.
fn read_record(file: &dyn File, at: u64, file_len: u64) -> Result<Option<(Vec<u8>, Lsn)>> {
    if at + RECORD_HEADER_BYTES as u64 > file_len {
        return Ok(None);
    }
    let mut header = [0; RECORD_HEADER_BYTES];
    file.read_exact_at(&mut header, at)?;
    let word =
        |n: usize| u32::from_le_bytes([header[n], header[n + 1], header[n + 2], header[n + 3]]);
    let (magic, len, crc) = (word(0), word(4), word(8));
    let durable = u64::from(word(12)) | u64::from(word(16)) << 32;
    let end = at + RECORD_HEADER_BYTES as u64 + u64::from(len);
    if magic != RECORD_MAGIC || len as usize > RECORD_BYTES_MAX || end > file_len {
        return Ok(None);
    }
    let mut payload = vec![0; len as usize];
    file.read_exact_at(&mut payload, at + RECORD_HEADER_BYTES as u64)?;
    Ok((checksum(len, durable, &payload) == crc).then_some((payload, durable)))
}

/// The largest `durable` of any whole record that begins at or after an offset, wherever it begins.
fn largest_durable(file: &dyn File, from: u64, file_len: u64) -> Result<Lsn> {
    const CHUNK_BYTES: usize = 1 << 20;
    let magic = RECORD_MAGIC.to_le_bytes();
    let mut largest = 0;
    let mut at = from;
    let mut chunk = vec![0; CHUNK_BYTES];
    while at + magic.len() as u64 <= file_len {
        let read = CHUNK_BYTES.min((file_len - at) as usize);
        file.read_exact_at(&mut chunk[..read], at)?;
        for n in 0..read.saturating_sub(magic.len() - 1) {
            if chunk[n..n + magic.len()] == magic
                && let Some((_, durable)) = read_record(file, at + n as u64, file_len)?
            {
                largest = largest.max(durable);
            }
        }
        at += (read - (magic.len() - 1)).max(1) as u64;
    }
    Ok(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(env: &Env, path: &Path) -> Result<Vec<Vec<u8>>> {
        let mut records = Vec::new();
        let log = CommitLog::open(env, path, &mut |record| {
            records.push(record.to_vec());
            Ok(())
        })?;
        drop(log);
        Ok(records)
    }

    async fn write(env: &Env, path: &Path, records: &[&[u8]]) {
        let log = CommitLog::open(env, path, &mut |_| Ok(())).unwrap();
        for record in records {
            let lsn = log.append(record).await.unwrap();
            log.wait_durable(lsn).await.unwrap();
        }
    }

    #[tokio::test]
    async fn durable_records_come_back_in_order_and_a_torn_tail_goes() {
        let dir = tempfile::tempdir().unwrap();
        let (env, path) = (Env::real(), dir.path().join("log"));
        write(&env, &path, &[b"one", b"", b"three"]).await;
        write(&env, &path, &[b"four"]).await;
        let all: Vec<Vec<u8>> = vec![b"one".into(), b"".into(), b"three".into(), b"four".into()];
        assert_eq!(records(&env, &path).unwrap(), all);
        let file = env.fs.open(&path, OpenMode::ReadWrite).unwrap();
        file.set_len(file.len().unwrap() - 1).unwrap();
        assert_eq!(records(&env, &path).unwrap(), all[..3], "the torn record goes, alone");
        write(&env, &path, &[b"five"]).await;
        assert_eq!(records(&env, &path).unwrap()[3], b"five", "the log goes on behind the cut");
    }

    #[tokio::test]
    async fn every_flipped_bit_below_the_synced_end_is_found_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let (env, path) = (Env::real(), dir.path().join("log"));
        write(&env, &path, &[b"alpha", b"beta", b"gamma"]).await;
        let file = env.fs.open(&path, OpenMode::ReadWrite).unwrap();
        let last = file.len().unwrap() - (RECORD_HEADER_BYTES + b"gamma".len()) as u64;
        for at in FILE_HEADER_BYTES..last {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
            let error = records(&env, &path).expect_err("damage must not pass");
            assert_eq!(error.code, ErrorCode::Corrupt);
            assert!(error.message.contains("offset"), "{error}");
            file.write_all_at(&byte, at).unwrap();
        }
        assert_eq!(records(&env, &path).unwrap().len(), 3);
    }
}
