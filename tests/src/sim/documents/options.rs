//! Sizes of the simulated stores.

use projector::DiskStoreOptions;
use projector::testing::{ChangeLogOptions, IndexCache};

/// Returns sizes so small that flushes, merges, new segments and their side files happen in runs of
/// some seconds, and that few reads are answered from memory.
pub fn options(seed: u64) -> DiskStoreOptions {
    let mut random = fastrand::Rng::with_seed(seed ^ 0xd0c5);
    let memtable_bytes = random.usize(2..=8) << 10;
    let segment_bytes = random.u64(1..=6) << 10;
    let files_of_logs = random.usize(1..=4);
    let index_cache = IndexCache::new(random.usize(..4) << 10);
    DiskStoreOptions {
        log: ChangeLogOptions { segment_bytes, index_cache, ..ChangeLogOptions::default() },
        cache_bytes: random.u64(8..64) << 10,
        memtable_bytes,
        memory_bytes_max: memtable_bytes * random.usize(1..=3),
        replay_bytes_max: random.u64(2..=32) << 10,
        prepared_behind_bytes: segment_bytes,
        open_files_max: files_of_logs + random.usize(1..=8),
    }
}
