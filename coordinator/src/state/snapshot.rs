//! Encodes and decodes the state.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::copies::Copies;
use proto::model::data_set::{DataSet, FilesRead};
use proto::model::identity::UniqueId;
use proto::model::ids::{BucketId, Generation, IndexId, LocalIndexId, NodeId};
use proto::model::users::Users;
use proto::{Error, ErrorCode, Result};
use serde::Serialize;

use super::context::StateContext;
use super::epoch_moments::EpochMoments;
use super::index_record::IndexRecord;
use super::skipped::Skips;

/// The version of the state's encoding: the first byte of a snapshot.
const SNAPSHOT_VERSION: u8 = 15;
/// The version before: it lacks the last field.
const BEFORE_EMPTY: u8 = 14;
/// The version before that: it lacks one more field.
const BEFORE_USERS: u8 = 13;
/// The version before that: it lacks three more fields.
const BEFORE_DATA_SETS: u8 = 12;
/// The version before that: it lacks two more fields.
const BEFORE_GENERATIONS: u8 = 11;
/// The version before that: it lacks one more field.
const BEFORE_MOMENTS: u8 = 10;
/// The version before that: it lacks one more field.
const BEFORE_COPIES: u8 = 9;
/// The version before that: it lacks three more fields.
const BEFORE_SKIPS: u8 = 8;

fn encoded(value: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_stdvec(value)
        .map_err(|error| Error::internal(format!("encode the StateContext: {error}")))
}

/// The field that a snapshot of version 14 lacks.
fn no_empty() -> Result<Vec<u8>> {
    encoded(&BTreeSet::<BucketId>::new())
}

/// The fields that a snapshot of version 13 lacks.
fn no_users() -> Result<Vec<u8>> {
    Ok([encoded(&Users::default())?, no_empty()?].concat())
}

/// The fields that a snapshot of version 12 lacks.
fn no_data_sets() -> Result<Vec<u8>> {
    let (data_sets, slice_bytes_max) =
        (BTreeMap::<BucketId, DataSet>::new(), BTreeMap::<IndexId, u64>::new());
    let files_read = BTreeMap::<BucketId, (NodeId, FilesRead)>::new();
    Ok([encoded(&(data_sets, slice_bytes_max, files_read))?, no_users()?].concat())
}

/// The fields that a snapshot of version 11 lacks.
fn no_generations() -> Result<Vec<u8>> {
    let beside = BTreeMap::<LocalIndexId, IndexRecord>::new();
    let generations = encoded(&(beside, BTreeMap::<IndexId, Generation>::new()))?;
    Ok([generations, no_data_sets()?].concat())
}

/// The fields that a snapshot of version 10 lacks.
fn no_moments() -> Result<Vec<u8>> {
    let moments = encoded(&BTreeMap::<BucketId, EpochMoments>::new())?;
    Ok([moments, no_generations()?].concat())
}

/// The fields that a snapshot of version 9 lacks.
fn no_copies() -> Result<Vec<u8>> {
    Ok([encoded(&BTreeMap::<BucketId, Copies>::new())?, no_moments()?].concat())
}

/// The fields that a snapshot of version 8 lacks besides.
fn no_skips() -> Result<Vec<u8>> {
    let (ids, dropped) =
        (BTreeMap::<BucketId, UniqueId>::new(), Vec::<(BucketId, UniqueId)>::new());
    encoded(&(ids, dropped, Skips::default()))
}

/// Adds what is known of the moments of an earlier build's epochs.
fn with_moments(mut state: StateContext) -> StateContext {
    state.begin_moments();
    state
}

/// Adds the copies that each embedded bucket of an earlier build has: one.
fn with_copies(mut state: StateContext) -> StateContext {
    state.reset_copies();
    with_moments(state)
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
            Some((&BEFORE_EMPTY, body)) => decoded(&[body, &no_empty()?].concat()),
            Some((&BEFORE_USERS, body)) => decoded(&[body, &no_users()?].concat()),
            Some((&BEFORE_DATA_SETS, body)) => decoded(&[body, &no_data_sets()?].concat()),
            Some((&BEFORE_GENERATIONS, body)) => decoded(&[body, &no_generations()?].concat()),
            Some((&BEFORE_MOMENTS, body)) => {
                decoded(&[body, &no_moments()?].concat()).map(with_moments)
            }
            Some((&BEFORE_COPIES, body)) => {
                decoded(&[body, &no_copies()?].concat()).map(with_copies)
            }
            Some((&BEFORE_SKIPS, body)) => {
                decoded(&[body, &no_skips()?, &no_copies()?].concat()).map(with_copies)
            }
            Some((version, _)) => Err(Error::new(
                ErrorCode::Version,
                format!(
                    "StateContext of version {version}, this build reads {BEFORE_SKIPS} to {SNAPSHOT_VERSION}"
                ),
            )
            .with_hint("run the same version on all coordinators")),
            None => Err(Error::new(ErrorCode::Corrupt, "the StateContext is empty")),
        }
    }
}

#[cfg(test)]
impl StateContext {
    /// The state as version 8 encodes it.
    pub(crate) fn to_bytes_before_skips(&self) -> Vec<u8> {
        let Self { bucket_ids, dropped_buckets, skips, .. } = self;
        self.without(&((bucket_ids, dropped_buckets, skips), self.since_copies()), BEFORE_SKIPS)
    }

    /// The state as version 9 encodes it.
    pub(crate) fn to_bytes_before_copies(&self) -> Vec<u8> {
        self.without(&self.since_copies(), BEFORE_COPIES)
    }

    /// The state as version 10 encodes it.
    pub(crate) fn to_bytes_before_moments(&self) -> Vec<u8> {
        self.without(&self.since_moments(), BEFORE_MOMENTS)
    }

    /// The state as version 11 encodes it.
    pub(crate) fn to_bytes_before_generations(&self) -> Vec<u8> {
        self.without(&self.since_generations(), BEFORE_GENERATIONS)
    }

    /// The state as version 12 encodes it.
    pub(crate) fn to_bytes_before_data_sets(&self) -> Vec<u8> {
        self.without(&self.since_data_sets(), BEFORE_DATA_SETS)
    }

    /// The state as version 13 encodes it.
    pub(crate) fn to_bytes_before_users(&self) -> Vec<u8> {
        self.without(&self.since_users(), BEFORE_USERS)
    }

    /// The state as version 14 encodes it.
    pub(crate) fn to_bytes_before_empty(&self) -> Vec<u8> {
        self.without(&self.empty_allowed, BEFORE_EMPTY)
    }

    fn since_users(&self) -> impl Serialize {
        (&self.users, &self.empty_allowed)
    }

    fn since_generations(&self) -> impl Serialize {
        (&self.generations, &self.newest_generations, self.since_data_sets())
    }

    fn since_data_sets(&self) -> impl Serialize {
        (&self.data_sets, &self.slice_bytes_max, &self.files_read, self.since_users())
    }

    fn since_copies(&self) -> impl Serialize {
        (&self.copies, self.since_moments())
    }

    fn since_moments(&self) -> impl Serialize {
        (&self.moments, self.since_generations())
    }

    fn without(&self, last_fields: &impl Serialize, version: u8) -> Vec<u8> {
        let new = encoded(last_fields).unwrap();
        let mut bytes = self.to_bytes().unwrap();
        bytes.truncate(bytes.len() - new.len());
        bytes[0] = version;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proto::model::bucket::SourceKind;
    use proto::model::ids::NodeId;

    use super::*;
    use crate::state::tests::{serving, with_bucket_of};

    #[test]
    fn snapshots_of_seven_versions_before_are_read_and_others_are_refused_by_name() {
        let state = serving(1);
        let whole = [
            state.to_bytes().unwrap(),
            state.to_bytes_before_empty(),
            state.to_bytes_before_users(),
            state.to_bytes_before_data_sets(),
            state.to_bytes_before_generations(),
        ];
        for bytes in whole {
            assert_eq!(StateContext::from_bytes(&bytes).unwrap(), state);
        }
        // Of the moments it is known only that the newest epochs are published.
        let mut known = state.clone();
        known.begin_moments();
        assert_eq!(StateContext::from_bytes(&state.to_bytes_before_moments()).unwrap(), known);
        assert_eq!(StateContext::from_bytes(&state.to_bytes_before_copies()).unwrap(), known);
        let mut bytes = state.to_bytes_before_skips();
        assert_eq!(StateContext::from_bytes(&bytes).unwrap(), known);
        bytes[0] = BEFORE_SKIPS - 1;
        let error = StateContext::from_bytes(&bytes).unwrap_err();
        assert_eq!(error.code, ErrorCode::Version);
        assert!(error.message.contains("version 7"), "{error}");
    }

    #[test]
    fn an_embedded_bucket_of_an_earlier_build_has_one_copy_at_its_projector() {
        let state = with_bucket_of(SourceKind::Embedded);
        for bytes in [state.to_bytes_before_copies(), state.to_bytes_before_skips()] {
            let read = StateContext::from_bytes(&bytes).unwrap();
            assert_eq!(read.copies(BucketId(1)), Some(&Copies::single(NodeId(10))));
            let mut known = state.clone();
            known.begin_moments();
            assert_eq!(read, known);
            read.check().unwrap();
        }
    }
}
