//! Recovery of a log: replays valid records, removes records that a crash has left incomplete (the
//! *torn tail*), and refuses damage.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use proto::env::{File, FileSystem, OpenMode, Random, create_dir_durably};
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};

use crate::log::chain::LogChecksum;
use crate::log::format::{SEGMENT_HEADER_BYTES, SegmentHead};
use crate::log::lsn::Lsn;
use crate::log::reader::{FoundRecord, SegmentReader, read_head};
use crate::log::segment::{begin_segment, segment_bases, segment_path};
use crate::log::tail::RecoveredTail;
use crate::log::witness::Witness;

/// A record that recovery replays.
#[derive(Clone, Copy, Debug)]
pub struct LogRecord<'a> {
    /// Random id of the log.
    pub log_id: u64,
    /// LSN of the beginning of the record's segment.
    pub segment: Lsn,
    /// LSN of the record's beginning.
    pub start: Lsn,
    /// LSN of the record's end.
    pub end: Lsn,
    /// The payload of the record, which ends where the record ends.
    pub payload: &'a [u8],
}

/// A function that receives each record, in order.
pub type Replay<'a> = &'a mut dyn FnMut(LogRecord<'_>) -> Result<()>;

/// The state of a log after recovery, when all of its records are synced.
pub(super) struct RecoveredLog {
    /// LSNs of the beginnings of the segments.
    pub(super) bases: VecDeque<Lsn>,
    /// The last segment.
    pub(super) tail: RecoveredTail,
    /// LSN of the end of the last record.
    pub(super) end: Lsn,
    /// LSN of the end of the last record with a payload; marks do not count.
    pub(super) data_end: Lsn,
    /// The LSN up to which the last record says that the log is durable.
    pub(super) vouched: Lsn,
}

/// The recovery of a log, with the expected state of the log that it checks.
pub(super) struct Recovery<'a> {
    pub(super) fs: &'a dyn FileSystem,
    pub(super) dir: &'a Path,
    /// The LSN before which no record is needed. In segments that end before it, only the headers
    /// and the lengths are checked.
    pub(super) from: Lsn,
    /// The expected id of the log, if the opener knows it. If it does, a log without segments is
    /// damaged.
    pub(super) log_id: Option<u64>,
    /// The content of the log's witness file, if there is one.
    pub(super) witness: Option<Witness>,
    /// The LSN up to which the opener knows the log to be synced.
    pub(super) synced: Lsn,
    /// Source of the id of a new log.
    pub(super) random: &'a dyn Random,
    /// The advice in errors about a damaged log.
    pub(super) hint: &'static str,
}

impl Recovery<'_> {
    /// Opens or creates the log, and replays the segments that end after `from`.
    pub(super) fn open_log(&self, replay: Replay<'_>) -> Result<RecoveredLog> {
        let opening =
            |error: Error| error.context(format!("opening the log in {}", self.dir.display()));
        if !self.fs.exists(self.dir) {
            create_dir_durably(self.fs, self.dir).map_err(|error| opening(error.into()))?;
        }
        let bases: VecDeque<Lsn> = segment_bases(self.fs, self.dir).map_err(opening)?.into();
        match (bases.front().copied(), bases.back().copied()) {
            (Some(first), Some(last)) => self.replay_segments(bases, first, last, replay),
            _ => self.new_log().map_err(opening),
        }
    }

    /// Creates a log with one segment. An error if the log must exist already.
    fn new_log(&self) -> Result<RecoveredLog> {
        if self.log_id.is_some() || self.witness.is_some() {
            return Err(self.damage_error("all segments are missing"));
        }
        let head = SegmentHead {
            base: 0,
            log_id: self.random.next_u64(),
            chain: LogChecksum::START.value(),
        };
        let file = begin_segment(self.fs, self.dir, &head, OpenMode::CreateNew)?;
        let chain = LogChecksum::after_header(&head);
        let tail = RecoveredTail { file, base: 0, log_id: head.log_id, chain };
        Ok(RecoveredLog { bases: [0].into(), tail, end: 0, data_end: 0, vouched: 0 })
    }

    /// Reads all segments and replays their records.
    fn replay_segments(
        &self,
        bases: VecDeque<Lsn>,
        first: Lsn,
        last: Lsn,
        replay: Replay<'_>,
    ) -> Result<RecoveredLog> {
        let (end, data_end, vouched) = (first, first, first);
        let log_id = self.log_id;
        let mut walk =
            LogWalk { recovery: self, log_id, chain: None, end, data_end, vouched, replay };
        for (n, &base) in bases.iter().enumerate() {
            let path = segment_path(self.dir, base);
            let reading = |error: Error| error.context(format!("reading {}", path.display()));
            if base != walk.end {
                let before = segment_path(self.dir, bases[n.saturating_sub(1)]);
                return Err(self.missing_segment(&before, walk.end, base));
            }
            match bases.get(n + 1) {
                // A last segment without a header gets it from the segment before it, which is read even if it
                // ends at `from`.
                Some(next) if *next < self.from => walk.skip_segment(&path, base),
                Some(_) => walk.replay_closed(&path, base),
                None => Ok(()),
            }
            .map_err(reading)?;
        }
        let path = segment_path(self.dir, last);
        let tail = walk
            .replay_last(&path, last)
            .map_err(|error| error.context(format!("reading {}", path.display())))?;
        let LogWalk { end, data_end, vouched, .. } = walk;
        Ok(RecoveredLog { bases, tail, end, data_end, vouched })
    }

    /// Returns the error of a damaged log.
    fn damage_error(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorCode::Corrupt, message).with_hint(self.hint)
    }

    /// Returns the error of a missing or truncated segment.
    fn missing_segment(&self, before: &Path, end: Lsn, base: Lsn) -> Error {
        self.damage_error(format!(
            "{} ends at LSN {end}, but the next segment begins at LSN {base}: a segment is missing or cut short",
            before.display()
        ))
    }

    /// Returns the error of a damaged record.
    fn bad_record(&self, offset: u64, why: &str) -> Error {
        self.damage_error(format!("record at offset {offset} is damaged, though {why}"))
    }
}

/// A walk over the records of all segments.
struct LogWalk<'a, 'r> {
    recovery: &'r Recovery<'r>,
    /// Id of the log, once a header was read.
    log_id: Option<u64>,
    /// The checksum over the log up to the last record that was read (see `log/chain.rs`). The
    /// first segment's checksum is trusted.
    chain: Option<LogChecksum>,
    end: Lsn,
    data_end: Lsn,
    vouched: Lsn,
    replay: Replay<'a>,
}

impl LogWalk<'_, '_> {
    /// Skips a segment whose records the caller does not need. Only its header and length are
    /// checked.
    fn skip_segment(&mut self, path: &Path, base: Lsn) -> Result<()> {
        let file = self.recovery.fs.open(path, OpenMode::Read)?;
        self.header(&*file, base)?;
        self.end = SegmentReader::new(file, base)?.end();
        (self.data_end, self.vouched, self.chain) = (self.end, self.end, None);
        Ok(())
    }

    /// Replays a segment that is not the last one. The segment was synced completely, so any
    /// damage is an error.
    fn replay_closed(&mut self, path: &Path, base: Lsn) -> Result<()> {
        let file = self.recovery.fs.open(path, OpenMode::Read)?;
        let head = self.header(&*file, base)?;
        self.chain = Some(LogChecksum::after_header(&head));
        let mut reader = SegmentReader::new(file, base)?;
        match self.replay_records(&mut reader)? {
            true => Ok(()),
            false => {
                let offset = reader.offset(self.end);
                Err(self.recovery.bad_record(offset, "the segment was synced as a whole"))
            }
        }
    }

    /// Replays the last segment and prepares it for more records.
    fn replay_last(&mut self, path: &Path, base: Lsn) -> Result<RecoveredTail> {
        let Recovery { fs, dir, .. } = *self.recovery;
        let file = fs.open(path, OpenMode::ReadWrite)?;
        let file_bytes = file.len()?;
        let head = match self.header(&*file, base) {
            Ok(head) => head,
            // The segment was being created and has no record yet.
            Err(error) if file_bytes <= SEGMENT_HEADER_BYTES as u64 && is_damage(&error) => {
                let Some(head) = self.unfinished_header(base)? else { return Err(error) };
                tracing::warn!(path = %path.display(), "a segment without a header is created again");
                let file = begin_segment(fs, dir, &head, OpenMode::ReadWrite)?;
                let chain = LogChecksum::after_header(&head);
                return Ok(RecoveredTail { file, base, log_id: head.log_id, chain });
            }
            Err(error) => return Err(error),
        };
        let mut chain = LogChecksum::after_header(&head);
        self.chain = Some(chain);
        let mut reader = SegmentReader::new(Arc::clone(&file), base)?;
        let is_whole = self.replay_records(&mut reader)?;
        if let Some(witness) = self.recovery.witness {
            let checked = witness.check_id(dir, head.log_id);
            checked.map_err(|error| error.with_hint(self.recovery.hint))?;
        }
        match is_whole {
            true => self.check_end(path)?,
            false => self.cut_torn_tail(path, &*file, &mut reader)?,
        }
        // The crash of a process alone leaves valid records that were never synced.
        file.sync()?;
        fs.sync_dir(dir)?;
        chain = self.chain.unwrap_or(chain);
        Ok(RecoveredTail { file, base, log_id: head.log_id, chain })
    }

    /// Returns a new header for a last segment whose creation was interrupted; `None` if the
    /// creation was complete, so that a bad header is damage.
    fn unfinished_header(&self, base: Lsn) -> Result<Option<SegmentHead>> {
        if self.synced() > base {
            return Ok(None);
        }
        match (self.chain, self.log_id) {
            (Some(chain), Some(log_id)) => {
                Ok(Some(SegmentHead { base, log_id, chain: chain.value() }))
            }
            // The first segment of a new log, which no witness or opener knows yet.
            (None, None) if base == 0 && self.recovery.witness.is_none() => {
                let (log_id, chain) = (self.recovery.random.next_u64(), LogChecksum::START.value());
                Ok(Some(SegmentHead { base, log_id, chain }))
            }
            _ => Ok(None),
        }
    }

    /// Returns the LSN up to which the log was certainly synced, according to its witness file and
    /// its opener.
    fn synced(&self) -> Lsn {
        let Recovery { witness, synced, .. } = *self.recovery;
        witness.map_or(0, |witness| witness.synced).max(synced)
    }

    /// Checks that the log contains all records up to the position that was certainly synced.
    fn check_end(&self, path: &Path) -> Result<()> {
        let (end, synced) = (self.end, self.synced());
        if end >= synced {
            return Ok(());
        }
        Err(self.recovery.damage_error(format!(
            "{} ends at LSN {end}, but the log was synced up to LSN {synced}: the segment is cut short, or a later one is \
             missing",
            path.display()
        )))
    }

    /// Removes the torn tail (incomplete records at the end). An error if some of it was synced
    /// before.
    fn cut_torn_tail(
        &self,
        path: &Path,
        file: &dyn File,
        reader: &mut SegmentReader,
    ) -> Result<()> {
        let offset = reader.offset(self.end);
        if reader.is_zeros_from(self.end)? {
            self.check_end(path)?;
            let bytes = file.len()?.saturating_sub(offset);
            tracing::debug!(path = %path.display(), offset, bytes, "cut the room behind the log");
            return Ok(file.set_len(offset)?);
        }
        let synced = largest_durable(reader, self.end)?.max(self.synced());
        if self.end < synced {
            let why = format!("the log was synced up to offset {}", reader.offset(synced));
            return Err(self.recovery.bad_record(offset, &why));
        }
        let bytes = file.len()?.saturating_sub(offset);
        tracing::warn!(path = %path.display(), offset, bytes, "dropped the torn tail of the log");
        Ok(file.set_len(offset)?)
    }

    /// Replays the records of a segment. Returns false if the record at `self.end` is not valid.
    fn replay_records(&mut self, reader: &mut SegmentReader) -> Result<bool> {
        while self.end < reader.end() {
            let start = self.end;
            let offset = reader.offset(start);
            if plant::is(Plant::TornRecordReplayed)
                && let Some((behind, _)) = reader.find_header(self.end)?
            {
                self.end = behind;
            }
            let (log_id, segment) = (self.log_id.unwrap_or_default(), reader.base());
            let FoundRecord::Record(header, payload) = reader.read(self.end)? else {
                return Ok(false);
            };
            let end = self.end + header.record_bytes();
            if !header.mark {
                (self.replay)(LogRecord { log_id, segment, start, end, payload })
                    .map_err(|error| error.context(format!("record at offset {offset}")))?;
                self.data_end = end;
            }
            self.chain = self.chain.map(|chain| chain.with_header(header.checksum(self.end)));
            self.vouched = header.durable;
            self.end = end;
        }
        Ok(true)
    }

    /// Checks the header of a segment against the file name, and against the segments before it.
    fn header(&mut self, file: &dyn File, base: Lsn) -> Result<SegmentHead> {
        let at_start = |error: Error| match is_damage(&error) {
            true => error.context("offset 0").with_hint(self.recovery.hint),
            false => error,
        };
        let head = read_head(file).map_err(at_start)?;
        let SegmentHead { base: said, log_id, chain } = head;
        let what = if said != base {
            format!(
                "the header says that the segment begins at LSN {said}, the file name says {base}"
            )
        } else if let Some(known) = self.log_id.filter(|known| *known != log_id) {
            format!("the segment belongs to log {log_id:016x}, not to log {known:016x}")
        } else if self.chain.is_some_and(|known| known.value() != chain) {
            "the segment does not follow the segments before it: one of them was exchanged".into()
        } else {
            self.log_id = Some(log_id);
            return Ok(head);
        };
        Err(self.recovery.damage_error(format!("offset 0: {what}")))
    }
}

fn is_damage(error: &Error) -> bool {
    error.code == ErrorCode::Corrupt
}

/// Returns the largest `durable` position in the record headers at or after `from`, the position
/// of a damaged record.
fn largest_durable(reader: &mut SegmentReader, from: Lsn) -> Result<Lsn> {
    let (mut largest, mut at) = (0, from);
    while let Some((lsn, header)) = reader.find_header(at)? {
        largest = largest.max(header.durable);
        // A payload can hold anything, even a copy of a record. So the search continues after a whole record.
        at = match reader.read(lsn)? {
            FoundRecord::Record(header, _) => lsn + header.record_bytes(),
            _ => lsn + 1,
        };
    }
    Ok(largest)
}
