//! Gathers rows in any order, sorts them, and writes them in the order of a table.
//!
//! Keys, ids and values stand in one buffer; sorting moves small fixed-size records, and compares the
//! bytes only where the slice and the head of the entry, behind what all keys share, do not decide.

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::rows::bytes::{common, head_of};
use crate::rows::row::Version;
use crate::rows::sinks::RowSink;

/// Rows of one epoch, in any order.
#[derive(Debug, Default)]
pub struct RowSorter {
    bytes: Vec<u8>,
    rows: Vec<Row>,
}

/// The length of a value that there is none of: the row is a tombstone.
const TOMBSTONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Row {
    head: u64,
    at: usize,
    key_len: u32,
    id_len: u32,
    value_len: u32,
    slice: SliceNo,
}

// Sorting moves them.
const _: () = assert!(size_of::<Row>() <= 32);

impl Row {
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
    /// Takes in a row; without a value it is a tombstone.
    pub fn push(&mut self, slice: SliceNo, key: &[u8], id: &[u8], value: Option<&[u8]>) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(id);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.rows.push(Row {
            head: 0,
            at,
            key_len: key.len() as u32,
            id_len: id.len() as u32,
            value_len: value.map_or(TOMBSTONE, |value| value.len() as u32),
            slice,
        });
    }

    /// Has it no rows?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes of memory that are in use.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.rows.len() * size_of::<Row>()
    }

    /// An empty one with room for as much as this one has.
    pub fn empty_like(&self) -> Self {
        let (bytes, rows) = (self.bytes.len(), self.rows.len());
        Self { bytes: Vec::with_capacity(bytes), rows: Vec::with_capacity(rows) }
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        let Some(first) = self.rows.first().map(|row| row.key(bytes)) else { return };
        let shared = |len, row: &Row| common(&first[..len], row.key(bytes));
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

    /// Appends all rows, in their order, as of an epoch.
    pub fn write(mut self, epoch: Epoch, out: &mut impl RowSink) -> Result<()> {
        self.sort();
        let bytes = &self.bytes;
        for row in &self.rows {
            let value = row.value(bytes);
            out.push(&Version {
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
