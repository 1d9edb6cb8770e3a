//! The state of one index on this node: the writer's memory, the lists of fragments, the backfill
//! of a build, and the load state.

pub(crate) mod backfill;
pub(crate) mod fragment_lists;
pub(crate) mod load_state;
pub(crate) mod local_index;
pub(crate) mod memtable;
pub(crate) mod writer_state;
