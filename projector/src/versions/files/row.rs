//! A row of a file, and the rules by which it is read.

use bytes::Bytes;
use proto::{Error, Result};

/// A document from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its id.
    pub id: String,
    /// Its text.
    pub document: Bytes,
}

/// The rows of one file.
pub trait Rows: Send {
    /// The next row; `None` at the end. An error names the place in the file. Nothing is read behind an error.
    fn next_row(&mut self) -> Result<Option<Row>>;
}

/// The rules by which the rows of a version are read.
#[derive(Clone, Debug)]
pub struct RowRules {
    /// The field or column with the id.
    pub id: String,
    /// The size limit of a document.
    pub document_bytes_max: usize,
}

/// The error for a document that is over its limit.
pub fn document_too_long(bytes: usize, bytes_max: usize) -> Error {
    let what = format!("the document has {bytes} bytes; the limit is {bytes_max} bytes");
    Error::new(proto::ErrorCode::OverLimit, what)
}
