//! The modules of the engine that do not depend on indexes, for use by other tables of rows: rows
//! and blocks, tables in memory and in fragments, cursors and merges, and the memtable.
//!
//! A row has a key, an id, a value, an epoch and a tombstone flag (`rows::block`). The user of
//! these modules decides what key, id and value mean.

pub use crate::index::memtable::{BackMemtable, BackState};
pub use crate::merge_policy::{FRAGMENTS_MIN, RUNS_MIN, choose_node};
pub use crate::read::cursor::Cursor;
pub use crate::read::merge::Merge;
pub use crate::read::source::Source;
pub use crate::rows::block::Block;
pub use crate::rows::block_index::BlockIndex;
pub use crate::rows::row::RowVersion;
pub use crate::rows::sinks::BlockSink;
pub use crate::rows::stats::TableStats;
pub use crate::rows::table_builder::TableBuilder;
pub use crate::tables::run::MemorySink;
pub use crate::tables::table::Table;
