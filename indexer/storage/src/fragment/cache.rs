//! The node's cache of blocks that were read from fragments.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use proto::Result;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use crate::rows::block::Block;

/// About what a block of the usual size costs.
const BLOCK_BYTES_TYPICAL: u64 = 4 << 10;
/// What the cache itself and the `Arc` need for a block.
const ENTRY_BYTES: u64 = 64;
/// A power of two well above the number of threads that read at once, the same on every machine, so
/// that a simulation does not depend on where it runs.
const SHARDS: usize = 32;

/// Blocks by (file, number of the block), within a bound of bytes; shared by all fragments of a node.
pub struct BlockCache {
    blocks: Cache<Key, Arc<Block>, Weight, BuildHasherDefault<KeyHasher>>,
}

type Key = (u64, u32);

#[derive(Clone)]
struct Weight;

impl Weighter<Key, Arc<Block>> for Weight {
    fn weight(&self, _: &Key, block: &Arc<Block>) -> u64 {
        block.size() as u64 + ENTRY_BYTES
    }
}

impl BlockCache {
    /// A cache that keeps within `capacity_bytes`.
    pub fn new(capacity_bytes: u64) -> Self {
        let mut options = OptionsBuilder::new();
        options
            .shards(SHARDS)
            .estimated_items_capacity((capacity_bytes / BLOCK_BYTES_TYPICAL) as usize)
            .weight_capacity(capacity_bytes);
        let options = options.build().expect("both capacities are given");
        let (hasher, lifecycle) = (BuildHasherDefault::default(), DefaultLifecycle::default());
        let blocks = Cache::with_options(options, Weight, hasher, lifecycle);
        Self { blocks }
    }

    /// A block, from the cache or else by `read`, which only one of several callers runs at a time.
    pub(super) fn get_or_read(
        &self,
        file: u64,
        block: u32,
        read: impl FnOnce() -> Result<Arc<Block>>,
    ) -> Result<Arc<Block>> {
        self.blocks.get_or_insert_with(&(file, block), read)
    }

    /// Puts in a block that is in memory anyhow.
    pub(super) fn put(&self, file: u64, block: u32, found: Arc<Block>) {
        self.blocks.insert((file, block), found);
    }

    /// Lets go of the first so many blocks of a file that nobody reads any more, so that they keep no
    /// room from others.
    pub(super) fn forget(&self, file: u64, blocks: u32) {
        for block in 0..blocks {
            self.blocks.remove(&(file, block));
        }
    }

    /// How many of the first so many blocks of a file are here.
    pub(super) fn count(&self, file: u64, blocks: u32) -> u32 {
        (0..blocks).filter(|block| self.blocks.contains_key(&(file, *block))).count() as u32
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        self.blocks.weight()
    }

    /// Its bound in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.blocks.capacity()
    }
}

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BlockCache({} of {} bytes)", self.memory_bytes(), self.capacity_bytes())
    }
}

/// Mixes two small integers; fixed, so that what is evicted follows from what is read.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
