//! Packed rows between a shard and the client.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorCode, Result};
use crate::rpc::varint::{take_bytes, take_varint};

/// Rows, packed back to back: `len(entry) entry len(include) include`, lengths as LEB128.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowBlock {
    /// The number of rows.
    pub rows: u32,
    /// The packed rows.
    pub data: Bytes,
}

/// One row; borrowed from its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Encoded key parts, then the document id.
    pub entry: &'a [u8],
    /// Encoded included values, each as an ascending key part; empty if not requested.
    pub include: &'a [u8],
}

impl RowBlock {
    /// The rows, read in place.
    pub fn iter(&self) -> RowIter<'_> {
        RowIter { rest: &self.data }
    }

    /// Checks a block received from the network: its rows are readable and their number is right.
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

/// The place of a row in a block's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPlace {
    /// The place of the entry.
    pub entry: Range<usize>,
    /// The offset of the next row.
    pub next: usize,
}

/// Returns the place of the row at an offset of a block's data, for merges that keep a place in each of several blocks.
pub fn row_at(data: &[u8], at: usize) -> Option<RowPlace> {
    let mut rest = data.get(at..).filter(|rest| !rest.is_empty())?;
    let entry = take_short(&mut rest)?.len();
    let end = data.len() - rest.len();
    take_short(&mut rest)?;
    Some(RowPlace { entry: end - entry..end, next: data.len() - rest.len() })
}

/// Iterates over the rows of a block.
pub struct RowIter<'a> {
    rest: &'a [u8],
}

impl<'a> RowIter<'a> {
    /// Reads packed rows from the place where an earlier reader stopped.
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// The number of bytes not read yet, from which a later reader can continue.
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

/// `take_bytes` for the common case of a one-byte length.
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

/// Rows of at most this length are copied with one fixed-size copy.
const WIDE_BYTES: usize = 32;
/// Maximum bytes of an encoded length.
const LEN_BYTES_MAX: usize = 10;
/// Minimum growth of the buffer, in bytes.
const ROOM_BYTES: usize = 1 << 10;

/// Packs rows.
#[derive(Debug, Default)]
pub struct RowBlockBuilder {
    rows: u32,
    /// The rows, and room for more after them.
    data: BytesMut,
    /// Bytes of the rows.
    len: usize,
    /// The capacity with which an empty buffer begins.
    capacity: usize,
}

impl RowBlockBuilder {
    /// A builder with room for `bytes`.
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

    /// Appends a row that is packed already, at a place of another block's data.
    #[inline]
    pub fn push_packed(&mut self, data: &[u8], row: Range<usize>) {
        let bytes = row.len();
        let room = self.room(bytes.max(WIDE_BYTES));
        match (data[row.start..].first_chunk::<WIDE_BYTES>(), room.first_chunk_mut()) {
            // A short row is copied with a fixed size. Bytes of the next row are copied too, and the next row
            // overwrites them.
            (Some(wide), Some(room)) if bytes <= WIDE_BYTES => *room = *wide,
            _ => room[..bytes].copy_from_slice(&data[row]),
        }
        self.commit(1, bytes);
    }

    fn put(&mut self, bytes: &[u8]) {
        let room = self.room(bytes.len() + LEN_BYTES_MAX);
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

    /// Returns a buffer of at least so many bytes after the rows, for encoded rows (entry and included values, each
    /// preceded by its length). [`Self::commit`] adds them to the block.
    #[inline]
    pub fn room(&mut self, bytes: usize) -> &mut [u8] {
        let end = self.len + bytes;
        if self.data.len() < end {
            if self.data.capacity() == 0 {
                self.data.reserve(self.capacity);
            }
            self.data.resize(end + ROOM_BYTES, 0);
        }
        &mut self.data[self.len..]
    }

    /// Adds rows that were written into [`Self::room`]: their number and their total length in bytes.
    #[inline]
    pub fn commit(&mut self, rows: u32, bytes: usize) {
        debug_assert!(self.len + bytes <= self.data.len(), "there was room for it");
        self.rows += rows;
        self.len += bytes;
    }

    /// The entry of the last row that was added.
    pub fn last_entry(&self) -> Option<&[u8]> {
        RowIter::new(&self.data[..self.len]).last().map(|row| row.entry)
    }

    /// The number of rows so far.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The number of bytes so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Takes the block. The next one begins with the same capacity, with its first row.
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
