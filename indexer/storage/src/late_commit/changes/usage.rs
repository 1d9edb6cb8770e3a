//! The limits of the store's memory and disk, and their use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Share of the memory limit from which on changes are written to disk.
const SPILL_ABOVE: u64 = 2;
/// Spills reduce the memory to one part in this many of the limit: low enough that the next change does not begin another spill.
const SPILL_TO: u64 = 4;
/// Share of the memory limit that a piece has at least, so that a long transaction does not get thousands of small files.
const PIECE_LEAST: u64 = 64;
/// From this many eighths of the memory limit on, pieces of any size are written.
const URGENT_EIGHTHS: u64 = 7;

/// The limits of all open transactions together.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The memory use in bytes.
    pub memory_bytes: u64,
    /// Bytes of files; 0 if everything stays in memory.
    pub disk_bytes: u64,
}

impl Limits {
    /// True if so many bytes in memory are a reason to write some of them to disk.
    pub fn are_neared(&self, memory_bytes: u64) -> bool {
        memory_bytes > self.memory_bytes / SPILL_ABOVE
    }

    /// The bytes that a spill leaves in memory, so that this many further bytes fit.
    pub fn spill_to(&self, more: u64) -> u64 {
        (self.memory_bytes / SPILL_TO).min(self.memory_bytes.saturating_sub(more))
    }

    /// The minimum size in memory of a part that is spilled, if all transactions use this many bytes.
    pub fn piece_least(&self, memory_bytes: u64) -> u64 {
        let is_urgent = memory_bytes > self.memory_bytes / 8 * URGENT_EIGHTHS;
        if is_urgent { 1 } else { (self.memory_bytes / PIECE_LEAST).max(1) }
    }
}

/// The resources that all open transactions use, and the counts of their outcomes since the start.
#[derive(Debug, Default)]
pub struct Usage {
    /// Bytes in memory.
    pub memory: Arc<AtomicU64>,
    /// Bytes of files. A file counts until its last reader has closed it.
    pub disk: AtomicU64,
    /// Commits that are written ahead of their epoch, or being written.
    pub prepared: AtomicU64,
    /// Commits that were made from what was written ahead.
    pub entered_prepared: AtomicU64,
    /// Pieces that were written.
    pub pieces: AtomicU64,
    /// Transactions that were given up.
    pub given_up: AtomicU64,
    /// Transactions whose rows are in the indexes from here.
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
