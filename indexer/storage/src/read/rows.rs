//! Walks over visible entries.
//!
//! A walk reads one entry after another (each is a *look*), and some of them are visible at its epoch. After many deletions long stretches
//! may have no visible entry, so a caller with a time limit bounds the looks, not the rows.

use proto::Result;
use proto::rpc::rows::RowBlockBuilder;

/// A walk over the entries of a snapshot. It keeps the tables that it reads alive.
pub trait Rows: Send {
    /// Looks at the next entry. Returns whether it is visible, `None` after the last.
    fn look(&mut self) -> Result<Option<bool>>;

    /// Moves to the next visible entry; false after the last.
    fn next(&mut self) -> Result<bool> {
        loop {
            match self.look()? {
                Some(true) => return Ok(true),
                Some(false) => {}
                None => return Ok(false),
            }
        }
    }

    /// Current entry, if it is visible: encoded key parts, then the document id.
    fn entry(&self) -> &[u8];

    /// Encoded included values of the current entry; empty if they were not requested.
    fn include(&self) -> &[u8];

    /// Appends the next entry to be read; false after the last one.
    fn put_ahead(&self, out: &mut Vec<u8>) -> bool;

    /// Packs visible entries until a bound is reached, or the end. There is no current entry then.
    fn pack(&mut self, block: &mut RowBlockBuilder, bounds: Bounds) -> Result<WalkPiece> {
        let mut walked = WalkPiece::default();
        while !bounds.are_reached(&walked, block.len()) {
            match self.look()? {
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

    /// Counts visible entries with this many looks, or to the end. One look may cover many entries, if all are visible. There is no
    /// current entry then.
    fn count(&mut self, looks_max: u64) -> Result<WalkPiece> {
        let mut walked = WalkPiece::default();
        while walked.looks < looks_max {
            match self.look()? {
                Some(shown) => walked.rows += u64::from(shown),
                None => return Ok(walked.to_end()),
            }
            walked.looks += 1;
        }
        Ok(walked)
    }
}

/// The bounds of a piece of a walk; the first that is reached ends it.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The block has this many bytes.
    pub bytes: usize,
    /// The number of rows that were found.
    pub rows: u64,
    /// The number of entries that were read.
    pub looks: u64,
}

impl Bounds {
    /// Bounds of the rows alone.
    pub fn of_rows(bytes: usize, rows: u64) -> Self {
        Self { bytes, rows, looks: u64::MAX }
    }

    /// True if a piece with a block of so many bytes ends here.
    pub fn are_reached(&self, walked: &WalkPiece, bytes: usize) -> bool {
        bytes >= self.bytes || walked.rows >= self.rows || walked.looks >= self.looks
    }
}

/// A piece of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkPiece {
    /// The number of visible entries.
    pub rows: u64,
    /// The number of looks.
    pub looks: u64,
    /// True after the last entry.
    pub is_end: bool,
}

impl WalkPiece {
    /// The piece, which ends after the last entry.
    pub fn to_end(self) -> Self {
        Self { is_end: true, ..self }
    }
}
