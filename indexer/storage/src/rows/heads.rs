//! Where the heads of a block's rows are.

/// Where the *heads* of a block's rows are: the eight bytes of an entry behind a beginning that all
/// entries of a merge share, as an integer of the same order. Shorter entries are padded with zeros, so
/// equal heads decide nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heads {
    pub skip: usize,
    pub fast: bool,
    /// The part that all rows of the block share.
    pub shared: u64,
    /// Its bits; from 64 on there is no other part.
    pub shift: u32,
    /// Where the other part of the first row is, and how far it is from row to row.
    pub data: usize,
    pub width: usize,
}

impl Heads {
    pub fn slow(skip: usize) -> Self {
        Self { skip, ..Self::default() }
    }

    pub fn fast(skip: usize, shared: u64, shift: u32, data: usize, width: usize) -> Self {
        Self { skip, fast: true, shared, shift, data, width }
    }
}
