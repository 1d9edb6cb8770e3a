//! Encoding of segments and records. The meaning of the fields is described in [`super`].

use proto::{Error, ErrorCode, Result};

use crate::log::lsn::Lsn;

const SEGMENT_MAGIC: &[u8; 4] = b"sxlg";
const VERSION: u32 = 1;
/// Size of a segment's header, in bytes.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 32;
/// Size of the header without its checksum, in bytes.
const SEGMENT_FIELDS_BYTES: usize = SEGMENT_HEADER_BYTES - 4;

const DATA_MAGIC: u32 = 0x5ec0_4d22;
const MARK_MAGIC: u32 = 0x5ec0_4d23;
/// Bytes that begin the magic number of every record.
pub(super) const MAGIC_PREFIX: [u8; 3] = [0x4d, 0xc0, 0x5e];
/// Size of a record's header, in bytes.
pub(crate) const RECORD_HEADER_BYTES: usize = 24;
/// Offset of the payload's length in a record header.
pub(super) const RECORD_LEN_AT: usize = 4;
/// Offset of the header's checksum in a record header.
pub(super) const RECORD_CHECKSUM_AT: usize = 12;
/// Maximum payload in bytes. A longer record is damage: an epoch of that size is never accepted.
pub(crate) const RECORD_BYTES_MAX: usize = 1 << 30;

/// Upper bound of all LSNs, so that sums of LSNs cannot overflow. A larger LSN is damage.
const LSN_MAX: Lsn = 1 << 62;

/// Header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHead {
    /// LSN of the segment's beginning.
    pub(crate) base: Lsn,
    /// Random id of the log.
    pub(crate) log_id: u64,
    /// Checksum over all earlier segments, see [`Chain`](crate::log::chain::Chain).
    pub(crate) chain: u32,
}

impl SegmentHead {
    /// Encodes the header.
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut header = [0; SEGMENT_HEADER_BYTES];
        header[..4].copy_from_slice(SEGMENT_MAGIC);
        header[4..8].copy_from_slice(&VERSION.to_le_bytes());
        header[8..16].copy_from_slice(&self.base.to_le_bytes());
        header[16..24].copy_from_slice(&self.log_id.to_le_bytes());
        header[24..28].copy_from_slice(&self.chain.to_le_bytes());
        let crc = crc32c::crc32c(&header[..SEGMENT_FIELDS_BYTES]);
        header[SEGMENT_FIELDS_BYTES..].copy_from_slice(&crc.to_le_bytes());
        header
    }

    /// Returns the checksum of the encoded header.
    pub(crate) fn checksum(&self) -> u32 {
        u32_at(&self.encode(), SEGMENT_FIELDS_BYTES)
    }

    /// Decodes a header.
    pub(crate) fn parse(header: &[u8; SEGMENT_HEADER_BYTES]) -> Result<Self> {
        let version = u32_at(header, 4);
        if &header[..4] != SEGMENT_MAGIC
            || crc32c::crc32c(&header[..SEGMENT_FIELDS_BYTES])
                != u32_at(header, SEGMENT_FIELDS_BYTES)
        {
            return Err(Error::new(ErrorCode::Corrupt, "the segment header is damaged"));
        }
        let base = u64_at(header, 8);
        match version {
            VERSION if base > LSN_MAX => {
                Err(Error::new(ErrorCode::Corrupt, "the segment header names an impossible LSN"))
            }
            VERSION => {
                let (log_id, chain) = (u64_at(header, 16), u32_at(header, 24));
                Ok(Self { base, log_id, chain })
            }
            other => Err(other_version(other)),
        }
    }
}

/// Returns the error for a segment of another format version.
fn other_version(other: u32) -> Error {
    let message =
        format!("the segment has format version {other}, this build reads version {VERSION}");
    Error::new(ErrorCode::Version, message).with_hint(
        "start the build that wrote the directory; an indexer can also use an empty one: the slices are then rebuilt",
    )
}

/// The header of a record, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    /// True for a mark, a record without payload.
    pub(super) mark: bool,
    /// Length of the payload.
    pub(super) len: u32,
    /// CRC-32C of the payload.
    pub(super) payload_crc: u32,
    /// The LSN up to which the log was known to be durable when the record was written.
    pub(super) durable: Lsn,
}

impl RecordHeader {
    /// Creates the header of a record with a payload.
    pub(super) fn data(len: u32, payload_crc: u32, durable: Lsn) -> Self {
        Self { mark: false, len, payload_crc, durable }
    }

    /// Creates the header of a mark.
    pub(super) fn mark(durable: Lsn) -> Self {
        Self { mark: true, len: 0, payload_crc: 0, durable }
    }

    /// Returns the length of the record with its header and payload.
    pub(super) fn record_bytes(&self) -> u64 {
        RECORD_HEADER_BYTES as u64 + u64::from(self.len)
    }

    /// Encodes the header of a record at `lsn`.
    pub(super) fn encode(&self, lsn: Lsn) -> [u8; RECORD_HEADER_BYTES] {
        let magic = if self.mark { MARK_MAGIC } else { DATA_MAGIC };
        let mut out = [0; RECORD_HEADER_BYTES];
        out[..4].copy_from_slice(&magic.to_le_bytes());
        out[4..8].copy_from_slice(&self.len.to_le_bytes());
        out[8..12].copy_from_slice(&self.payload_crc.to_le_bytes());
        out[16..].copy_from_slice(&self.durable.to_le_bytes());
        let crc = header_crc(&out, lsn);
        out[12..16].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Returns the checksum of the encoded header of a record at `lsn`.
    pub(super) fn checksum(&self, lsn: Lsn) -> u32 {
        u32_at(&self.encode(lsn), RECORD_CHECKSUM_AT)
    }

    /// Decodes the header of a record at `lsn`; `None` if the bytes are not a valid header.
    pub(super) fn parse(bytes: &[u8; RECORD_HEADER_BYTES], lsn: Lsn) -> Option<Self> {
        let mark = match u32_at(bytes, 0) {
            DATA_MAGIC => false,
            MARK_MAGIC => true,
            _ => return None,
        };
        let header = Self {
            mark,
            len: u32_at(bytes, 4),
            payload_crc: u32_at(bytes, 8),
            durable: u64_at(bytes, 16),
        };
        let plausible = header.durable <= lsn && header.len as usize <= RECORD_BYTES_MAX;
        (plausible && u32_at(bytes, 12) == header_crc(bytes, lsn)).then_some(header)
    }
}

/// Computes the checksum of an encoded header, which also covers the record's LSN.
fn header_crc(header: &[u8; RECORD_HEADER_BYTES], lsn: Lsn) -> u32 {
    let crc = crc32c::crc32c(&lsn.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(crc, &header[..12]), &header[16..])
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
