//! Tests that epochs contain all parts of a joint commit or none.

use std::sync::Arc;

use proto::model::assignment::VbucketSet;
use proto::model::bucket::SourceKind;
use proto::model::commits::CommittedTransaction;
use proto::model::cut::Position;
use proto::model::history::SourceHistory;
use proto::model::ids::{NodeId, Seqno, TransactionId, VbucketId, Vbuuid};
use proto::model::open_commit::OpenCommit;
use proto::rpc::api::{BucketReport, EpochWait};
use proto::rpc::command::{Command, DropBucket, PromoteEpochs, Promotion};

use super::*;
use crate::leader::{Leader, MoveSettings};
use crate::state::tests::{apply, create_bucket_of, one_branch, with_bucket};

const A: BucketId = BucketId(1);
const B: BucketId = BucketId(2);
const C: BucketId = BucketId(3);

fn cut(seqno: u64) -> Cut {
    let at = |seqno| Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) };
    Cut::from_positions(vec![at(seqno), at(0)])
}

fn mark(transaction: u64, others: &[BucketId], seqno: u64) -> JointCommit {
    let position = Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) };
    let positions = if seqno > 0 { vec![(VbucketId(0), position)] } else { Vec::new() };
    let transaction = TransactionId(transaction);
    let committed = CommittedTransaction { transaction, affected: 1, positions };
    JointCommit { committed, participants: others.to_vec() }
}

/// Three buckets and a leading coordinator.
struct World {
    leader: Leader,
    state: StateContext,
    now_ms: u64,
}

impl World {
    fn new() -> Self {
        let (mut state, leader) = (with_bucket(), Leader::new(1, 0, 20, MoveSettings::default()));
        for (bucket, name) in [(B, "second"), (C, "third")] {
            apply(&mut state, create_bucket_of(name, SourceKind::Embedded));
            one_branch(&mut state, bucket, 7);
        }
        Self { leader, state, now_ms: 0 }
    }

    /// Delivers SYNC of a bucket: it ends at a seqno, and has these open joint commits. `before`
    /// are closed cuts before them.
    fn sync(&mut self, bucket: BucketId, end: u64, joint: &[JointCommit], before: &[u64]) {
        let report = BucketReport {
            open: joint.iter().cloned().map(OpenCommit::Joint).collect(),
            before: before.iter().map(|seqno| cut(*seqno)).collect(),
            ..BucketReport::new(bucket, VbucketSet::all(2), cut(end))
        };
        self.leader.record_sync_report(&self.state, NodeId(10), report, self.now_ms).unwrap();
    }

    /// Plans at the next tick. Returns the promoted seqnos, and the sets of joined buckets.
    fn tick(&mut self) -> (Vec<(BucketId, u64)>, Vec<Vec<BucketId>>) {
        self.now_ms += 20;
        let plan = self.leader.plan(&self.state, self.now_ms);
        let is_promotion = |c: &Command| matches!(c, Command::PromoteEpochs(_));
        let Some(command) = plan.commands.into_iter().find(is_promotion) else {
            return Default::default();
        };
        apply(&mut self.state, command.clone());
        let Command::PromoteEpochs(PromoteEpochs { promotions, joined }) = command else {
            unreachable!("it is a promotion")
        };
        let seqno = |p: &Promotion| (p.bucket, p.changes[0].1.seqno.0);
        (promotions.iter().map(seqno).collect(), joined)
    }
}

#[test]
fn the_buckets_of_a_joint_commit_are_promoted_in_one_entry() {
    let mut world = World::new();
    world.sync(A, 5, &[mark(1, &[B], 5)], &[4]);
    world.sync(B, 9, &[mark(1, &[A], 8)], &[7]);
    assert_eq!(world.tick(), (vec![(A, 5), (B, 9)], vec![vec![A, B]]));
}

#[test]
fn a_bucket_waits_before_a_commit_that_another_one_lacks_and_goes_on_up_to_there() {
    let mut world = World::new();
    world.sync(A, 5, &[mark(1, &[B], 5)], &[4]);
    world.sync(B, 7, &[], &[]);
    world.sync(C, 3, &[], &[]);
    assert_eq!(world.tick(), (vec![(A, 4), (B, 7), (C, 3)], vec![]));
    world.sync(A, 6, &[mark(1, &[B], 5)], &[4]);
    assert_eq!(world.tick(), Default::default(), "however long it takes");
    world.now_ms += 60_000;
    assert_eq!(world.tick(), Default::default());
    world.sync(B, 8, &[mark(1, &[A], 8)], &[7]);
    assert_eq!(world.tick(), (vec![(A, 6), (B, 8)], vec![vec![A, B]]));
}

#[test]
fn a_hold_over_a_second_is_named_until_the_other_bucket_has_the_commit() {
    let mut world = World::new();
    world.sync(A, 5, &[mark(1, &[B], 5)], &[4]);
    world.sync(B, 7, &[], &[]);
    world.tick();
    let begun_ms = world.now_ms;
    let holds = |world: &World| world.leader.epoch_holds(&world.state, world.now_ms);
    world.now_ms = begun_ms + 900;
    assert_eq!(holds(&world), [], "such a short time is usual");
    // A later commit waits for the same bucket, and another bucket for the first one.
    let marks = [mark(1, &[B], 5), mark(2, &[B, C], 6)];
    world.sync(A, 6, &marks, &[4, 5]);
    world.sync(C, 2, &[mark(2, &[A, B], 2)], &[1]);
    world.now_ms = begun_ms + 1_500;
    let hold = |bucket, transaction, waits_for, held_ms| EpochWait {
        bucket,
        transaction: TransactionId(transaction),
        waits_for,
        held_ms,
    };
    // The first commit was reported to the leader one tick earlier.
    assert_eq!(holds(&world), [hold(A, 1, B, 1_520)]);
    world.now_ms = begun_ms + 2_000;
    let all = [hold(A, 1, B, 2_020), hold(C, 2, A, 1_100), hold(C, 2, B, 1_100)];
    assert_eq!(holds(&world), all, "the oldest commit for each bucket that is waited for");
    let told = [mark(1, &[A], 8), mark(2, &[A, C], 9)];
    world.sync(B, 9, &told, &[7]);
    assert_eq!(holds(&world), []);
}

#[test]
fn a_hold_ends_when_the_other_bucket_is_dropped() {
    let mut world = World::new();
    world.sync(A, 5, &[mark(1, &[B], 5)], &[4]);
    world.now_ms += 5_000;
    let waits = |world: &World| {
        let holds = world.leader.epoch_holds(&world.state, world.now_ms);
        holds.iter().map(|hold| (hold.bucket, hold.waits_for)).collect::<Vec<_>>()
    };
    assert_eq!(waits(&world), [(A, B)]);
    apply(&mut world.state, DropBucket { bucket: B, restrict: false });
    assert_eq!(waits(&world), [], "nobody waits for a bucket that was dropped");
}

#[test]
fn a_bucket_that_falls_back_takes_others_along() {
    let mut world = World::new();
    // A and B have commit 1, B and C commit 2; A lacks commit 3, which comes before commit 1 in B.
    world.sync(A, 5, &[mark(1, &[B], 5)], &[4]);
    world.sync(B, 9, &[mark(3, &[A], 6), mark(1, &[A], 7), mark(2, &[C], 8)], &[5, 6, 7]);
    world.sync(C, 2, &[mark(2, &[B], 2)], &[1]);
    assert_eq!(world.tick(), (vec![(A, 4), (B, 5), (C, 1)], vec![]));
    world.sync(A, 6, &[mark(1, &[B], 5), mark(3, &[B], 6)], &[4, 5]);
    assert_eq!(world.tick(), (vec![(A, 6), (B, 9), (C, 2)], vec![vec![A, B, C]]));
}

#[test]
fn a_commit_that_has_changed_nothing_in_its_deciding_bucket_joins_the_others() {
    let mut world = World::new();
    world.sync(B, 3, &[mark(1, &[A, C], 3)], &[2]);
    world.sync(C, 3, &[mark(1, &[A, B], 3)], &[2]);
    assert_eq!(world.tick().0, vec![(B, 2), (C, 2)], "the deciding bucket has said nothing yet");
    world.sync(A, 1, &[mark(1, &[B, C], 0)], &[]);
    assert_eq!(world.tick(), (vec![(A, 1), (B, 3), (C, 3)], vec![vec![A, B, C]]));
}

#[test]
fn nobody_waits_for_a_bucket_that_was_dropped() {
    let mut world = World::new();
    world.sync(A, 5, &[mark(1, &[B], 5)], &[]);
    assert_eq!(world.tick(), Default::default());
    apply(&mut world.state, DropBucket { bucket: B, restrict: false });
    assert_eq!(world.tick().0, [(A, 5)]);
}

#[test]
fn an_older_report_brings_no_commit_back_and_takes_none_away() {
    let mut world = World::new();
    world.sync(A, 6, &[mark(1, &[B], 5)], &[]);
    world.sync(A, 4, &[], &[]);
    assert_eq!(world.tick(), Default::default(), "the commit is known still");
}

#[test]
fn joined_buckets_are_promoted_all_or_none_also_if_one_has_lost_its_history_meanwhile() {
    let mut world = World::new();
    let promotion = |bucket, seqno, vbuuid| Promotion {
        bucket,
        changes: vec![(VbucketId(0), Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) })],
        horizon: proto::model::ids::Epoch(1),
    };
    let newest =
        |world: &World| [A, B, C].map(|b| world.state.bucket(b).unwrap().epochs.last().epoch.0);
    let before = newest(&world);
    let promotions = vec![promotion(A, 5, 7), promotion(B, 5, 99), promotion(C, 5, 7)];
    let command = Command::PromoteEpochs(PromoteEpochs { promotions, joined: vec![vec![A, B]] });
    apply(&mut world.state, command);
    assert_eq!(newest(&world), [before[0], before[1], before[2] + 1]);
}

#[test]
fn the_answer_of_a_source_is_no_cut_because_it_names_no_joint_commits() {
    let mut world = World::new();
    let asked = world.leader.begin_query();
    let logs = Arc::clone(world.state.bucket(A).unwrap().logs);
    let history = SourceHistory { durable: cut(5), logs, kept: VbucketSet::all(2) };
    world.leader.record_history(&world.state, A, asked, history).unwrap();
    assert_eq!(world.tick(), Default::default());
    world.sync(A, 5, &[mark(1, &[B], 5)], &[]);
    assert_eq!(world.tick(), Default::default());
    world.sync(B, 3, &[mark(1, &[A], 3)], &[]);
    assert_eq!(world.tick(), (vec![(A, 5), (B, 3)], vec![vec![A, B]]));
}
