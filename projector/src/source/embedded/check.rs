//! Validates writes: ids and documents.

use std::sync::Arc;

use bytes::Bytes;
use proto::Result;
use proto::rpc::api::{Write, WriteKind};
use proto::value::Value;
use proto::value::key::check_id;

use crate::source::check::{WRITE_OVERHEAD_BYTES, document};

/// A write whose id and document are within limits.
pub struct CheckedWrite {
    /// The document's id.
    pub id: Arc<str>,
    /// The change.
    pub kind: CheckedKind,
}

/// The change of a checked write.
pub enum CheckedKind {
    /// Creates a document that must not exist.
    Insert(Bytes, Value),
    /// Creates or replaces a document.
    Upsert(Bytes, Value),
    /// Removes a document.
    Delete,
}

/// Validates all writes of a request, and returns their approximate size.
pub fn writes(writes: Vec<Write>, document_bytes_max: usize) -> Result<(Vec<CheckedWrite>, usize)> {
    let mut bytes = 0;
    let mut checked = Vec::with_capacity(writes.len());
    for Write { id, kind } in writes {
        check_id(&id)?;
        bytes += WRITE_OVERHEAD_BYTES;
        let kind = match kind {
            WriteKind::Insert(json) => {
                let value = document(&id, &json, document_bytes_max)?;
                bytes += json.len();
                CheckedKind::Insert(json, value)
            }
            WriteKind::Upsert(json) => {
                let value = document(&id, &json, document_bytes_max)?;
                bytes += json.len();
                CheckedKind::Upsert(json, value)
            }
            WriteKind::Delete => CheckedKind::Delete,
        };
        checked.push(CheckedWrite { id: Arc::from(id), kind });
    }
    Ok((checked, bytes))
}
