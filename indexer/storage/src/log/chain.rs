//! The *chain*: one checksum over all records that were ever written to a log.
//!
//! The chain in a segment's header covers all earlier segments: the checksums of their headers,
//! and of the headers of all their records, including marks (records without payload). Since the
//! header of a record covers the checksum of its payload, an earlier segment cannot be replaced by
//! another one without a contradiction in the next segment.

use crate::log::format::{
    RECORD_CHECKSUM_AT, RECORD_HEADER_BYTES, RECORD_LEN_AT, SegmentHead, u32_at,
};

/// The checksum over a log up to a position: CRC-32C over the checksums of all segment and record
/// headers before it, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogChecksum(u32);

impl LogChecksum {
    /// The value before the first segment of a log.
    pub(super) const START: Self = Self(0);

    /// Returns the value after a segment's header; the header contains the value before it.
    pub(super) fn after_header(head: &SegmentHead) -> Self {
        Self(head.chain).with_header(head.checksum())
    }

    /// Returns the value after one more header, which has this checksum.
    pub(super) fn with_header(self, checksum: u32) -> Self {
        Self(crc32c::crc32c_append(self.0, &checksum.to_le_bytes()))
    }

    /// Returns the value after more records, which must be complete; `records` are their encoded
    /// bytes.
    pub(super) fn with_records(mut self, records: &[u8]) -> Self {
        let mut at = 0;
        while at < records.len() {
            self = self.with_header(u32_at(records, at + RECORD_CHECKSUM_AT));
            at += RECORD_HEADER_BYTES + u32_at(records, at + RECORD_LEN_AT) as usize;
        }
        self
    }

    /// Returns the number to be stored in the header of the next segment.
    pub(super) fn value(self) -> u32 {
        self.0
    }
}
