//! Offline check of a data directory: `sextant verify`.

pub(crate) mod check;
pub(crate) mod slices;

pub use check::{Remark, Report, check_format, is_data_dir, verify};
