//! A log that is written on the threads of its callers: [`DirectLog`].
//!
//! An append writes its record with one call and returns; a sync makes all earlier appends durable.
//! Segments, records, marks and recovery are those of the commit log. Two things are added:
//!
//! - *Random reads.* Any bytes of a retained segment can be read, including the last segment. A
//!   read returns the bytes as they are on disk, and the caller must verify them.
//! - *A witness* (`log/witness.rs`), which distinguishes a lost or truncated last segment from one
//!   that was torn by a crash.
//!
//! One thread at a time appends, syncs or marks, and holds the lock of the writer meanwhile.
//! Readers take no lock during file input and output. A failed write or sync stops the log for
//! good.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use proto::env::{Env, FileSystem};
use proto::lock::lock;
use proto::{Error, ErrorCode, Result};

use crate::fragment::OpenFiles;
use crate::log::format::{RECORD_BYTES_MAX, SEGMENT_HEADER_BYTES};
use crate::log::lsn::Lsn;
use crate::log::options::DirectLogOptions;
use crate::log::pending::PendingRecords;
use crate::log::recover::{RecoveredLog, Recovery, Replay};
use crate::log::segment::{Segments, segment_path};
use crate::log::segment_files::SegmentFiles;
use crate::log::tail::{TailSegment, WriteFailure, WriteGroup};
use crate::log::witness::{Witness, WitnessFile};

/// Largest buffer, in bytes, that is reused for the next record. A larger one was needed for a
/// burst only and is freed.
const KEPT_BUFFER_BYTES_MAX: usize = 8 << 20;

/// Number of files that a log without a shared pool keeps open.
const OPEN_FILES_MAX: usize = 2;

/// The maximum of preallocated bytes after the last record: enough for some hundred small writes.
const ROOM_BYTES_MAX: u64 = 256 << 10;

/// The log, open for appending and reading. All calls block the thread.
pub struct DirectLog {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    log_id: u64,
    hint: &'static str,
    segments: Segments,
    files: SegmentFiles,
    writer: Mutex<DirectWriter>,
    /// LSN of the end of the written records.
    end: AtomicU64,
}

/// The state that appends, syncs and marks change.
struct DirectWriter {
    /// The next record to be written, and the positions of the log's end.
    pending: PendingRecords,
    tail: TailSegment,
    witness: WitnessFile,
    /// The first failed write or sync; nothing is written after it.
    failed: Option<Error>,
}

impl DirectLog {
    /// Opens or creates the log in a directory. Passes the records to `replay`, in order, except
    /// the records of segments that end before [`DirectLogOptions::from`].
    pub fn open(
        env: &Env,
        dir: &Path,
        options: &DirectLogOptions,
        replay: Replay<'_>,
    ) -> Result<Self> {
        let DirectLogOptions { segment_bytes, log_id, from, synced, hint, .. } = *options;
        let fs = &env.fs;
        let files = options.open_files.clone();
        let files = files.unwrap_or_else(|| OpenFiles::new(fs, OPEN_FILES_MAX));
        let witness = Witness::read(&**fs, dir)?;
        let random = &*env.random;
        let synced = synced.max(from);
        let recovery = Recovery { fs: &**fs, dir, from, log_id, witness, synced, random, hint };
        let RecoveredLog { bases, tail, end, data_end, vouched } = recovery.open_log(replay)?;
        let first = bases.front().copied().unwrap_or_default();
        if from < first || from > end {
            let message = format!(
                "the log in {} holds LSN {first} to {end}, but its reader continues from LSN {from}: segments are missing",
                dir.display()
            );
            return Err(Error::new(ErrorCode::Corrupt, message).with_hint(hint));
        }
        let log_id = tail.log_id;
        let (bytes, durable, wanted) = (Vec::new(), end, 0);
        let writer = DirectWriter {
            pending: PendingRecords { bytes, end, data_end, vouched, durable, wanted },
            tail: TailSegment::new(tail, segment_bytes, end)
                .with_preallocation(ROOM_BYTES_MAX)
                .with_pool(&files, dir),
            witness: WitnessFile::default(),
            failed: None,
        };
        Ok(Self {
            fs: Arc::clone(fs),
            dir: dir.to_path_buf(),
            log_id,
            hint,
            segments: Segments::new(bases),
            files: SegmentFiles::new(dir, &files),
            writer: Mutex::new(writer),
            end: AtomicU64::new(end),
        })
    }

    /// Returns the random id of the log.
    pub fn log_id(&self) -> u64 {
        self.log_id
    }

    /// Appends a record whose payload is the concatenation of `parts`. Returns the LSNs of its
    /// beginning and its end. The record is written when the call returns, and durable after a
    /// [`Self::sync`]. `OverLimit` if the payload is too long.
    pub fn append(&self, parts: &[&[u8]]) -> Result<Range<Lsn>> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if len > RECORD_BYTES_MAX {
            let message =
                format!("log record of {len} bytes exceeds the limit of {RECORD_BYTES_MAX} bytes");
            return Err(Error::new(ErrorCode::OverLimit, message));
        }
        let crc = parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part));
        let mut writer = self.writer()?;
        let start = writer.pending.end;
        let end = writer.pending.put(parts, len, crc);
        self.write(&mut writer, true)?;
        Ok(start..end)
    }

    /// Makes all appended records durable.
    pub fn sync(&self) -> Result<()> {
        let mut writer = self.writer()?;
        let synced = writer.tail.sync();
        self.stop_on_error(&mut writer, synced)?;
        writer.pending.durable = writer.pending.end;
        Ok(())
    }

    /// Appends the mark (a record without payload) that proves that the synced records were
    /// durable, unless it was appended already. Called when the log is idle. If the file of the
    /// last segment cannot be opened, nothing is written, and a later call tries again.
    pub fn append_mark(&self) -> Result<()> {
        let mut writer = self.writer()?;
        let pending = &writer.pending;
        if pending.vouched < pending.data_end && pending.data_end <= pending.durable {
            writer.tail.open().map_err(|error| self.write_error(error))?;
            writer.pending.put_mark();
            self.write(&mut writer, false)?;
        } else if writer.pending.vouched >= writer.pending.data_end {
            // No record was appended since the previous mark, so the pool may close the file.
            let rested = writer.tail.sync();
            self.stop_on_error(&mut writer, rested)?;
        }
        self.write_witness(&mut writer);
        Ok(())
    }

    /// Removes the segments whose records all end at or before `lsn`, except the last segment.
    pub fn release(&self, lsn: Lsn) -> Result<()> {
        self.segments.release(&*self.fs, &self.dir, lsn)?;
        self.files.remove_before(self.first());
        Ok(())
    }

    /// Returns the LSN of the end of the last record or mark.
    pub fn end(&self) -> Lsn {
        self.end.load(Ordering::Acquire)
    }

    /// Returns the size in bytes of the segments that were not released.
    pub fn retained_bytes(&self) -> u64 {
        self.segments.retained_bytes(self.end())
    }

    /// Returns the LSNs of the segments' beginnings, oldest first.
    pub fn segments(&self) -> Vec<Lsn> {
        self.segments.bases()
    }

    /// Returns the LSN of the beginning of the segment that contains an LSN, and of its end if the
    /// segment is closed. For an LSN that is not written yet, returns the last segment. `None` if
    /// the segment was released.
    pub fn segment_of(&self, lsn: Lsn) -> Option<(Lsn, Option<Lsn>)> {
        self.segments.containing(lsn)
    }

    /// Returns the file that contains an LSN, and its offset in the file.
    pub fn place_of(&self, lsn: Lsn) -> (PathBuf, u64) {
        let base = self.segments.containing(lsn).map_or(lsn, |(base, _)| base);
        (segment_path(&self.dir, base), lsn - base + SEGMENT_HEADER_BYTES as u64)
    }

    /// Reads `len` bytes of the log from an LSN on, without checking their contents.
    /// `HistoryPurged` if their segment was released.
    pub fn read(&self, lsn: Lsn, len: usize) -> Result<Bytes> {
        let Some((base, end)) = self.segments.containing(lsn) else {
            return Err(self.released_error(lsn));
        };
        if lsn + len as u64 > end.unwrap_or_else(|| self.end()) {
            let message = format!("LSN {lsn} and {len} bytes are not in one segment of the log");
            return Err(Error::internal(message));
        }
        let mut bytes = vec![0; len];
        let offset = lsn - base + SEGMENT_HEADER_BYTES as u64;
        let file = self.files.file(base);
        match file.and_then(|file| file.read_exact_at(&mut bytes, offset)) {
            Ok(()) => Ok(bytes.into()),
            Err(_) if self.segments.containing(lsn).is_none() => Err(self.released_error(lsn)),
            Err(error) => Err(self.read_error(base, offset, error)),
        }
    }

    /// Returns the LSN of the beginning of the oldest segment.
    fn first(&self) -> Lsn {
        self.segments.bases().first().copied().unwrap_or_default()
    }

    /// Returns the error of a read at an LSN whose segment was released.
    fn released_error(&self, lsn: Lsn) -> Error {
        let message = format!("LSN {lsn} of the log in {} was released", self.dir.display());
        Error::new(ErrorCode::HistoryPurged, message)
    }

    /// Returns the error of a failed read, with the name of the segment's file.
    fn read_error(&self, base: Lsn, offset: u64, error: io::Error) -> Error {
        let is_missing =
            matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound);
        let path = segment_path(&self.dir, base);
        let error = match is_missing {
            true => Error::new(ErrorCode::Corrupt, error.to_string()).with_hint(self.hint),
            false => error.into(),
        };
        error.context(format!("reading {} at offset {offset}", path.display()))
    }

    /// Returns the error of the first failed write or sync, if there was one: the log writes
    /// nothing after it.
    pub fn check_not_failed(&self) -> Result<()> {
        self.writer().map(|_| ())
    }

    /// Locks the writer; returns its error if it has failed.
    fn writer(&self) -> Result<MutexGuard<'_, DirectWriter>> {
        let writer = lock(&self.writer);
        match &writer.failed {
            Some(failed) => Err(failed.clone()),
            None => Ok(writer),
        }
    }

    /// Writes the pending record. If `rolls` is true and the present segment is full, writes it
    /// into a new segment.
    fn write(&self, writer: &mut DirectWriter, rolls: bool) -> Result<()> {
        let bytes = std::mem::take(&mut writer.pending.bytes);
        let mut group = WriteGroup { bytes, sync: false, rolls };
        let last = self.segments.last();
        let written = writer.tail.write(&group, &*self.fs, &self.dir, &self.segments);
        let written = written.map(|_| ()).map_err(|failure| match failure {
            WriteFailure::Full(error) | WriteFailure::Failed(error) => error,
        });
        self.stop_on_error(writer, written)?;
        if self.segments.last() != last {
            // The closed segment was synced as a whole.
            writer.pending.durable = writer.pending.durable.max(self.segments.last());
            self.write_witness(writer);
        }
        self.end.store(writer.pending.end, Ordering::Release);
        if group.bytes.capacity() <= KEPT_BUFFER_BYTES_MAX {
            group.bytes.clear();
            writer.pending.bytes = group.bytes;
        }
        Ok(())
    }

    /// Updates the witness file with the position up to which the log is synced.
    fn write_witness(&self, writer: &mut DirectWriter) {
        let witness = Witness { log_id: self.log_id, synced: writer.pending.durable };
        writer.witness.write(&*self.fs, &self.dir, witness);
    }

    /// Converts the error of a failed write, with the name of the log.
    fn write_error(&self, error: io::Error) -> Error {
        Error::from(error).context(format!("writing the log in {}", self.dir.display()))
    }

    /// Returns the result of a write or sync. After a failure the log writes nothing any more.
    fn stop_on_error(&self, writer: &mut DirectWriter, done: io::Result<()>) -> Result<()> {
        done.map_err(|error| {
            let error = self.write_error(error);
            tracing::error!(%error, "the log has stopped: nothing is written until it is opened again");
            writer.failed = Some(error.clone());
            error
        })
    }
}
