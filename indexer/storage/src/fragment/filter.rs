//! A blocked Bloom filter over the keys of a back table, which are document ids: is a document in this
//! fragment, perhaps?
//!
//! It is the filter of Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters"
//! (2007): all bits of a key lie in one line of 64 bytes, so that a question costs one cache miss. With
//! ten bits per key, seven of them set, about one question in a hundred is answered "perhaps" in vain.

use proto::plant::{self, Plant};
use xxhash_rust::xxh3::xxh3_64;

/// What a filter and the sparse index beside it take per row, rounded up.
pub const FILTER_BYTES: u64 = 2;

/// Bytes of a line, which is what a processor loads at once.
pub const LINE_BYTES: usize = 64;
const LINE_BITS: u64 = 8 * LINE_BYTES as u64;
/// More bits make the lines rarer in the cache than they save questions.
const BITS_PER_KEY: u64 = 10;
/// Bits set per key: of 5..=8, seven gives the fewest false answers at ten bits.
const PROBES: u32 = 7;

/// What the filters know a key by.
pub fn filter_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// Aligned, so that it is one cache line and not parts of two.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Line([u64; 8]);

/// A blocked Bloom filter.
pub struct Filter {
    lines: Vec<Line>,
}

impl Filter {
    /// An empty filter for about so many keys.
    pub fn for_keys(keys: u64) -> Self {
        let lines = keys.saturating_mul(BITS_PER_KEY).div_ceil(LINE_BITS);
        Self { lines: vec![Line::default(); lines.clamp(1, u64::from(u32::MAX)) as usize] }
    }

    /// Where the bits of a key are: its line, and nine bits for each place in it.
    fn place(&self, hash: u64) -> (usize, u64) {
        let line = (u128::from(hash) * self.lines.len() as u128) >> 64;
        // The line is chosen by the high bits: mix them, or its keys would share their places too.
        let places = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (line as usize, places)
    }

    /// Takes some keys: together, so that the processor loads their lines side by side.
    pub fn insert_all(&mut self, hashes: &[u64]) {
        hashes.iter().for_each(|hash| self.insert(*hash));
    }

    /// Takes a key.
    #[inline]
    pub fn insert(&mut self, hash: u64) {
        if plant::is(Plant::FilterMisses) && hash.is_multiple_of(16) {
            return;
        }
        let (line, places) = self.place(hash);
        for probe in 0..PROBES {
            let place = places >> (9 * probe);
            self.lines[line].0[(place >> 6 & 7) as usize] |= 1 << (place & 63);
        }
    }

    /// False only if the key was never taken.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        let (line, places) = self.place(hash);
        let words = &self.lines[line].0;
        // Without a branch before the last bit: who asks for many keys need not wait for one line
        // before the next is loaded.
        let bits = (0..PROBES).map(|probe| {
            let place = places >> (9 * probe);
            words[(place >> 6 & 7) as usize] >> (place & 63)
        });
        bits.fold(1, |all, bit| all & bit) == 1
    }

    /// How many lines.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Bytes of memory.
    pub fn size(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }

    /// Its words, which are stored as little endian integers, so many lines at a time.
    pub fn chunks(&self, lines: usize) -> impl Iterator<Item = impl Iterator<Item = u64>> {
        self.lines.chunks(lines).map(|lines| lines.iter().flat_map(|line| line.0))
    }

    /// A filter without lines, for [`Self::decode_lines`].
    pub fn to_decode(lines: usize) -> Self {
        Self { lines: Vec::with_capacity(lines) }
    }

    /// Takes the bytes of the next lines; what is left of a line is ignored.
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
    fn keys_that_were_taken_are_always_found_and_others_once_in_a_hundred() {
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
    fn a_filter_of_any_size_comes_back_as_it_was() {
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
