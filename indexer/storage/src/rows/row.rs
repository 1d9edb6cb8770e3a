//! A row: one version of an entry.

use proto::model::ids::{Epoch, SliceNo};

/// One row of a table: a version of an entry, borrowed from a block.
#[derive(Clone, Copy, Debug)]
pub struct RowVersion<'a> {
    /// The slice that the row belongs to.
    pub slice: SliceNo,
    /// The encoded key parts, which are the beginning of the entry.
    pub key: &'a [u8],
    /// The document id, which is the end of the entry.
    pub id: &'a [u8],
    /// Value of the entry.
    pub value: &'a [u8],
    /// Epoch from which the version is visible.
    pub epoch: Epoch,
    /// True if the entry does not exist from this epoch on.
    pub tombstone: bool,
}
