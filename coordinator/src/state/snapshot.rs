//! Encodes and decodes the state.

use std::collections::BTreeMap;

use proto::model::identity::UniqueId;
use proto::model::ids::BucketId;
use proto::{Error, ErrorCode, Result};
use serde::Serialize;

use super::context::StateContext;
use super::skipped::Skips;

/// The version of the state's encoding: the first byte of a snapshot.
const SNAPSHOT_VERSION: u8 = 9;
/// The version before: it lacks the last three fields.
const BEFORE_SKIPS: u8 = 8;

fn encoded(value: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_stdvec(value)
        .map_err(|error| Error::internal(format!("encode the StateContext: {error}")))
}

/// The fields that a snapshot of the version before lacks.
fn absent() -> Result<Vec<u8>> {
    let (ids, dropped) =
        (BTreeMap::<BucketId, UniqueId>::new(), Vec::<(BucketId, UniqueId)>::new());
    encoded(&(ids, dropped, Skips::default()))
}

fn decoded(body: &[u8]) -> Result<StateContext> {
    postcard::from_bytes(body).map_err(|error| {
        Error::new(ErrorCode::Corrupt, format!("decode the StateContext: {error}"))
    })
}

impl StateContext {
    /// Encodes the state.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        postcard::to_extend(self, vec![SNAPSHOT_VERSION])
            .map_err(|error| Error::internal(format!("encode the StateContext: {error}")))
    }

    /// Decodes a state.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match bytes.split_first() {
            Some((&SNAPSHOT_VERSION, body)) => decoded(body),
            Some((&BEFORE_SKIPS, body)) => decoded(&[body, &absent()?].concat()),
            Some((version, _)) => Err(Error::new(
                ErrorCode::Version,
                format!(
                    "StateContext of version {version}, this build reads {BEFORE_SKIPS} and {SNAPSHOT_VERSION}"
                ),
            )
            .with_hint("run the same version on all coordinators")),
            None => Err(Error::new(ErrorCode::Corrupt, "the StateContext is empty")),
        }
    }
}

#[cfg(test)]
impl StateContext {
    /// The state as the version before encodes it.
    pub(crate) fn to_bytes_before_skips(&self) -> Vec<u8> {
        let Self { bucket_ids, dropped_buckets, skips, .. } = self;
        let new = encoded(&(bucket_ids, dropped_buckets, skips)).unwrap();
        let mut bytes = self.to_bytes().unwrap();
        bytes.truncate(bytes.len() - new.len());
        bytes[0] = BEFORE_SKIPS;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::serving;

    #[test]
    fn a_snapshot_of_the_version_before_is_read_and_others_are_refused_by_name() {
        let state = serving(1);
        let bytes = state.to_bytes().unwrap();
        assert_eq!(StateContext::from_bytes(&bytes).unwrap(), state);
        let mut bytes = state.to_bytes_before_skips();
        assert_eq!(StateContext::from_bytes(&bytes).unwrap(), state);
        bytes[0] = BEFORE_SKIPS - 1;
        let error = StateContext::from_bytes(&bytes).unwrap_err();
        assert_eq!(error.code, ErrorCode::Version);
        assert!(error.message.contains("version 7"), "{error}");
    }
}
