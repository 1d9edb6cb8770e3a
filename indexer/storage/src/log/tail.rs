//! The last segment, which receives the writes.

use std::io;
use std::path::Path;
use std::sync::Arc;

use proto::env::{File, FileSystem, OpenMode};

use crate::log::format::SEGMENT_HEADER_BYTES;
use crate::log::lsn::Lsn;
use crate::log::segment::{Segments, begin_segment};

/// Why a group was not written.
pub(super) enum WriteFailure {
    /// The disk was full and nothing was synced: the same write can be retried.
    Full(io::Error),
    /// Any other failure. The content of a disk after a failed sync is unknown.
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

/// The last segment.
pub(super) struct TailSegment {
    file: Arc<dyn File>,
    /// Size at which the segment is closed.
    segment_bytes: u64,
    base: Lsn,
    /// End of the written records.
    written: Lsn,
    /// End of the synced records.
    synced: Lsn,
    closed: bool,
    /// True if creation of the next segment began and did not finish.
    rolling: bool,
}

/// Records that are written together.
pub(super) struct WriteGroup {
    pub(super) bytes: Vec<u8>,
    pub(super) sync: bool,
    /// True if the group may begin a new segment when this one is full.
    pub(super) rolls: bool,
}

impl TailSegment {
    /// The last segment, synced up to its end.
    pub(super) fn new((file, base): (Arc<dyn File>, Lsn), segment_bytes: u64, end: Lsn) -> Self {
        Self { file, segment_bytes, base, written: end, synced: end, closed: false, rolling: false }
    }

    /// Refuses all further writes.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Writes a group, into a new segment if this one is full. Returns how far the log is durable,
    /// or `None` if the segment is closed for good.
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
            self.roll(fs, dir, segments)?;
        }
        if !group.bytes.is_empty() {
            let header_bytes = SEGMENT_HEADER_BYTES as u64;
            let at = self.written - self.base + header_bytes;
            self.file.write_all_at(&group.bytes, at).map_err(WriteFailure::from_write_error)?;
            self.written += group.bytes.len() as u64;
        }
        if group.sync {
            self.sync().map_err(WriteFailure::Failed)?;
        }
        Ok(Some(self.synced))
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.synced < self.written {
            self.file.sync()?;
            self.synced = self.written;
        }
        Ok(())
    }

    /// Begins the next segment. This one is synced before, so that only the last segment can be
    /// torn.
    fn roll(
        &mut self,
        fs: &dyn FileSystem,
        dir: &Path,
        segments: &Segments,
    ) -> Result<(), WriteFailure> {
        self.sync().map_err(WriteFailure::Failed)?;
        // A file that a full disk left behind has no records, so it is overwritten.
        let mode = if self.rolling { OpenMode::Create } else { OpenMode::CreateNew };
        self.rolling = true;
        self.file =
            begin_segment(fs, dir, self.written, mode).map_err(WriteFailure::from_write_error)?;
        self.rolling = false;
        self.base = self.written;
        segments.push(self.base);
        Ok(())
    }
}
