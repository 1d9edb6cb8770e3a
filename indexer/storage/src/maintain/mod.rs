//! Maintenance: merges of runs, flushes, compactions, and release of the log.

pub(crate) mod compaction;
pub(crate) mod flush;
pub(crate) mod merge_runs;
pub(crate) mod release;
pub(crate) mod rewrite;
pub(crate) mod upkeep;
