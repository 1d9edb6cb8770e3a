//! Manifests: which fragments make up the slices of an index.
//!
//! A node has one manifest for each generation of an index that it keeps, and one for the node
//! itself. An index manifest lists the fragments of each slice and column group, oldest first. Each
//! list item has a *restriction*: a key range, columns, epochs. Only the rows within the
//! restriction are read. So a split, a clone, a change of column groups and a rollback are edits of
//! these lists: no row is written, and several lists can name one file.
//!
//! ```text
//! index ── slice 0 ── group {entry, include}   [ 4: all │ 7: all │ 9: epochs ≤ 60 ]
//!       │          └─ group {back}             [ 5: all │ 8: all ]
//!       └─ slice 1 ── group {entry, include}   [ 4: keys < m, rows of slice 0 │ … ]
//! ```
//!
//! # Invariants (`manifest/invariants.rs`)
//!
//! - The groups of a slice share no column, and no group is without columns.
//! - The columns of an item are columns of its group.
//! - The items of a group are in the order of their versions: for any column, the rows of a later
//!   item outrank those of an earlier one. So only a merge that begins at the oldest item may drop
//!   a tombstone.
//! - All lists of a slice agree on one order of its fragments. A change of column groups needs that
//!   order (`order.rs`).
//! - No restriction is empty: an item without any row to read is absent.
//! - Entry counts, and the readable epochs of slices that came from another node or a rebuild,
//!   exist only for slices that the manifest has.
//! - The rollback points are ascending and below the floor. A manifest without a floor (a build)
//!   has none.
//! - No fragment number is at or above the `next_file` of the node manifest that was written after
//!   it.
//!
//! The edits in `edit.rs` only change values in memory; `file.rs` makes a manifest durable. An
//! edit takes effect once its file is written: first the fragments are synced, then the manifest
//! that names them, then the log is released, and a file that no manifest names any more becomes
//! garbage (`files/pending.rs`).

pub(crate) mod damage;
pub(crate) mod describe;
pub(crate) mod edit;
pub(crate) mod file;
pub(crate) mod index_manifest;
#[cfg(debug_assertions)]
mod invariants;
pub(crate) mod key_ranges;
pub(crate) mod lists;
pub(crate) mod node_manifest;
pub(crate) mod order;
pub(crate) mod regroup;

pub use describe::{CheckedManifest, ItemInfo, describe};
pub use edit::ListPosition;
pub use file::{
    Manifests, index_path, read_all, read_index, read_node, remove_index, write_index, write_node,
};
pub use index_manifest::IndexManifest;
pub use lists::{EpochRange, GroupList, ListItem, SliceLists};
pub use node_manifest::{DeadEpochs, NodeManifest};
pub use regroup::regroup;

#[cfg(test)]
mod column_tests;
#[cfg(test)]
mod edit_tests;
#[cfg(test)]
mod file_tests;
#[cfg(test)]
pub(crate) mod testing;
