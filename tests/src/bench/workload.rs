//! The documents and reads of the benchmark, which are equal for all engines.
//!
//! Document i has the id `user%012d` and one entry: an 8-byte pseudo-random key, then the id. The
//! back index maps the id to the key. A build writes the documents in the order `i·2654435761 mod
//! n`. An update gives n/5 random documents, each once, a new key.

/// The key of an entry.
pub type Key = [u8; 8];
/// The id of a document.
pub type Id = [u8; 16];

/// The number of documents in a batch.
pub const BATCH: usize = 1000;
/// The number of scans of 100 entries.
pub const SCANS: u64 = 20_000;
/// The factor that gives the order of a build. It is a prime, so that the order contains each
/// document once unless their number is a multiple of it.
const STRIDE: u64 = 2_654_435_761;

/// Returns the result of splitmix64: a bijection with random-looking values.
pub fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the n-th document of a random order. Applies a permutation of the smallest sufficient
/// power of two until the result is below `total`.
fn shuffled(n: u64, total: u64) -> u64 {
    let bits = (64 - (total - 1).leading_zeros()).max(2);
    let mask = u64::MAX >> (64 - bits);
    let mut at = n;
    loop {
        // Odd factors and shifts to the right are invertible, so that no two documents collide.
        for factor in [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
            at = (at.wrapping_mul(factor) ^ 0x5555) & mask;
            at ^= at >> (bits / 2);
        }
        if at < total {
            return at;
        }
    }
}

/// Returns the id of document `i`.
pub fn id(i: u64) -> Id {
    let mut id = *b"user000000000000";
    let (mut at, mut rest) = (id.len(), i);
    while rest > 0 && at > 4 {
        at -= 1;
        id[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    id
}

/// An entry of the forward index.
pub fn entry(id: &Id, key: &Key) -> [u8; 24] {
    let mut entry = [0; 24];
    entry[..8].copy_from_slice(key);
    entry[8..].copy_from_slice(id);
    entry
}

/// Returns the first key of the n-th scan of 100 entries.
pub fn scan_from(n: u64) -> Key {
    mix(!n).to_be_bytes()
}

/// An iterator over documents with their new keys, in writing order.
#[derive(Clone, Debug)]
pub struct Documents {
    /// The number of documents.
    total: u64,
    next: u64,
    end: u64,
    update: bool,
}

impl Documents {
    /// Returns all documents, each once.
    pub fn all(total: u64) -> Self {
        Self { total, next: 0, end: total, update: false }
    }

    /// Returns a random fifth of the documents, with new keys.
    pub fn updated(total: u64) -> Self {
        Self { total, next: 0, end: total / 5, update: true }
    }

    /// Returns the number of remaining documents.
    pub fn left(&self) -> u64 {
        self.end - self.next
    }

    /// Returns the next batch; empty at the end.
    pub fn batch(&mut self) -> Vec<(Id, Key)> {
        self.by_ref().take(BATCH).collect()
    }
}

impl Iterator for Documents {
    type Item = (Id, Key);

    fn next(&mut self) -> Option<(Id, Key)> {
        if self.next == self.end {
            return None;
        }
        let n = self.next;
        self.next += 1;
        let (i, key) = if self.update {
            (shuffled(n, self.total), mix(self.total + n))
        } else {
            let i = (u128::from(n) * u128::from(STRIDE) % u128::from(self.total)) as u64;
            (i, mix(i))
        };
        Some((id(i), key.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_build_writes_each_document_once_and_keys_differ() {
        let documents: Vec<_> = Documents::all(5000).collect();
        let ids: BTreeSet<Id> = documents.iter().map(|(id, _)| *id).collect();
        let keys: BTreeSet<Key> = documents.iter().map(|(_, key)| *key).collect();
        assert_eq!((ids.len(), keys.len()), (5000, 5000));
        assert!(ids.contains(b"user000000004999"));
        assert!(
            Documents::updated(5000).all(|(id, key)| ids.contains(&id) && !keys.contains(&key))
        );
    }
}
