//! Locks that stay usable after a panic.
//!
//! A panic under a lock poisons the lock, and every later use would panic too. The functions of
//! this module ignore the poison. Data that a panic may leave half changed is changed only by
//! tasks whose panic ends the process (`env::TaskPolicy`), so the data under a poisoned lock can
//! still be used.
//!
//! A simulation may decide at each lock which thread runs next (`turn.rs`, only with the feature
//! `testing`).

use std::sync::{
    Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

#[cfg(any(test, feature = "testing"))]
use crate::turn::take_with_turns;

/// Locks a mutex, also after a panic.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(any(test, feature = "testing"))]
    if let Some(guard) = take_with_turns(|| free_guard(mutex.try_lock())) {
        return guard;
    }
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex; `None` if another thread has locked it.
pub fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    free_guard(mutex.try_lock())
}

/// Locks an `RwLock` for reading, also after a panic.
pub fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    #[cfg(any(test, feature = "testing"))]
    if let Some(guard) = take_with_turns(|| free_guard(lock.try_read())) {
        return guard;
    }
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks an `RwLock` for writing, also after a panic.
pub fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    #[cfg(any(test, feature = "testing"))]
    if let Some(guard) = take_with_turns(|| free_guard(lock.try_write())) {
        return guard;
    }
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the guard of an attempt to lock; `None` if another thread has the lock.
fn free_guard<G>(tried: Result<G, TryLockError<G>>) -> Option<G> {
    match tried {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_can_be_taken_after_a_panic_of_its_holder() {
        let (mutex, shared) = (Mutex::new(1), RwLock::new(2));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guards = (lock(&mutex), write(&shared));
            panic!("while both are held");
        }));
        assert!(panicked.is_err() && mutex.is_poisoned() && shared.is_poisoned());
        assert_eq!(*lock(&mutex), 1);
        assert_eq!(*read(&shared), 2);
        assert_eq!(*write(&shared), 2);
    }
}
