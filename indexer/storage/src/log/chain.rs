//! The chain: one checksum over all records that were ever written to a log.
//!
//! The chain in a segment's header covers all earlier segments: the checksums of their headers, and
//! of the headers of all their records, including marks. Since the header of a record covers the
//! checksum of its payload, an earlier segment cannot be replaced by another one without a
//! contradiction in the next segment.

use crate::log::format::{
    RECORD_CHECKSUM_AT, RECORD_HEADER_BYTES, RECORD_LEN_AT, SegmentHead, u32_at,
};

/// CRC-32C over the checksums of all headers up to a place, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain(u32);

impl Chain {
    /// The chain before the first segment of a log.
    pub(super) const START: Self = Self(0);

    /// Returns the chain after the header of a segment.
    pub(super) fn behind_header(head: &SegmentHead) -> Self {
        Self(head.chain).with(head.checksum())
    }

    /// Returns the chain after one more header, whose checksum is given.
    pub(super) fn with(self, checksum: u32) -> Self {
        Self(crc32c::crc32c_append(self.0, &checksum.to_le_bytes()))
    }

    /// Returns the chain after the encoded records, which must be complete.
    pub(super) fn with_records(mut self, records: &[u8]) -> Self {
        let mut at = 0;
        while at < records.len() {
            self = self.with(u32_at(records, at + RECORD_CHECKSUM_AT));
            at += RECORD_HEADER_BYTES + u32_at(records, at + RECORD_LEN_AT) as usize;
        }
        self
    }

    /// Returns the number that is stored in the header of the next segment.
    pub(super) fn value(self) -> u32 {
        self.0
    }
}
