//! Fragments: tables in files.
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use proto::{Error, Result};

use super::block::Block;
use super::table::BlockIndex;

/// An open fragment file.
#[derive(Debug)]
pub struct Fragment {}

impl Fragment {
    /// A block, from the cache or from the file.
    pub fn block(&self, _index: &BlockIndex, _block: u32) -> Result<Arc<Block>> {
        Err(Error::internal("not yet"))
    }

    /// Neighbouring blocks with one read.
    pub fn read_ahead(
        &self,
        _index: &BlockIndex,
        _wanted: Range<u32>,
        _out: &mut VecDeque<Arc<Block>>,
    ) -> Result<()> {
        Err(Error::internal("not yet"))
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        0
    }
}
