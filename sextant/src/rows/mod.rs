//! Rows of results as clients read them, whichever port they come through.

pub(crate) mod entry;
pub(crate) mod format;
pub(crate) mod suspended;
pub(crate) mod value;
