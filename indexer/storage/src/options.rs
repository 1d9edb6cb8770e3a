//! Settings of the storage engine.

use crate::log::options::LogOptions;

/// Number of fragments that are open at once by default: a small share of the usual limit of 1,024
/// open files per process.
pub const OPEN_FILES_MAX: usize = 96;

/// Default ratio of disk bytes to memory bytes for open transactions. Each byte on disk needs some
/// hundredths of a byte in memory, so at this ratio the files use about half of the memory.
const OPEN_TRANSACTIONS_DISK: u64 = 16;

/// Settings of the storage engine.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Memory limit in bytes, including the block cache.
    pub memory_bytes: u64,
    /// Log size in bytes above which memory is flushed, so that the log can be released. A restart
    /// replays the whole log: this limit bounds how long a restart takes.
    pub log_bytes: u64,
    /// Settings of the commit log.
    pub log: LogOptions,
    /// Write rate of compactions in the background, in bytes per second, as long as lists are
    /// short.
    pub compaction_bytes_per_s: u64,
    /// The maximum number of concurrent flushes, and also of concurrent compactions.
    pub workers_max: usize,
    /// The maximum number of fragment files that are open at once. A read opens a closed file
    /// again.
    pub open_files_max: usize,
    /// Maximum memory of the changes of open transactions, in bytes; `None` means an eighth of the
    /// memory limit. Above half of this maximum, changes are written to disk.
    pub open_transactions_bytes_max: Option<u64>,
    /// Maximum disk space of the changes of open transactions, in bytes; `None` means sixteen
    /// times their maximum memory. With 0, changes are never written to disk.
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
    /// Returns the capacity of the block cache in bytes.
    pub fn cache_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// Returns the bytes of memory above which flushes run.
    pub fn flush_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// Returns the bytes of fragment blocks that the cursors of one walk may have in memory. With
    /// many cursors, each reads fewer blocks at once.
    pub fn walk_bytes(&self) -> usize {
        usize::try_from(self.memory_bytes / 64).unwrap_or(usize::MAX)
    }

    /// Returns the maximum memory of the changes of open transactions, in bytes.
    pub fn open_transactions_bytes(&self) -> u64 {
        self.open_transactions_bytes_max.unwrap_or(self.memory_bytes / 8)
    }

    /// Returns the maximum disk space of the changes of open transactions, in bytes. The filters
    /// and sparse indexes of these files stay in memory, and take some hundredths of it.
    pub fn open_transactions_disk_bytes(&self) -> u64 {
        let default = || self.open_transactions_bytes().saturating_mul(OPEN_TRANSACTIONS_DISK);
        self.open_transactions_disk_bytes_max.unwrap_or_else(default)
    }

    /// Returns the bytes of memory above which epochs wait.
    pub fn stop_bytes(&self) -> u64 {
        self.memory_bytes / 16 * 7
    }
}
