//! Heads of a block's rows.

/// Location of the *heads* of a block's rows. A head is the eight bytes of an entry after the
/// prefix that all entries of a merge share, as an integer of the same order. Shorter entries are
/// padded with zeros, so equal heads decide nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heads {
    pub skip: usize,
    pub fast: bool,
    /// Part of the head that all rows of the block share.
    pub shared: u64,
    /// Number of bits of `shared`; 64 or more if there is no other part.
    pub shift: u32,
    /// Offset of the first row's other part, and the distance from row to row.
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
