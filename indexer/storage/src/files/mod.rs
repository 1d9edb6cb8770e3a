//! The files of a node: fragments by number, the names that manifests give them, deletion of files
//! that no manifest names, and the write rate of compactions.

pub(crate) mod data_files;
pub(crate) mod group_writer;
pub(crate) mod named_files;
pub(crate) mod new_files;
pub(crate) mod pacing;
pub(crate) mod pending;
pub(crate) mod unstamped;
