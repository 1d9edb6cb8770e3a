//! Errors of the SQL front end: a [`proto::Error`] with its position in the query text, if known.

use proto::{Error, ErrorCode};

/// An error with its position in the query text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// The error of the statement.
    pub error: Error,
    /// The position as the number of a character, counted from 1; `None` if it is unknown.
    pub position: Option<u32>,
}

/// A result of the SQL front end.
pub type SqlResult<T> = std::result::Result<T, SqlError>;

impl From<Error> for SqlError {
    fn from(error: Error) -> Self {
        Self { error, position: None }
    }
}

/// Returns the error for a valid statement that is not supported. The hint describes an
/// alternative.
pub(crate) fn unsupported(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(ErrorCode::Unsupported, message).with_hint(hint)
}

/// Returns the error for a column whose qualifier is not the name of a relation in the statement.
/// The text is PostgreSQL's.
pub(crate) fn no_relation(name: &str) -> Error {
    let name: String = name.chars().take(64).collect();
    Error::new(ErrorCode::Unknown, format!("missing FROM-clause entry for table \"{name}\""))
        .with_hint("qualify columns with the alias of the index or bucket, or with its name if it has no alias")
}
