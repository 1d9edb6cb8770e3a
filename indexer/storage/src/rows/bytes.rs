//! Operations on byte strings: common prefixes, comparison by their first bytes, fast copies.

use std::ops::Range;

/// Returns the length of the common prefix of two strings.
pub fn common_prefix_len(left: &[u8], right: &[u8]) -> usize {
    let mut shared = 0;
    let (mut one, mut other) = (left, right);
    while let (Some((a, rest)), Some((b, other_rest))) =
        (one.split_first_chunk::<8>(), other.split_first_chunk::<8>())
    {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return shared + differing.trailing_zeros() as usize / 8;
        }
        shared += 8;
        (one, other) = (rest, other_rest);
    }
    shared + one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Returns the first eight bytes of a string as an integer that sorts in the order of the strings.
/// `pieces` are concatenated.
pub fn head_of(pieces: &[&[u8]]) -> u64 {
    let (mut word, mut len) = ([0; 8], 0);
    for piece in pieces {
        let take = piece.len().min(8 - len);
        word[len..len + take].copy_from_slice(&piece[..take]);
        len += take;
    }
    u64::from_be_bytes(word)
}

/// Number of bytes that [`copy_wide`] copies at once, with one instruction sequence, for any
/// shorter string.
pub const WIDE_BYTES: usize = 16;

/// Copies the bytes `range` of `from` to the offset `at` of `out`, and returns the offset of their
/// end. Bytes of `out` after this end may be overwritten with garbage, so the caller must write
/// them afterwards.
#[inline]
pub fn copy_wide(from: &[u8], range: Range<usize>, out: &mut [u8], at: usize) -> usize {
    let end = at + range.len();
    let wide = from[range.start..].first_chunk::<WIDE_BYTES>();
    match (wide, out[at..].first_chunk_mut::<WIDE_BYTES>()) {
        (Some(wide), Some(out)) if range.len() <= WIDE_BYTES => *out = *wide,
        _ => out[at..end].copy_from_slice(&from[range]),
    }
    end
}
