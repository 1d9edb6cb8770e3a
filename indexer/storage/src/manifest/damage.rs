//! How damage of a manifest is told.

use proto::{Error, ErrorCode};

pub(super) fn damaged(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::Corrupt, message)
}
