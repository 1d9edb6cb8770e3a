//! Errors of statements: PostgreSQL's SQLSTATE, a message, and the place in the text.

use std::fmt;

/// An error of a statement, as the client gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The SQLSTATE: five characters, such as `42703`.
    pub sqlstate: &'static str,
    /// The text of the error: the failed thing and its name.
    pub message: String,
    /// The hint for the client, if there is one.
    pub hint: Option<String>,
    /// The place in the text: line and column, both from 1.
    pub place: Option<(u64, u64)>,
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into(), hint: None, place: None }
    }

    /// Sets the hint.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the place, if it is not set yet.
    pub fn at(mut self, line: u64, column: u64) -> Self {
        if self.place.is_none() && line > 0 {
            self.place = Some((line, column));
        }
        self
    }

    /// The error for a feature that does not exist here (0A000).
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new("0A000", message)
    }

    /// The error for a broken assumption of this crate (XX000).
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new("XX000", message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.sqlstate)
    }
}

impl std::error::Error for Error {}
