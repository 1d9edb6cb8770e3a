//! The files of a node.

pub(crate) mod data_files;
pub(crate) mod group_writer;
pub(crate) mod pacing;
pub(crate) mod pending;
