//! One change of one document.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use proto::model::ids::{Seqno, VbucketId};
use proto::rpc::mutation::MutationKind;
use proto::value::Value;
use proto::{Error, ErrorCode, Result};

/// One change of one document.
#[derive(Debug)]
pub struct Mutation {
    /// The vbucket of its id.
    pub vbucket: VbucketId,
    /// Its position in the vbucket.
    pub seqno: Seqno,
    /// The document's id.
    pub id: Arc<str>,
    /// Upsert or deletion.
    pub kind: MutationKind,
    /// The document as it was given (JSON); empty for a deletion.
    pub document: Bytes,
    value: OnceLock<Value>,
}

impl Mutation {
    /// Creates a mutation whose document is parsed on first use.
    pub fn new(
        (vbucket, seqno): (VbucketId, Seqno),
        id: Arc<str>,
        kind: MutationKind,
        document: Bytes,
    ) -> Self {
        Self { vbucket, seqno, id, kind, document, value: OnceLock::new() }
    }

    /// The parsed document; MISSING for a deletion.
    pub fn value(&self) -> Result<&Value> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = match self.kind {
            MutationKind::Deletion => Value::Missing,
            MutationKind::Upsert => parse_stored(&self.id, &self.document)?,
        };
        Ok(self.value.get_or_init(|| value))
    }

    /// The approximate size in memory, as if the document were parsed: a few times as large as its text.
    pub fn bytes(&self) -> usize {
        200 + self.id.len() + 4 * self.document.len()
    }
}

/// Parses a document that was validated before it was stored.
pub fn parse_stored(id: &str, document: &[u8]) -> Result<Value> {
    Value::parse_json(document).map_err(|error| {
        Error::new(ErrorCode::Corrupt, format!("the stored document {id:?} is damaged: {error}"))
    })
}

/// The size that a log entry counts for in any store: its text, a key, and some numbers.
pub fn entry_bytes(mutation: &Mutation) -> u64 {
    24 + mutation.id.len() as u64 + mutation.document.len() as u64
}
