//! The decisions of a round that fixes a moment, without side effects. They determine which
//! places (ends of the durable history) to query from projectors, and whether an epoch covers the
//! answers.
//!
//! A moment must cover all writes that were acknowledged before the moment was requested. So the
//! leader compares, for each bucket, the projector's current place with the cut of the newest
//! epoch. In an idle cluster they are equal, and the last index of the log is the moment.

use std::collections::BTreeMap;

use proto::model::assignment::VbucketSet;
use proto::model::history::{FailoverLogs, SourcePlace};
use proto::model::ids::{BucketId, NodeId};
use proto::rpc::api::KnownPlace;

use crate::state::{BucketView, StateContext};

/// Returns a fingerprint of the branches of history of the vbuckets `kept`.
fn fingerprint_of(logs: &FailoverLogs, vbuckets: u16, kept: &VbucketSet) -> u64 {
    match kept.len() == usize::from(vbuckets) {
        true => logs.fingerprint(),
        false => logs.only_vbuckets(kept).fingerprint(),
    }
}

/// Returns the place that the newest epoch covers, in the vbuckets `kept` of one projector.
fn covered_place(bucket: BucketView<'_>, kept: VbucketSet) -> SourcePlace {
    let durable = bucket.epochs.last().cut.only_vbuckets(&kept);
    let history = fingerprint_of(bucket.logs, bucket.info.vbuckets, &kept);
    SourcePlace { durable, history, kept }
}

/// Returns for each projector the places that the newest epochs cover, one for each bucket in
/// which it owns vbuckets.
pub fn known_places(state: &StateContext) -> BTreeMap<NodeId, Vec<KnownPlace>> {
    let mut places: BTreeMap<NodeId, Vec<KnownPlace>> = BTreeMap::new();
    // A version of a data set has no other place than its epoch.
    for (id, bucket) in state.buckets().filter(|(_, bucket)| bucket.info.source.reports_position())
    {
        for projector in bucket.info.assignment.projectors() {
            let place = covered_place(bucket, bucket.info.assignment.owned_by(projector));
            let known = KnownPlace { bucket: id, fingerprint: place.fingerprint() };
            places.entry(projector).or_default().push(known);
        }
    }
    places
}

/// Returns true if a projector's answer covers all vbuckets that the projector owns in the
/// bucket. A vbucket that is missing in the answer was released, and another projector may
/// already accept writes to it.
pub fn covers_owned_vbuckets(
    state: &StateContext,
    projector: NodeId,
    told: (BucketId, &VbucketSet),
) -> bool {
    let (bucket, kept) = told;
    let Some(known) = state.bucket(bucket) else { return true };
    let owned = known.info.assignment.owned_by(projector);
    owned.iter().all(|vbucket| kept.contains(vbucket))
}

/// A place in a bucket's history, as a projector has reported it, that an epoch must cover.
#[derive(Debug)]
pub struct WantedPlace {
    /// The bucket that the place belongs to.
    pub bucket: BucketId,
    /// The place itself.
    pub place: SourcePlace,
    /// The fingerprint of the history that the state knew when the projector reported the place.
    known_history: u64,
}

/// The progress towards an epoch that covers a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedProgress {
    /// The newest epoch covers the place, or the bucket was dropped.
    Covered,
    /// No epoch covers the place yet.
    Waits,
    /// No epoch covers the place, and the source has a history that the state does not know yet.
    WaitsForHistory,
    /// The bucket is being rolled back, so no epoch is published.
    Frozen,
}

impl WantedPlace {
    /// Creates the wanted place from the report of a projector.
    pub fn new(state: &StateContext, bucket: BucketId, place: SourcePlace) -> Self {
        let known = state.bucket(bucket);
        let history =
            known.map(|known| fingerprint_of(known.logs, known.info.vbuckets, &place.kept));
        Self { bucket, place, known_history: history.unwrap_or_default() }
    }

    /// Returns whether an epoch covers the place. If the known history has changed since the
    /// report, it is at least as new as the place. A position that the changed history lacks is
    /// then lost, and no caller waits for it.
    pub fn progress(&self, state: &StateContext) -> WantedProgress {
        let Some(known) = state.bucket(self.bucket) else { return WantedProgress::Covered };
        if known.info.readable_from().is_none() {
            return WantedProgress::Frozen;
        }
        let SourcePlace { durable, history, kept } = &self.place;
        let now = fingerprint_of(known.logs, known.info.vbuckets, kept);
        let has_changed = now != self.known_history;
        if now != *history && !has_changed {
            return WantedProgress::WaitsForHistory;
        }
        let last = &known.epochs.last().cut;
        let is_covered = |vbucket| {
            let at = durable.get(vbucket);
            match known.logs.includes(vbucket, at) {
                true => last.get(vbucket).seqno >= at.seqno,
                false => has_changed,
            }
        };
        match kept.iter().all(is_covered) {
            true => WantedProgress::Covered,
            false => WantedProgress::Waits,
        }
    }
}

#[cfg(test)]
#[path = "moment_round_tests.rs"]
mod tests;
