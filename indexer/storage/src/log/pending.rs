//! Records that wait for the writer.

use crate::log::format::{RECORD_HEADER_BYTES, RecordHeader};

#[cfg(debug_assertions)]
use crate::log::invariants::ends_are_in_order;
use crate::log::lsn::Lsn;

/// Appended records that the writer has not taken yet, and the positions of the log's end.
pub(super) struct PendingRecords {
    pub(super) bytes: Vec<u8>,
    /// LSN of the end of `bytes`.
    pub(super) end: Lsn,
    /// LSN of the end of the last record with a payload; marks do not count.
    pub(super) data_end: Lsn,
    /// The LSN up to which the last record says that the log is durable.
    pub(super) vouched: Lsn,
    /// The LSN up to which the log is durable, as published to waiters.
    pub(super) durable: Lsn,
    /// The largest LSN that a caller waits for to become durable.
    pub(super) wanted: Lsn,
}

impl PendingRecords {
    /// Adds a record and returns the LSN of its end.
    pub(super) fn put(&mut self, parts: &[&[u8]], len: usize, payload_crc: u32) -> Lsn {
        let header = RecordHeader::data(len as u32, payload_crc, self.durable);
        self.bytes.reserve(RECORD_HEADER_BYTES + len);
        self.bytes.extend_from_slice(&header.encode(self.end));
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.vouched = self.durable;
        self.end += (RECORD_HEADER_BYTES + len) as u64;
        self.data_end = self.end;
        self.check_ends();
        self.end
    }

    /// Adds a mark: a record without payload that says up to where the log is durable.
    pub(super) fn put_mark(&mut self) {
        let header = RecordHeader::mark(self.durable);
        self.bytes.extend_from_slice(&header.encode(self.end));
        self.vouched = self.durable;
        self.end += RECORD_HEADER_BYTES as u64;
        self.check_ends();
    }

    /// Checks that the positions are in order.
    fn check_ends(&self) {
        #[cfg(debug_assertions)]
        assert!(ends_are_in_order(self.vouched, self.durable, self.data_end, self.end));
    }
}
