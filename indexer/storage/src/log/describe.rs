//! What is in a segment file, for `sextant inspect log`.

use std::path::Path;

use proto::env::{Env, OpenMode};
use proto::{Error, ErrorCode, Result};
use serde::Serialize;

use crate::log::format::{SEGMENT_HEADER_BYTES, parse_segment_header};
use crate::log::lsn::Lsn;
use crate::log::reader::{Found, SegmentReader};

/// What of a record is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordState {
    /// All of it.
    Ok,
    /// Its header; the payload is damaged or cut short.
    BadPayload,
    /// Nothing: bytes up to the next header that is right, or to the end.
    Unreadable,
}

/// One record, or a damaged part of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordInfo {
    /// Its place in the file.
    pub offset: u64,
    /// Its place in the log.
    pub lsn: Lsn,
    /// Bytes of the payload, or of the unreadable part.
    pub bytes: u64,
    /// How far the log was known to be durable when it was written.
    pub durable: Option<Lsn>,
    /// Is it a mark, which only says how far the log is durable?
    pub mark: bool,
    /// What of it is right.
    pub state: RecordState,
}

/// A segment as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SegmentInfo {
    /// Where it begins.
    pub base: Lsn,
    /// Where it ends.
    pub end: Lsn,
    /// Whole records, without the marks.
    pub records: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Damaged parts; a crash leaves some at the end of the last segment, which opening the log cuts
    /// off.
    pub damaged: u64,
}

/// Hands each record of a segment file to `each`, also those behind damage, and sums up. Blocks.
pub fn describe(env: &Env, path: &Path, each: &mut dyn FnMut(&RecordInfo)) -> Result<SegmentInfo> {
    let reading = |error: Error| error.context(format!("reading {}", path.display()));
    let mut walk = || {
        let file = env.fs.open(path, OpenMode::Read)?;
        if file.len()? < SEGMENT_HEADER_BYTES as u64 {
            return Err(Error::new(ErrorCode::Corrupt, "it ends within its header"));
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

/// What stands at a place, and where the next thing stands.
fn next_record(reader: &mut SegmentReader, lsn: Lsn) -> Result<(RecordInfo, Lsn)> {
    let offset = reader.offset(lsn);
    let (state, header) = match reader.read(lsn)? {
        Found::Record(header, _) => (RecordState::Ok, Some(header)),
        Found::BadPayload(header) => (RecordState::BadPayload, Some(header)),
        Found::BadHeader => (RecordState::Unreadable, None),
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
