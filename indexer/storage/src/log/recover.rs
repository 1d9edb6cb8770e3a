//! Recovery of a log: replays valid records, cuts off a torn tail, and refuses damage.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use proto::env::{File, FileSystem, OpenMode, create_dir_durably};
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};

use crate::log::format::{SEGMENT_HEADER_BYTES, parse_segment_header};
use crate::log::lsn::Lsn;
use crate::log::reader::{FoundRecord, SegmentReader};
use crate::log::segment::{begin_segment, segment_base, segment_path};

const HINT: &str =
    "restore the file, or remove the node's data directory: the slices are then rebuilt";

/// State of an opened log; everything in it is synced.
pub(super) struct RecoveredLog {
    /// Beginnings of the segments.
    pub(super) bases: VecDeque<Lsn>,
    /// The last segment.
    pub(super) tail: (Arc<dyn File>, Lsn),
    /// End of the last record.
    pub(super) end: Lsn,
    /// End of the last record that is not a mark.
    pub(super) data_end: Lsn,
    /// The `durable` of the last record.
    pub(super) vouched: Lsn,
}

/// Receiver of each record and the LSN of its end.
pub(super) type Replay<'a> = &'a mut dyn FnMut(Lsn, &[u8]) -> Result<()>;

/// Opens or creates the log in a directory and replays it.
pub(super) fn recover(fs: &dyn FileSystem, dir: &Path, replay: Replay<'_>) -> Result<RecoveredLog> {
    let opening = |error: std::io::Error| {
        Error::from(error).context(format!("opening the commit log in {}", dir.display()))
    };
    if !fs.exists(dir) {
        create_dir_durably(fs, dir).map_err(opening)?;
    }
    let names = fs.list(dir).map_err(opening)?;
    let bases: VecDeque<Lsn> = names.iter().filter_map(|path| segment_base(path)).collect();
    let (Some(&first), Some(&last)) = (bases.front(), bases.back()) else {
        let file = begin_segment(fs, dir, 0, OpenMode::CreateNew).map_err(opening)?;
        let (bases, tail) = (VecDeque::from([0]), (file, 0));
        return Ok(RecoveredLog { bases, tail, end: 0, data_end: 0, vouched: 0 });
    };
    let mut walk = LogWalk { end: first, data_end: first, vouched: first, replay };
    for (n, &base) in bases.iter().enumerate() {
        let path = segment_path(dir, base);
        let reading = |error: Error| error.context(format!("reading {}", path.display()));
        if base != walk.end {
            let before = segment_path(dir, bases[n.saturating_sub(1)]);
            return Err(gap(&before, walk.end, base));
        }
        if base != last {
            walk.closed_segment(fs, &path, base).map_err(reading)?;
        }
    }
    let path = segment_path(dir, last);
    let file = walk
        .last_segment(fs, dir, last)
        .map_err(|error| error.context(format!("reading {}", path.display())))?;
    let LogWalk { end, data_end, vouched, .. } = walk;
    Ok(RecoveredLog { bases, tail: (file, last), end, data_end, vouched })
}

fn gap(before: &Path, end: Lsn, base: Lsn) -> Error {
    let message = format!(
        "{} ends at LSN {end}, but the next segment begins at LSN {base}: a segment is missing or cut short",
        before.display()
    );
    Error::new(ErrorCode::Corrupt, message).with_hint(HINT)
}

/// A walk over the records of all segments.
struct LogWalk<'a> {
    end: Lsn,
    data_end: Lsn,
    vouched: Lsn,
    replay: Replay<'a>,
}

impl LogWalk<'_> {
    /// Replays a segment that has a successor. It was synced as a whole, so any damage is an error.
    fn closed_segment(&mut self, fs: &dyn FileSystem, path: &Path, base: Lsn) -> Result<()> {
        let file = fs.open(path, OpenMode::Read)?;
        check_header(&*file, base)?;
        let mut reader = SegmentReader::new(file, base)?;
        match self.records(&mut reader)? {
            true => Ok(()),
            false => Err(damage(reader.offset(self.end), "the segment was synced as a whole")),
        }
    }

    /// Replays the last segment and prepares it for more records.
    fn last_segment(
        &mut self,
        fs: &dyn FileSystem,
        dir: &Path,
        base: Lsn,
    ) -> Result<Arc<dyn File>> {
        let path = segment_path(dir, base);
        let file = fs.open(&path, OpenMode::ReadWrite)?;
        let file_bytes = file.len()?;
        match check_header(&*file, base) {
            Ok(()) => {}
            // The segment was being created and has no record yet.
            Err(error) if file_bytes <= SEGMENT_HEADER_BYTES as u64 && is_damage(&error) => {
                tracing::warn!(path = %path.display(), "a segment without a header is created again");
                return Ok(begin_segment(fs, dir, base, OpenMode::ReadWrite)?);
            }
            Err(error) => return Err(error),
        }
        let mut reader = SegmentReader::new(Arc::clone(&file), base)?;
        if !self.records(&mut reader)? {
            let offset = reader.offset(self.end);
            let synced = largest_durable(&mut reader, self.end)?;
            if self.end < synced {
                let why = format!("the log was synced up to offset {}", reader.offset(synced));
                return Err(damage(offset, &why));
            }
            let bytes = file_bytes - offset;
            tracing::warn!(path = %path.display(), offset, bytes, "dropped the torn tail of the commit log");
            file.set_len(offset)?;
        }
        // The crash of a process alone leaves valid records that were never synced.
        file.sync()?;
        fs.sync_dir(dir)?;
        Ok(file)
    }

    /// Replays the records of a segment; false if no valid record is at `self.end`.
    fn records(&mut self, reader: &mut SegmentReader) -> Result<bool> {
        while self.end < reader.end() {
            let offset = reader.offset(self.end);
            if plant::is(Plant::TornRecordReplayed)
                && let Some((behind, _)) = reader.find_header(self.end)?
            {
                self.end = behind;
            }
            let FoundRecord::Record(header, payload) = reader.read(self.end)? else {
                return Ok(false);
            };
            let end = self.end + header.record_bytes();
            if !header.mark {
                (self.replay)(end, payload)
                    .map_err(|error| error.context(format!("record at offset {offset}")))?;
                self.data_end = end;
            }
            self.vouched = header.durable;
            self.end = end;
        }
        Ok(true)
    }
}

fn check_header(file: &dyn File, base: Lsn) -> Result<()> {
    let mut header = [0; SEGMENT_HEADER_BYTES];
    let whole = file.len()? >= SEGMENT_HEADER_BYTES as u64;
    if whole {
        file.read_exact_at(&mut header, 0)?;
    }
    match parse_segment_header(&header) {
        Ok(said) if said != base => {
            let message = format!(
                "offset 0: the header says that the segment begins at LSN {said}, the file name says {base}"
            );
            Err(Error::new(ErrorCode::Corrupt, message).with_hint(HINT))
        }
        Ok(_) => Ok(()),
        Err(error) if is_damage(&error) => Err(error.context("offset 0").with_hint(HINT)),
        Err(error) => Err(error),
    }
}

fn is_damage(error: &Error) -> bool {
    error.code == ErrorCode::Corrupt
}

fn damage(offset: u64, why: &str) -> Error {
    let message = format!("record at offset {offset} is damaged, though {why}");
    Error::new(ErrorCode::Corrupt, message).with_hint(HINT)
}

/// Largest `durable` of the headers at or behind `from`, where a record is damaged.
fn largest_durable(reader: &mut SegmentReader, from: Lsn) -> Result<Lsn> {
    let (mut largest, mut at) = (0, from);
    while let Some((lsn, header)) = reader.find_header(at)? {
        largest = largest.max(header.durable);
        // A payload can hold anything, even a copy of a record. So the search goes on behind a
        // whole record.
        at = match reader.read(lsn)? {
            FoundRecord::Record(header, _) => lsn + header.record_bytes(),
            _ => lsn + 1,
        };
    }
    Ok(largest)
}
