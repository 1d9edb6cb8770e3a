//! One change of one document, as logs, streams and stores use it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use proto::expr::Fields;
use proto::model::ids::{Seqno, VbucketId};
use proto::rpc::mutation::MutationKind;
use proto::value::Value;
use proto::{Error, ErrorCode, Result};

/// One change of one document, with its position.
#[derive(Debug)]
pub struct Mutation {
    /// The vbucket that the document's id belongs to.
    pub vbucket: VbucketId,
    /// The position of the change in its vbucket.
    pub seqno: Seqno,
    /// The document's id.
    pub id: Arc<str>,
    /// The kind of the change: the document was written or deleted.
    pub kind: MutationKind,
    /// The document as its client sent it (JSON); empty for a deletion.
    pub document: Bytes,
    /// The fields that the first reader needed, and the document parsed with only these fields.
    part: OnceLock<(Arc<Fields>, Value)>,
    /// The completely parsed document, for readers that need other fields.
    whole: OnceLock<Value>,
}

impl Mutation {
    /// Creates a mutation whose document is parsed on first use.
    pub fn new(
        (vbucket, seqno): (VbucketId, Seqno),
        id: Arc<str>,
        kind: MutationKind,
        document: Bytes,
    ) -> Self {
        let (part, whole) = (OnceLock::new(), OnceLock::new());
        Self { vbucket, seqno, id, kind, document, part, whole }
    }

    /// Returns the document with at least the fields that the reader needs; MISSING for a
    /// deletion. Readers mostly need the same fields, so the document is parsed once for all of
    /// them.
    pub fn value(&self, fields: &Arc<Fields>) -> Result<&Value> {
        let parse = |fields: &Fields| match self.kind {
            MutationKind::Deletion => Ok(Value::Missing),
            MutationKind::Upsert => parse_stored(&self.id, &self.document, fields),
        };
        if self.part.get().is_none() {
            // Another reader may set the value meanwhile, for other fields.
            let _first = self.part.set((Arc::clone(fields), parse(fields)?));
        }
        if let Some((_, value)) = self.part.get().filter(|(known, _)| known.include(fields)) {
            return Ok(value);
        }
        if self.whole.get().is_none() {
            // Another reader may set the value meanwhile; both values are equal.
            let _first = self.whole.set(parse(&Fields::All)?);
        }
        let gone = || Error::internal("a document that was parsed is gone");
        self.whole.get().ok_or_else(gone)
    }

    /// Returns the approximate size in memory, in bytes. The size is counted as if the document
    /// were parsed, which takes a few times as much memory as its text.
    pub fn bytes(&self) -> usize {
        200 + self.id.len() + 4 * self.document.len()
    }
}

/// Parses the requested fields of a document that was validated before it was stored.
pub fn parse_stored(id: &str, document: &[u8], fields: &Fields) -> Result<Value> {
    let parsed = match fields {
        Fields::All => Value::parse_json(document),
        Fields::Only(names) => Value::parse_json_fields(document, names),
    };
    parsed.map_err(|error| {
        Error::new(ErrorCode::Corrupt, format!("the stored document {id:?} is damaged: {error}"))
    })
}

/// Returns the size in bytes that every store counts for a mutation in the log: the id and the
/// document, a key, and some numbers.
pub fn entry_bytes(mutation: &Mutation) -> u64 {
    24 + mutation.id.len() as u64 + mutation.document.len() as u64
}
