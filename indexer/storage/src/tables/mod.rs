//! Tables of rows: runs in memory and fragments in files, read through one interface.

pub(crate) mod run;
pub(crate) mod table;
