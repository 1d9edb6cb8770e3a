//! Settings of the store.

use crate::fragment::compression::Compression;
use crate::log::options::LogOptions;

/// Settings of the store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// What it may take of memory, the block cache included.
    pub memory_bytes: u64,
    /// Above this much of the log, memory is flushed so that the log can go. A restart replays what there is:
    /// this bounds how long a node is missed.
    pub log_bytes: u64,
    /// How the log is written.
    pub log: LogOptions,
    /// How the blocks of fragments are compressed.
    pub compression: Compression,
    /// What a compaction in the background writes in a second, as long as there are few fragments.
    pub compaction_bytes_per_s: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 512 << 20,
            log_bytes: 96 << 20,
            log: LogOptions::default(),
            compression: Compression::default(),
            compaction_bytes_per_s: 128 << 20,
        }
    }
}

impl StoreOptions {
    /// What the block cache may hold.
    pub fn cache_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// Above this, flushes run.
    pub fn flush_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// What the cursors of one walk may hold of fragments' blocks; they read fewer blocks at once where there are
    /// many of them.
    pub fn walk_bytes(&self) -> usize {
        usize::try_from(self.memory_bytes / 64).unwrap_or(usize::MAX)
    }

    /// Above this, epochs wait.
    pub fn stop_bytes(&self) -> u64 {
        self.memory_bytes / 16 * 7
    }
}
