//! Rows of tables; the blocks, sparse indexes and columns in which they are stored; the builders
//! and sorters that make blocks and tables from rows.

pub(crate) mod block;
pub(crate) mod block_builder;
pub(crate) mod block_column;
pub(crate) mod block_format;
pub(crate) mod block_index;
pub(crate) mod bytes;
pub(crate) mod columns;
pub(crate) mod heads;
pub(crate) mod packed;
pub(crate) mod row;
pub(crate) mod row_sorter;
pub(crate) mod sinks;
pub(crate) mod stats;
pub(crate) mod table_builder;
