//! A table: a sorted, immutable sequence of rows, cut into blocks, with a sparse index over them. A run
//! is a table in memory, a fragment is a table in a file; both are built by [`TableBuilder`] and read by
//! the same cursors.
//!
//! Rows are ordered by slice, then as in a [`Block`]; no block has rows of two slices. The rows of one
//! slice are a *section*, so a slice is a restriction of a table to a section, and a slice without rows
//! costs a table nothing.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use proto::Result;

use crate::fragment::reader::{Fragment, OpenFragment};
use crate::rows::block::Block;
use crate::rows::block_index::BlockIndex;
use crate::rows::stats::TableStats;

/// A sorted immutable table.
#[derive(Debug)]
pub struct Table {
    /// What it says of all its rows.
    pub stats: TableStats,
    /// Its sparse index.
    pub index: BlockIndex,
    blocks: Blocks,
    bytes: u64,
}

#[derive(Debug)]
enum Blocks {
    Memory(Vec<Arc<Block>>),
    File(Arc<Fragment>),
}

impl Table {
    /// A table whose blocks are in a file.
    pub fn from_fragment(open: OpenFragment) -> Self {
        let OpenFragment { fragment, stats, index, block_bytes: bytes } = open;
        Self { stats, index, bytes, blocks: Blocks::File(fragment) }
    }

    /// A table whose blocks are in memory, where they have so many bytes.
    pub fn from_blocks(
        stats: TableStats,
        index: BlockIndex,
        blocks: Vec<Arc<Block>>,
        bytes: u64,
    ) -> Self {
        Self { stats, index, bytes, blocks: Blocks::Memory(blocks) }
    }

    /// A block, from memory, from the cache, or from the file and then into the cache.
    pub fn block(&self, block: u32) -> Result<Arc<Block>> {
        match &self.blocks {
            Blocks::Memory(blocks) => Ok(Arc::clone(&blocks[block as usize])),
            Blocks::File(fragment) => fragment.block(&self.index, block),
        }
    }

    /// Neighbouring blocks, for who reads on: with one read, past the cache.
    pub fn read_ahead(&self, wanted: Range<u32>, out: &mut VecDeque<Arc<Block>>) -> Result<()> {
        match &self.blocks {
            Blocks::Memory(blocks) => {
                out.extend(blocks[wanted.start as usize..wanted.end as usize].iter().cloned());
                Ok(())
            }
            Blocks::File(fragment) => fragment.read_ahead(&self.index, wanted, out),
        }
    }

    /// The file, if it is a fragment.
    pub fn fragment(&self) -> Option<&Arc<Fragment>> {
        match &self.blocks {
            Blocks::Memory(_) => None,
            Blocks::File(fragment) => Some(fragment),
        }
    }

    /// Bytes of memory, without what the block cache holds.
    pub fn memory_bytes(&self) -> usize {
        let blocks = match &self.blocks {
            Blocks::Memory(_) => self.bytes as usize,
            Blocks::File(fragment) => fragment.memory_bytes(),
        };
        blocks + self.index.size()
    }

    /// Bytes of its blocks, in memory or in the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
pub(crate) mod tests;
