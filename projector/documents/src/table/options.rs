//! Options of a document table.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proto::model::index::Compression;
use storage::fragment::{BlockCache, OpenFiles};

/// Options of a document table.
#[derive(Clone)]
pub struct TableOptions {
    /// Bytes of versions in memory at which a flush is due.
    pub memtable_bytes: usize,
    /// Cache of blocks, which the tables of different buckets can share.
    pub cache: Arc<BlockCache>,
    /// Pool of open files, which tables can share.
    pub open_files: Arc<OpenFiles>,
    /// Cancels merges of fragments when it becomes true, because the process ends. Tables can share
    /// it.
    pub stop: Arc<AtomicBool>,
    /// Compression of fragments.
    pub compression: Compression,
    /// Size in bytes of a fragment's block before compression. Larger blocks use less disk space,
    /// but make the read of one document more expensive.
    pub block_bytes: usize,
}

impl TableOptions {
    /// Default bytes of versions in memory at which a flush is due: large enough that fragments are
    /// large and merges are rare, and small enough for many buckets.
    pub const MEMTABLE_BYTES: usize = 64 << 20;
    /// Default size of a block in bytes.
    pub const BLOCK_BYTES: usize = 8 << 10;
}

impl std::fmt::Debug for TableOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TableOptions({} bytes in memory, {:?})", self.memtable_bytes, self.compression)
    }
}
