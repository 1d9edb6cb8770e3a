//! Description of a segment file for `sextant inspect log`.

use std::path::Path;

use proto::env::{Env, FileSystem, OpenMode};
use proto::{Error, Result};
use serde::Serialize;

use crate::log::chain::LogChecksum;
use crate::log::format::{RecordHeader, SEGMENT_HEADER_BYTES, SegmentHead};
use crate::log::lsn::Lsn;
use crate::log::reader::{FoundRecord, SegmentReader, read_head};

/// Condition of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordState {
    /// The record is valid.
    Ok,
    /// The header is valid; the payload is damaged or truncated.
    BadPayload,
    /// No valid header precedes the next record or the end of the file.
    Unreadable,
}

/// A record, or a damaged range of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordInfo {
    /// Offset in the file.
    pub offset: u64,
    /// LSN of the beginning of the record.
    pub lsn: Lsn,
    /// Bytes of the payload, or of the unreadable range.
    pub bytes: u64,
    /// The LSN in the header up to which the log was durable when the record was written.
    pub durable: Option<Lsn>,
    /// True for a mark: a record without payload, which only says up to where the log is durable.
    pub mark: bool,
    /// Condition of the record.
    pub state: RecordState,
}

/// The description of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SegmentInfo {
    /// LSN of the segment's beginning.
    pub base: Lsn,
    /// Random id of the log.
    pub log_id: u64,
    /// Checksum over all earlier segments (see `log/chain.rs`).
    pub chain: u32,
    /// LSN of the end of the last record.
    pub end: Lsn,
    /// Number of zero bytes after the last record, which the next records overwrite. Only the last
    /// segment has such preallocated space.
    pub room_bytes: u64,
    /// The value of `chain` that the next segment must have; `None` if this segment is damaged.
    pub chain_end: Option<u32>,
    /// Number of valid records that have a payload; marks do not count.
    pub records: u64,
    /// Total size of the valid records' payloads, in bytes.
    pub payload_bytes: u64,
    /// Number of damaged ranges. After a crash the end of the last segment may be damaged; opening
    /// the log removes this end.
    pub damaged: u64,
}

impl SegmentInfo {
    /// Returns the number of bytes of the file up to the end of the last record.
    pub fn used_bytes(&self) -> u64 {
        self.end - self.base + SEGMENT_HEADER_BYTES as u64
    }

    /// Returns the reason why this segment cannot follow the segment `before`, apart from their
    /// positions; `None` if it can.
    pub fn contradiction(&self, before: &Self) -> Option<&'static str> {
        if self.log_id != before.log_id {
            return Some("offset 0: the segment belongs to another log than the segment before it");
        }
        let is_other = before.chain_end.is_some_and(|chain| chain != self.chain);
        is_other.then_some(
            "offset 0: the segment does not follow the segments before it: one of them was exchanged",
        )
    }
}

/// Passes each record of a segment file to `each`, also after damage, and returns a summary.
/// Blocks the thread.
pub fn describe(env: &Env, path: &Path, each: &mut dyn FnMut(&RecordInfo)) -> Result<SegmentInfo> {
    scan_segment(&*env.fs, path, &mut |record, _| each(record))
}

/// Describes a segment like [`describe`], and also passes the payload of each record to `each`.
/// The payload is empty unless the record is valid. Uses as much memory as the longest record
/// takes.
pub fn scan_segment(
    fs: &dyn FileSystem,
    path: &Path,
    each: &mut dyn FnMut(&RecordInfo, &[u8]),
) -> Result<SegmentInfo> {
    let reading = |error: Error| error.context(format!("reading {}", path.display()));
    let mut walk = || {
        let file = fs.open(path, OpenMode::Read)?;
        let head = read_head(&*file)?;
        let SegmentHead { base, log_id, chain } = head;
        let mut reader = SegmentReader::new(file, base)?;
        let mut walked = RecordWalk { at: base, chain: Some(LogChecksum::after_header(&head)) };
        let end = reader.end();
        let mut sum = SegmentInfo {
            base,
            log_id,
            chain,
            end,
            room_bytes: 0,
            chain_end: None,
            records: 0,
            payload_bytes: 0,
            damaged: 0,
        };
        while walked.at < sum.end {
            let goes_on = walked.next_record(&mut reader, &mut |info, payload| {
                match (info.state, info.mark) {
                    (RecordState::Ok, false) => {
                        sum.records += 1;
                        sum.payload_bytes += info.bytes;
                    }
                    (RecordState::Ok, true) => {}
                    _ => sum.damaged += 1,
                }
                each(info, payload);
            })?;
            if !goes_on {
                (sum.end, sum.room_bytes) = (walked.at, end - walked.at);
                break;
            }
        }
        sum.chain_end = walked.chain.map(LogChecksum::value);
        Ok(sum)
    };
    walk().map_err(reading)
}

/// Returns the id of the log that a segment file belongs to.
pub fn segment_log_id(fs: &dyn FileSystem, path: &Path) -> Result<u64> {
    let head =
        fs.open(path, OpenMode::Read).map_err(Error::from).and_then(|file| read_head(&*file));
    Ok(head.map_err(|error| error.context(format!("reading {}", path.display())))?.log_id)
}

/// A walk over the records of a segment.
struct RecordWalk {
    at: Lsn,
    /// The checksum over the log up to the present position (see `log/chain.rs`); `None` after
    /// damage.
    chain: Option<LogChecksum>,
}

impl RecordWalk {
    /// Describes the record or the damaged range at the present position, and advances past it.
    /// Returns false if only preallocated space follows.
    fn next_record(
        &mut self,
        reader: &mut SegmentReader,
        each: &mut dyn FnMut(&RecordInfo, &[u8]),
    ) -> Result<bool> {
        let lsn = self.at;
        let (offset, end) = (reader.offset(lsn), reader.end());
        let of = |header: &RecordHeader, state| RecordInfo {
            offset,
            lsn,
            bytes: u64::from(header.len),
            durable: Some(header.durable),
            mark: header.mark,
            state,
        };
        match reader.read(lsn)? {
            FoundRecord::Record(header, payload) => {
                each(&of(&header, RecordState::Ok), payload);
                self.chain = self.chain.map(|chain| chain.with_header(header.checksum(lsn)));
                self.at = (lsn + header.record_bytes()).min(end);
            }
            FoundRecord::BadPayload(header) => {
                each(&of(&header, RecordState::BadPayload), &[]);
                self.chain = None;
                self.at = (lsn + header.record_bytes()).min(end);
            }
            FoundRecord::BadHeader => {
                if reader.is_zeros_from(lsn)? {
                    return Ok(false);
                }
                let next = reader.find_header(lsn + 1)?.map_or(end, |(next, _)| next);
                let (bytes, state) = (next - lsn, RecordState::Unreadable);
                let (durable, mark) = (None, false);
                each(&RecordInfo { offset, lsn, bytes, durable, mark, state }, &[]);
                (self.chain, self.at) = (None, next);
            }
        }
        Ok(true)
    }
}
