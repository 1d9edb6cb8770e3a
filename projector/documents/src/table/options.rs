//! The settings of a document table.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proto::model::index::Compression;
use storage::fragment::{BlockCache, OpenFiles};

/// The settings of a document table.
#[derive(Clone)]
pub struct TableOptions {
    /// The size in bytes of the versions in memory at which a flush is needed.
    pub memtable_bytes: usize,
    /// Cache of blocks, which the tables of different buckets can share.
    pub cache: Arc<BlockCache>,
    /// Pool of open files, which tables can share.
    pub open_files: Arc<OpenFiles>,
    /// Set to true when the process ends, which cancels merges of fragments. Several tables can
    /// share it.
    pub stop: Arc<AtomicBool>,
    /// Compression of fragments.
    pub compression: Compression,
    /// Size in bytes of a fragment's block before compression. Larger blocks use less disk space,
    /// but make the read of one document more expensive.
    pub block_bytes: usize,
}

impl TableOptions {
    /// The default size in bytes of the versions in memory at which a flush is needed: large
    /// enough that fragments are large and merges are rare, and small enough for many buckets.
    pub const MEMTABLE_BYTES: usize = 64 << 20;
    /// Default size of a block in bytes.
    pub const BLOCK_BYTES: usize = 8 << 10;
}

impl std::fmt::Debug for TableOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TableOptions({} bytes in memory, {:?})", self.memtable_bytes, self.compression)
    }
}
