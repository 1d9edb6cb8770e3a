//! Edits of whole slices: splits, drops, column groups, rollbacks, and moves between nodes.

pub(crate) mod arrival;
pub(crate) mod derive;
pub(crate) mod edits;
pub(crate) mod export;
pub(crate) mod install;
pub(crate) mod packed_lists;
mod part_writer;
pub(crate) mod receive;
pub(crate) mod rollback;
