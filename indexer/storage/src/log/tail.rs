//! The last segment, which is written to.

use std::io;
use std::path::Path;
use std::sync::Arc;

use proto::env::{File, FileSystem, OpenMode};

use crate::log::format::SEGMENT_HEADER_BYTES;
use crate::log::lsn::Lsn;
use crate::log::segment::{Segments, begin_segment};

/// Why a group was not written.
pub(super) enum Stop {
    /// The disk was full before anything was synced: the same write may be done again.
    Full(io::Error),
    /// All else. What a disk keeps after a failed sync is not known.
    Failed(io::Error),
}

impl Stop {
    fn of_write(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(error),
            _ => Self::Failed(error),
        }
    }
}

/// The last segment, as the writer has it.
pub(super) struct Tail {
    file: Arc<dyn File>,
    /// The segment's size at which it is closed.
    segment_bytes: u64,
    base: Lsn,
    /// Where the written records end.
    written: Lsn,
    /// Where the synced ones end.
    synced: Lsn,
    closed: bool,
    /// The next segment was begun and not finished.
    rolling: bool,
}

/// What is written at once.
pub(super) struct Group {
    pub(super) bytes: Vec<u8>,
    pub(super) sync: bool,
    /// Does it begin a new segment, if this one is full?
    pub(super) rolls: bool,
}

impl Tail {
    /// The last segment, synced up to its end.
    pub(super) fn new((file, base): (Arc<dyn File>, Lsn), segment_bytes: u64, end: Lsn) -> Self {
        Self { file, segment_bytes, base, written: end, synced: end, closed: false, rolling: false }
    }

    /// Nothing is written from now on.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Writes a group, in a new segment if this one is full, and says how far the log is durable;
    /// `None` if it is closed.
    pub(super) fn write(
        &mut self,
        group: &Group,
        fs: &dyn FileSystem,
        dir: &Path,
        segments: &Segments,
    ) -> Result<Option<Lsn>, Stop> {
        if self.closed {
            return Ok(None);
        }
        if group.rolls && self.written - self.base >= self.segment_bytes {
            self.roll(fs, dir, segments)?;
        }
        if !group.bytes.is_empty() {
            let header_bytes = SEGMENT_HEADER_BYTES as u64;
            let at = self.written - self.base + header_bytes;
            self.file.write_all_at(&group.bytes, at).map_err(Stop::of_write)?;
            self.written += group.bytes.len() as u64;
        }
        if group.sync {
            self.sync().map_err(Stop::Failed)?;
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

    /// Begins the next segment. All of this one is synced before: only the last can be torn.
    fn roll(&mut self, fs: &dyn FileSystem, dir: &Path, segments: &Segments) -> Result<(), Stop> {
        self.sync().map_err(Stop::Failed)?;
        // One that a full disk left begun holds nothing and is begun anew.
        let mode = if self.rolling { OpenMode::Create } else { OpenMode::CreateNew };
        self.rolling = true;
        self.file = begin_segment(fs, dir, self.written, mode).map_err(Stop::of_write)?;
        self.rolling = false;
        self.base = self.written;
        segments.push(self.base);
        Ok(())
    }
}
