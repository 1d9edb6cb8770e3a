//! The size of writes in the queue.

/// The queue space of a write besides its document.
pub(super) const WRITE_OVERHEAD_BYTES: usize = 200;
