//! Maintenance in the background: merges of tables in memory, flushes, compactions, and release of
//! the log.

pub(crate) mod compaction;
pub(crate) mod flush;
pub(crate) mod merge_runs;
pub(crate) mod release;
pub(crate) mod rewrite;
pub(crate) mod upkeep;
