//! Correction of a damaged fragment's checksums, so that a fuzzer reaches the code after the
//! checks.

use crate::fragment::format::{
    FragmentHeader, FragmentTrailer, HEADER_BYTES, KIND_AT, Meta, STAMPED, TRAILER_BYTES,
};
use crate::fragment::stored_block::checksum;

/// Recomputes all checksums of a damaged fragment. Returns `None` if the trailer's lengths do not
/// fit the file, so that the sections cannot be located.
pub(crate) fn mend(bytes: &mut [u8]) -> Option<()> {
    let file_bytes = bytes.len() as u64;
    if file_bytes < HEADER_BYTES + TRAILER_BYTES {
        return None;
    }
    let id = bytes[8..16].iter().rev().fold(0, |id, byte| id << 8 | u64::from(*byte));
    let is_stamped = bytes[KIND_AT] == STAMPED;
    let (header, seed) = FragmentHeader { id, is_stamped }.encode();
    bytes[..HEADER_BYTES as usize].copy_from_slice(&header);
    let at = (file_bytes - TRAILER_BYTES) as usize;
    let mut trailer: [u8; TRAILER_BYTES as usize] = bytes[at..].try_into().ok()?;
    let crc = crc32c::crc32c_append(seed, &trailer[..24]);
    trailer[24..28].copy_from_slice(&crc.to_le_bytes());
    trailer[28..].copy_from_slice(b"rfxs");
    let mut trailer = FragmentTrailer::decode(&trailer, seed, file_bytes).ok()?;
    let (meta, filter) = (trailer.meta_offset as usize, trailer.filter_offset() as usize);
    if let Ok(Meta { index, .. }) = Meta::decode(&bytes[meta..filter], trailer.meta_offset) {
        for (offset, len) in (0..index.blocks()).filter_map(|block| index.place(block)) {
            let stored = &mut bytes[offset as usize..][..len as usize];
            if let Some((crc, rest)) = stored.split_first_chunk_mut::<4>() {
                *crc = checksum(seed, offset, rest).to_le_bytes();
            }
        }
    }
    trailer.meta_crc = crc32c::crc32c_append(seed, &bytes[meta..filter]);
    trailer.filter_crc = crc32c::crc32c_append(seed, &bytes[filter..at]);
    bytes[at..].copy_from_slice(&trailer.encode(seed));
    Some(())
}
