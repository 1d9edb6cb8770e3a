//! Looks at writes before they wait for the log: ids and documents.

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
    /// What is done.
    pub kind: CheckedKind,
}

/// What a checked write does.
pub enum CheckedKind {
    /// Makes a document that must not be there.
    Insert(Bytes, Value),
    /// Makes or replaces a document.
    Upsert(Bytes, Value),
    /// Removes a document.
    Delete,
}

/// Checks all writes of a request, and says about how many bytes they are.
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
