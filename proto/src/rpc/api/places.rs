//! The places of several buckets, for a moment ([`crate::model::moment`]).
//!
//! The leading coordinator sends its known place of each bucket in a few bytes, so that the answer contains only the buckets that are
//! further. A projector keeps no state between two calls, so a restart, a lost answer and a new leader are no special cases.

use serde::{Deserialize, Serialize};

use super::coordinator::BucketReport;
use crate::error::Result;
use crate::model::history::SourcePlace;
use crate::model::ids::BucketId;

/// The place of a bucket that the caller already knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPlace {
    /// The bucket of the place.
    pub bucket: BucketId,
    /// [`SourcePlace::fingerprint`] of the place, in the vbuckets of the called projector.
    pub fingerprint: u64,
}

/// The answer to such a question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// The buckets whose place differs. Their reports are those of SYNC, up to the places.
    pub changed: Vec<(SourcePlace, BucketReport)>,
    /// The buckets that the projector cannot answer for at present.
    pub unanswered: Vec<BucketId>,
}

impl SourcePlace {
    /// The place with the report of a bucket that has no open joint commits.
    pub fn without_joint_commits(self, bucket: BucketId) -> (Self, BucketReport) {
        let report = BucketReport::new(bucket, self.kept.clone(), self.durable.clone());
        (self, report)
    }
}

impl Places {
    /// Adds a bucket, given the fingerprint that the caller knows, its present place, and its report.
    pub fn add(
        &mut self,
        KnownPlace { bucket, fingerprint }: KnownPlace,
        place: Result<(SourcePlace, BucketReport)>,
    ) {
        match place {
            Ok((place, _)) if place.fingerprint() == fingerprint => {}
            Ok(told) => self.changed.push(told),
            Err(_) => self.unanswered.push(bucket),
        }
    }
}
