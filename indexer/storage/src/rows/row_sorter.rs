//! Sorter of rows: takes rows in any order and writes them in table order.
//!
//! Keys, ids and values lie in one buffer. Sorting moves small records of fixed size. It compares
//! bytes only if the slice and the head of the entry, behind the prefix that all keys share, do not
//! decide.

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::rows::bytes::{common, head_of};
use crate::rows::row::RowVersion;
use crate::rows::sinks::RowSink;

/// Rows of one epoch, in any order.
#[derive(Debug, Default)]
pub struct RowSorter {
    bytes: Vec<u8>,
    rows: Vec<SortRow>,
}

/// Value length that marks a tombstone.
const TOMBSTONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct SortRow {
    head: u64,
    at: usize,
    key_len: u32,
    id_len: u32,
    value_len: u32,
    slice: SliceNo,
}

// Sorting moves these records, so they must stay small.
const _: () = assert!(size_of::<SortRow>() <= 32);

impl SortRow {
    fn key<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.at..self.at + self.key_len as usize]
    }

    fn id<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let from = self.at + self.key_len as usize;
        &bytes[from..from + self.id_len as usize]
    }

    fn value<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let from = self.at + self.key_len as usize + self.id_len as usize;
        let len = (self.value_len != TOMBSTONE).then_some(self.value_len as usize)?;
        Some(&bytes[from..from + len])
    }
}

impl RowSorter {
    /// Adds a row; a row without a value is a tombstone.
    pub fn push(&mut self, slice: SliceNo, key: &[u8], id: &[u8], value: Option<&[u8]>) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(id);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.rows.push(SortRow {
            head: 0,
            at,
            key_len: key.len() as u32,
            id_len: id.len() as u32,
            value_len: value.map_or(TOMBSTONE, |value| value.len() as u32),
            slice,
        });
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Memory in use, in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.rows.len() * size_of::<SortRow>()
    }

    /// Returns an empty sorter with the capacity that this one uses.
    pub fn empty_like(&self) -> Self {
        let (bytes, rows) = (self.bytes.len(), self.rows.len());
        Self { bytes: Vec::with_capacity(bytes), rows: Vec::with_capacity(rows) }
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        let Some(first) = self.rows.first().map(|row| row.key(bytes)) else { return };
        let shared = |len, row: &SortRow| common(&first[..len], row.key(bytes));
        let skip = self.rows.iter().fold(first.len(), shared);
        for row in &mut self.rows {
            row.head = head_of(&[&row.key(bytes)[skip..], row.id(bytes)]);
        }
        self.rows.sort_unstable_by(|left, right| {
            (left.slice, left.head).cmp(&(right.slice, right.head)).then_with(|| {
                let order = left.key(bytes).cmp(right.key(bytes));
                order.then_with(|| left.id(bytes).cmp(right.id(bytes)))
            })
        });
    }

    /// Writes all rows in table order, as of an epoch.
    pub fn write(mut self, epoch: Epoch, out: &mut impl RowSink) -> Result<()> {
        self.sort();
        let bytes = &self.bytes;
        for row in &self.rows {
            let value = row.value(bytes);
            out.push(&RowVersion {
                slice: row.slice,
                key: row.key(bytes),
                id: row.id(bytes),
                value: value.unwrap_or_default(),
                epoch,
                tombstone: value.is_none(),
            })?;
        }
        Ok(())
    }
}
