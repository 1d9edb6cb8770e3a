//! Tests whether an epoch covers a place that a projector has reported.

use proto::model::cut::{Cut, Position};
use proto::model::ids::{Seqno, VbucketId, Vbuuid};
use proto::rpc::command::{PromoteEpochs, Promotion};

use super::*;
use crate::state::tests::{apply, one_branch, with_bucket};

const BUCKET: BucketId = BucketId(1);
const PROJECTOR: NodeId = NodeId(10);

fn at(vbuuid: u64, seqno: u64) -> Position {
    Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) }
}

/// Returns a place of the whole bucket on a branch, with a seqno in the first vbucket.
fn place(state: &StateContext, vbuuid: u64, seqno: u64) -> SourcePlace {
    let vbuckets = state.bucket(BUCKET).unwrap().info.vbuckets;
    let durable = Cut::zero(vbuckets).with(&[(VbucketId(0), at(vbuuid, seqno))]);
    let logs = FailoverLogs::new(vec![vec![(Vbuuid(vbuuid), 0)]; usize::from(vbuckets)]);
    SourcePlace { durable, history: logs.fingerprint(), kept: VbucketSet::all(vbuckets) }
}

fn promote(state: &mut StateContext, vbuuid: u64, seqno: u64) {
    let changes = vec![(VbucketId(0), at(vbuuid, seqno))];
    let horizon = proto::model::ids::Epoch(1);
    let promotion = Promotion { bucket: BUCKET, changes, horizon };
    apply(state, PromoteEpochs { promotions: vec![promotion], joined: Vec::new() });
}

#[test]
fn a_projector_that_stands_where_the_newest_epoch_ends_has_nothing_to_tell() {
    let mut state = with_bucket();
    one_branch(&mut state, BUCKET, 7);
    promote(&mut state, 7, 3);
    let known = &known_places(&state)[&PROJECTOR];
    assert_eq!(known.len(), 1);
    let fingerprint = known[0].fingerprint;
    assert_eq!(place(&state, 7, 3).fingerprint(), fingerprint);
    assert_ne!(place(&state, 7, 4).fingerprint(), fingerprint, "it is further");
    assert_ne!(place(&state, 8, 3).fingerprint(), fingerprint, "it has another history");
}

#[test]
fn a_place_is_covered_once_an_epoch_reaches_it_in_its_history() {
    let mut state = with_bucket();
    one_branch(&mut state, BUCKET, 7);
    let wanted = WantedPlace::new(&state, BUCKET, place(&state, 7, 3));
    assert_eq!(wanted.progress(&state), WantedProgress::Waits);
    promote(&mut state, 7, 2);
    assert_eq!(wanted.progress(&state), WantedProgress::Waits);
    promote(&mut state, 7, 3);
    assert_eq!(wanted.progress(&state), WantedProgress::Covered);
    let newer = WantedPlace::new(&state, BUCKET, place(&state, 8, 3));
    assert_eq!(newer.progress(&state), WantedProgress::WaitsForHistory);
    // The new history does not include the place: no caller waits for a lost position.
    one_branch(&mut state, BUCKET, 9);
    assert_eq!(newer.progress(&state), WantedProgress::Covered);
}

#[test]
fn a_vbucket_that_a_projector_has_released_leaves_its_answer_open() {
    let state = with_bucket();
    let mut kept = VbucketSet::all(state.bucket(BUCKET).unwrap().info.vbuckets);
    assert!(covers_owned_vbuckets(&state, PROJECTOR, (BUCKET, &kept)));
    kept.remove(VbucketId(1));
    assert!(!covers_owned_vbuckets(&state, PROJECTOR, (BUCKET, &kept)));
    assert!(covers_owned_vbuckets(&state, NodeId(11), (BUCKET, &kept)), "it owns none of them");
}
