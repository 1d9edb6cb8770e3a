//! Records that wait to be written.

use crate::log::format::{Header, RECORD_HEADER_BYTES};
use crate::log::lsn::Lsn;

/// What was appended and not yet given to the writer.
pub(super) struct Pending {
    pub(super) bytes: Vec<u8>,
    /// The LSN behind `bytes`.
    pub(super) end: Lsn,
    /// The LSN behind the last record that is not a mark.
    pub(super) data_end: Lsn,
    /// How far the last record in the log says that the log is durable.
    pub(super) vouched: Lsn,
    /// How far the log is durable, as in the watch.
    pub(super) durable: Lsn,
    /// How far somebody wants it to be.
    pub(super) wanted: Lsn,
}

impl Pending {
    /// Puts a record into the group and returns where it ends.
    pub(super) fn put(&mut self, parts: &[&[u8]], len: usize, payload_crc: u32) -> Lsn {
        let header = Header::data(len as u32, payload_crc, self.durable);
        self.bytes.reserve(RECORD_HEADER_BYTES + len);
        self.bytes.extend_from_slice(&header.encode(self.end));
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.vouched = self.durable;
        self.end += (RECORD_HEADER_BYTES + len) as u64;
        self.data_end = self.end;
        self.end
    }

    /// Puts a mark into the group.
    pub(super) fn put_mark(&mut self) {
        let header = Header::mark(self.durable);
        self.bytes.extend_from_slice(&header.encode(self.end));
        self.vouched = self.durable;
        self.end += RECORD_HEADER_BYTES as u64;
    }
}
