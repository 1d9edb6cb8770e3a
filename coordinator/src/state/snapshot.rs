//! Encodes and decodes the state.

use proto::{Error, ErrorCode, Result};

use super::context::StateContext;

/// The version of the state's encoding: the first byte of a snapshot.
const SNAPSHOT_VERSION: u8 = 8;

impl StateContext {
    /// Encodes the state.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        postcard::to_extend(self, vec![SNAPSHOT_VERSION])
            .map_err(|error| Error::internal(format!("encode the StateContext: {error}")))
    }

    /// Decodes a state.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match bytes.split_first() {
            Some((&SNAPSHOT_VERSION, body)) => postcard::from_bytes(body).map_err(|error| {
                Error::new(ErrorCode::Corrupt, format!("decode the StateContext: {error}"))
            }),
            Some((version, _)) => Err(Error::new(
                ErrorCode::Version,
                format!("StateContext of version {version}, this build reads {SNAPSHOT_VERSION}"),
            )
            .with_hint("run the same version on all coordinators")),
            None => Err(Error::new(ErrorCode::Corrupt, "the StateContext is empty")),
        }
    }
}
