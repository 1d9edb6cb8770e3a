use proto::model::assignment::VbucketSet;
use proto::model::cut::{EpochMark, Position};
use proto::model::history::FailoverLogs;
use proto::model::ids::{Epoch, IndexId, MoveId, Seqno, VbucketId, Vbuuid};
use proto::model::moves::MoveStage;
use proto::rpc::command::{Command, PromoteEpochs, Promotion, Rollback, StartMoves};

use super::*;
use crate::state::Decisions;
use crate::state::tests::{advance, apply, done, planned, refused, serving, with_bucket};
use proto::ErrorCode;
use proto::model::bucket::BucketInfo;

const BUCKET: BucketId = BucketId(1);

/// A history of the bucket's two vbuckets: the branches of each, newest first, and its end.
fn history(vbuckets: [(&[(u64, u64)], u64); 2]) -> SourceHistory {
    let branches = |list: &[(u64, u64)]| list.iter().map(|(v, s)| (Vbuuid(*v), *s)).collect();
    let logs = FailoverLogs::new(vbuckets.iter().map(|(list, _)| branches(list)).collect());
    let ends = vbuckets.iter().enumerate().map(|(n, (_, end))| {
        let vbuuid = logs.branch_of(VbucketId(n as u16), Seqno(*end));
        Position { vbuuid, seqno: Seqno(*end) }
    });
    let durable = Cut::from_positions(ends.collect());
    SourceHistory { durable, logs: Arc::new(logs), kept: VbucketSet::all(2) }
}

fn step(step: RollbackStep) -> Command {
    Command::Rollback(Rollback { bucket: BUCKET, step })
}

fn at(seqno: u64) -> Position {
    Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) }
}

/// Publishes an epoch that ends at these seqnos of branch 7, at the given time.
fn promote(state: &mut StateContext, ends: [u64; 2], unix_ms: u64, horizon: u64) {
    let changes = vec![(VbucketId(0), at(ends[0])), (VbucketId(1), at(ends[1]))];
    let promotion = Promotion { bucket: BUCKET, changes, horizon: Epoch(horizon) };
    let command =
        Command::PromoteEpochs(PromoteEpochs { promotions: vec![promotion], joined: Vec::new() });
    let position = state.position() + 1;
    state.apply(position, &Decisions::at(unix_ms), &command.into());
}

/// Returns a state whose bucket has ten epochs; epoch n + 1 ends at seqno n in both vbuckets.
fn ten_epochs() -> StateContext {
    let mut state = with_bucket();
    (1..10).for_each(|n| promote(&mut state, [n, n], n, 1));
    state
}

fn info(state: &StateContext) -> &BucketInfo {
    state.bucket(BUCKET).unwrap().info
}

fn stage(state: &StateContext) -> Option<RollbackStage> {
    info(state).rollback.as_ref().map(|rollback| rollback.stage)
}

/// Returns a history in which vbucket 0 has lost all seqnos above 6 and continues with branch 8 up
/// to 9.
fn lost() -> SourceHistory {
    history([(&[(8, 6), (7, 0)], 9), (&[(7, 0)], 9)])
}

fn roll_back(state: &mut StateContext, to: &SourceHistory) -> EpochMark {
    done(state, step(RollbackStep::Compare(to.clone())));
    done(state, step(RollbackStep::Prepare(to.clone())));
    done(state, step(RollbackStep::Restart));
    let (_, effects) = apply(state, step(RollbackStep::Rollback));
    let published = effects.iter().find_map(|effect| match effect {
        Effect::EpochPublished(mark) => Some(mark.clone()),
        _ => None,
    });
    published.expect("the first epoch after the rollback")
}

#[test]
fn a_rollback_passes_all_stages_and_ends_at_the_surviving_history() {
    let mut state = ten_epochs();
    done(&mut state, step(RollbackStep::Compare(lost())));
    assert_eq!(stage(&state), Some(RollbackStage::Started));
    assert_eq!(info(&state).readable_from(), None, "new scans wait");
    promote(&mut state, [10, 10], 10, 1);
    assert_eq!(state.bucket(BUCKET).unwrap().epochs.last().epoch, Epoch(10), "frozen");

    done(&mut state, step(RollbackStep::Prepare(lost())));
    let rollback = info(&state).rollback.clone().unwrap();
    assert_eq!((rollback.stage, rollback.point), (RollbackStage::Prepare, Epoch(7)));
    assert_eq!(rollback.failover.as_deref(), Some(&lost().durable));
    done(&mut state, step(RollbackStep::Restart));
    let restart = info(&state).rollback.as_ref().unwrap().restart.clone();
    assert_eq!(restart.unwrap().get(VbucketId(1)), at(6), "the cut of epoch 7");

    let (_, effects) = apply(&mut state, step(RollbackStep::Rollback));
    let Some(Effect::EpochPublished(mark)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!((mark.epoch, mark.parent), (Epoch(11), Epoch(7)));
    assert_eq!(*mark.cut, lost().durable, "nothing that survived is hidden");
    assert!((8..=10).all(|epoch| info(&state).is_dead(Epoch(epoch))));
    assert!(!info(&state).is_dead(Epoch(7)) && !info(&state).is_dead(Epoch(11)));
    assert_eq!(info(&state).readable_from(), Some(Epoch(11)));
    assert_eq!(info(&state).dead[0].point.as_ref().map(|mark| mark.epoch), Some(Epoch(7)));
    let kept: Vec<u64> =
        state.bucket(BUCKET).unwrap().epochs.after(Epoch(0)).map(|m| m.epoch.0).collect();
    assert_eq!(kept, [1, 2, 3, 4, 5, 6, 7, 11]);

    done(&mut state, step(RollbackStep::End { resumed: Epoch(10) }));
    assert!(stage(&state).is_some(), "that was another one");
    done(&mut state, step(RollbackStep::End { resumed: Epoch(11) }));
    assert_eq!(stage(&state), None);
}

#[test]
fn new_branches_without_a_loss_change_nothing_else() {
    let mut state = ten_epochs();
    let restarted = history([(&[(8, 9), (7, 0)], 9), (&[(7, 0)], 9)]);
    let (_, effects) = apply(&mut state, step(RollbackStep::Compare(restarted.clone())));
    assert_eq!(effects, [Effect::HistoryChanged(BUCKET)]);
    assert_eq!(stage(&state), None);
    let (_, effects) = apply(&mut state, step(RollbackStep::Compare(restarted)));
    assert_eq!(effects, [], "the branches are known");
}

#[test]
fn a_shorter_history_on_the_same_branch_is_a_loss() {
    let mut state = ten_epochs();
    done(&mut state, step(RollbackStep::Compare(history([(&[(7, 0)], 5), (&[(7, 0)], 9)]))));
    assert_eq!(stage(&state), Some(RollbackStage::Started));
}

#[test]
fn a_false_alarm_ends_when_the_history_proves_whole() {
    let mut state = ten_epochs();
    done(&mut state, step(RollbackStep::Compare(lost())));
    let whole = history([(&[(7, 0)], 12), (&[(7, 0)], 9)]);
    done(&mut state, step(RollbackStep::Prepare(whole)));
    assert_eq!(stage(&state), None);
    promote(&mut state, [10, 9], 10, 1);
    assert_eq!(state.bucket(BUCKET).unwrap().epochs.last().epoch, Epoch(11), "it goes on");
}

#[test]
fn without_a_fitting_epoch_everything_is_dead_and_rebuilt() {
    let mut state = ten_epochs();
    // Everything before the horizon is too old for a rollback point, without a jump of the time of day.
    promote(&mut state, [10, 10], 70 * 3_600_000, 1);
    let day_ms = 70 * 3_600_000;
    (0..3_000).for_each(|n| promote(&mut state, [10, 10], day_ms + n * 9_000, 1));
    promote(&mut state, [11, 11], day_ms + 3_000 * 9_000, 11);
    let gone = history([(&[(8, 1)], 2), (&[(7, 0)], 9)]);
    let mark = roll_back(&mut state, &gone);
    assert_eq!((mark.epoch, mark.parent, mark.horizon), (Epoch(13), Epoch(0), Epoch(13)));
    assert_eq!(info(&state).dead[0].point, None);
    assert!(info(&state).is_dead(Epoch(1)));
}

#[test]
fn a_failover_restarts_an_early_rollback_and_follows_a_late_one() {
    let mut state = ten_epochs();
    done(&mut state, step(RollbackStep::Compare(lost())));
    done(&mut state, step(RollbackStep::Prepare(lost())));
    let again = history([(&[(9, 4), (7, 0)], 5), (&[(7, 0)], 9)]);
    done(&mut state, step(RollbackStep::Compare(again.clone())));
    assert_eq!(stage(&state), Some(RollbackStage::Started), "from the beginning");
    let mark = roll_back(&mut state, &again);
    assert_eq!((mark.epoch, mark.parent), (Epoch(11), Epoch(5)));

    let third = history([(&[(9, 4), (7, 0)], 5), (&[(12, 2), (7, 0)], 3)]);
    let mark = roll_back(&mut state, &third);
    assert_eq!((mark.epoch, mark.parent), (Epoch(12), Epoch(3)));
    let dead = &info(&state).dead;
    assert_eq!(
        (dead.len(), dead[0].below_range(), dead[0].to),
        (1, Epoch(3), Epoch(11)),
        "one range"
    );
}

#[test]
fn a_rollback_undoes_moves_and_none_begins_until_it_has_ended() {
    let mut state = serving(1);
    done(&mut state, StartMoves { moves: vec![planned(0, 20, 22)] });
    advance(&mut state, MoveId(1), MoveStage::Catchup);
    promote(&mut state, [3, 3], 3, 1);
    let gone = history([(&[(8, 1), (7, 0)], 2), (&[(7, 0)], 3)]);
    done(&mut state, step(RollbackStep::Compare(gone.clone())));
    assert!(state.indexes.named()[&IndexId(1)].info.moves.is_empty());
    assert_eq!(
        state.moves.ended().last().unwrap().undone.as_deref(),
        Some("the bucket is being rolled back")
    );
    let start = Command::StartMoves(StartMoves { moves: vec![planned(1, 21, 22)] });
    assert_eq!(refused(&mut state, start.clone()), ErrorCode::Unavailable);
    let mark = roll_back(&mut state, &gone);
    assert_eq!(refused(&mut state, start.clone()), ErrorCode::Unavailable);
    done(&mut state, step(RollbackStep::End { resumed: mark.epoch }));
    done(&mut state, start);
}

#[test]
fn steps_that_do_not_follow_and_histories_of_another_shape_change_nothing() {
    let mut state = ten_epochs();
    for unasked in [
        RollbackStep::Prepare(lost()),
        RollbackStep::Restart,
        RollbackStep::Rollback,
        RollbackStep::End { resumed: Epoch(11) },
    ] {
        assert_eq!(apply(&mut state, step(unasked)).1, []);
    }
    let (durable, kept) = (Cut::zero(1), VbucketSet::all(1));
    let narrow = SourceHistory { durable, logs: Arc::default(), kept };
    let compare = step(RollbackStep::Compare(narrow));
    assert_eq!(refused(&mut state, compare), ErrorCode::InvalidParameter);
    let elsewhere =
        Command::Rollback(Rollback { bucket: BucketId(9), step: RollbackStep::Restart });
    assert_eq!(apply(&mut state, elsewhere).1, [], "the bucket was dropped");
}

#[test]
fn rollback_points_are_kept_in_tiers_and_never_come_back() {
    let mut state = with_bucket();
    let hour_ms = 3_600_000;
    let mut known: Option<(Epoch, Vec<Epoch>)> = None;
    // An epoch every half second for eight hours; the horizon is ten epochs older.
    for n in 1..=8 * 7_200 {
        promote(&mut state, [n, n], n * 500, n.saturating_sub(10).max(1));
        let last = state.bucket(BUCKET).unwrap().epochs.last();
        let points = last.points.to_vec();
        assert!(points.is_sorted() && points.iter().all(|point| *point < last.horizon));
        if let Some((horizon, before)) = &known {
            let kept = |point: &Epoch| point >= horizon || before.contains(point);
            assert!(points.iter().all(kept), "a point that was given up came back");
        }
        known = Some((last.horizon, points));
    }
    let (_, points) = known.unwrap();
    let ages: Vec<u64> =
        points.iter().rev().map(|point| 8 * hour_ms - (point.0 - 1) * 500).collect();
    let within = |ms: u64| ages.iter().filter(|age| **age <= ms).count();
    assert!((3..=7).contains(&within(60_000)), "seconds: {ages:?}");
    assert!((10..=18).contains(&within(600_000)), "minutes: {ages:?}");
    assert!((14..=25).contains(&within(hour_ms)), "tens of minutes: {ages:?}");
    assert!((17..=30).contains(&within(6 * hour_ms)), "hours: {ages:?}");
    assert_eq!(within(6 * hour_ms), ages.len(), "nothing older");
}

#[test]
fn a_rollback_behind_the_horizon_ends_at_a_rollback_point() {
    let mut state = with_bucket();
    (1..=200).for_each(|n| promote(&mut state, [n, n], n * 1_000, n.saturating_sub(5).max(1)));
    let points = state.bucket(BUCKET).unwrap().epochs.last().points.to_vec();
    let newest_below = points.iter().filter(|point| point.0 <= 150).max().copied().unwrap();
    let gone = history([(&[(8, 149), (7, 0)], 160), (&[(7, 0)], 200)]);
    let mark = roll_back(&mut state, &gone);
    assert_eq!(mark.parent, newest_below);
    assert_eq!(mark.horizon, newest_below, "nothing below it is asked for");
    assert!(mark.points.iter().all(|point| *point < newest_below));
}
