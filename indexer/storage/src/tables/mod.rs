//! Tables of rows, in memory and in files.

pub(crate) mod run;
pub(crate) mod table;
