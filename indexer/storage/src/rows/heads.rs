//! The heads of a block's rows: prefixes of entries as integers, for fast comparisons.

/// Location of the *heads* of a block's rows. A head is the eight bytes of an entry after the
/// prefix that all entries of a merge share, as an integer that sorts in the order of the entries.
/// Shorter entries are padded with zeros, so entries with equal heads may differ.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heads {
    pub skip: usize,
    pub fast: bool,
    /// The leading bits of the head, which all rows of the block share.
    pub shared: u64,
    /// Number of bits of `shared`; 64 or more if the complete head is shared.
    pub shift: u32,
    /// Offset of the first row's bytes of the head; then the distance from row to row.
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
