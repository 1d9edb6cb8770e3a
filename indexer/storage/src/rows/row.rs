//! A row: one version of an entry.

use proto::model::ids::{Epoch, SliceNo};

/// One version of an entry, borrowed from a block.
#[derive(Clone, Copy, Debug)]
pub struct RowVersion<'a> {
    /// The slice that the row belongs to.
    pub slice: SliceNo,
    /// The encoded key parts, with which the entry begins.
    pub key: &'a [u8],
    /// The document id, with which the entry ends.
    pub id: &'a [u8],
    /// Value of the entry.
    pub value: &'a [u8],
    /// Epoch from which the version is visible.
    pub epoch: Epoch,
    /// True if the entry is deleted from this epoch on.
    pub tombstone: bool,
}
