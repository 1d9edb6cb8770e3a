//! Determines which writes of a request change a document. A deletion of an absent document, for
//! example, changes nothing.

use std::collections::BTreeMap;

use proto::rpc::api::{CheckedWrite, WriteKind};
use proto::{Error, ErrorCode, Result};

/// Validates a request before any of its writes is executed. Returns for each write whether it
/// changes a document; `None` if all of them do. The error is `DuplicateId` if an insert finds
/// its document, which may have been written earlier in the same request. `exists` returns
/// whether a document existed before the request.
pub fn writes_with_effect(
    bucket: &str,
    writes: &[CheckedWrite],
    exists: &mut dyn FnMut(&str) -> Result<bool>,
) -> Result<Option<Vec<bool>>> {
    // A bulk load replaces documents, so it needs no lookups.
    if writes.iter().all(|write| matches!(write.kind(), WriteKind::Upsert(_))) {
        return Ok(None);
    }
    let mut here: BTreeMap<&str, bool> = BTreeMap::new();
    let mut effective = Vec::with_capacity(writes.len());
    for write in writes {
        let exists = match (here.get(&**write.id()), write.kind()) {
            (Some(exists), _) => *exists,
            // An upsert does not depend on the document that it replaces.
            (None, WriteKind::Upsert(_)) => false,
            (None, _) => exists(write.id())?,
        };
        effective.push(match write.kind() {
            WriteKind::Insert(_) if exists => return Err(duplicate_id_error(bucket, write.id())),
            WriteKind::Delete => exists,
            _ => true,
        });
        here.insert(write.id(), !matches!(write.kind(), WriteKind::Delete));
    }
    Ok(Some(effective))
}

/// Returns the error of an insert whose document exists.
pub fn duplicate_id_error(bucket: &str, id: &str) -> Error {
    let what = format!("bucket {bucket} already has a document {id:?}");
    Error::new(ErrorCode::DuplicateId, what)
        .with_hint("ON CONFLICT (id) DO UPDATE SET doc = excluded.doc replaces it")
}
