//! The size of writes in the queue.

use proto::rpc::api::CheckedWrites;

/// The queue space of a write besides its document.
pub(super) const WRITE_OVERHEAD_BYTES: usize = 200;

/// The space of a request in the queue.
pub fn queue_bytes(writes: &CheckedWrites) -> usize {
    writes.writes().len() * WRITE_OVERHEAD_BYTES + writes.document_bytes()
}
