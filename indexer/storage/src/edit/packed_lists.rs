//! Encoding of a slice's lists for another node.

use bytes::Bytes;
use proto::{Error, ErrorCode, Result};

use crate::manifest::lists::SliceLists;

/// First byte of packed lists.
const LISTS_VERSION: u8 = 1;

/// Packs the lists of a slice.
pub fn pack(lists: &SliceLists) -> Result<Bytes> {
    let packed = postcard::to_extend(lists, vec![LISTS_VERSION]);
    packed.map(Bytes::from).map_err(|error| Error::internal(error.to_string()))
}

/// Decodes the lists of a slice.
pub fn unpack(bytes: &[u8]) -> Result<SliceLists> {
    match bytes.split_first() {
        Some((&LISTS_VERSION, body)) => postcard::from_bytes(body).map_err(|error| {
            Error::new(ErrorCode::Corrupt, format!("cannot decode the lists of a slice: {error}"))
        }),
        _ => {
            Err(Error::new(ErrorCode::Version, "the lists of a slice have another format version")
                .with_hint("run the same version of sextant on all nodes"))
        }
    }
}
