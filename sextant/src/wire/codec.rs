//! Encodes and decodes requests and replies, in the format of the library postcard.

use bytes::Bytes;
use proto::{Error, ErrorCode, Result};
use serde::{Serialize, de::DeserializeOwned};

pub(super) fn encode<T: Serialize>(value: &T) -> Result<Bytes> {
    let bytes = postcard::to_stdvec(value).map_err(|error| Error::internal(error.to_string()))?;
    Ok(bytes.into())
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(decode_error)
}

/// Splits a request into the method's number and the encoded arguments. Returns an error if the
/// request is too short.
pub(super) fn split_method(body: &[u8]) -> Result<(u32, &[u8])> {
    postcard::take_from_bytes(body).map_err(decode_error)
}

/// Returns the error for a request with an unknown method number.
pub(super) fn no_method(number: u32) -> Error {
    let text = format!("a message cannot be decoded: there is no method {number}");
    Error::new(ErrorCode::Corrupt, text)
}

/// Returns the error for a message that cannot be decoded.
fn decode_error(error: postcard::Error) -> Error {
    Error::new(ErrorCode::Corrupt, format!("a message cannot be decoded: {error}"))
}
