//! Encodes and decodes the state.

use proto::{Error, ErrorCode, Result};

use super::context::StateContext;

/// The version of the state's encoding: the first byte of a snapshot.
const SNAPSHOT_VERSION: u8 = 3;

impl StateContext {
    /// Encodes the state as a snapshot.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        postcard::to_extend(self, vec![SNAPSHOT_VERSION])
            .map_err(|error| Error::internal(format!("encode the StateContext: {error}")))
    }

    /// Decodes a snapshot of the state, and checks it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match bytes.split_first() {
            Some((&SNAPSHOT_VERSION, body)) => {
                let decoded: postcard::Result<Self> = postcard::from_bytes(body);
                let state = decoded.map_err(|error| damaged(error.to_string()))?;
                state.buckets_have_epochs().map_err(damaged)?;
                Ok(state)
            }
            Some((version, _)) => Err(Error::new(
                ErrorCode::Version,
                format!(
                    "StateContext of version {version}, this build reads version {SNAPSHOT_VERSION}"
                ),
            )
            .with_hint("run the same version on all coordinators")),
            None => Err(Error::new(ErrorCode::Corrupt, "the StateContext is empty")),
        }
    }
}

fn damaged(what: String) -> Error {
    Error::new(ErrorCode::Corrupt, format!("decode the StateContext: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::serving;

    #[test]
    fn a_snapshot_is_read_as_it_was_written_and_another_version_is_refused_by_name() {
        let state = serving(1);
        let mut bytes = state.to_bytes().unwrap();
        assert_eq!(StateContext::from_bytes(&bytes), Ok(state));
        bytes[0] = SNAPSHOT_VERSION + 1;
        let error = StateContext::from_bytes(&bytes).unwrap_err();
        assert_eq!(error.code, ErrorCode::Version);
        assert!(error.message.contains("version 3"), "{error}");
    }

    #[test]
    fn a_snapshot_with_a_bucket_without_epochs_is_damaged() {
        let mut state = serving(1);
        state.epochs.all_mut().pop_first();
        let error = StateContext::from_bytes(&state.to_bytes().unwrap()).unwrap_err();
        assert_eq!(error.code, ErrorCode::Corrupt, "{error}");
    }
}
