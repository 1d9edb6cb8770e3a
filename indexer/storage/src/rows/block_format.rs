//! Constants of the block format, and readers for its integers.

use proto::{Error, ErrorCode};

pub const HEADER_BYTES: usize = 24;
pub const TOMBSTONES: u8 = 1;
pub const OFFSETS_16: u16 = 0xffff;
pub const OFFSETS_32: u16 = 0xfffe;
pub const WIDTH_MAX: usize = 0xfff0;
/// Maximum number of rows of a block.
pub const BLOCK_ROWS_MAX: usize = 4096;

pub fn corrupt(what: &str) -> Error {
    Error::new(ErrorCode::Corrupt, format!("damaged block: {what}"))
}

pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
