//! The limits of the memory and disk space for open transactions, and their present use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The changes of transactions are written to disk when their memory exceeds the limit divided by
/// this number.
const SPILL_ABOVE: u64 = 2;
/// Writing to disk ends when the used memory is at most the limit divided by this number: low
/// enough that the next change does not begin it again.
const SPILL_TO: u64 = 4;
/// A file with spilled changes has at least the memory limit divided by this number, so that a
/// long transaction does not produce thousands of small files.
const PIECE_LEAST: u64 = 64;
/// Above this number of eighths of the memory limit, files of any size are written.
const URGENT_EIGHTHS: u64 = 7;

/// The limits of all open transactions together.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of bytes in memory.
    pub memory_bytes: u64,
    /// The maximum number of bytes on disk; 0 if changes are never written to disk.
    pub disk_bytes: u64,
}

impl Limits {
    /// Returns true if a memory use of `memory_bytes` is enough to begin writing changes to disk.
    pub fn is_spill_due(&self, memory_bytes: u64) -> bool {
        memory_bytes > self.memory_bytes / SPILL_ABOVE
    }

    /// Returns the memory use at which writing to disk ends, so that `more` further bytes fit.
    pub fn spill_target(&self, more: u64) -> u64 {
        (self.memory_bytes / SPILL_TO).min(self.memory_bytes.saturating_sub(more))
    }

    /// Returns the minimum size of the changes that are worth a file, if all transactions use
    /// `memory_bytes` of memory.
    pub fn piece_bytes_min(&self, memory_bytes: u64) -> u64 {
        let is_urgent = memory_bytes > self.memory_bytes / 8 * URGENT_EIGHTHS;
        if is_urgent { 1 } else { (self.memory_bytes / PIECE_LEAST).max(1) }
    }
}

/// The memory and disk space that all open transactions use, and counters since the start.
#[derive(Debug, Default)]
pub struct Usage {
    /// Number of bytes in memory.
    pub memory: Arc<AtomicU64>,
    /// Number of bytes in files. A file is counted until its last reader has closed it.
    pub disk: AtomicU64,
    /// Number of commits whose rows are being written ahead of their epoch, or were written and
    /// not used yet.
    pub prepared: AtomicU64,
    /// Number of commits that were applied with rows written ahead of their epoch.
    pub entered_prepared: AtomicU64,
    /// Number of pieces (pairs of files) that were written.
    pub pieces: AtomicU64,
    /// Number of transactions whose changes were dropped because of a limit or a disk error.
    pub given_up: AtomicU64,
    /// Number of transactions whose rows were added to the indexes from this store at their
    /// commit.
    pub entered: AtomicU64,
}

impl Usage {
    /// Returns the memory use in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    /// Returns the size of the files in bytes.
    pub fn disk_bytes(&self) -> u64 {
        self.disk.load(Ordering::Relaxed)
    }
}
