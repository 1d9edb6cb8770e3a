//! The places of several buckets, for a moment ([`crate::model::moment`]).
//!
//! The leading coordinator tells what it knows of each bucket in a few bytes, so that the answer has only the buckets that are further.
//! A projector keeps nothing between two questions, and so a restart, a lost answer and a new leader are no special cases.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::model::history::SourcePlace;
use crate::model::ids::BucketId;

/// The place of a bucket that a caller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPlace {
    /// The bucket.
    pub bucket: BucketId,
    /// [`SourcePlace::fingerprint`] of the place, in the vbuckets of the asked projector.
    pub fingerprint: u64,
}

/// The answer to such a question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// The buckets that stand at another place.
    pub changed: Vec<(BucketId, SourcePlace)>,
    /// The buckets that the projector cannot answer for at present.
    pub unanswered: Vec<BucketId>,
}

impl Places {
    /// Adds a bucket, given the fingerprint that the caller knows and the place where it stands.
    pub fn add(&mut self, bucket: BucketId, known: u64, place: Result<SourcePlace>) {
        match place {
            Ok(place) if place.fingerprint() == known => {}
            Ok(place) => self.changed.push((bucket, place)),
            Err(_) => self.unanswered.push(bucket),
        }
    }
}
