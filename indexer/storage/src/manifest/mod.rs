//! Manifests: which fragments make up the slices of an index.
//!
//! A node has one manifest for each generation of an index that it keeps, and one for itself. An index
//! manifest lists, for each slice and column group, the fragments that hold its rows, the oldest first,
//! each with a *restriction*: a key range, columns, epochs. A fragment counts only within it. So a
//! split, a clone, a move of columns between groups and a roll-back are edits of these lists: no row is
//! written, and several lists may name one file.
//!
//! ```text
//! index ── slice 0 ── group {entry, include}   [ 4: all │ 7: all │ 9: epochs ≤ 60 ]
//!       │          └─ group {back}             [ 5: all │ 8: all ]
//!       └─ slice 1 ── group {entry, include}   [ 4: keys < m, rows of slice 0 │ … ]
//! ```
//!
//! What always holds ([`IndexManifest::check`]):
//!
//! - The groups of a slice share no column, and an item's columns are some of its group's.
//! - The items of a group are in the order of their versions: for any column, what a later item says
//!   of a key outranks what an earlier one says. (So an erasure may be dropped only by a merge that
//!   begins at the oldest item.)
//! - All the lists of a slice agree on one order: there is an order of all its fragments of which each
//!   list is a part. It is what makes a change of groups possible (`columns`).
//! - No restriction is empty.
//!
//! The edits here are pure; `file` makes a manifest durable. An edit counts when its file is written:
//! first the fragments are synced, then the manifest that names them, then the log is released and what
//! no manifest names any more becomes garbage (`crate::files::pending`).

pub(crate) mod damage;
pub(crate) mod describe;
pub(crate) mod edit;
pub(crate) mod file;
pub(crate) mod index_manifest;
pub(crate) mod key_ranges;
pub(crate) mod lists;
pub(crate) mod node_manifest;
pub(crate) mod order;
pub(crate) mod regroup;

pub use describe::{Described, describe};
pub use edit::Place;
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
