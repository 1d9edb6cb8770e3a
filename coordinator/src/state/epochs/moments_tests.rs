//! Tests the epochs in force at a moment, and the errors for moments that are no longer retained.

use std::sync::Arc;

use proto::model::bucket::SourceKind;
use proto::model::cut::Position;
use proto::model::ids::{Seqno, VbucketId, Vbuuid};
use proto::rpc::command::{Command, Outcome, PromoteEpochs, Promotion};

use super::*;
use crate::state::Decisions;
use crate::state::consequence::Consequence;
use crate::state::tests::{apply, create_bucket, one_branch, with_bucket};

const ONE: BucketId = BucketId(1);
const TWO: BucketId = BucketId(2);

/// Returns a state with two buckets at epoch 1.
fn two_buckets() -> StateContext {
    let mut state = with_bucket();
    assert_eq!(apply(&mut state, create_bucket("two")).0, Outcome::Bucket(TWO));
    one_branch(&mut state, TWO, 7);
    state
}

fn promotion(bucket: BucketId, seqno: u64, horizon: u64) -> Promotion {
    let position = Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) };
    Promotion { bucket, changes: vec![(VbucketId(0), position)], horizon: Epoch(horizon) }
}

/// Promotes buckets to seqnos at an index of the log.
fn promote(state: &mut StateContext, at: u64, promotions: Vec<Promotion>) {
    let command = Command::PromoteEpochs(PromoteEpochs { promotions, joined: Vec::new() });
    state.apply(at, &Decisions::at(at), &command.into());
}

fn epoch_at(state: &StateContext, bucket: BucketId, at: u64) -> Option<u64> {
    state.epoch_at(bucket, &Moment::at(at)).unwrap().map(|epoch| epoch.0)
}

fn refused(state: &StateContext, bucket: BucketId, moment: Moment) -> String {
    let error = state.epoch_at(bucket, &moment).unwrap_err();
    assert_eq!(error.code, ErrorCode::SnapshotTooOld, "{error}");
    error.message
}

#[test]
fn the_epoch_in_force_is_the_newest_that_was_published_until_the_moment() {
    let mut state = two_buckets();
    promote(&mut state, 100, vec![promotion(ONE, 1, 1), promotion(TWO, 1, 1)]);
    promote(&mut state, 110, vec![promotion(TWO, 2, 1)]);
    promote(&mut state, 120, vec![promotion(ONE, 2, 1)]);
    let both = |at| (epoch_at(&state, ONE, at), epoch_at(&state, TWO, at));
    assert_eq!(both(99), (Some(1), Some(1)));
    assert_eq!(both(100), (Some(2), Some(2)), "one entry of the log shows both");
    assert_eq!(both(110), (Some(2), Some(3)));
    assert_eq!(both(119), (Some(2), Some(3)));
    assert_eq!(both(120), (Some(3), Some(3)));
    assert_eq!(both(121), (None, None), "this member has not come there");
}

#[test]
fn a_moment_of_an_epoch_is_where_it_is_in_force_next_to_the_index() {
    let mut state = two_buckets();
    for (n, at) in (1..).zip([100, 110, 120]) {
        promote(&mut state, at, vec![promotion(ONE, n, 1)]);
        promote(&mut state, at + 5, vec![promotion(TWO, n, 1)]);
    }
    let of = |epoch, at| {
        let moment = Moment { at, of: Some((ONE, Epoch(epoch))) };
        (state.index_of(&moment), state.epoch_at(TWO, &moment).unwrap().map(|epoch| epoch.0))
    };
    assert_eq!(of(3, 50), (Some(110), Some(2)), "the router has not heard of it yet");
    assert_eq!(of(3, 117), (Some(117), Some(3)));
    assert_eq!(of(3, 124), (Some(119), Some(3)), "it was followed before");
    assert_eq!(of(4, 125), (Some(125), Some(4)), "the newest stays in force");
    assert_eq!(of(5, 125), (None, None), "this member does not have it yet");
}

#[test]
fn an_epoch_that_is_not_kept_is_refused_and_never_guessed() {
    let mut state = two_buckets();
    (1..=6).for_each(|n| promote(&mut state, 100 + n, vec![promotion(ONE, n, 1)]));
    let first = state.moments(ONE).unwrap().clone();
    state.epochs.all_mut().get_mut(&ONE).unwrap().moments.thin(4);
    assert_eq!(epoch_at(&state, ONE, 99), Some(1), "the oldest, which a lease may hold");
    assert_eq!(epoch_at(&state, ONE, 106), Some(7));
    let told = refused(&state, ONE, Moment::at(103));
    assert!(told.contains("\"b\": so many epochs followed"), "{told}");
    let told = refused(&state, TWO, Moment { at: 103, of: Some((ONE, Epoch(4))) });
    assert!(told.contains("not kept any more"), "{told}");
    state.epochs.all_mut().get_mut(&ONE).unwrap().moments = first;
    promote(&mut state, 110, vec![promotion(ONE, 7, 5)]);
    assert_eq!(epoch_at(&state, ONE, 104), Some(5), "the horizon");
    let told = refused(&state, ONE, Moment::at(103));
    assert!(told.contains("10 minutes at most (LEASE_AGE_MS_MAX)"), "{told}");
}

#[test]
fn a_bucket_that_is_younger_than_the_moment_says_so() {
    let mut state = two_buckets();
    let before = state.position();
    assert_eq!(apply(&mut state, create_bucket("three")).0, Outcome::Bucket(BucketId(3)));
    let told = refused(&state, BucketId(3), Moment::at(before));
    assert!(told.contains("\"three\": it was created after the moment"), "{told}");
    assert_eq!(epoch_at(&state, BucketId(3), before + 1), Some(1));
    let error = state.epoch_at(BucketId(9), &Moment::at(before)).unwrap_err();
    assert_eq!(error.code, ErrorCode::Unknown);
}

#[test]
fn a_moment_before_a_rollback_is_refused_in_its_bucket_alone() {
    let mut state = crate::state::tests::with_bucket_of(SourceKind::Push);
    promote(&mut state, 100, vec![promotion(ONE, 1, 1)]);
    promote(&mut state, 101, vec![promotion(ONE, 2, 1)]);
    let dead = proto::model::rollback::DeadEpochs { point: None, to: Epoch(3) };
    let cut = Arc::clone(&state.bucket(ONE).unwrap().epochs.last().cut);
    state.clock.set_position(102);
    let mark = state.epochs.roll_back(ONE, (&dead, cut), state.clock.now()).unwrap();
    let (bucket, rollback, dead) = (ONE, None, Some(dead));
    state.carry_out(&Consequence::RollbackChanged { bucket, rollback, dead });
    assert_eq!(epoch_at(&state, ONE, 102), Some(mark.epoch.0));
    let told = refused(&state, ONE, Moment::at(101));
    assert!(told.contains("rolled back after the moment"), "{told}");
}
