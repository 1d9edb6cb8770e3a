//! A block: some sorted rows of a table, in columns that are read in place. Memory and fragments
//! hold the same bytes.
//!
//! A row has a *key*, an *id*, a *value*, an epoch and a tombstone flag. In a forward table (a
//! table of entries) the key is an index key, the id is a document id, and the value holds the
//! included values. In a back table (a table of the back index) the key is a document id, the id
//! is empty, and the value holds the entries of the document. The *entry* of a row is its key and
//! id, concatenated. Rows are ordered by entry, and the versions of one entry from the newest to
//! the oldest.
//!
//! Keys, ids and values are separate columns. Each column leaves out the prefix that all of its
//! strings share, and has either a fixed width or an offset table. So any row is reached without
//! reading the rows before it. Epochs are stored as differences to the smallest epoch, in as few
//! bytes as possible: in most blocks in none.
//!
//! ```text
//! block  := rows:u16 flags:u8 epoch-width:u8 epoch-base:u64 column{3} prefix{3} data{3} epochs bits
//! column := prefix-len:u16 shape:u16         shape: width, or 0xffff/0xfffe: offsets of 16/32 bits
//! data   := width*rows bytes | (rows+1) offsets, then bytes
//! epochs := epoch-width*rows bytes            bits := ceil(rows/8) bytes, if flags & 1: tombstones
//! ```
//! Integers are little endian. [`Block::parse`] checks everything that the other methods rely on;
//! `block_builder` writes blocks.

use std::cmp::Ordering;
use std::ops::Range;

use proto::Result;
use proto::model::ids::Epoch;
use proto::rpc::rows::RowBlockBuilder;

use crate::rows::block_column::{BlockColumn, Input};
use crate::rows::block_format::{
    BLOCK_ROWS_MAX, HEADER_BYTES, TOMBSTONES, corrupt, u16_at, u32_at,
};
use crate::rows::bytes::{WIDE_BYTES, copy_wide, head_of};
use crate::rows::heads::Heads;

/// A parsed block: some sorted rows of a table.
#[derive(Debug)]
pub struct Block {
    bytes: Box<[u8]>,
    rows: u32,
    key: BlockColumn,
    id: BlockColumn,
    value: BlockColumn,
    epochs: Epochs,
    /// Offset of the tombstone bitmap; 0 if there is none.
    tombstones: u32,
}

/// The epochs of a block's rows: differences to the smallest epoch.
#[derive(Clone, Copy, Debug)]
struct Epochs {
    base: u64,
    width: u8,
    at: u32,
}

impl Block {
    /// Parses a block and checks everything that the other methods rely on.
    pub fn parse(bytes: Box<[u8]>) -> Result<Self> {
        if bytes.len() < HEADER_BYTES || bytes.len() > u32::MAX as usize / 2 {
            return Err(corrupt("impossible length"));
        }
        let rows = u32::from(u16_at(&bytes, 0));
        if rows == 0 || rows as usize > BLOCK_ROWS_MAX {
            return Err(corrupt("impossible number of rows"));
        }
        let mut input = Input { bytes: &bytes, at: HEADER_BYTES };
        let mut prefixes = [const { 0..0 }; 3];
        for (n, prefix) in prefixes.iter_mut().enumerate() {
            let len = usize::from(u16_at(&bytes, 12 + 4 * n));
            let from = input.consume(len)?;
            *prefix = from..from + len;
        }
        let mut column = |n: usize| {
            let prefix = prefixes[n].clone();
            BlockColumn::parse(&mut input, rows, prefix, u16_at(&bytes, 14 + 4 * n))
        };
        let (key, id, value) = (column(0)?, column(1)?, column(2)?);
        let width = bytes[3];
        if !matches!(width, 0 | 1 | 2 | 4 | 8) {
            return Err(corrupt("impossible width of the epochs"));
        }
        let base = u64::from(u32_at(&bytes, 4)) | u64::from(u32_at(&bytes, 8)) << 32;
        let epochs_at = input.consume(rows as usize * usize::from(width))? as u32;
        let tombstones = match bytes[2] {
            0 => 0,
            TOMBSTONES => input.consume((rows as usize).div_ceil(8))? as u32,
            _ => return Err(corrupt("unknown flags")),
        };
        if input.at != bytes.len() {
            return Err(corrupt("extra bytes behind the end"));
        }
        let epochs = Epochs { base, width, at: epochs_at };
        Ok(Self { bytes, rows, key, id, value, epochs, tombstones })
    }

    /// Replaces the epochs of all rows by `epoch`. An error if the rows have different epochs.
    pub fn stamp(&mut self, epoch: Epoch) -> Result<()> {
        if self.epochs.width != 0 {
            return Err(corrupt("the rows of a stamped block have several epochs"));
        }
        self.bytes[4..12].copy_from_slice(&epoch.0.to_le_bytes());
        self.epochs.base = epoch.0;
        Ok(())
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Returns the memory use in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len() + std::mem::size_of::<Self>()
    }

    /// Returns the encoded block.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the prefix that all strings of a column share.
    #[inline]
    fn prefix(&self, column: &BlockColumn) -> &[u8] {
        &self.bytes[column.prefix()]
    }

    /// Returns the string of a row in a column, without the shared prefix.
    #[inline]
    fn suffix(&self, column: &BlockColumn, row: u32) -> &[u8] {
        &self.bytes[column.range(&self.bytes, row)]
    }

    /// Returns four byte strings whose concatenation is the entry of a row.
    #[inline]
    fn entry_pieces(&self, row: u32) -> [&[u8]; 4] {
        [
            self.prefix(&self.key),
            self.suffix(&self.key, row),
            self.prefix(&self.id),
            self.suffix(&self.id, row),
        ]
    }

    /// Appends the entry of a row to `out`.
    #[inline]
    pub fn put_entry(&self, row: u32, out: &mut Vec<u8>) {
        let pieces = self.entry_pieces(row);
        out.reserve(pieces.iter().map(|piece| piece.len()).sum());
        for piece in pieces {
            out.extend_from_slice(piece);
        }
    }

    /// Appends the key of a row to `out`.
    pub fn put_key(&self, row: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(self.prefix(&self.key));
        out.extend_from_slice(self.suffix(&self.key, row));
    }

    /// Returns the length of the entry of a row.
    pub fn entry_len(&self, row: u32) -> usize {
        self.entry_pieces(row).iter().map(|piece| piece.len()).sum()
    }

    /// Returns the length of the key of a row.
    #[inline]
    pub fn key_len(&self, row: u32) -> usize {
        self.key.prefix().len() + self.key.range(&self.bytes, row).len()
    }

    /// Appends the value of a row to `out`.
    #[inline]
    pub fn put_value(&self, row: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(self.prefix(&self.value));
        out.extend_from_slice(self.suffix(&self.value, row));
    }

    /// Returns two byte strings whose concatenation is the value of a row.
    #[inline]
    pub fn value_pieces(&self, row: u32) -> [&[u8]; 2] {
        [self.prefix(&self.value), self.suffix(&self.value, row)]
    }

    /// Returns the epoch of a row.
    #[inline]
    pub fn epoch(&self, row: u32) -> Epoch {
        let Epochs { base, width, at } = self.epochs;
        let at = at as usize + usize::from(width) * row as usize;
        let delta = match width {
            0 => 0,
            1 => u64::from(self.bytes[at]),
            2 => u64::from(u16_at(&self.bytes, at)),
            4 => u64::from(u32_at(&self.bytes, at)),
            _ => u64::from(u32_at(&self.bytes, at)) | u64::from(u32_at(&self.bytes, at + 4)) << 32,
        };
        Epoch(base.wrapping_add(delta))
    }

    /// Returns true if a row is a tombstone.
    #[inline]
    pub fn is_tombstone(&self, row: u32) -> bool {
        self.tombstones != 0
            && self.bytes[self.tombstones as usize + row as usize / 8] >> (row % 8) & 1 == 1
    }

    /// Compares the entry of a row with the bytes `other`.
    #[inline]
    pub fn compare(&self, row: u32, mut other: &[u8]) -> Ordering {
        for piece in self.entry_pieces(row) {
            let len = piece.len().min(other.len());
            match piece[..len].cmp(&other[..len]) {
                Ordering::Equal if len < piece.len() => return Ordering::Greater,
                Ordering::Equal => other = &other[len..],
                unequal => return unequal,
            }
        }
        if other.is_empty() { Ordering::Equal } else { Ordering::Less }
    }

    /// Returns true if an entry has several versions in the block. Versions of an entry have
    /// different epochs, so a block with one epoch needs no comparison of entries; most blocks are
    /// such.
    pub fn has_versions(&self) -> bool {
        let same = |row| self.compare_rows(row, self, row + 1).is_eq();
        self.epochs.width > 0 && (0..self.rows - 1).any(same)
    }

    /// Compares the entries of two rows.
    pub fn compare_rows(&self, row: u32, other: &Self, other_row: u32) -> Ordering {
        let (left, right) = (self.entry_pieces(row), other.entry_pieces(other_row));
        let (mut lefts, mut rights) = (left.into_iter(), right.into_iter());
        let (mut one, mut two): (&[u8], &[u8]) = (&[], &[]);
        loop {
            while one.is_empty()
                && let Some(next) = lefts.next()
            {
                one = next;
            }
            while two.is_empty()
                && let Some(next) = rights.next()
            {
                two = next;
            }
            let len = one.len().min(two.len());
            if len == 0 {
                return one.len().cmp(&two.len());
            }
            match one[..len].cmp(&two[..len]) {
                Ordering::Equal => (one, two) = (&one[len..], &two[len..]),
                unequal => return unequal,
            }
        }
    }

    /// Writes a row in wire format, without its value, into the spare capacity of `out`, and
    /// returns its length. The row counts only after the caller has committed the bytes. Returns
    /// `None` and writes nothing if the entry is too long.
    #[inline]
    pub fn put_row(&self, row: u32, out: &mut RowBlockBuilder) -> Option<usize> {
        let key = self.key.range(&self.bytes, row);
        let id = self.id.range(&self.bytes, row);
        let pieces = [self.key.prefix(), key, self.id.prefix(), id];
        let len: usize = pieces.iter().map(Range::len).sum();
        if len >= 0x80 {
            return None;
        }
        // The length of the entry, the entry, and the length of the empty value.
        let room = out.free_buffer(len + 2 + WIDE_BYTES);
        room[0] = len as u8;
        let mut at = 1;
        for piece in pieces {
            at = copy_wide(&self.bytes, piece, room, at);
        }
        room[at] = 0;
        Some(at + 1)
    }

    /// Packs the rows of a range without their values into `out`. Stops before a row that is too
    /// long for [`Self::put_row`]. Returns the number of packed rows.
    pub fn pack(&self, rows: Range<u32>, out: &mut RowBlockBuilder) -> u32 {
        let from = rows.start;
        for row in rows.clone() {
            match self.put_row(row, out) {
                Some(bytes) => out.add_written_rows(1, bytes),
                None => return row - from,
            }
        }
        rows.end - from
    }

    /// Returns the first row whose entry is at or after `bound`, or the number of rows.
    pub fn lower_bound(&self, bound: &[u8]) -> u32 {
        let prefix = self.prefix(&self.key);
        let shared = prefix.len().min(bound.len());
        match bound[..shared].cmp(&prefix[..shared]) {
            Ordering::Less => return 0,
            Ordering::Greater => return self.rows,
            Ordering::Equal if shared < prefix.len() => return 0,
            Ordering::Equal => {}
        }
        // Up to eight bytes of the key decide almost always. Whole entries are compared only if
        // these are equal.
        let width = self.key.width().unwrap_or(0);
        let mask = !u64::MAX.checked_shr(8 * width.min(8) as u32).unwrap_or(0);
        let head = head_of(&[&bound[shared..]]) & mask;
        let (mut low, mut high) = (0, self.rows);
        while low < high {
            let middle = low + (high - low) / 2;
            let at = self.key.data as usize + width * middle as usize;
            let word = self.bytes[at..].first_chunk().map(|word| u64::from_be_bytes(*word));
            let other = word.unwrap_or_else(|| head_of(&[&self.bytes[at..]])) & mask;
            let before = match other.cmp(&head) {
                Ordering::Equal => self.compare(middle, bound) == Ordering::Less,
                unequal => unequal == Ordering::Less,
            };
            if before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the location of the heads of this block's rows (see `Heads`). `skip` is the length
    /// of the prefix that the entries of a merge share.
    pub fn heads(&self, skip: usize) -> Heads {
        let prefix = self.prefix(&self.key);
        let Some(width) = self.key.width() else { return Heads::row_by_row(skip) };
        let data = self.key.data as usize;
        if skip >= prefix.len() {
            let from = skip - prefix.len();
            let whole = from + 8 <= width;
            return if whole {
                Heads::at_fixed_distance(skip, 0, 0, data + from, width)
            } else {
                Heads::row_by_row(skip)
            };
        }
        let shared = &prefix[skip..];
        if shared.len() >= 8 {
            return Heads::at_fixed_distance(skip, head_of(&[shared]), 64, data, width);
        }
        if width < 8 - shared.len() {
            return Heads::row_by_row(skip);
        }
        Heads::at_fixed_distance(skip, head_of(&[shared]), 8 * shared.len() as u32, data, width)
    }

    /// Returns the head of a row: eight bytes of its entry, as an integer for comparisons.
    #[inline]
    pub fn head(&self, heads: &Heads, row: u32) -> u64 {
        if heads.shift >= 64 {
            return heads.shared;
        }
        let at = heads.data + heads.width * row as usize;
        match self.bytes.get(at..at + 8) {
            Some(chunk) if heads.fast => {
                let mut word = [0; 8];
                word.copy_from_slice(chunk);
                heads.shared | u64::from_be_bytes(word) >> heads.shift
            }
            _ => {
                let mut skip = heads.skip;
                let pieces = self.entry_pieces(row).map(|piece| {
                    let rest = &piece[skip.min(piece.len())..];
                    skip -= skip.min(piece.len());
                    rest
                });
                head_of(&pieces)
            }
        }
    }
}

#[cfg(test)]
#[path = "block_tests.rs"]
mod tests;
