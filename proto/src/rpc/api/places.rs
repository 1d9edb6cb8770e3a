//! Queries of the places of several buckets at a projector, for a moment
//! ([`crate::model::moment`]). A *place* is the end of a bucket's durable history.
//!
//! The leading coordinator sends a fingerprint of each place that it already has, so that the
//! answer contains only the buckets that have advanced. A projector stores nothing between two
//! calls, so a restart, a lost answer and a new leader are no special cases.

use serde::{Deserialize, Serialize};

use super::coordinator::BucketReport;
use crate::error::Result;
use crate::model::history::SourcePlace;
use crate::model::ids::BucketId;

/// The place of a bucket that the caller already has, as a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPlace {
    /// The bucket of the place.
    pub bucket: BucketId,
    /// [`SourcePlace::fingerprint`] of the place, for the vbuckets of the called projector.
    pub fingerprint: u64,
}

/// The answer of a projector: the buckets whose place has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// The buckets whose place differs from the caller's. The report of each is that of a SYNC
    /// call, and ends at this place.
    pub changed: Vec<(SourcePlace, BucketReport)>,
    /// The buckets that the projector cannot answer for at present.
    pub unanswered: Vec<BucketId>,
}

impl SourcePlace {
    /// Returns the place with the report of a bucket that has no open joint commits.
    pub fn without_joint_commits(self, bucket: BucketId) -> (Self, BucketReport) {
        let report = BucketReport::new(bucket, self.kept.clone(), self.durable.clone());
        (self, report)
    }
}

impl Places {
    /// Adds a bucket to the answer if its place differs from the caller's fingerprint. If `place`
    /// is an error, the bucket is added to the unanswered ones.
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
