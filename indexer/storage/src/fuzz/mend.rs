//! Correction of the checksums of fuzzed log segments and manifests, so that a fuzzer reaches the
//! code after the checks. `fragment::mend` does the same for fragments.

use crc32c::{crc32c, crc32c_append};

const SEGMENT_HEADER_BYTES: usize = 32;
const RECORD_HEADER_BYTES: usize = 24;
const MANIFEST_HEADER_BYTES: usize = 32;

fn put(bytes: &mut [u8], at: usize, word: u32) {
    bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
}

/// Corrects the length and the checksum of a manifest.
pub(super) fn mend_manifest(bytes: &mut [u8]) {
    let Some(len) = bytes.len().checked_sub(MANIFEST_HEADER_BYTES) else { return };
    bytes[12..20].copy_from_slice(&(len as u64).to_le_bytes());
    let crc = crc32c_append(crc32c(&bytes[8..28]), &bytes[MANIFEST_HEADER_BYTES..]);
    put(bytes, 28, crc);
}

/// Corrects the checksums of a log segment: of its header, and of its records up to the first
/// invalid length.
pub fn mend_log(bytes: &mut [u8]) {
    let Some(mut left) = bytes.len().checked_sub(SEGMENT_HEADER_BYTES) else { return };
    let base = bytes[8..16].iter().rev().fold(0, |base, byte| base << 8 | u64::from(*byte));
    put(bytes, 28, crc32c(&bytes[..28]));
    let mut at = SEGMENT_HEADER_BYTES;
    while left >= RECORD_HEADER_BYTES {
        let record = &mut bytes[at..];
        let len = record[4..8].iter().rev().fold(0, |len, byte| len << 8 | usize::from(*byte));
        let whole = RECORD_HEADER_BYTES + len <= left;
        if whole {
            let payload = &record[RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + len];
            put(record, 8, crc32c(payload));
        }
        let lsn = base.wrapping_add((at - SEGMENT_HEADER_BYTES) as u64);
        let crc = crc32c_append(crc32c(&lsn.to_le_bytes()), &record[..12]);
        put(record, 12, crc32c_append(crc, &record[16..RECORD_HEADER_BYTES]));
        if !whole {
            return;
        }
        at += RECORD_HEADER_BYTES + len;
        left -= RECORD_HEADER_BYTES + len;
    }
}
