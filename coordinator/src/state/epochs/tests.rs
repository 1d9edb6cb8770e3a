//! The limits of epochs and rollback points.

use std::sync::Arc;

use proto::ErrorCode;
use proto::model::bucket::SourceKind;
use proto::model::cut::Position;
use proto::model::history::BRANCHES_MAX;
use proto::model::ids::{BucketId, Epoch};
use proto::model::ids::{Seqno, Vbuuid};
use proto::model::rollback::DEAD_MAX;
use proto::rpc::command::{Command, CreateBucket, PromoteEpochs};

use super::*;
use crate::raft::wire::MESSAGE_BYTES_MAX;
use crate::state::BucketView;
use crate::state::Decisions;
use crate::state::capacity::limits::POSITIONS_MAX;
use crate::state::tests::{apply, one_branch, with_bucket};

fn create_wide_bucket(state: &mut StateContext, name: &str) -> Outcome {
    let command = Command::CreateBucket(CreateBucket {
        name: name.into(),
        vbuckets: 1024,
        source: SourceKind::Embedded,
        projectors: 1,
        copies: None,
        if_not_exists: false,
    });
    let made = apply(state, command).0;
    if let Outcome::Bucket(bucket) = made {
        one_branch(state, bucket, u64::MAX);
    }
    made
}

/// Advances all vbuckets of a bucket to positions with the longest encoding.
fn promote_all(state: &mut StateContext, bucket: u64, n: u64) {
    let position = Position { vbuuid: Vbuuid(u64::MAX), seqno: Seqno(u64::MAX / 2 + n) };
    let promotion = Promotion {
        bucket: BucketId(bucket),
        changes: (0..1024).map(|vbucket| (VbucketId(vbucket), position)).collect(),
        horizon: Epoch(1),
    };
    let command =
        Command::PromoteEpochs(PromoteEpochs { promotions: vec![promotion], joined: Vec::new() });
    state.apply(state.position() + 1, &Decisions::at(n), &command.into());
}

fn positions_kept(state: &StateContext) -> usize {
    let kept = |bucket: BucketView<'_>| {
        bucket.epochs.after(Epoch(0)).count() * usize::from(bucket.info.vbuckets)
    };
    state.buckets().map(|(_, bucket)| kept(bucket)).sum()
}

#[test]
fn the_cuts_of_all_buckets_together_are_bounded() {
    let mut state = with_bucket();
    assert_eq!(create_wide_bucket(&mut state, "c"), Outcome::Bucket(BucketId(2)));
    (1..=1_100).for_each(|n| promote_all(&mut state, 2, n));
    assert!(positions_kept(&state) > POSITIONS_MAX / 2, "as many as the bound allows");
    assert_eq!(create_wide_bucket(&mut state, "d"), Outcome::Bucket(BucketId(3)));
    (1..=600).for_each(|n| promote_all(&mut state, 3, n));
    assert!(positions_kept(&state) <= POSITIONS_MAX, "{}", positions_kept(&state));
    let bytes = state.to_bytes().unwrap().len();
    assert!(bytes < proto::rpc::api::PEER_MESSAGE_BYTES_MAX / 2, "{bytes}");
    let oldest = state.bucket(BucketId(2)).unwrap().epochs.after(Epoch(0)).take(2);
    assert_eq!(oldest.map(|mark| mark.epoch.0).collect::<Vec<_>>(), [1, 2], "still known");
}

#[test]
fn too_many_vbuckets_are_refused() {
    let mut state = with_bucket();
    let full = (0..32).map(|n| create_wide_bucket(&mut state, &format!("w{n}"))).last();
    let refused = full.unwrap();
    assert!(matches!(&refused, Outcome::Refused(e) if e.code == ErrorCode::OverLimit));
    assert_eq!(state.buckets().count(), 32, "31 wide ones and the first");
    assert!(positions_kept(&state) <= POSITIONS_MAX);
}

/// A member that lags receives the whole state as one message.
#[test]
fn the_largest_possible_snapshot_fits_in_a_message() {
    let mut state = with_bucket();
    (0..31).for_each(|n| drop(create_wide_bucket(&mut state, &format!("w{n}"))));
    for n in 1..=40 {
        (2..=32).for_each(|bucket| promote_all(&mut state, bucket, n));
    }
    for (id, bucket) in state.epochs.all_mut() {
        let began = |n: usize| (Vbuuid(u64::MAX), u64::MAX / 2 + n as u64);
        let branches: Vec<_> = (0..BRANCHES_MAX).map(began).collect();
        let all = vec![branches; usize::from(bucket.history.last().cut.vbuckets())];
        bucket.logs = Arc::new(proto::model::history::FailoverLogs::new(all));
        let point = Some(bucket.history.last().clone());
        let dead = proto::model::rollback::DeadEpochs { point, to: Epoch(u64::MAX) };
        Arc::make_mut(state.buckets.all_mut().get_mut(id).unwrap()).dead =
            Arc::new(vec![dead; DEAD_MAX]);
    }
    let bytes = state.to_bytes().unwrap().len();
    assert!(bytes > 20 << 20, "{bytes}");
    assert!(bytes < MESSAGE_BYTES_MAX, "{bytes}");
}
