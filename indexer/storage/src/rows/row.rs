//! A row: one version of an entry.

use proto::model::ids::{Epoch, SliceNo};

/// One version of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// The slice it belongs to.
    pub slice: SliceNo,
    /// The first part of the entry.
    pub key: &'a [u8],
    /// The second part of the entry.
    pub id: &'a [u8],
    /// What goes with it.
    pub value: &'a [u8],
    /// Since when.
    pub epoch: Epoch,
    /// Is the entry gone since then?
    pub tombstone: bool,
}
