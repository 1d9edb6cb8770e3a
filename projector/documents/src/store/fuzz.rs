//! Correction of a damaged paired file, so that a fuzzer gets past its checksum.

use super::paired_file::{HEADER_BYTES, SUMMED_BYTES};

/// Corrects the length and the checksum.
pub fn mend_paired_file(bytes: &mut [u8]) {
    let Some(len) = bytes.len().checked_sub(HEADER_BYTES) else { return };
    bytes[20..28].copy_from_slice(&(len as u64).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..SUMMED_BYTES]), &bytes[HEADER_BYTES..]);
    bytes[SUMMED_BYTES..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
}
