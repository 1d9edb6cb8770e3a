//! Reads of rows at an epoch: cursors over tables, merges of cursors, look-ups in the back index,
//! versions and snapshots of an index.

pub(crate) mod count;
pub(crate) mod cursor;
pub(crate) mod index_snapshot;
pub(crate) mod index_version;
pub(crate) mod lookup;
pub(crate) mod merge;
pub(crate) mod rows;
pub(crate) mod slice_fragments;
pub(crate) mod slice_size;
pub(crate) mod snapshot;
pub(crate) mod source;
pub(crate) mod visible_rows;
