//! The node's cache of fragment blocks.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
#[cfg(any(test, feature = "testing"))]
use std::time::Duration;

use proto::Result;
#[cfg(any(test, feature = "testing"))]
use proto::turn::take_with_turns;
use quick_cache::sync::{Cache, DefaultLifecycle, GuardResult};
use quick_cache::{OptionsBuilder, Weighter};

use crate::rows::block::Block;

/// Approximate size of a typical block, in bytes.
const BLOCK_BYTES_TYPICAL: u64 = 4 << 10;
/// Memory of a cached block in addition to its content, in bytes: the cache's record and the
/// `Arc`.
const ENTRY_BYTES: u64 = 64;
/// Number of shards of the cache: a power of two well above the number of concurrent readers. The
/// number is the same on every machine, so that a simulation gives the same result everywhere.
const SHARDS: usize = 32;

/// Cache of blocks by (file, block number), bounded in bytes and shared by all fragments of a node.
pub struct BlockCache {
    blocks: Cache<Key, Arc<Block>, Weight, BuildHasherDefault<KeyHasher>>,
}

/// The key of a cached block: the id of its file, and its number in the file.
type Key = (u64, u32);

type ValueOrGuard<'a> =
    GuardResult<'a, Key, Arc<Block>, Weight, BuildHasherDefault<KeyHasher>, Lifecycle>;

type Lifecycle = DefaultLifecycle<Key, Arc<Block>>;

/// The weight of a cached block: its memory in bytes.
#[derive(Clone)]
struct Weight;

impl Weighter<Key, Arc<Block>> for Weight {
    fn weight(&self, _: &Key, block: &Arc<Block>) -> u64 {
        block.size() as u64 + ENTRY_BYTES
    }
}

impl BlockCache {
    /// Creates a cache of at most `capacity_bytes`.
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

    /// Returns a block from the cache, or reads it and adds it. Of several concurrent callers, one
    /// reads the block and the others wait.
    pub(super) fn get_or_read(
        &self,
        file: u64,
        block: u32,
        read: impl FnOnce() -> Result<Arc<Block>>,
    ) -> Result<Arc<Block>> {
        match self.value_or_guard(&(file, block)) {
            GuardResult::Value(found) => Ok(found),
            GuardResult::Guard(guard) => {
                let found = read()?;
                // The insertion fails if the block was put or forgotten meanwhile; the caller has the block anyway.
                let _cached = guard.insert(Arc::clone(&found));
                Ok(found)
            }
            GuardResult::Timeout => read(),
        }
    }

    /// Returns a cached block, or a guard with the right to read and add it. Waits while another
    /// caller reads the block.
    fn value_or_guard(&self, key: &Key) -> ValueOrGuard<'_> {
        #[cfg(any(test, feature = "testing"))]
        {
            // A wait of the cache is no yield point of a simulation, so the simulation polls.
            let ask = || match self.blocks.get_value_or_guard(key, Some(Duration::ZERO)) {
                GuardResult::Timeout => None,
                found => Some(found),
            };
            if let Some(found) = take_with_turns(ask) {
                return found;
            }
        }
        self.blocks.get_value_or_guard(key, None)
    }

    /// Returns a block if it is in the cache.
    pub(super) fn get(&self, file: u64, block: u32) -> Option<Arc<Block>> {
        self.blocks.get(&(file, block))
    }

    /// Adds a block that is already in memory.
    pub(super) fn put(&self, file: u64, block: u32, found: Arc<Block>) {
        self.blocks.insert((file, block), found);
    }

    /// Drops all blocks of a file that has no readers any more; `blocks` is the number of its
    /// blocks.
    pub(super) fn remove_file(&self, file: u64, blocks: u32) {
        for block in 0..blocks {
            self.blocks.remove(&(file, block));
        }
    }

    /// Returns how many of the first `blocks` blocks of a file are in the cache.
    pub(super) fn count(&self, file: u64, blocks: u32) -> u32 {
        (0..blocks).filter(|block| self.blocks.contains_key(&(file, *block))).count() as u32
    }

    /// Returns the memory use of the cache, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.blocks.weight()
    }

    /// Returns the capacity of the cache, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.blocks.capacity()
    }
}

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BlockCache({} of {} bytes)", self.memory_bytes(), self.capacity_bytes())
    }
}

/// Hash function for the cache's keys, two small integers. It has no random seed, so that
/// evictions depend only on what is read.
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
