//! The back index of one index on one node: document → its entries at the newest epoch. An update
//! replaces what stands here, so that the entries that a document no longer has get tombstones.
//!
//! A document's entries are packed: `slice len(key) key include-hash:u64`, where the hash tells
//! whether included values changed.

use std::hash::{BuildHasherDefault, Hasher};

use hashbrown::HashMap;
use proto::ids::SliceNo;
use proto::mutation::{IndexKeys, put_bytes, put_varint, take_bytes, take_varint};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A hasher without a random state: maps that use it are looked up, never walked.
#[derive(Default)]
pub struct FixedHasher(u64);

impl Hasher for FixedHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A map that is looked up, never walked in its own order.
pub type FixedMap<K, V> = HashMap<K, V, BuildHasherDefault<FixedHasher>>;

/// Document → its entries.
#[derive(Default)]
pub struct BackIndex {
    documents: FixedMap<Box<str>, Box<[u8]>>,
    bytes: usize,
}

/// An entry that a document had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldEntry<'a> {
    /// Its slice.
    pub slice: SliceNo,
    /// Its encoded key parts.
    pub key: &'a [u8],
    /// The hash of its included values.
    pub include_hash: u64,
}

impl BackIndex {
    /// The entries of a document.
    pub fn get(&self, id: &str) -> impl Iterator<Item = OldEntry<'_>> {
        let mut rest = self.documents.get(id).map_or(&[][..], |packed| &packed[..]);
        std::iter::from_fn(move || read(&mut rest))
    }

    /// Replaces the entries of a document.
    pub fn set(&mut self, id: &str, keys: &IndexKeys<'_>) {
        if keys.entries == 0 {
            if let Some(old) = self.documents.remove(id) {
                self.bytes -= old.len() + id.len();
            }
            return;
        }
        let packed = pack(keys);
        self.bytes += packed.len();
        match self.documents.get_mut(id) {
            Some(old) => {
                self.bytes -= old.len();
                *old = packed;
            }
            None => {
                self.bytes += id.len();
                self.documents.insert(id.into(), packed);
            }
        }
    }

    /// Bytes of ids and entries.
    pub fn size(&self) -> usize {
        // Two boxes of 16 bytes and a control byte for each document.
        self.bytes + 33 * self.documents.capacity()
    }
}

/// The hash of included values as the back index keeps it.
pub fn include_hash(include: &[u8]) -> u64 {
    xxh3_64(include)
}

fn pack(keys: &IndexKeys<'_>) -> Box<[u8]> {
    let mut packed = Vec::new();
    for entry in keys.entries() {
        put_varint(&mut packed, u64::from(entry.slice.0));
        put_bytes(&mut packed, entry.key);
        packed.extend_from_slice(&include_hash(entry.include).to_le_bytes());
    }
    packed.into()
}

fn read<'a>(rest: &mut &'a [u8]) -> Option<OldEntry<'a>> {
    let slice = SliceNo(take_varint(rest).ok()? as u16);
    let key = take_bytes(rest).ok()?;
    let (hash, tail) = rest.split_first_chunk::<8>()?;
    *rest = tail;
    Some(OldEntry { slice, key, include_hash: u64::from_le_bytes(*hash) })
}
