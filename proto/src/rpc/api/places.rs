//! The places of several buckets, for a moment ([`crate::model::moment`]).
//!
//! The leading coordinator sends the place of each bucket that it already has, in a few bytes, so
//! that the answer contains only the buckets that have advanced. A projector keeps no state between
//! two calls, so a restart, a lost answer and a new leader are no special cases.

use serde::{Deserialize, Serialize};

use super::coordinator::BucketReport;
use crate::error::Result;
use crate::model::history::SourcePlace;
use crate::model::ids::BucketId;

/// The place of a bucket that the caller already has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPlace {
    /// The bucket of the place.
    pub bucket: BucketId,
    /// [`SourcePlace::fingerprint`] of the place, in the vbuckets of the called projector.
    pub fingerprint: u64,
}

/// The changed places of the requested buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// The buckets whose place differs from the caller's. Each report is that of SYNC, up to the
    /// place.
    pub changed: Vec<(SourcePlace, BucketReport)>,
    /// The buckets that the projector cannot answer for at present.
    pub unanswered: Vec<BucketId>,
}

impl SourcePlace {
    /// Returns the place with a report for a bucket without open joint commits.
    pub fn without_joint_commits(self, bucket: BucketId) -> (Self, BucketReport) {
        let report = BucketReport::new(bucket, self.kept.clone(), self.durable.clone());
        (self, report)
    }
}

impl Places {
    /// Adds a bucket to the answer, given the caller's fingerprint, and the bucket's present place
    /// and report; an error makes it unanswered.
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
