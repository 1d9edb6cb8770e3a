//! What takes rows in their order, and what takes blocks of them.

use std::sync::Arc;

use proto::model::ids::SliceNo;
use proto::{Error, Result};

use crate::rows::block::Block;
use crate::rows::row::Version;

/// Takes rows in the order of a table.
pub trait RowSink {
    /// Takes the next row.
    fn push(&mut self, row: &Version<'_>) -> Result<()>;

    /// Can it take whole blocks as they are?
    fn takes_blocks(&self) -> bool {
        false
    }

    /// Takes all rows of a block, where it can.
    fn push_block(&mut self, _slice: SliceNo, _block: &Arc<Block>) -> Result<()> {
        Err(Error::internal("blocks are taken row by row here"))
    }
}

/// Takes the blocks of a table that is being built.
pub trait BlockSink {
    /// Is told of each row before its block is closed.
    fn row(&mut self, _row: &Version<'_>) {}

    /// Takes the next block; says where it is and how many bytes it has there.
    fn block(&mut self, block: Vec<u8>) -> Result<(u64, u32)>;

    /// As [`Self::block`], for a block of another table. It is not told of the rows of such a block.
    fn shared_block(&mut self, block: &Arc<Block>) -> Result<(u64, u32)>;
}
