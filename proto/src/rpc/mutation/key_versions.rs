//! Packed key-versions: a writer, and readers that borrow from the packed bytes. A key-version is
//! the list of index entries that a document has after a mutation.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::model::ids::{Generation, IndexId, LocalIndexId, SliceNo};
use crate::rpc::varint::{corrupt, put_bytes, put_varint, take, take_bytes, take_varint};

/// The kind of a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MutationKind {
    /// The document was written. Its index entries may be none. (The design calls this an Upsert
    /// with entries, and an UpsertDeletion without.)
    Upsert,
    /// The document was removed.
    Deletion,
}

/// A writer of packed key-versions.
#[derive(Debug, Default)]
pub struct KeyVersionsWriter {
    out: Vec<u8>,
}

impl KeyVersionsWriter {
    /// Begins a mutation, which concerns `indexes` indexes. The caller must then call
    /// [`Self::index`] once for each of them.
    pub fn mutation(
        &mut self,
        seqno_minus_base: u64,
        kind: MutationKind,
        id: &str,
        indexes: usize,
    ) {
        put_varint(&mut self.out, seqno_minus_base);
        self.out.push(match kind {
            MutationKind::Upsert => 0,
            MutationKind::Deletion => 1,
        });
        put_bytes(&mut self.out, id.as_bytes());
        put_varint(&mut self.out, indexes as u64);
    }

    /// Begins the list of a document's entries in one index. The caller must then call
    /// [`Self::entry`] `entries` times.
    pub fn index(&mut self, index: LocalIndexId, entries: usize) {
        put_varint(&mut self.out, index.index.0);
        put_varint(&mut self.out, u64::from(index.generation.0));
        put_varint(&mut self.out, entries as u64);
    }

    /// Appends one entry: its encoded key parts without the id, and its encoded included values.
    pub fn entry(&mut self, slice: SliceNo, key: &[u8], include: &[u8]) {
        put_varint(&mut self.out, u64::from(slice.0));
        put_bytes(&mut self.out, key);
        put_bytes(&mut self.out, include);
    }

    /// Appends a mutation that was read from other packed bytes, with its entries in all indexes.
    pub fn copy(&mut self, versions: &KeyVersions<'_>) {
        let KeyVersions { seqno_minus_base, kind, id, indexes, rest } = *versions;
        self.mutation(seqno_minus_base, kind, id, indexes);
        self.out.extend_from_slice(rest);
    }

    /// Appends the list of a document's entries in one index, as read from other packed bytes.
    pub fn copy_index(&mut self, keys: &IndexKeys<'_>) {
        self.index(keys.index, keys.entries);
        self.out.extend_from_slice(keys.rest);
    }

    /// Returns the number of bytes written so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Returns true if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Returns the packed bytes and empties the writer.
    pub fn finish(&mut self) -> Bytes {
        std::mem::take(&mut self.out).into()
    }
}

/// One mutation in packed bytes, borrowed from them.
#[derive(Clone, Copy, Debug)]
pub struct KeyVersions<'a> {
    /// The seqno of the mutation, minus the seqno at which the packed bytes begin.
    pub seqno_minus_base: u64,
    /// The kind of the mutation.
    pub kind: MutationKind,
    /// The document's id.
    pub id: &'a str,
    indexes: usize,
    rest: &'a [u8],
}

/// The list of a document's entries in one index.
#[derive(Clone, Copy, Debug)]
pub struct IndexKeys<'a> {
    /// The index and its generation.
    pub index: LocalIndexId,
    /// The number of entries; zero if the index has no entry for the document.
    pub entries: usize,
    rest: &'a [u8],
}

/// One entry of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryKeys<'a> {
    /// The slice of the entry.
    pub slice: SliceNo,
    /// The encoded key parts, without the id.
    pub key: &'a [u8],
    /// The encoded included values.
    pub include: &'a [u8],
}

/// A reader of packed key-versions, as an iterator over the mutations. Each mutation is checked
/// when it is reached, and the first error ends the iteration.
pub struct KeyVersionsReader<'a> {
    rest: &'a [u8],
}

impl<'a> KeyVersionsReader<'a> {
    /// Creates a reader of packed key-versions.
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    fn read(&mut self) -> Result<KeyVersions<'a>> {
        let seqno_minus_base = take_varint(&mut self.rest)?;
        let kind = match take(&mut self.rest, 1)?[0] {
            0 => MutationKind::Upsert,
            1 => MutationKind::Deletion,
            other => return Err(corrupt(&format!("kind {other}"))),
        };
        let id = std::str::from_utf8(take_bytes(&mut self.rest)?)
            .map_err(|_| corrupt("an id that is not UTF-8"))?;
        let indexes = take_count(&mut self.rest)?;
        let begin = self.rest;
        for _ in 0..indexes {
            read_index(&mut self.rest)?;
        }
        let rest = &begin[..begin.len() - self.rest.len()];
        Ok(KeyVersions { seqno_minus_base, kind, id, indexes, rest })
    }
}

impl<'a> Iterator for KeyVersionsReader<'a> {
    type Item = Result<KeyVersions<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let item = self.read();
        if item.is_err() {
            self.rest = &[];
        }
        Some(item)
    }
}

impl<'a> KeyVersions<'a> {
    /// Returns the list of the document's entries in each index.
    pub fn indexes(&self) -> impl Iterator<Item = IndexKeys<'a>> + use<'a> {
        let mut rest = self.rest;
        (0..self.indexes).map_while(move |_| read_index(&mut rest).ok())
    }

    /// Returns the list of the document's entries in each index, with the byte offset of the list
    /// in the mutation.
    pub fn indexes_with_offsets(&self) -> impl Iterator<Item = (usize, IndexKeys<'a>)> + use<'a> {
        let (begin, mut rest) = (self.rest.len(), self.rest);
        (0..self.indexes).map_while(move |_| {
            let place = begin - rest.len();
            read_index(&mut rest).ok().map(|keys| (place, keys))
        })
    }

    /// Returns the list of entries at a byte offset; `None` if no list begins there.
    pub fn entries_at(&self, place: usize) -> Option<IndexKeys<'a>> {
        read_index(&mut self.rest.get(place..)?).ok()
    }
}

impl<'a> IndexKeys<'a> {
    /// Returns the entries that the document has in the index after the mutation.
    pub fn entries(&self) -> impl Iterator<Item = EntryKeys<'a>> + use<'a> {
        let mut rest = self.rest;
        (0..self.entries).map_while(move |_| read_entry(&mut rest).ok())
    }
}

fn read_index<'a>(rest: &mut &'a [u8]) -> Result<IndexKeys<'a>> {
    let index = IndexId(take_varint(rest)?);
    let index = LocalIndexId { index, generation: Generation(narrow(take_varint(rest)?)?) };
    let entries = take_count(rest)?;
    let begin = *rest;
    for _ in 0..entries {
        read_entry(rest)?;
    }
    Ok(IndexKeys { index, entries, rest: &begin[..begin.len() - rest.len()] })
}

fn read_entry<'a>(rest: &mut &'a [u8]) -> Result<EntryKeys<'a>> {
    let slice = SliceNo(narrow(take_varint(rest)?)?);
    Ok(EntryKeys { slice, key: take_bytes(rest)?, include: take_bytes(rest)? })
}

/// Converts an integer to a smaller type; an error if it does not fit.
fn narrow<T: TryFrom<u64>>(value: u64) -> Result<T> {
    T::try_from(value).map_err(|_| corrupt("a number out of range"))
}

/// Reads a number of items, of which each takes at least one byte. Returns an error if it exceeds
/// the number of remaining bytes, so that a damaged number cannot cause a large allocation.
fn take_count(rest: &mut &[u8]) -> Result<usize> {
    let count = take_varint(rest)?;
    usize::try_from(count)
        .ok()
        .filter(|count| *count <= rest.len())
        .ok_or_else(|| corrupt("a count beyond the end"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let local = |index, generation| LocalIndexId {
            index: IndexId(index),
            generation: Generation(generation),
        };
        let mut writer = KeyVersionsWriter::default();
        writer.mutation(3, MutationKind::Upsert, "a", 2);
        writer.index(local(1, 0), 2);
        writer.entry(SliceNo(4), b"k1", b"");
        writer.entry(SliceNo(4), b"k2", b"inc");
        writer.index(local(2, 7), 0);
        writer.mutation(9, MutationKind::Deletion, "", 0);
        let body = writer.finish();
        let read: Vec<_> = KeyVersionsReader::new(&body).collect::<Result<_>>().unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].seqno_minus_base, read[0].id), (3, "a"));
        let indexes: Vec<_> = read[0].indexes().collect();
        assert_eq!(indexes[0].entries().nth(1).unwrap().include, b"inc");
        assert_eq!((indexes[1].index, indexes[1].entries), (local(2, 7), 0));
        for ((place, keys), same) in read[0].indexes_with_offsets().zip(&indexes) {
            let again = read[0].entries_at(place).unwrap();
            assert_eq!((keys.index, again.index), (same.index, same.index));
            assert!(again.entries().eq(same.entries()) && keys.entries().eq(same.entries()));
        }
        assert_eq!(read[0].indexes_with_offsets().count(), 2);
        assert!(read[0].entries_at(usize::MAX).is_none());
        assert_eq!((read[1].kind, read[1].indexes().count()), (MutationKind::Deletion, 0));
        for cut in 1..body.len() {
            let whole = KeyVersionsReader::new(&body[..cut]).all(|item| item.is_ok());
            let first = read[0].rest.len();
            assert!(!whole || cut >= first, "a torn body must not read as whole at {cut}");
        }
    }

    proptest! {
        #[test]
        fn damaged_bodies_are_errors_and_never_panic(body: Vec<u8>) {
            for item in KeyVersionsReader::new(&body).flatten() {
                for index in item.indexes() {
                    index.entries().count();
                }
            }
        }
    }
}
