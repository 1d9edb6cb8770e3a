//! Checks all that a node has on disk.

pub(crate) mod check;
pub(crate) mod slices;

pub use check::{Remark, Report, is_data_dir, verify};
