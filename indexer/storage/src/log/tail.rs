//! The last segment of a log, to which new records are written.
//!
//! **Room.** A sync of a file that has grown writes metadata as well, and takes about 1.5 times as
//! long. So when a small group of records reaches the end of the file, zeros are written after it.
//! The next groups overwrite these zeros, which are called the *room*. The room is as large as the
//! segment's contents, up to a limit. Zeros are never a valid record: after a crash, opening the
//! log removes them. They are also removed when a segment is closed.
//!
//! **Open files.** A process may have more logs than open files. The segment of a log with a pool
//! is open from a write to the next sync, and otherwise as long as the pool has room for it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use proto::env::{File, FileSystem, OpenMode};

use crate::fragment::OpenFiles;
use crate::fragment::open_files::PooledFile;
use crate::log::chain::LogChecksum;
use crate::log::format::{SEGMENT_HEADER_BYTES, SegmentHead};
use crate::log::lsn::Lsn;
use crate::log::segment::{Segments, begin_segment, segment_path};

/// The reasons why a group of records was not written.
pub(super) enum WriteFailure {
    /// The disk was full and nothing was synced, so the write can be retried.
    Full(io::Error),
    /// Any other failure of a write or a sync. The content of the disk is unknown after a failed
    /// sync.
    Failed(io::Error),
}

impl WriteFailure {
    fn from_write_error(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(error),
            _ => Self::Failed(error),
        }
    }
}

/// The smallest number of preallocated bytes: a block of most file systems.
const ROOM_BYTES_MIN: u64 = 4 << 10;
/// The zeros that are written to preallocate space.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The file of the last segment.
struct TailFile {
    /// The file in its pool; `None` if it always stays open.
    pooled: Option<(Arc<OpenFiles>, PooledFile)>,
    /// The open file. The pool must not close it while this field has it.
    open: Option<Arc<dyn File>>,
}

impl TailFile {
    /// Returns the open file, and opens it if necessary. It stays open until [`Self::rest`].
    fn open(&mut self) -> io::Result<Arc<dyn File>> {
        let file = match (&self.open, &self.pooled) {
            (Some(file), _) => Arc::clone(file),
            (None, Some((_, pooled))) => pooled.file()?,
            (None, None) => return Err(io::Error::other("a segment without a file")),
        };
        Ok(Arc::clone(self.open.insert(file)))
    }

    /// Allows the pool to close the file. Must be called when all of its contents are synced.
    fn allow_close(&mut self) {
        if self.pooled.is_some() {
            self.open = None;
        }
    }

    /// Replaces the file by the file of the next segment.
    fn replace(&mut self, path: &Path, file: Arc<dyn File>) {
        if let Some((pool, pooled)) = &mut self.pooled {
            *pooled = pool.add_writable(path, Arc::clone(&file));
        }
        self.open = Some(file);
    }
}

/// The last segment of a log, and the state of writing it.
pub(super) struct TailSegment {
    file: TailFile,
    /// Size at which the segment is closed, in bytes.
    segment_bytes: u64,
    /// The maximum number of preallocated bytes; zero disables preallocation.
    room_bytes_max: u64,
    /// The number of preallocated zero bytes after the written records.
    room_bytes: u64,
    base: Lsn,
    log_id: u64,
    /// The checksum over the log up to the end of the written records (see `log/chain.rs`).
    chain: LogChecksum,
    /// LSN of the end of the written records.
    written: Lsn,
    /// LSN of the end of the synced records.
    synced: Lsn,
    closed: bool,
    /// True if the creation of the next segment began and did not finish.
    rolling: bool,
}

/// The last segment as recovery has found it on disk.
pub(super) struct RecoveredTail {
    pub(super) file: Arc<dyn File>,
    pub(super) base: Lsn,
    pub(super) log_id: u64,
    /// The checksum over the log up to the last record (see `log/chain.rs`).
    pub(super) chain: LogChecksum,
}

/// A group of records that are written together.
pub(super) struct WriteGroup {
    pub(super) bytes: Vec<u8>,
    pub(super) sync: bool,
    /// True if the group may be written into a new segment when the present one is full.
    pub(super) rolls: bool,
}

impl TailSegment {
    /// Creates the state of the last segment, which is synced up to its end.
    pub(super) fn new(found: RecoveredTail, segment_bytes: u64, end: Lsn) -> Self {
        let RecoveredTail { file, base, log_id, chain } = found;
        Self {
            file: TailFile { pooled: None, open: Some(file) },
            segment_bytes,
            room_bytes_max: 0,
            room_bytes: 0,
            base,
            log_id,
            chain,
            written: end,
            synced: end,
            closed: false,
            rolling: false,
        }
    }

    /// Enables preallocation after small groups, of at most `room_bytes_max` bytes.
    pub(super) fn with_preallocation(self, room_bytes_max: u64) -> Self {
        Self { room_bytes_max, ..self }
    }

    /// Hands the file to a pool, which may close it while nothing is written.
    pub(super) fn with_pool(mut self, pool: &Arc<OpenFiles>, dir: &Path) -> Self {
        if let Some(file) = self.file.open.take() {
            let pooled = pool.add_writable(&segment_path(dir, self.base), file);
            self.file.pooled = Some((Arc::clone(pool), pooled));
        }
        self
    }

    /// Makes all further writes fail.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Writes a group of records, into a new segment if this one is full. Returns the LSN up to
    /// which the log is durable, or `None` if [`Self::close`] was called.
    pub(super) fn write(
        &mut self,
        group: &WriteGroup,
        fs: &dyn FileSystem,
        dir: &Path,
        segments: &Segments,
    ) -> Result<Option<Lsn>, WriteFailure> {
        if self.closed {
            return Ok(None);
        }
        if group.rolls && self.written - self.base >= self.segment_bytes {
            self.begin_next_segment(fs, dir, segments)?;
        }
        if !group.bytes.is_empty() {
            let bytes = group.bytes.len() as u64;
            let at = self.file_offset();
            let file = self.file.open().map_err(WriteFailure::from_write_error)?;
            file.write_all_at(&group.bytes, at).map_err(WriteFailure::from_write_error)?;
            self.written += bytes;
            self.chain = self.chain.with_records(&group.bytes);
            match self.room_bytes.checked_sub(bytes) {
                Some(left) => self.room_bytes = left,
                None => self.preallocate(&*file, bytes),
            }
        }
        if group.sync {
            self.sync().map_err(WriteFailure::Failed)?;
        }
        Ok(Some(self.synced))
    }

    /// Opens the file before a write, so that the write cannot fail for lack of open files.
    pub(super) fn open(&mut self) -> io::Result<()> {
        self.file.open().map(drop)
    }

    /// Syncs all written records.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.synced < self.written {
            self.file.open()?.sync()?;
            self.synced = self.written;
        }
        self.file.allow_close();
        Ok(())
    }

    /// Returns the file offset of the end of the written records.
    fn file_offset(&self) -> u64 {
        self.written - self.base + SEGMENT_HEADER_BYTES as u64
    }

    /// Preallocates space by writing zeros after a small group. After a large group no space is
    /// preallocated, since it hardly shortens the next sync.
    fn preallocate(&mut self, file: &dyn File, group_bytes: u64) {
        self.room_bytes = 0;
        let offset = self.file_offset();
        let wanted = offset.max(ROOM_BYTES_MIN).min(self.room_bytes_max);
        if group_bytes > wanted {
            return;
        }
        while self.room_bytes < wanted {
            let zeros = &ZEROS[..ZEROS.len().min((wanted - self.room_bytes) as usize)];
            // Preallocated space only improves speed: a failure will show in the group's own write and sync.
            if file.write_all_at(zeros, offset + self.room_bytes).is_err() {
                return;
            }
            self.room_bytes += zeros.len() as u64;
        }
    }

    /// Removes the preallocated space, so that the file ends with its last record.
    fn cut_preallocated(&mut self) -> io::Result<()> {
        if self.room_bytes_max == 0 {
            return Ok(());
        }
        self.room_bytes = 0;
        let file = self.file.open()?;
        file.set_len(self.file_offset())?;
        file.sync()?;
        self.synced = self.written;
        Ok(())
    }

    /// Begins the next segment. The present segment is synced before, so that a crash can tear
    /// only the last segment.
    fn begin_next_segment(
        &mut self,
        fs: &dyn FileSystem,
        dir: &Path,
        segments: &Segments,
    ) -> Result<(), WriteFailure> {
        self.cut_preallocated().and_then(|()| self.sync()).map_err(WriteFailure::Failed)?;
        // A file that was left after a full disk has no records, so it is overwritten.
        let mode = if self.rolling { OpenMode::Create } else { OpenMode::CreateNew };
        self.rolling = true;
        let head =
            SegmentHead { base: self.written, log_id: self.log_id, chain: self.chain.value() };
        let file = begin_segment(fs, dir, &head, mode).map_err(WriteFailure::from_write_error)?;
        self.file.replace(&segment_path(dir, head.base), file);
        self.rolling = false;
        self.chain = LogChecksum::after_header(&head);
        self.base = self.written;
        segments.push(self.base);
        Ok(())
    }
}
