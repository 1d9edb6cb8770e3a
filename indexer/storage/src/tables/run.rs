//! Builder of runs: tables in memory.

use std::sync::Arc;

use proto::Result;

use crate::rows::block::Block;
use crate::rows::sinks::BlockSink;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

/// A sink that keeps the blocks of a run in memory.
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
    /// Ends the run and returns it; `None` if it has no rows.
    pub fn finish(self) -> Result<Option<Table>> {
        #[cfg(test)]
        failure::strike()?;
        let Some((sink, stats, index)) = self.finish_parts()? else { return Ok(None) };
        let MemorySink { blocks, bytes } = sink;
        Ok(Some(Table::from_blocks(stats, index, blocks, bytes)))
    }
}

/// Failures of runs, for tests.
#[cfg(test)]
pub(crate) mod failure {
    use std::cell::Cell;

    use proto::{Error, Result};

    thread_local! {
        static IS_ARMED: Cell<bool> = const { Cell::new(false) };
    }

    /// Makes the next run that this thread ends fail.
    pub(crate) fn arm() {
        IS_ARMED.set(true);
    }

    pub(super) fn strike() -> Result<()> {
        match IS_ARMED.take() {
            true => Err(Error::internal("a test makes this run fail")),
            false => Ok(()),
        }
    }
}
