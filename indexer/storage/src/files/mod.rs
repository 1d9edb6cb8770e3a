//! The files of a node: fragments by number, manifests, and the pace of compactions.

pub(crate) mod data_files;
pub(crate) mod group_writer;
pub(crate) mod named_files;
pub(crate) mod new_files;
pub(crate) mod pacing;
pub(crate) mod pending;
pub(crate) mod unstamped;
