//! Description of a segment file for `sextant inspect log`.

use std::path::Path;

use proto::env::{Env, OpenMode};
use proto::{Error, ErrorCode, Result};
use serde::Serialize;

use crate::log::format::{SEGMENT_HEADER_BYTES, parse_segment_header};
use crate::log::lsn::Lsn;
use crate::log::reader::{FoundRecord, SegmentReader};

/// Condition of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordState {
    /// The record is valid.
    Ok,
    /// The header is valid; the payload is damaged or cut short.
    BadPayload,
    /// No header is valid up to the next valid one, or to the end of the file.
    Unreadable,
}

/// A record, or a damaged part of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordInfo {
    /// Offset in the file.
    pub offset: u64,
    /// Place in the log.
    pub lsn: Lsn,
    /// Bytes of the payload, or of the unreadable part.
    pub bytes: u64,
    /// The end of the durable part when the record was written.
    pub durable: Option<Lsn>,
    /// True for a mark, which only says how far the log is durable.
    pub mark: bool,
    /// Condition of the record.
    pub state: RecordState,
}

/// A segment as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SegmentInfo {
    /// LSN of the beginning.
    pub base: Lsn,
    /// LSN of the end.
    pub end: Lsn,
    /// Number of valid records, without marks.
    pub records: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Number of damaged parts. After a crash the end of the last segment may be damaged; opening
    /// the log cuts it off.
    pub damaged: u64,
}

/// Passes each record of a segment file to `each`, also behind damage, and returns a summary.
/// Blocks the thread.
pub fn describe(env: &Env, path: &Path, each: &mut dyn FnMut(&RecordInfo)) -> Result<SegmentInfo> {
    let reading = |error: Error| error.context(format!("reading {}", path.display()));
    let mut walk = || {
        let file = env.fs.open(path, OpenMode::Read)?;
        if file.len()? < SEGMENT_HEADER_BYTES as u64 {
            return Err(Error::new(ErrorCode::Corrupt, "the file ends within the segment header"));
        }
        let mut header = [0; SEGMENT_HEADER_BYTES];
        file.read_exact_at(&mut header, 0)?;
        let base = parse_segment_header(&header)?;
        let mut reader = SegmentReader::new(file, base)?;
        let mut sum =
            SegmentInfo { base, end: reader.end(), records: 0, payload_bytes: 0, damaged: 0 };
        let mut at = base;
        while at < sum.end {
            let (info, next) = next_record(&mut reader, at)?;
            match (info.state, info.mark) {
                (RecordState::Ok, false) => {
                    sum.records += 1;
                    sum.payload_bytes += info.bytes;
                }
                (RecordState::Ok, true) => {}
                _ => sum.damaged += 1,
            }
            each(&info);
            at = next;
        }
        Ok(sum)
    };
    walk().map_err(reading)
}

/// Describes the record at an LSN, and returns the LSN of the next part.
fn next_record(reader: &mut SegmentReader, lsn: Lsn) -> Result<(RecordInfo, Lsn)> {
    let offset = reader.offset(lsn);
    let (state, header) = match reader.read(lsn)? {
        FoundRecord::Record(header, _) => (RecordState::Ok, Some(header)),
        FoundRecord::BadPayload(header) => (RecordState::BadPayload, Some(header)),
        FoundRecord::BadHeader => (RecordState::Unreadable, None),
    };
    let next = match header {
        Some(header) => (lsn + header.record_bytes()).min(reader.end()),
        None => reader.find_header(lsn + 1)?.map_or(reader.end(), |(next, _)| next),
    };
    let info = RecordInfo {
        offset,
        lsn,
        bytes: header.map_or(next - lsn, |header| u64::from(header.len)),
        durable: header.map(|header| header.durable),
        mark: header.is_some_and(|header| header.mark),
        state,
    };
    Ok((info, next))
}
