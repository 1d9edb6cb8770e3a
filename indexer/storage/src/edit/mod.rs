//! Edits of what is there: lists, whole slices, and epochs.

pub(crate) mod arrival;
pub(crate) mod edits;
pub(crate) mod export;
pub(crate) mod install;
pub(crate) mod packed_lists;
pub(crate) mod receive;
pub(crate) mod rollback;
