//! Errors of the SQL front end: a [`proto::Error`] and, where one is known, the place in the
//! statement that it speaks of.

use proto::{Error, ErrorCode};

/// An error with its place in the statement's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// What went wrong.
    pub error: Error,
    /// The character of the query text that it speaks of, counted from 1.
    pub position: Option<u32>,
}

/// The result of the SQL front end.
pub type SqlResult<T> = std::result::Result<T, SqlError>;

impl From<Error> for SqlError {
    fn from(error: Error) -> Self {
        Self { error, position: None }
    }
}

/// A valid request that this version does not support, and what would work instead.
pub(crate) fn unsupported(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(ErrorCode::Unsupported, message).with_hint(hint)
}

/// A name, setting or column that is not there.
pub(crate) fn unknown(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::Unknown, message)
}
