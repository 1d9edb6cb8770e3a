//! Settings of the store on disk.

use std::sync::Arc;

use proto::env::Env;
use proto::model::index::Compression;
use storage::fragment::{BlockCache, OpenFiles};

use crate::change_log::ChangeLogOptions;
use crate::table::TableOptions;

/// Settings of the document store.
#[derive(Clone, Debug)]
pub struct DiskStoreOptions {
    /// Settings of all change logs.
    pub log: ChangeLogOptions,
    /// Size in bytes of the cache for blocks of all tables.
    pub cache_bytes: u64,
    /// Bytes of a bucket's versions in memory at which the bucket is flushed.
    pub memtable_bytes: usize,
    /// Bytes of all buckets' versions in memory at which the largest buckets are flushed.
    pub memory_bytes_max: usize,
    /// The size in bytes of a bucket's log after its checkpoint at which the bucket is flushed.
    /// The next start must replay that part of the log.
    pub replay_bytes_max: u64,
    /// The distance in bytes from the end of the log at which the changes of a prepared
    /// transaction are written again, at the end, so that the log can release old segments. The
    /// distance is larger if prepared changes take more than a quarter of it.
    pub prepared_behind_bytes: u64,
    /// Maximum number of files of all tables and logs that are open at once.
    pub open_files_max: usize,
}

impl Default for DiskStoreOptions {
    fn default() -> Self {
        Self {
            log: ChangeLogOptions::default(),
            cache_bytes: 64 << 20,
            memtable_bytes: TableOptions::MEMTABLE_BYTES,
            memory_bytes_max: 4 * TableOptions::MEMTABLE_BYTES,
            replay_bytes_max: 128 << 20,
            prepared_behind_bytes: 128 << 20,
            open_files_max: 64,
        }
    }
}

impl DiskStoreOptions {
    /// Returns the settings of the tables of all buckets.
    pub(super) fn tables(&self, env: &Env) -> TableOptions {
        TableOptions {
            memtable_bytes: self.memtable_bytes,
            cache: Arc::new(BlockCache::new(self.cache_bytes)),
            open_files: OpenFiles::new(&env.fs, self.open_files_max),
            stop: Arc::default(),
            compression: Compression::Lz4,
            block_bytes: TableOptions::BLOCK_BYTES,
        }
    }
}
