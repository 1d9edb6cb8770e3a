//! A lock for many readers and one writer that locks it very often.
//!
//! The writer of a table takes the lock for each batch, and releases it for less time than a
//! waiting reader needs to wake up. With a plain lock the writer would lock it again before the
//! reader each time. So the writer first yields to waiting readers, a bounded number of times.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use proto::lock;

/// The number of times that a writer yields its processor while readers wait. A woken reader
/// usually needs one or a few yields.
const YIELDS_MAX: u32 = 64;

/// A read-write lock whose writers first let waiting readers proceed.
#[derive(Debug)]
pub(super) struct YieldingLock<T> {
    value: RwLock<T>,
    /// The number of readers that wait for the lock or are about to lock it.
    waiting: AtomicUsize,
}

impl<T> YieldingLock<T> {
    pub fn new(value: T) -> Self {
        Self { value: RwLock::new(value), waiting: AtomicUsize::new(0) }
    }

    /// Locks for reading.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard = lock::read(&self.value);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// Locks for writing, after yielding to waiting readers.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        for _ in 0..YIELDS_MAX {
            if self.waiting.load(Ordering::Relaxed) == 0 {
                break;
            }
            std::thread::yield_now();
        }
        lock::write(&self.value)
    }
}
