//! The size of write requests in the queue.

use proto::rpc::api::CheckedWrites;

/// The bytes of a write in the queue, without its document.
pub(super) const WRITE_OVERHEAD_BYTES: usize = 200;

/// Returns the bytes of a request in the queue.
pub fn queue_bytes(writes: &CheckedWrites) -> usize {
    writes.writes().len() * WRITE_OVERHEAD_BYTES + writes.document_bytes()
}
