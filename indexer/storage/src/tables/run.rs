//! Builder of *runs*: sorted tables in memory.

use std::sync::Arc;

use proto::Result;

use crate::rows::block::Block;
use crate::rows::sinks::BlockSink;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

/// A block sink that collects the blocks of a table in memory.
#[derive(Debug, Default)]
pub struct MemorySink {
    blocks: Vec<Arc<Block>>,
    bytes: u64,
}

impl BlockSink for MemorySink {
    fn block(&mut self, block: Vec<u8>) -> Result<(u64, u32)> {
        let block = Block::parse(block.into_boxed_slice())?;
        self.bytes += block.size() as u64;
        let place = (0, block.bytes().len() as u32);
        self.blocks.push(Arc::new(block));
        Ok(place)
    }

    fn shared_block(&mut self, block: &Arc<Block>) -> Result<(u64, u32)> {
        self.bytes += block.size() as u64;
        self.blocks.push(Arc::clone(block));
        Ok((0, block.bytes().len() as u32))
    }
}

impl Default for TableBuilder<MemorySink> {
    fn default() -> Self {
        Self::new(MemorySink::default())
    }
}

impl TableBuilder<MemorySink> {
    /// Ends the table and returns it; `None` if it has no rows.
    pub fn finish(self) -> Result<Option<Table>> {
        #[cfg(test)]
        failure::fail_if_requested()?;
        let Some((sink, stats, index)) = self.finish_parts()? else { return Ok(None) };
        let MemorySink { blocks, bytes } = sink;
        Ok(Some(Table::from_blocks(stats, index, blocks, bytes)))
    }
}

/// A switch with which a test makes the end of a table fail.
#[cfg(test)]
pub(crate) mod failure {
    use std::cell::Cell;

    use proto::{Error, Result};

    thread_local! {
        static IS_ARMED: Cell<bool> = const { Cell::new(false) };
    }

    /// Makes the next end of a table in memory on this thread fail.
    pub(crate) fn fail_next_run() {
        IS_ARMED.set(true);
    }

    /// Returns an error if a test has requested one.
    pub(super) fn fail_if_requested() -> Result<()> {
        match IS_ARMED.take() {
            true => Err(Error::internal("a test makes this run fail")),
            false => Ok(()),
        }
    }
}
