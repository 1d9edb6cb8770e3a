//! Builder of blocks. The builder gathers sorted rows in columns and tracks the prefixes that
//! their strings share, so the size of the block is known at any time. The format is described in
//! [`crate::rows::block`].

use std::ops::Range;

use crate::rows::block_format::{HEADER_BYTES, OFFSETS_16, OFFSETS_32, TOMBSTONES, WIDTH_MAX};
use crate::rows::bytes::common_prefix_len;
use crate::rows::row::RowVersion;

/// A builder that gathers sorted rows and encodes them as a block.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    key: StagedColumn,
    id: StagedColumn,
    value: StagedColumn,
    epochs: Vec<u64>,
    epoch_min: u64,
    epoch_max: u64,
    tombstones: Vec<u8>,
    has_tombstones: bool,
}

/// A column that is being gathered.
#[derive(Debug, Default)]
struct StagedColumn {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// The length of the prefix that all strings so far share.
    shared: usize,
    /// True if all strings so far have the same length.
    fixed: bool,
}

impl StagedColumn {
    fn push(&mut self, value: &[u8]) {
        match self.ends.first() {
            None => {
                self.shared = value.len().min(usize::from(u16::MAX));
                self.fixed = true;
            }
            Some(first) => {
                let first = &self.bytes[..*first as usize];
                self.fixed &= first.len() == value.len();
                self.shared = common_prefix_len(&first[..self.shared], value);
            }
        }
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len() as u32);
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Returns the shape to be encoded: the width of the strings, or the size of offsets.
    fn shape(&self) -> u16 {
        let width = self.ends.first().map_or(0, |end| *end as usize - self.shared);
        let stored = self.bytes.len() - self.shared * self.ends.len();
        if self.fixed && width <= WIDTH_MAX {
            width as u16
        } else if stored <= usize::from(u16::MAX) {
            OFFSETS_16
        } else {
            OFFSETS_32
        }
    }

    /// Returns the encoded size of the column in bytes.
    fn stored_bytes(&self) -> usize {
        let offsets = if self.fixed { 0 } else { 2 * self.ends.len() };
        self.bytes.len() - self.shared * self.ends.len() + offsets
    }

    fn put_data(&self, shape: u16, out: &mut Vec<u8>) {
        if shape == OFFSETS_16 || shape == OFFSETS_32 {
            let ends =
                self.ends.iter().enumerate().map(|(n, end)| *end - (self.shared * (n + 1)) as u32);
            for end in std::iter::once(0).chain(ends) {
                match shape {
                    OFFSETS_16 => out.extend_from_slice(&(end as u16).to_le_bytes()),
                    _ => out.extend_from_slice(&end.to_le_bytes()),
                }
            }
        }
        let mut from = 0;
        for end in &self.ends {
            let end = *end as usize;
            out.extend_from_slice(&self.bytes[from + self.shared..end]);
            from = end;
        }
    }
}

impl BlockBuilder {
    /// Appends a row.
    pub fn push(&mut self, row: &RowVersion<'_>) {
        let (n, epoch) = (self.epochs.len(), row.epoch.0);
        if n == 0 {
            (self.epoch_min, self.epoch_max) = (epoch, epoch);
        }
        self.epoch_min = self.epoch_min.min(epoch);
        self.epoch_max = self.epoch_max.max(epoch);
        self.epochs.push(epoch);
        if n.is_multiple_of(8) {
            self.tombstones.push(0);
        }
        if row.tombstone {
            self.tombstones[n / 8] |= 1 << (n % 8);
            self.has_tombstones = true;
        }
        self.key.push(row.key);
        self.id.push(row.id);
        self.value.push(row.value);
    }

    /// Returns the number of rows so far.
    pub fn rows(&self) -> usize {
        self.epochs.len()
    }

    /// Returns the approximate size of the block so far, in bytes.
    pub fn size(&self) -> usize {
        let epochs = usize::from(self.epoch_width()) * self.rows();
        HEADER_BYTES
            + self.key.stored_bytes()
            + self.id.stored_bytes()
            + self.value.stored_bytes()
            + epochs
            + if self.has_tombstones { self.tombstones.len() } else { 0 }
    }

    /// Returns the number of bytes in which each row's epoch is encoded.
    fn epoch_width(&self) -> u8 {
        match self.epoch_max - self.epoch_min {
            0 => 0,
            1..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xffff_ffff => 4,
            _ => 8,
        }
    }

    /// Returns key and id of the last row.
    pub fn last_entry(&self) -> [&[u8]; 2] {
        let last = |column: &StagedColumn| -> Range<usize> {
            let n = column.ends.len();
            let from = if n < 2 { 0 } else { column.ends[n - 2] as usize };
            from..column.bytes.len()
        };
        [&self.key.bytes[last(&self.key)], &self.id.bytes[last(&self.id)]]
    }

    /// Encodes the rows so far and removes them, so that the next row begins a new block.
    pub fn finish(&mut self) -> Vec<u8> {
        let rows = self.rows();
        let mut out = Vec::with_capacity(self.size() + 64);
        out.extend_from_slice(&(rows as u16).to_le_bytes());
        out.push(if self.has_tombstones { TOMBSTONES } else { 0 });
        let width = self.epoch_width();
        out.push(width);
        out.extend_from_slice(&self.epoch_min.to_le_bytes());
        let columns = [&self.key, &self.id, &self.value];
        let shapes = columns.map(StagedColumn::shape);
        for (column, shape) in columns.iter().zip(shapes) {
            out.extend_from_slice(&(column.shared as u16).to_le_bytes());
            out.extend_from_slice(&shape.to_le_bytes());
        }
        for column in columns {
            out.extend_from_slice(&column.bytes[..column.shared]);
        }
        for (column, shape) in columns.iter().zip(shapes) {
            column.put_data(shape, &mut out);
        }
        for epoch in &self.epochs {
            let delta = (epoch - self.epoch_min).to_le_bytes();
            out.extend_from_slice(&delta[..usize::from(width)]);
        }
        if self.has_tombstones {
            out.extend_from_slice(&self.tombstones);
        }
        self.clear();
        out
    }

    fn clear(&mut self) {
        for column in [&mut self.key, &mut self.id, &mut self.value] {
            column.clear();
        }
        self.epochs.clear();
        self.tombstones.clear();
        self.has_tombstones = false;
    }
}
