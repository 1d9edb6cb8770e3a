//! Packed records of the back index. A record has the entries of a document in one slice, which
//! are called the document's *state* in this slice.
//!
//! ```text
//! state := entry*        entry := len(key)*2+hashed  key  [hash:u8{24}]
//! ```
//! `hash` is the hash of the included values, from which a change of the values is detected. It is
//! present only if the entry has included values. A document without entries has no state: its row
//! is a tombstone.
//!
//! Values with equal hashes are taken for equal, so a writer must not be able to find two such
//! values: the hash is cryptographic. With 192 bits, an attack by collisions takes 2^96 steps. A
//! keyed hash would need a secret that all nodes share, because states move to other nodes with
//! their files.

use proto::rpc::scan::KeyRange;
use proto::rpc::varint::{put_varint, take_varint};
use sha2::{Digest, Sha256};

/// An entry in a document's packed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackedEntry<'a> {
    /// The encoded key parts of the entry.
    pub key: &'a [u8],
    /// Hash of the included values; `None` if there are none.
    pub include_hash: Option<IncludeHash>,
}

const HASH_BYTES: usize = 24;

/// A hash of included values: the first bytes of their SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IncludeHash([u8; HASH_BYTES]);

/// Returns the hash of included values for a document's packed record; `None` if there are none.
pub fn include_hash(include: &[u8]) -> Option<IncludeHash> {
    if include.is_empty() {
        return None;
    }
    let hash: [u8; 32] = Sha256::digest(include).into();
    hash.first_chunk::<HASH_BYTES>().map(|first| IncludeHash(*first))
}

/// Appends an entry to a document's packed record.
pub fn put(out: &mut Vec<u8>, entry: PackedEntry<'_>) {
    let hashed = entry.include_hash.is_some();
    put_varint(out, (entry.key.len() as u64) << 1 | u64::from(hashed));
    out.extend_from_slice(entry.key);
    if let Some(IncludeHash(hash)) = entry.include_hash {
        out.extend_from_slice(&hash);
    }
}

/// Iterates over the entries of a document's packed record. An unreadable entry ends the
/// iteration; blocks are checked before they are read.
pub fn entries(state: &[u8]) -> impl Iterator<Item = PackedEntry<'_>> {
    let mut rest = state;
    std::iter::from_fn(move || take(&mut rest))
}

/// Decodes the next entry.
fn take<'a>(rest: &mut &'a [u8]) -> Option<PackedEntry<'a>> {
    if rest.is_empty() {
        return None;
    }
    let tag = take_varint(rest).ok()?;
    let (key, tail) = rest.split_at_checked(usize::try_from(tag >> 1).ok()?)?;
    *rest = tail;
    let include_hash = match tag & 1 {
        0 => None,
        _ => {
            let (hash, tail) = rest.split_first_chunk::<HASH_BYTES>()?;
            *rest = tail;
            Some(IncludeHash(*hash))
        }
    };
    Some(PackedEntry { key, include_hash })
}

/// Appends to `out` the entries of a document's packed record that are in a range.
pub fn put_range(out: &mut Vec<u8>, state: &[u8], id: &[u8], range: &KeyRange) {
    if range.low.is_empty() && range.high.is_none() {
        out.extend_from_slice(state);
        return;
    }
    let mut whole = Vec::new();
    for entry in entries(state) {
        whole.clear();
        whole.extend_from_slice(entry.key);
        whole.extend_from_slice(id);
        if range.contains(&whole) {
            put(out, entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_decode_and_restrict() {
        let mut state = Vec::new();
        let all = [
            PackedEntry { key: b"a", include_hash: None },
            PackedEntry { key: b"", include_hash: include_hash(b"y") },
            PackedEntry { key: &[9; 300], include_hash: include_hash(b"x") },
        ];
        all.iter().for_each(|entry| put(&mut state, *entry));
        assert_eq!(entries(&state).collect::<Vec<_>>(), all);
        let mut some = Vec::new();
        let high = Some(bytes::Bytes::from_static(b"b"));
        put_range(&mut some, &state, b"z", &KeyRange { low: Default::default(), high });
        assert_eq!(entries(&some).collect::<Vec<_>>(), [all[0], all[2]], "the id counts too");
        let low = bytes::Bytes::from_static(b"b");
        let mut some = Vec::new();
        put_range(&mut some, &state, b"z", &KeyRange { low, high: None });
        assert_eq!(entries(&some).count(), 1);
        for cut in 0..state.len() {
            assert!(entries(&state[..cut]).count() <= all.len());
        }
    }
}
