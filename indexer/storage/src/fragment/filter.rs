//! A blocked Bloom filter over the keys of a back table, that is, over document ids.
//!
//! The filter follows Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters"
//! (2007): all bits of a key lie in one line of 64 bytes, so a query costs one cache miss. With ten
//! bits per key, seven of them set, about one query in a hundred is a false positive.

use proto::plant::{self, Plant};
use xxhash_rust::xxh3::xxh3_64;

/// Memory of a filter and its sparse index, in bytes per row, rounded up.
pub const FILTER_BYTES: u64 = 2;

/// Size of a cache line, in bytes.
pub const LINE_BYTES: usize = 64;
const LINE_BITS: u64 = 8 * LINE_BYTES as u64;
/// The number of bits per key. More bits would cost more cache misses than the avoided false
/// positives save.
const BITS_PER_KEY: u64 = 10;
/// Bits set per key. Of 5 to 8, seven gives the fewest false positives at ten bits per key.
const PROBES: u32 = 7;

/// Returns the hash of a key, with which filters are filled and queried.
pub fn filter_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// A line of the filter: eight words, aligned so that they never straddle two cache lines.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Line([u64; 8]);

/// A blocked Bloom filter.
pub struct Filter {
    lines: Vec<Line>,
}

impl Filter {
    /// Creates an empty filter for about `keys` keys.
    pub fn for_keys(keys: u64) -> Self {
        let lines = keys.saturating_mul(BITS_PER_KEY).div_ceil(LINE_BITS);
        Self { lines: vec![Line::default(); lines.clamp(1, u64::from(u32::MAX)) as usize] }
    }

    /// Returns the location of a key's bits: the number of its line, and a word with nine bits for
    /// each probe, which select a bit of the line.
    fn bit_location(&self, hash: u64) -> (usize, u64) {
        let line = (u128::from(hash) * self.lines.len() as u128) >> 64;
        // The high bits choose the line. Without mixing, the keys of a line would share their
        // probes too.
        let places = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (line as usize, places)
    }

    /// Adds several keys together, so that the processor loads their lines in parallel.
    pub fn insert_all(&mut self, hashes: &[u64]) {
        hashes.iter().for_each(|hash| self.insert(*hash));
    }

    /// Adds a key.
    #[inline]
    pub fn insert(&mut self, hash: u64) {
        if plant::is(Plant::FilterMisses) && hash.is_multiple_of(16) {
            return;
        }
        let (line, places) = self.bit_location(hash);
        for probe in 0..PROBES {
            let place = places >> (9 * probe);
            self.lines[line].0[(place >> 6 & 7) as usize] |= 1 << (place & 63);
        }
    }

    /// Returns true if the key may have been added, and false if it was certainly not added.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        let (line, places) = self.bit_location(hash);
        let words = &self.lines[line].0;
        // No branch before the last bit: the processor can load the lines of several keys in parallel.
        let bits = (0..PROBES).map(|probe| {
            let place = places >> (9 * probe);
            words[(place >> 6 & 7) as usize] >> (place & 63)
        });
        bits.fold(1, |all, bit| all & bit) == 1
    }

    /// Returns the number of lines.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Returns the memory use in bytes.
    pub fn size(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }

    /// Returns the words of the filter, in chunks of `lines` lines. On disk each word is little
    /// endian.
    pub fn chunks(&self, lines: usize) -> impl Iterator<Item = impl Iterator<Item = u64>> {
        self.lines.chunks(lines).map(|lines| lines.iter().flat_map(|line| line.0))
    }

    /// Creates a filter without lines, with capacity for `lines` lines; [`Self::decode_lines`]
    /// fills it.
    pub fn to_decode(lines: usize) -> Self {
        Self { lines: Vec::with_capacity(lines) }
    }

    /// Appends lines from their encoded bytes; an incomplete line at the end is ignored.
    pub fn decode_lines(&mut self, bytes: &[u8]) {
        let (lines, _) = bytes.as_chunks::<LINE_BYTES>();
        self.lines.extend(lines.iter().map(|line| {
            let (words, _) = line.as_chunks::<8>();
            let mut out = Line::default();
            for (to, from) in out.0.iter_mut().zip(words) {
                *to = u64::from_le_bytes(*from);
            }
            out
        }));
    }
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Filter({} lines)", self.lines.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: u64) -> u64 {
        filter_hash(format!("user{n:012}").as_bytes())
    }

    #[test]
    fn added_keys_are_always_found() {
        let keys = 200_000;
        let mut filter = Filter::for_keys(keys);
        (0..keys).for_each(|n| filter.insert(hash(n)));
        assert!((0..keys).all(|n| filter.may_contain(hash(n))));
        let found = (keys..2 * keys).filter(|n| filter.may_contain(hash(*n))).count() as f64;
        let share = found / keys as f64;
        assert!(share < 0.013, "{share} are found in vain");
        assert!(filter.size() as u64 * 8 < keys * 11);
    }

    #[test]
    fn a_filter_of_any_size_is_read_back_unchanged() {
        for keys in [0, 1, 51, 52, 5000] {
            let mut filter = Filter::for_keys(keys);
            (0..keys).for_each(|n| filter.insert(hash(n)));
            let words = filter.chunks(7).flatten();
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            assert_eq!(bytes.len(), filter.size());
            let mut read = Filter::to_decode(filter.lines());
            bytes.chunks(3 * LINE_BYTES).for_each(|chunk| read.decode_lines(chunk));
            assert!(read.lines.iter().zip(&filter.lines).all(|(left, right)| left.0 == right.0));
            assert_eq!(read.lines(), filter.lines());
        }
    }
}
