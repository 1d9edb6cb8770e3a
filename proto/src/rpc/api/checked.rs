//! Writes of documents: unchecked ones, and the type of those whose text this process has
//! checked.
//!
//! A document is checked once, when it enters the process: by the session that reads it, or by
//! the decoder of a message from another process. Only the constructors in this file make the
//! checked types, and the decoder calls them too. So code that has a checked write need not check
//! the text again.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::value::key::check_id;
use crate::value::{CheckedField, DOCUMENT_BYTES_MAX, Value, check_json, check_json_with_field};
use crate::{Error, ErrorCode, Result};

/// One write of a document, not checked yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The document's id.
    pub id: String,
    /// The kind of write.
    pub kind: WriteKind,
}

/// The kinds of writes of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteKind {
    /// Creates a document; `DuplicateId` if the id exists.
    Insert(Bytes),
    /// Creates or replaces a document.
    Upsert(Bytes),
    /// Removes a document; no effect if the id does not exist.
    Delete,
}

/// A write that was checked: its id is within the length limit, and its document is JSON. Encoded
/// like a [`Write`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Write")]
pub struct CheckedWrite {
    id: Arc<str>,
    kind: WriteKind,
}

impl CheckedWrite {
    /// Checks a write. Returns an error if its id or document is too long, or the document is not
    /// JSON.
    pub fn new(write: Write, document_bytes_max: usize) -> Result<Self> {
        let Write { id, kind } = write;
        check_id(&id)?;
        if let WriteKind::Insert(document) | WriteKind::Upsert(document) = &kind {
            check_document(&id, document, document_bytes_max)?;
        }
        Ok(Self { id: Arc::from(id), kind })
    }

    /// Checks a document and makes an upsert of it, with the id from the document's field
    /// `field`.
    pub fn upsert_with_id_in(field: &str, document: Bytes) -> Result<Self> {
        let id = check_document_with_id(field, &document).map_err(|error| match error.hint {
            Some(_) => {
                error.with_hint("COPY b FROM STDIN (FORMAT jsonl, id 'field') names another field")
            }
            None => error,
        })?;
        Ok(Self { id: Arc::from(&*id), kind: WriteKind::Upsert(document) })
    }

    /// Returns the document's id.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Returns the kind of write, with the document.
    pub fn kind(&self) -> &WriteKind {
        &self.kind
    }

    /// Returns the document; `None` for a deletion.
    pub fn document(&self) -> Option<&Bytes> {
        match &self.kind {
            WriteKind::Insert(document) | WriteKind::Upsert(document) => Some(document),
            WriteKind::Delete => None,
        }
    }
}

impl TryFrom<Write> for CheckedWrite {
    type Error = Error;

    fn try_from(write: Write) -> Result<Self> {
        Self::new(write, DOCUMENT_BYTES_MAX)
    }
}

/// Checks the text of a document, and returns the id in its field `field`, which must be a string
/// or an integer.
pub fn check_document_with_id<'d>(field: &str, document: &'d [u8]) -> Result<Cow<'d, str>> {
    if document.len() > DOCUMENT_BYTES_MAX {
        return Err(too_long_error(document.len()));
    }
    let invalid = |message: String| Err(Error::new(ErrorCode::InvalidText, message));
    let id = match check_json_with_field(document, field)? {
        CheckedField::Text(id) => Cow::Borrowed(id),
        CheckedField::Value(Some(Value::String(id))) => Cow::Owned(id.to_string()),
        CheckedField::Value(Some(Value::Number(number))) if number.as_i128().is_some() => {
            Cow::Owned(number.to_string())
        }
        CheckedField::Value(Some(_)) => {
            return invalid(format!("field {field} is neither string nor integer"));
        }
        CheckedField::Value(None) => {
            return invalid(format!("the document has no field {field} for its id"))
                .map_err(|error| error.with_hint("name another field"));
        }
        CheckedField::NoObject => {
            return invalid("the document is not a JSON object, so it has no id".to_owned());
        }
    };
    check_id(&id)?;
    Ok(id)
}

/// Checks that the text of a document is JSON and at most `bytes_max` long.
pub fn check_document(id: &str, json: &[u8], bytes_max: usize) -> Result<()> {
    check_length(id, json, bytes_max)?;
    check_json(json).map_err(|error| error.context(format!("document {id:?}")))
}

fn check_length(id: &str, json: &[u8], bytes_max: usize) -> Result<()> {
    if json.len() <= bytes_max {
        return Ok(());
    }
    let message = format!("document {id:?} takes {} bytes, the limit is {bytes_max}", json.len());
    Err(Error::new(ErrorCode::OverLimit, message))
}

/// Returns the error for a document that is too long. `bytes` is its length, or the number of
/// bytes that were read of it.
pub fn too_long_error(bytes: usize) -> Error {
    let message =
        format!("a document has {bytes} bytes or more; the limit is {DOCUMENT_BYTES_MAX} bytes");
    Error::new(ErrorCode::OverLimit, message)
}

/// The checked writes of one request, in order. Clones share them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedWrites(Arc<[CheckedWrite]>);

impl CheckedWrites {
    /// Checks the writes of a request.
    pub fn new(writes: Vec<Write>, document_bytes_max: usize) -> Result<Self> {
        let check = |write| CheckedWrite::new(write, document_bytes_max);
        Ok(Self(writes.into_iter().map(check).collect::<Result<_>>()?))
    }

    /// Checks that no document is longer than a limit.
    pub fn check_lengths(&self, document_bytes_max: usize) -> Result<()> {
        let documents = self.0.iter().map(|write| (write, write.document()));
        documents
            .filter_map(|(write, document)| Some((write, document?)))
            .try_for_each(|(write, document)| check_length(&write.id, document, document_bytes_max))
    }

    /// Returns the writes, in the order of the request.
    pub fn writes(&self) -> &[CheckedWrite] {
        &self.0
    }

    /// Returns true if there are no writes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the total length of all documents in bytes.
    pub fn document_bytes(&self) -> usize {
        self.0.iter().filter_map(CheckedWrite::document).map(Bytes::len).sum()
    }
}

impl FromIterator<CheckedWrite> for CheckedWrites {
    fn from_iter<T: IntoIterator<Item = CheckedWrite>>(writes: T) -> Self {
        Self(writes.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_document_is_read_from_the_given_field() {
        let id = |line: &str, field: &str| {
            let write =
                CheckedWrite::upsert_with_id_in(field, Bytes::copy_from_slice(line.as_bytes()));
            write.map(|write| write.id.to_string())
        };
        assert_eq!(id(r#"{"id":"k"}"#, "id").unwrap(), "k");
        assert_eq!(id(r#"{"id":"\u006b\"","n":1}"#, "id").unwrap(), "k\"");
        assert_eq!(id(r#"{"geonameid":42,"id":1}"#, "geonameid").unwrap(), "42");
        for (line, code) in [
            (r#"{"id":1.5}"#, ErrorCode::InvalidText),
            (r#"{"id":null}"#, ErrorCode::InvalidText),
            (r#"{"a":1}"#, ErrorCode::InvalidText),
            (r#"["id"]"#, ErrorCode::InvalidText),
            (r#"{"id":"k""#, ErrorCode::InvalidText),
            (r#"{"id":""}"#, ErrorCode::InvalidText),
        ] {
            assert_eq!(id(line, "id").unwrap_err().code, code, "{line}");
        }
        let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(crate::value::key::ID_BYTES_MAX + 1));
        assert_eq!(id(&long, "id").unwrap_err().code, ErrorCode::OverLimit);
    }

    #[test]
    fn writes_are_checked_also_when_they_are_decoded_and_keep_their_text() {
        let write = |text: &'static str| Write {
            id: "k".into(),
            kind: WriteKind::Upsert(Bytes::from_static(text.as_bytes())),
        };
        let exact = write(r#"{"n":12345678901234567890.10}"#);
        let checked = CheckedWrites::new(vec![exact.clone()], 100).unwrap();
        let encoded = postcard::to_stdvec(&checked).unwrap();
        assert_eq!(encoded, postcard::to_stdvec(std::slice::from_ref(&exact)).unwrap());
        assert_eq!(postcard::from_bytes::<CheckedWrites>(&encoded).unwrap(), checked);
        let id = "k".repeat(crate::value::key::ID_BYTES_MAX + 1);
        for wrong in [write("{\n1"), Write { id, kind: WriteKind::Delete }] {
            let encoded = postcard::to_stdvec(&[wrong]).unwrap();
            postcard::from_bytes::<CheckedWrites>(&encoded).expect_err("it is not checked");
        }
        assert!(checked.check_lengths(20).is_err());
        assert_eq!(CheckedWrites::new(vec![exact], 20).unwrap_err().code, ErrorCode::OverLimit);
        let error = CheckedWrites::new(vec![write("{}"), write("{\n1")], 100).unwrap_err();
        assert!(
            error.message.contains("document \"k\"") && error.message.contains("line 2 column 1")
        );
    }
}
