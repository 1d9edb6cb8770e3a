//! Reader of one segment, through a buffer with a range of the file (the *window*).

use std::sync::Arc;

use proto::Result;
use proto::env::File;

use crate::log::format::{
    MAGIC_PREFIX, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHead,
};
use crate::log::lsn::Lsn;

/// Size of the buffer, in bytes. It grows only for a longer record whose header is valid.
const WINDOW_BYTES: usize = 1 << 20;

/// Reads the header of a segment file. A file that ends too early has a damaged header.
pub(super) fn read_head(file: &dyn File) -> Result<SegmentHead> {
    let mut header = [0; SEGMENT_HEADER_BYTES];
    let there = (SEGMENT_HEADER_BYTES as u64).min(file.len()?) as usize;
    file.read_exact_at(&mut header[..there], 0)?;
    SegmentHead::parse(&header)
}

/// The result of reading a record at a position of a segment.
pub(super) enum FoundRecord<'a> {
    /// A complete record with a valid checksum.
    Record(RecordHeader, &'a [u8]),
    /// A valid header whose payload is missing or damaged.
    BadPayload(RecordHeader),
    /// No valid header.
    BadHeader,
}

/// A reader of a segment file, with the range of the file that was read last.
pub(super) struct SegmentReader {
    file: Arc<dyn File>,
    base: Lsn,
    file_bytes: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl SegmentReader {
    pub(super) fn new(file: Arc<dyn File>, base: Lsn) -> Result<Self> {
        let file_bytes = file.len()?;
        Ok(Self { file, base, file_bytes, window: Vec::new(), window_at: 0 })
    }

    /// Returns the LSN of the segment's beginning.
    pub(super) fn base(&self) -> Lsn {
        self.base
    }

    /// Returns the LSN of the end of the file, even if no record is there.
    pub(super) fn end(&self) -> Lsn {
        self.base + self.file_bytes.saturating_sub(SEGMENT_HEADER_BYTES as u64)
    }

    /// Returns the file offset of an LSN.
    pub(super) fn offset(&self, lsn: Lsn) -> u64 {
        lsn - self.base + SEGMENT_HEADER_BYTES as u64
    }

    /// Reads the record at an LSN below the end.
    pub(super) fn read(&mut self, lsn: Lsn) -> Result<FoundRecord<'_>> {
        let Some(header) = self.header(lsn)? else { return Ok(FoundRecord::BadHeader) };
        let payload_at = self.offset(lsn) + RECORD_HEADER_BYTES as u64;
        match self.bytes(payload_at, header.len as usize)? {
            Some(payload) if crc32c::crc32c(payload) == header.payload_crc => {
                Ok(FoundRecord::Record(header, payload))
            }
            _ => Ok(FoundRecord::BadPayload(header)),
        }
    }

    /// Reads the header at an LSN; `None` if it is not valid.
    fn header(&mut self, lsn: Lsn) -> Result<Option<RecordHeader>> {
        let at = self.offset(lsn);
        let bytes = self.bytes(at, RECORD_HEADER_BYTES)?;
        let header = bytes.and_then(|bytes| bytes.try_into().ok());
        Ok(header.and_then(|header| RecordHeader::parse(header, lsn)))
    }

    /// Finds the next valid header at or after `from`. Tries every offset, since after damage the
    /// beginning of the next record is unknown.
    pub(super) fn find_header(&mut self, from: Lsn) -> Result<Option<(Lsn, RecordHeader)>> {
        let mut at = self.offset(from);
        while at + RECORD_HEADER_BYTES as u64 <= self.file_bytes {
            let len = WINDOW_BYTES.min((self.file_bytes - at) as usize);
            let Some(bytes) = self.bytes(at, len)? else { return Ok(None) };
            // The first byte of the magic number tells the kind of record; the others are the same
            // for all kinds.
            let hits = bytes.windows(4).enumerate().filter(|(_, four)| four[1..] == MAGIC_PREFIX);
            let hits: Vec<u64> = hits.map(|(n, _)| at + n as u64).collect();
            for hit in hits {
                let lsn = hit - SEGMENT_HEADER_BYTES as u64 + self.base;
                if let Some(header) = self.header(lsn)? {
                    return Ok(Some((lsn, header)));
                }
            }
            at += len as u64 - 3;
        }
        Ok(None)
    }

    /// Returns true if the file contains only zeros from an LSN on: the preallocated space of the
    /// last segment (`log/tail.rs`).
    pub(super) fn is_zeros_from(&mut self, from: Lsn) -> Result<bool> {
        let mut at = self.offset(from);
        while at < self.file_bytes {
            let len = WINDOW_BYTES.min((self.file_bytes - at) as usize);
            if self.bytes(at, len)?.is_none_or(|bytes| bytes.iter().any(|byte| *byte != 0)) {
                return Ok(false);
            }
            at += len as u64;
        }
        Ok(true)
    }

    /// Reads `len` bytes at a file offset; `None` if the file ends before.
    fn bytes(&mut self, at: u64, len: usize) -> Result<Option<&[u8]>> {
        if at + len as u64 > self.file_bytes {
            return Ok(None);
        }
        let window_end = self.window_at + self.window.len() as u64;
        if at < self.window_at || at + len as u64 > window_end {
            let size = len.max(WINDOW_BYTES).min((self.file_bytes - at) as usize);
            self.window.resize(size, 0);
            self.window_at = at;
            if let Err(error) = self.file.read_exact_at(&mut self.window, at) {
                self.window.clear();
                return Err(error.into());
            }
        }
        let from = (at - self.window_at) as usize;
        Ok(Some(&self.window[from..from + len]))
    }
}
