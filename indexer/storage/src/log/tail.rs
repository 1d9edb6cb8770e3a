//! The last segment, which receives the writes.

use std::io;
use std::path::Path;
use std::sync::Arc;

use proto::env::{File, FileSystem, OpenMode};

use crate::log::chain::Chain;
use crate::log::format::{SEGMENT_HEADER_BYTES, SegmentHead};
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
    log_id: u64,
    /// The chain behind the written records.
    chain: Chain,
    /// End of the written records.
    written: Lsn,
    /// End of the synced records.
    synced: Lsn,
    closed: bool,
    /// True if creation of the next segment began and did not finish.
    rolling: bool,
}

/// The last segment as recovery has found it.
pub(super) struct FoundTail {
    pub(super) file: Arc<dyn File>,
    pub(super) base: Lsn,
    pub(super) log_id: u64,
    /// The chain behind the last record.
    pub(super) chain: Chain,
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
    pub(super) fn new(found: FoundTail, segment_bytes: u64, end: Lsn) -> Self {
        let FoundTail { file, base, log_id, chain } = found;
        let (written, synced) = (end, end);
        let (closed, rolling) = (false, false);
        Self { file, segment_bytes, base, log_id, chain, written, synced, closed, rolling }
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
            self.chain = self.chain.with_records(&group.bytes);
        }
        if group.sync {
            self.sync().map_err(WriteFailure::Failed)?;
        }
        Ok(Some(self.synced))
    }

    /// Syncs what is written.
    pub(super) fn sync(&mut self) -> io::Result<()> {
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
        let head =
            SegmentHead { base: self.written, log_id: self.log_id, chain: self.chain.value() };
        self.file = begin_segment(fs, dir, &head, mode).map_err(WriteFailure::from_write_error)?;
        self.rolling = false;
        self.chain = Chain::behind_header(&head);
        self.base = self.written;
        segments.push(self.base);
        Ok(())
    }
}
