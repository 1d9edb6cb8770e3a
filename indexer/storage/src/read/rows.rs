//! Walks over visible entries.
//!
//! A walk reads one entry after another, and only some of them are visible at its epoch. Each
//! entry read is called a *look*. After many deletions long stretches may have no visible entry,
//! so a caller with a time limit bounds the number of looks instead of the number of rows.

use proto::Result;
use proto::rpc::rows::RowBlockBuilder;

/// A walk over the entries of a snapshot. The tables that it reads are not deleted before it is
/// dropped.
pub trait Rows: Send {
    /// Reads the next entry. Returns true if the entry is visible; `None` after the last entry.
    fn read_entry(&mut self) -> Result<Option<bool>>;

    /// Moves to the next visible entry; returns false after the last one.
    fn next(&mut self) -> Result<bool> {
        loop {
            match self.read_entry()? {
                Some(true) => return Ok(true),
                Some(false) => {}
                None => return Ok(false),
            }
        }
    }

    /// Returns the current entry, which must be visible: encoded key parts, then the document id.
    fn entry(&self) -> &[u8];

    /// Returns the encoded included values of the current entry; empty if they were not requested.
    fn include(&self) -> &[u8];

    /// Appends the entry that will be read next to `out`. Returns false after the last entry.
    fn put_next_entry(&self, out: &mut Vec<u8>) -> bool;

    /// Packs visible entries into `block` until a bound or the end is reached. Afterwards there is
    /// no current entry.
    fn pack(&mut self, block: &mut RowBlockBuilder, bounds: Bounds) -> Result<WalkStep> {
        let mut walked = WalkStep::default();
        while !bounds.are_reached(&walked, block.len()) {
            match self.read_entry()? {
                Some(true) => {
                    block.push(self.entry(), self.include());
                    walked.rows += 1;
                }
                Some(false) => {}
                None => return Ok(walked.to_end()),
            }
            walked.looks += 1;
        }
        Ok(walked)
    }

    /// Counts visible entries, and reads at most `looks_max` entries for it. If all entries are
    /// visible, many of them may count as one. Afterwards there is no current entry.
    fn count(&mut self, looks_max: u64) -> Result<WalkStep> {
        let mut walked = WalkStep::default();
        while walked.looks < looks_max {
            match self.read_entry()? {
                Some(shown) => walked.rows += u64::from(shown),
                None => return Ok(walked.to_end()),
            }
            walked.looks += 1;
        }
        Ok(walked)
    }
}

/// The limits of one step of a walk. The step ends when the first of them is reached.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The maximum size of the block in bytes.
    pub bytes: usize,
    /// The maximum number of visible entries.
    pub rows: u64,
    /// The maximum number of entries that are read, visible or not.
    pub looks: u64,
}

impl Bounds {
    /// Returns limits without a maximum number of entries read.
    pub fn of_rows(bytes: usize, rows: u64) -> Self {
        Self { bytes, rows, looks: u64::MAX }
    }

    /// Returns true if a step that has walked as far as `walked`, with a block of `bytes` bytes,
    /// has reached one of the limits.
    pub fn are_reached(&self, walked: &WalkStep, bytes: usize) -> bool {
        bytes >= self.bytes || walked.rows >= self.rows || walked.looks >= self.looks
    }
}

/// The result of one step of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkStep {
    /// The number of visible entries.
    pub rows: u64,
    /// The number of entries that were read, visible or not.
    pub looks: u64,
    /// True after the last entry.
    pub is_end: bool,
}

impl WalkStep {
    /// Marks the step as the last one of its walk.
    pub fn to_end(self) -> Self {
        Self { is_end: true, ..self }
    }
}
