//! A table: a sorted, immutable sequence of rows, cut into blocks, with a sparse index. A run is a
//! table in memory, a fragment is a table in a file. Both are built by `TableBuilder` and read by
//! the same cursors.
//!
//! Rows are ordered by slice, then as in a [`Block`]. No block has rows of two slices. The rows of
//! one slice are a *section*. So a slice is a restriction of a table to a section, and a slice
//! without rows costs a table nothing.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use proto::Result;

use crate::fragment::reader::{Fragment, OpenFragment};
use crate::rows::block::Block;
use crate::rows::block_index::BlockIndex;
use crate::rows::stats::TableStats;

/// The places from which a reader may take blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlocksFrom {
    /// Blocks are read from memory, or else from the disk.
    #[default]
    Anywhere,
    /// Blocks are read from memory only, including the kernel's page cache; the read of any other
    /// block fails with [`proto::ErrorCode::NotInMemory`].
    Memory,
}

/// A sorted, immutable table.
#[derive(Debug)]
pub struct Table {
    /// Statistics of all rows.
    pub stats: TableStats,
    /// Sparse index.
    pub index: BlockIndex,
    blocks: Blocks,
    bytes: u64,
}

/// The blocks of a table: in a file or in memory.
#[derive(Debug)]
enum Blocks {
    Memory(Vec<Arc<Block>>),
    File(Arc<Fragment>),
}

impl Table {
    /// Creates a table whose blocks are in a file.
    pub fn from_fragment(open: OpenFragment) -> Self {
        let OpenFragment { fragment, stats, index, block_bytes: bytes } = open;
        Self { stats, index, bytes, blocks: Blocks::File(fragment) }
    }

    /// Creates a table whose blocks are in memory and take `bytes` bytes.
    pub fn from_blocks(
        stats: TableStats,
        index: BlockIndex,
        blocks: Vec<Arc<Block>>,
        bytes: u64,
    ) -> Self {
        Self { stats, index, bytes, blocks: Blocks::Memory(blocks) }
    }

    /// Returns a block: from memory, from the block cache, or from the file; in the last case it
    /// is added to the cache.
    pub fn block(&self, block: u32) -> Result<Arc<Block>> {
        self.block_from(block, BlocksFrom::Anywhere)
    }

    /// Returns a block, from the places that `from` allows.
    pub fn block_from(&self, block: u32, from: BlocksFrom) -> Result<Arc<Block>> {
        match (&self.blocks, from) {
            (Blocks::Memory(blocks), _) => Ok(Arc::clone(&blocks[block as usize])),
            (Blocks::File(fragment), BlocksFrom::Anywhere) => fragment.block(&self.index, block),
            (Blocks::File(fragment), BlocksFrom::Memory) => {
                fragment.block_in_memory(&self.index, block)
            }
        }
    }

    /// Reads neighbouring blocks with one read of the file, without using the cache: for
    /// sequential readers.
    pub fn read_ahead(&self, wanted: Range<u32>, out: &mut VecDeque<Arc<Block>>) -> Result<()> {
        match &self.blocks {
            Blocks::Memory(blocks) => {
                out.extend(blocks[wanted.start as usize..wanted.end as usize].iter().cloned());
                Ok(())
            }
            Blocks::File(fragment) => fragment.read_ahead(&self.index, wanted, out),
        }
    }

    /// Returns the file, if the table is a fragment.
    pub fn fragment(&self) -> Option<&Arc<Fragment>> {
        match &self.blocks {
            Blocks::Memory(_) => None,
            Blocks::File(fragment) => Some(fragment),
        }
    }

    /// Returns the memory use in bytes, without the block cache.
    pub fn memory_bytes(&self) -> usize {
        let blocks = match &self.blocks {
            Blocks::Memory(_) => self.bytes as usize,
            Blocks::File(fragment) => fragment.memory_bytes(),
        };
        blocks + self.index.size()
    }

    /// Returns the size of the blocks in bytes, in memory or in the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
pub(crate) mod tests;
