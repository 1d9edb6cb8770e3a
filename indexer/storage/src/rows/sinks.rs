//! The traits of consumers of sorted rows, and of consumers of blocks.

use std::sync::Arc;

use proto::model::ids::SliceNo;
use proto::{Error, Result};

use crate::rows::block::Block;
use crate::rows::row::RowVersion;

/// A consumer of rows in table order, for example a table builder.
pub trait RowSink {
    /// Takes the next row.
    fn push(&mut self, row: &RowVersion<'_>) -> Result<()>;

    /// Returns true if the sink can take complete blocks unchanged.
    fn takes_blocks(&self) -> bool {
        false
    }

    /// Takes all rows of a block. Must only be called if [`Self::takes_blocks`] returns true.
    fn push_block(&mut self, _slice: SliceNo, _block: &Arc<Block>) -> Result<()> {
        Err(Error::internal("this sink takes rows, not blocks"))
    }
}

/// A consumer of the blocks of a table that is being built, for example a file writer.
pub trait BlockSink {
    /// Sees each row before its block is closed.
    fn row(&mut self, _row: &RowVersion<'_>) {}

    /// Takes the next block; returns its offset and length.
    fn block(&mut self, block: Vec<u8>) -> Result<(u64, u32)>;

    /// Takes a block of another table unchanged. [`Self::row`] is not called for its rows.
    fn shared_block(&mut self, block: &Arc<Block>) -> Result<(u64, u32)>;
}
