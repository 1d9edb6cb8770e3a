//! Sorter of rows: takes rows in any order and writes them in table order.
//!
//! Keys, ids and values lie in one buffer. Sorting moves small records of fixed size, slice by
//! slice: so rows that are already in the order of a slice, such as those of a backfill's back
//! index, are not moved at all. The sorter compares complete entries only if the eight bytes after
//! the prefix that all keys of the slice share do not decide.

use std::collections::BTreeMap;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::rows::bytes::{common_prefix_len, head_of};
use crate::rows::row::RowVersion;
use crate::rows::sinks::RowSink;

/// A collection of rows in any order, to be sorted. All rows have one epoch or epochs shortly
/// after it.
#[derive(Debug, Default)]
pub struct RowSorter {
    bytes: Vec<u8>,
    rows: BTreeMap<SliceNo, Vec<SortRow>>,
    len: usize,
}

/// The value length that marks a row as a tombstone.
const TOMBSTONE: u32 = u32::MAX;

/// A row to be sorted: places of its strings in the buffer.
#[derive(Clone, Copy, Debug)]
struct SortRow {
    head: u64,
    at: usize,
    key_len: u32,
    id_len: u32,
    value_len: u32,
    later: u32,
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
        self.push_later(slice, key, id, value, 0);
    }

    /// Adds a row whose epoch is `later` epochs after that of rows from [`Self::push`]. If this
    /// function is used, no two rows of the sorter may have the same entry.
    pub fn push_later(
        &mut self,
        slice: SliceNo,
        key: &[u8],
        id: &[u8],
        value: Option<&[u8]>,
        later: u32,
    ) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(id);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.len += 1;
        self.rows.entry(slice).or_default().push(SortRow {
            head: 0,
            at,
            key_len: key.len() as u32,
            id_len: id.len() as u32,
            value_len: value.map_or(TOMBSTONE, |value| value.len() as u32),
            later,
        });
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the memory use in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.len * size_of::<SortRow>()
    }

    /// Returns an empty sorter with the capacity that this sorter has used.
    pub fn empty_like(&self) -> Self {
        let bytes = Vec::with_capacity(self.bytes.len());
        let like = |(slice, rows): (&SliceNo, &Vec<_>)| (*slice, Vec::with_capacity(rows.len()));
        Self { bytes, rows: self.rows.iter().map(like).collect(), len: 0 }
    }

    /// Writes all rows in table order. Rows from [`Self::push`] get the epoch `epoch`.
    pub fn write(self, epoch: Epoch, out: &mut impl RowSink) -> Result<()> {
        let bytes = &self.bytes;
        for (slice, mut rows) in self.rows {
            sort(&mut rows, bytes);
            for row in &rows {
                let value = row.value(bytes);
                out.push(&RowVersion {
                    slice,
                    key: row.key(bytes),
                    id: row.id(bytes),
                    value: value.unwrap_or_default(),
                    epoch: Epoch(epoch.0 + u64::from(row.later)),
                    tombstone: value.is_none(),
                })?;
            }
        }
        Ok(())
    }
}

/// Sorts the rows of one slice.
fn sort(rows: &mut [SortRow], bytes: &[u8]) {
    let Some(first) = rows.first().map(|row| row.key(bytes)) else { return };
    let shared = |len, row: &SortRow| common_prefix_len(&first[..len], row.key(bytes));
    let skip = rows.iter().fold(first.len(), shared);
    for row in &mut *rows {
        row.head = head_of(&[&row.key(bytes)[skip..], row.id(bytes)]);
    }
    rows.sort_unstable_by(|left, right| {
        left.head.cmp(&right.head).then_with(|| {
            let order = left.key(bytes).cmp(right.key(bytes));
            order.then_with(|| left.id(bytes).cmp(right.id(bytes)))
        })
    });
}
