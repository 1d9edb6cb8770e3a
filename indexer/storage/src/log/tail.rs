//! The last segment, which receives the writes.
//!
//! **Room.** A sync of a file that has grown writes metadata as well, and takes half as long again. So a small group that
//! reaches the end of the file is followed by zeros, the *room*, and the next groups overwrite them. The room is as large as
//! what the segment holds, up to a limit. Zeros are never a record: a crash leaves them as a torn tail, and opening the log
//! cuts them off. A segment is closed without room.

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

/// The smallest room: a block of most file systems.
const ROOM_BYTES_MIN: u64 = 4 << 10;
/// What rooms are made of.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The last segment.
pub(super) struct TailSegment {
    file: Arc<dyn File>,
    /// Size at which the segment is closed.
    segment_bytes: u64,
    /// The size limit of the room; no room if it is zero.
    room_bytes_max: u64,
    /// The bytes of the file behind the written records: zeros.
    room_bytes: u64,
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
        Self {
            file,
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

    /// Gives small groups room of up to this size.
    pub(super) fn with_room(self, room_bytes_max: u64) -> Self {
        Self { room_bytes_max, ..self }
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
            let bytes = group.bytes.len() as u64;
            let at = self.file_offset();
            self.file.write_all_at(&group.bytes, at).map_err(WriteFailure::from_write_error)?;
            self.written += bytes;
            self.chain = self.chain.with_records(&group.bytes);
            match self.room_bytes.checked_sub(bytes) {
                Some(left) => self.room_bytes = left,
                None => self.make_room(bytes),
            }
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

    /// The offset of the end of the written records.
    fn file_offset(&self) -> u64 {
        self.written - self.base + SEGMENT_HEADER_BYTES as u64
    }

    /// Writes zeros behind a group of this size, unless it is large: the time of its sync hardly depends on room.
    fn make_room(&mut self, group_bytes: u64) {
        self.room_bytes = 0;
        let offset = self.file_offset();
        let wanted = offset.max(ROOM_BYTES_MIN).min(self.room_bytes_max);
        if group_bytes > wanted {
            return;
        }
        while self.room_bytes < wanted {
            let zeros = &ZEROS[..ZEROS.len().min((wanted - self.room_bytes) as usize)];
            // Room is no more than a help: whatever prevents it, the group's own write and sync tell.
            if self.file.write_all_at(zeros, offset + self.room_bytes).is_err() {
                return;
            }
            self.room_bytes += zeros.len() as u64;
        }
    }

    /// Cuts off the room, so that the file ends with its last record.
    fn cut_room(&mut self) -> io::Result<()> {
        if self.room_bytes_max == 0 {
            return Ok(());
        }
        self.room_bytes = 0;
        self.file.set_len(self.file_offset())?;
        self.file.sync()?;
        self.synced = self.written;
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
        self.cut_room().and_then(|()| self.sync()).map_err(WriteFailure::Failed)?;
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
