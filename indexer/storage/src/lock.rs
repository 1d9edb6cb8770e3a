//! Locks of short critical sections.

use std::sync::{Mutex, MutexGuard};

/// Locks; what a panicking holder left is still whole enough to be read.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
