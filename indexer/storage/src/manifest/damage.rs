//! The error for a damaged manifest.

use proto::{Error, ErrorCode};

pub(super) fn damaged(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::Corrupt, message)
}
