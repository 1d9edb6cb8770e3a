//! The newest part of the back index, in memory. For each document it has *states*: the list of
//! the document's entries in one slice, from an epoch on. Documents are found by the hash of their
//! ids.
//!
//! States are appended to an arena of chunks and never change. A later state of a document points
//! to the previous one. The hash table has 32 bits of a document's hash and the place of its
//! newest state. So a look-up rarely reads a state of another document, and the hash table grows
//! without reading any state.
//!
//! ```text
//! record := before slice len(id) epoch-base len(state)  id state       (integers LEB128)
//! ```
//! A place is a chunk number and an offset in the chunk; 0 is no place.

use std::cmp::Ordering;
use std::hint::black_box;

use hashbrown::HashTable;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::varint::put_varint;

use crate::rows::bytes::{common_prefix_len, head_of};

/// Size of the first chunk. Each further chunk is twice as large, up to `CHUNK_BYTES`.
const CHUNK_BYTES_MIN: usize = 4 << 10;
/// Size of the largest regular chunk, in bytes. A larger state gets a separate chunk.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNK_BITS: u32 = 20;
/// Number of chunks at which the table counts as full. Places can address twice as many chunks;
/// the other half is for the epoch in progress.
const CHUNKS_MAX: usize = 1 << (31 - CHUNK_BITS);
/// Memory that sorting takes for each state, in bytes.
pub const SORT_BYTES: u64 = 28;
/// Number of sorted states that are read at a time.
const BATCH: usize = 32;
/// Maximum size of a state's header, in bytes.
const HEADER_BYTES_MAX: usize = 40;

/// The memtable: states of documents (their entries in one slice from an epoch on), found by
/// document.
#[derive(Debug, Default)]
pub struct BackMemtable {
    places: HashTable<(u32, u32)>,
    chunks: Vec<Vec<u8>>,
    bytes: usize,
    /// First epoch; states store the difference of their epochs from it.
    base: Epoch,
    states: u64,
    /// A bit set of the slices that have states.
    slices: Vec<u64>,
}

/// The entries of a document in one slice, from an epoch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackState<'a> {
    /// The slice that the state belongs to.
    pub slice: SliceNo,
    /// The document's id.
    pub id: &'a [u8],
    /// The first epoch at which the state is valid.
    pub epoch: Epoch,
    /// Packed entries; empty if the document has none in the slice.
    pub state: &'a [u8],
    /// The place of the document's previous state, in any slice.
    before: u32,
}

/// Returns the bits of a document's hash that the hash table stores.
fn hash_bits(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl BackMemtable {
    /// Returns true if there are no states.
    pub fn is_empty(&self) -> bool {
        self.states == 0
    }

    /// Returns true if the table has states of a slice.
    pub fn has(&self, slice: SliceNo) -> bool {
        let word = self.slices.get(usize::from(slice.0) / 64);
        word.is_some_and(|word| word >> (slice.0 % 64) & 1 == 1)
    }

    /// Returns the number of states.
    pub fn states(&self) -> u64 {
        self.states
    }

    /// Returns the number of documents that have states.
    pub fn documents(&self) -> usize {
        self.places.len()
    }

    /// Returns the memory use in bytes.
    pub fn size(&self) -> usize {
        self.bytes + self.places.capacity() * 9 * 8 / 7
    }

    /// Returns true if no further epoch should be added to the table.
    pub fn is_full(&self) -> bool {
        self.chunks.len() >= CHUNKS_MAX
    }

    /// Appends the state of a document in a slice, valid from an epoch on.
    pub fn add_state(&mut self, hash: u64, id: &[u8], slice: SliceNo, epoch: Epoch, state: &[u8]) {
        if self.states == 0 {
            self.base = epoch;
        }
        self.states += 1;
        let (word, bit) = (usize::from(slice.0) / 64, slice.0 % 64);
        if self.slices.len() <= word {
            self.slices.resize(word + 1, 0);
        }
        self.slices[word] |= 1 << bit;
        let place = self.next_place(id.len() + state.len() + HEADER_BYTES_MAX);
        let (short, chunks, base) = (hash_bits(hash), &self.chunks, self.base);
        let same = |(other, at): &(u32, u32)| {
            *other == short && read(chunks, base, *at).is_some_and(|(state, _)| state.id == id)
        };
        let before = match self.places.find_mut(spread(short), same) {
            Some(found) => std::mem::replace(&mut found.1, place),
            None => {
                self.places.insert_unique(spread(short), (short, place), |(h, _)| spread(*h));
                0
            }
        };
        if let Some(chunk) = self.chunks.last_mut() {
            put_varint(chunk, before.into());
            put_varint(chunk, slice.0.into());
            put_varint(chunk, id.len() as u64);
            put_varint(chunk, epoch.0.wrapping_sub(self.base.0));
            put_varint(chunk, state.len() as u64);
            chunk.extend_from_slice(id);
            chunk.extend_from_slice(state);
        }
    }

    /// Returns the place for the next state, which takes at most `bytes` bytes. Adds a chunk if
    /// necessary.
    fn next_place(&mut self, bytes: usize) -> u32 {
        let fits = self.chunks.last().is_some_and(|last| last.len() + bytes <= last.capacity());
        if !fits {
            // The first chunks are small, because a node can have thousands of indexes with few
            // states.
            let size = CHUNK_BYTES.min(CHUNK_BYTES_MIN << self.chunks.len().min(20));
            self.chunks.push(Vec::with_capacity(bytes.max(size)));
            self.bytes += bytes.max(size);
        }
        let used = self.chunks.last().map_or(0, Vec::len);
        (self.chunks.len() as u32) << CHUNK_BITS | used as u32
    }

    /// Prefetches the slots of the hash table that [`Self::add_state`] will read for several documents.
    pub fn prefetch(&self, hashes: impl Iterator<Item = u64>) {
        for hash in hashes.map(hash_bits) {
            black_box(self.places.find(spread(hash), |(other, _)| *other == hash));
        }
    }

    /// Prefetches the record at a place.
    fn prefetch_state(&self, place: u32) {
        let chunk = self.chunks.get(((place >> CHUNK_BITS) as usize).wrapping_sub(1));
        let at = (place & ((1 << CHUNK_BITS) - 1)) as usize;
        black_box(chunk.and_then(|chunk| chunk.get(at).copied()));
    }

    /// Returns the state at a place.
    fn get(&self, place: u32) -> Option<BackState<'_>> {
        Some(read(&self.chunks, self.base, place)?.0)
    }

    /// Returns the states of a document in all slices, newest first.
    pub fn states_of(&self, hash: u64, id: &[u8]) -> impl Iterator<Item = BackState<'_>> {
        let short = hash_bits(hash);
        let same = |(other, at): &(u32, u32)| {
            *other == short && self.get(*at).is_some_and(|state| state.id == id)
        };
        let mut place = self.places.find(spread(short), same).map_or(0, |(_, at)| *at);
        std::iter::from_fn(move || {
            let state = self.get(place)?;
            place = state.before;
            Some(state)
        })
    }

    /// Returns the newest state of a document in a slice.
    pub fn newest_state(&self, hash: u64, id: &[u8], slice: SliceNo) -> Option<BackState<'_>> {
        self.states_of(hash, id).find(|state| state.slice == slice)
    }

    /// Returns all states with their places, in the order in which they were added.
    fn all(&self) -> impl Iterator<Item = (u32, BackState<'_>)> {
        (1..).zip(&self.chunks).flat_map(move |(chunk, bytes)| {
            let mut at = 0;
            std::iter::from_fn(move || {
                let place = (at < bytes.len()).then_some(chunk << CHUNK_BITS | at as u32)?;
                let (state, len) = read(&self.chunks, self.base, place)?;
                at += len;
                Some((place, state))
            })
        })
    }

    /// Returns all states, sorted by slice, then id, then newest first.
    pub fn sorted(&self) -> SortedStates<'_> {
        let mut shared: Option<&[u8]> = None;
        for (_, BackState { id, .. }) in self.all() {
            let len = shared.map_or(id.len(), |shared| common_prefix_len(shared, id));
            shared = Some(&id[..len]);
        }
        let skip = shared.map_or(0, <[u8]>::len);
        // Slices and the heads of ids decide almost always; reading the ids themselves would cost cache misses.
        let mut all = Vec::with_capacity(self.states as usize);
        all.extend(
            self.all().map(|(place, state)| (state.slice, head_of(&[&state.id[skip..]]), place)),
        );
        all.sort_unstable_by(|left, right| {
            let order = (left.0, left.1).cmp(&(right.0, right.1));
            order.then_with(|| match (self.get(left.2), self.get(right.2)) {
                (Some(one), Some(other)) => one.id.cmp(other.id).then(other.epoch.cmp(&one.epoch)),
                _ => Ordering::Equal,
            })
        });
        let places = all.into_iter().map(|(_, _, place)| place).collect();
        SortedStates { table: self, places, at: 0, batch: Vec::with_capacity(BATCH) }
    }

    /// Appends the states of the newer table `newer`, up to and including an epoch.
    pub fn append(&mut self, newer: &Self, up_to: Epoch) {
        let states: Vec<_> = newer.sorted().filter(|state| state.epoch <= up_to).collect();
        for state in states.into_iter().rev() {
            let hash = xxhash_rust::xxh3::xxh3_64(state.id);
            self.add_state(hash, state.id, state.slice, state.epoch, state.state);
        }
    }
}

/// An iterator over the states of a memtable in order. The states are scattered in memory, so
/// several are read at a time, which the processor loads in parallel.
pub struct SortedStates<'a> {
    table: &'a BackMemtable,
    places: Vec<u32>,
    at: usize,
    /// The states that were read ahead, in reverse order.
    batch: Vec<BackState<'a>>,
}

impl<'a> Iterator for SortedStates<'a> {
    type Item = BackState<'a>;

    fn next(&mut self) -> Option<BackState<'a>> {
        if self.batch.is_empty() {
            let end = self.places.len().min(self.at + BATCH);
            let next = &self.places[std::mem::replace(&mut self.at, end)..end];
            next.iter().for_each(|place| self.table.prefetch_state(*place));
            self.batch.extend(next.iter().rev().filter_map(|place| self.table.get(*place)));
        }
        self.batch.pop()
    }
}

/// Decodes the state at a place. Also returns the length of its record.
#[inline]
fn read(chunks: &[Vec<u8>], base: Epoch, place: u32) -> Option<(BackState<'_>, usize)> {
    let chunk = chunks.get(((place >> CHUNK_BITS) as usize).checked_sub(1)?)?;
    let record = chunk.get((place & ((1 << CHUNK_BITS) - 1)) as usize..)?;
    let mut rest = record;
    let before = u32::try_from(quick_varint(&mut rest)?).ok()?;
    let slice = SliceNo(u16::try_from(quick_varint(&mut rest)?).ok()?);
    let id_len = quick_varint(&mut rest)? as usize;
    let epoch = Epoch(base.0.wrapping_add(quick_varint(&mut rest)?));
    let state_len = quick_varint(&mut rest)? as usize;
    let (id, rest) = rest.split_at_checked(id_len)?;
    let (state, rest) = rest.split_at_checked(state_len)?;
    Some((BackState { slice, id, epoch, state, before }, record.len() - rest.len()))
}

/// Spreads 32 bits over 64: the hash table uses the upper bits as tags and the lower bits as slot
/// numbers.
fn spread(short: u32) -> u64 {
    u64::from(short).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Decodes an integer in LEB128, with a fast path for one byte.
fn quick_varint(rest: &mut &[u8]) -> Option<u64> {
    let (first, tail) = rest.split_first()?;
    if *first < 0x80 {
        *rest = tail;
        return Some(u64::from(*first));
    }
    proto::rpc::varint::take_varint(rest).ok()
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    #[test]
    fn the_newest_state_is_found_and_all_come_out_sorted() {
        let mut table = BackMemtable::default();
        let mut set = |id: &str, slice: u16, epoch: u64, state: &[u8]| {
            table.add_state(
                xxh3_64(id.as_bytes()),
                id.as_bytes(),
                SliceNo(slice),
                Epoch(epoch),
                state,
            );
        };
        for n in 0..20_000u64 {
            set(&format!("user{:06}", n * 7919 % 20_000), 1, 3 + n / 1000, &n.to_le_bytes());
        }
        set("user000007", 1, 90, b"");
        set("user000007", 0, 91, &[7; CHUNK_BYTES + 1]);
        set("user000007", 1, 2, b"before the base");
        let newest =
            |slice| table.newest_state(xxh3_64(b"user000007"), b"user000007", SliceNo(slice));
        assert_eq!(newest(0).map(|state| state.state.len()), Some(CHUNK_BYTES + 1));
        assert_eq!(newest(1).map(|state| state.epoch), Some(Epoch(2)));
        assert_eq!(newest(2), None);
        assert_eq!(table.newest_state(xxh3_64(b"nobody"), b"nobody", SliceNo(1)), None);
        let sorted: Vec<_> = table
            .sorted()
            .map(|state| (state.slice, state.id, std::cmp::Reverse(state.epoch)))
            .collect();
        assert_eq!(sorted.len(), 20_003);
        assert!(sorted.is_sorted());
        let mut kept = BackMemtable::default();
        kept.append(&table, Epoch(90));
        let state = kept.newest_state(xxh3_64(b"user000007"), b"user000007", SliceNo(1));
        assert_eq!(state.map(|state| state.epoch), Some(Epoch(90)));
        assert_eq!(kept.states(), 20_002);
    }
}
