//! Work that is distributed over all processors.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `work` for each item, on all processors and in the order of the items. A panic of a call
/// becomes a panic of the caller.
pub fn on_all_processors<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}
