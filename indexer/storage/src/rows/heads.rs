//! The heads of a block's rows: prefixes of entries as integers, for fast comparisons.

/// Location of the *heads* of a block's rows. A head is the eight bytes of an entry after the
/// prefix that all entries of a merge share, as an integer that sorts in the order of the entries.
/// An entry that is too short is padded with zeros, so entries with equal heads may differ.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heads {
    pub skip: usize,
    pub fast: bool,
    /// The leading bits of the head that all rows of the block share.
    pub shared: u64,
    /// Number of bits of `shared`; 64 or more if the complete head is shared.
    pub shift: u32,
    /// Offset in the block of the first row's head bytes. The next field is the distance from row
    /// to row.
    pub data: usize,
    pub width: usize,
}

impl Heads {
    /// Creates the location for a block whose heads must be built row by row.
    pub fn row_by_row(skip: usize) -> Self {
        Self { skip, ..Self::default() }
    }

    /// Creates the location for a block whose heads are read at a fixed distance from row to row.
    pub fn at_fixed_distance(
        skip: usize,
        shared: u64,
        shift: u32,
        data: usize,
        width: usize,
    ) -> Self {
        Self { skip, fast: true, shared, shift, data, width }
    }
}
