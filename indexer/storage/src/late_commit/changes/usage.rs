//! The limits of the store's memory and disk, and the present use of both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Spills begin when the used memory exceeds the limit divided by this number.
const SPILL_ABOVE: u64 = 2;
/// Spills end when the used memory is at most the limit divided by this number: low enough that the
/// next change does not begin another spill.
const SPILL_TO: u64 = 4;
/// A piece has at least the memory limit divided by this number, so that a long transaction does
/// not produce thousands of small files.
const PIECE_LEAST: u64 = 64;
/// Above this number of eighths of the memory limit, pieces of any size are written.
const URGENT_EIGHTHS: u64 = 7;

/// The limits of all open transactions together.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum of bytes in memory.
    pub memory_bytes: u64,
    /// The maximum of bytes on disk; 0 if all changes are kept in memory.
    pub disk_bytes: u64,
}

impl Limits {
    /// Returns true if `memory_bytes` in memory are enough to begin a spill.
    pub fn are_neared(&self, memory_bytes: u64) -> bool {
        memory_bytes > self.memory_bytes / SPILL_ABOVE
    }

    /// Returns the number of bytes at which a spill ends, so that `more` further bytes fit.
    pub fn spill_to(&self, more: u64) -> u64 {
        (self.memory_bytes / SPILL_TO).min(self.memory_bytes.saturating_sub(more))
    }

    /// Returns the minimum size in memory of a part that is spilled, if all transactions use
    /// `memory_bytes`.
    pub fn piece_least(&self, memory_bytes: u64) -> u64 {
        let is_urgent = memory_bytes > self.memory_bytes / 8 * URGENT_EIGHTHS;
        if is_urgent { 1 } else { (self.memory_bytes / PIECE_LEAST).max(1) }
    }
}

/// The memory and disk that all open transactions use, and counters since the start.
#[derive(Debug, Default)]
pub struct Usage {
    /// Bytes in memory.
    pub memory: Arc<AtomicU64>,
    /// Bytes of files. A file is counted until its last reader has closed it.
    pub disk: AtomicU64,
    /// Commits that are written ahead of their epoch, or being written.
    pub prepared: AtomicU64,
    /// Commits that were made from rows written ahead of their epoch.
    pub entered_prepared: AtomicU64,
    /// Pieces that were written.
    pub pieces: AtomicU64,
    /// Transactions that were given up.
    pub given_up: AtomicU64,
    /// Transactions whose rows have entered the indexes from this store.
    pub entered: AtomicU64,
}

impl Usage {
    /// The memory use in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    /// Bytes of files.
    pub fn disk_bytes(&self) -> u64 {
        self.disk.load(Ordering::Relaxed)
    }
}
