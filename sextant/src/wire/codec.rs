//! How questions and answers are written: postcard, under one protocol version.

use bytes::Bytes;
use proto::{Error, ErrorCode, Result};
use serde::{Serialize, de::DeserializeOwned};

/// Processes of another protocol version are refused.
pub(super) const PROTOCOL_VERSION: u32 = 6;

pub(super) fn encode<T: Serialize>(value: &T) -> Result<Bytes> {
    let bytes = postcard::to_stdvec(value).map_err(|error| Error::internal(error.to_string()))?;
    Ok(bytes.into())
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(unreadable)
}

/// Takes the number of a method off a question.
pub(super) fn split_method(body: &[u8]) -> Result<(u32, &[u8])> {
    postcard::take_from_bytes(body).map_err(unreadable)
}

/// An error for a question with a method number that this process does not know.
pub(super) fn no_method(number: u32) -> Error {
    let text = format!("a message that cannot be read: there is no method {number}");
    Error::new(ErrorCode::Corrupt, text)
}

fn unreadable(error: postcard::Error) -> Error {
    Error::new(ErrorCode::Corrupt, format!("a message that cannot be read: {error}"))
}
