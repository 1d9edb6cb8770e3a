//! The size of write requests in the queue.

use proto::rpc::api::CheckedWrites;

/// The bytes that a write counts in the queue, in addition to its document.
pub(super) const WRITE_OVERHEAD_BYTES: usize = 200;

/// Returns the bytes that a request counts in the queue of a bucket's writer.
pub fn queue_bytes(writes: &CheckedWrites) -> usize {
    writes.writes().len() * WRITE_OVERHEAD_BYTES + writes.document_bytes()
}
