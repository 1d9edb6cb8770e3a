//! Settings of the storage engine.

use crate::log::options::LogOptions;

/// Fragments that are open at once by default: a small share of the files that a process may usually have open, 1,024.
pub const OPEN_FILES_MAX: usize = 96;

/// Bytes of open transactions on disk for each byte that they may take in memory, by default. Each byte on disk needs some hundredths of a
/// byte in memory, so this limit on disk uses about half of the memory.
const OPEN_TRANSACTIONS_DISK: u64 = 16;

/// Settings of the storage engine.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Memory limit in bytes, block cache included.
    pub memory_bytes: u64,
    /// Log size in bytes above which memory is flushed, so that the log can be released. A restart
    /// replays the whole log: this limit bounds how long a restart takes.
    pub log_bytes: u64,
    /// Settings of the commit log.
    pub log: LogOptions,
    /// Write rate of compactions in the background, in bytes per second, as long as lists are
    /// short.
    pub compaction_bytes_per_s: u64,
    /// Flushes that run at once, and compactions.
    pub workers_max: usize,
    /// The number of fragment files that are open at once. Reads of other fragments open them again.
    pub open_files_max: usize,
    /// Memory that the changes of open transactions may take, in bytes; `None`: an eighth of the memory limit. From half of it
    /// on they are written to disk.
    pub open_transactions_bytes_max: Option<u64>,
    /// Disk that the changes of open transactions may take, in bytes; `None`: sixteen times what they may take in memory. With
    /// 0 they stay in memory.
    pub open_transactions_disk_bytes_max: Option<u64>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 512 << 20,
            log_bytes: 96 << 20,
            log: LogOptions::default(),
            compaction_bytes_per_s: 128 << 20,
            workers_max: 2,
            open_files_max: OPEN_FILES_MAX,
            open_transactions_bytes_max: None,
            open_transactions_disk_bytes_max: None,
        }
    }
}

impl StoreOptions {
    /// Capacity of the block cache.
    pub fn cache_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// Memory above which flushes run.
    pub fn flush_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// The bytes of fragment blocks that the cursors of one walk may hold. With many cursors, each
    /// reads fewer blocks at once.
    pub fn walk_bytes(&self) -> usize {
        usize::try_from(self.memory_bytes / 64).unwrap_or(usize::MAX)
    }

    /// Memory that the changes of open transactions may take.
    pub fn open_transactions_bytes(&self) -> u64 {
        self.open_transactions_bytes_max.unwrap_or(self.memory_bytes / 8)
    }

    /// Disk that the changes of open transactions may take. Their filters and sparse indexes, which stay in memory, are some
    /// hundredths of that.
    pub fn open_transactions_disk_bytes(&self) -> u64 {
        let default = || self.open_transactions_bytes().saturating_mul(OPEN_TRANSACTIONS_DISK);
        self.open_transactions_disk_bytes_max.unwrap_or_else(default)
    }

    /// Memory above which epochs wait.
    pub fn stop_bytes(&self) -> u64 {
        self.memory_bytes / 16 * 7
    }
}
