//! Work in the background.

pub(crate) mod compaction;
pub(crate) mod flush;
pub(crate) mod merge_runs;
pub(crate) mod release;
pub(crate) mod rewrite;
pub(crate) mod upkeep;
