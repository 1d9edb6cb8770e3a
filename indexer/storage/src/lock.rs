//! Access to mutexes.

use std::sync::{Mutex, MutexGuard};

/// Locks a mutex, also after a panic of its last holder: every critical section here leaves
/// readable data.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
