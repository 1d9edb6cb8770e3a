//! Blocks of packed rows, as sent from a shard to the client.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorCode, Result};
use crate::rpc::varint::{take_bytes, take_varint};

/// Rows packed one after the other: `len(entry) entry len(include) include`, lengths as LEB128.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowBlock {
    /// The number of rows.
    pub rows: u32,
    /// The packed rows.
    pub data: Bytes,
}

/// One row, borrowed from its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// The encoded key parts, then the document id.
    pub entry: &'a [u8],
    /// The encoded included values, each as an ascending key part; empty if the scan did not
    /// request them.
    pub include: &'a [u8],
}

impl RowBlock {
    /// Returns an iterator over the rows, which copies nothing.
    pub fn iter(&self) -> RowIter<'_> {
        RowIter { rest: &self.data }
    }

    /// Checks a block that was received. Returns an error if a row is unreadable or the number of
    /// rows is wrong.
    pub fn validate(&self) -> Result<()> {
        let mut rest = &self.data[..];
        for _ in 0..self.rows {
            take_bytes(&mut rest)?;
            take_bytes(&mut rest)?;
        }
        match rest.is_empty() {
            true => Ok(()),
            false => {
                Err(Error::new(ErrorCode::Corrupt, "a row block with bytes after its last row"))
            }
        }
    }
}

/// The location of a row in the packed bytes of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLocation {
    /// The range of the entry in the data, in bytes.
    pub entry: Range<usize>,
    /// The offset of the next row in the data, in bytes.
    pub next: usize,
}

/// Returns the location of the row at a byte offset of a block, for merges that keep an offset
/// into each block. Returns `None` at the end and for unreadable bytes.
pub fn row_at(data: &[u8], at: usize) -> Option<RowLocation> {
    let mut rest = data.get(at..).filter(|rest| !rest.is_empty())?;
    let entry = take_short(&mut rest)?.len();
    let end = data.len() - rest.len();
    take_short(&mut rest)?;
    Some(RowLocation { entry: end - entry..end, next: data.len() - rest.len() })
}

/// An iterator over the rows of a block.
pub struct RowIter<'a> {
    rest: &'a [u8],
}

impl<'a> RowIter<'a> {
    /// Creates an iterator over packed rows. `rest` may be the bytes that an earlier iterator has
    /// not read.
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// Returns the number of bytes that are not read yet. A later iterator can continue with
    /// these bytes.
    pub fn rest_bytes(&self) -> usize {
        self.rest.len()
    }
}

impl<'a> Iterator for RowIter<'a> {
    type Item = Row<'a>;

    #[inline]
    fn next(&mut self) -> Option<Row<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = take_short(&mut self.rest)?;
        let include = take_short(&mut self.rest)?;
        Some(Row { entry, include })
    }
}

/// Reads a length and as many bytes from the front of `rest`, like `take_bytes`, but faster if
/// the length is one byte. Returns `None` if `rest` is too short.
#[inline]
fn take_short<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = match rest.first()? {
        short if *short < 0x80 => {
            *rest = &rest[1..];
            usize::from(*short)
        }
        _ => usize::try_from(take_varint(rest).ok()?).ok()?,
    };
    let (head, tail) = rest.split_at_checked(len)?;
    *rest = tail;
    Some(head)
}

/// The length in bytes up to which a row is copied with one copy of a fixed size.
const WIDE_BYTES: usize = 32;
/// The maximum size of an encoded length, in bytes.
const LEN_BYTES_MAX: usize = 10;
/// The minimum growth of the buffer, in bytes.
const ROOM_BYTES: usize = 1 << 10;

/// A builder of blocks of packed rows.
#[derive(Debug, Default)]
pub struct RowBlockBuilder {
    rows: u32,
    /// The packed rows, and free space for more.
    data: BytesMut,
    /// The size of the rows, in bytes.
    len: usize,
    /// The initial capacity of an empty buffer, in bytes.
    capacity: usize,
}

impl RowBlockBuilder {
    /// Creates a builder whose buffer begins with space for `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { rows: 0, data: BytesMut::new(), len: 0, capacity: bytes }
    }

    /// Appends a row.
    #[inline]
    pub fn push(&mut self, entry: &[u8], include: &[u8]) {
        self.rows += 1;
        self.put(entry);
        self.put(include);
    }

    /// Appends a row that is already packed: the bytes `row` of another block's data.
    #[inline]
    pub fn push_packed(&mut self, data: &[u8], row: Range<usize>) {
        let bytes = row.len();
        let room = self.free_buffer(bytes.max(WIDE_BYTES));
        match (data[row.start..].first_chunk::<WIDE_BYTES>(), room.first_chunk_mut()) {
            // A short row is copied with a fixed size. Bytes of the next row are copied too, and the next row
            // overwrites them.
            (Some(wide), Some(room)) if bytes <= WIDE_BYTES => *room = *wide,
            _ => room[..bytes].copy_from_slice(&data[row]),
        }
        self.add_written_rows(1, bytes);
    }

    fn put(&mut self, bytes: &[u8]) {
        let room = self.free_buffer(bytes.len() + LEN_BYTES_MAX);
        let (mut len, mut at) = (bytes.len(), 0);
        while len >= 0x80 {
            room[at] = len as u8 | 0x80;
            len >>= 7;
            at += 1;
        }
        room[at] = len as u8;
        at += 1;
        room[at..at + bytes.len()].copy_from_slice(bytes);
        self.len += at + bytes.len();
    }

    /// Returns a buffer of at least `bytes` after the rows. The caller writes packed rows into it
    /// (entry and included values, each preceded by its length), and adds them to the block with
    /// [`Self::add_written_rows`].
    #[inline]
    pub fn free_buffer(&mut self, bytes: usize) -> &mut [u8] {
        let end = self.len + bytes;
        if self.data.len() < end {
            if self.data.capacity() == 0 {
                self.data.reserve(self.capacity);
            }
            self.data.resize(end + ROOM_BYTES, 0);
        }
        &mut self.data[self.len..]
    }

    /// Adds rows to the block that the caller has written into the buffer of [`Self::free_buffer`]:
    /// `rows` rows, of `bytes` in all.
    #[inline]
    pub fn add_written_rows(&mut self, rows: u32, bytes: usize) {
        debug_assert!(self.len + bytes <= self.data.len(), "there was room for it");
        self.rows += rows;
        self.len += bytes;
    }

    /// Returns the entry of the last row; `None` if there are no rows.
    pub fn last_entry(&self) -> Option<&[u8]> {
        RowIter::new(&self.data[..self.len]).last().map(|row| row.entry)
    }

    /// Returns the number of rows in the builder.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Returns the size of the rows in the builder, in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the block and empties the builder. The buffer of its next block has the same
    /// initial capacity.
    pub fn finish(&mut self) -> RowBlock {
        let mut data = std::mem::take(&mut self.data);
        self.capacity = data.len();
        data.truncate(std::mem::take(&mut self.len));
        RowBlock { rows: std::mem::take(&mut self.rows), data: data.freeze() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_rows_and_refuse_damage() {
        let mut builder = RowBlockBuilder::default();
        let long = vec![7; 300];
        builder.push(b"a", b"");
        builder.push(&long, b"x");
        let block = builder.finish();
        let rows: Vec<_> = block.iter().collect();
        assert_eq!(
            rows,
            vec![Row { entry: b"a", include: b"" }, Row { entry: &long, include: b"x" }]
        );
        block.validate().unwrap();
        let short = RowBlock { rows: 2, data: block.data.slice(..block.data.len() - 1) };
        assert!(short.validate().is_err());
        assert!(RowBlock { rows: 1, ..block }.validate().is_err());
    }
}
