//! Checks writes that come from another process. Those of this process were checked by their session.

use proto::Result;
use proto::rpc::api::{CheckedWrites, Write};

use crate::source::check::WRITE_OVERHEAD_BYTES;

/// Checks all writes of a request.
pub fn writes(writes: Vec<Write>, document_bytes_max: usize) -> Result<CheckedWrites> {
    CheckedWrites::new(writes, document_bytes_max)
}

/// The space of a request in the queue.
pub fn queue_bytes(writes: &CheckedWrites) -> usize {
    writes.writes().len() * WRITE_OVERHEAD_BYTES + writes.document_bytes()
}
