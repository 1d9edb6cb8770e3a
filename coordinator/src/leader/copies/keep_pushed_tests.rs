//! Tests that epochs contain all parts of a producer's commit or none.

use std::sync::Arc;

use proto::model::assignment::VbucketSet;
use proto::model::bucket::SourceKind;
use proto::model::cut::{Cut, Position};
use proto::model::history::SourceHistory;
use proto::model::ids::{BucketId, Epoch, NodeId, ProducerTransactionId, Seqno, VbucketId, Vbuuid};
use proto::model::node::Role;
use proto::model::open_commit::OpenCommit;
use proto::model::pushed_commit::{PushedCommit, PushedPart};
use proto::rpc::api::{BucketProgress, BucketReport, Heartbeat};
use proto::rpc::command::{Command, RegisterNode};

use crate::leader::memory::tests::with_bucket_at;
use crate::leader::{Leader, MoveSettings};
use crate::state::StateContext;
use crate::state::tests::{apply, assign, create_bucket_of, node, one_branch, with_bucket};

/// A pushed bucket with two vbuckets, one of them at each of two projectors.
const BUCKET: BucketId = BucketId(2);
const OWNERS: [NodeId; 2] = [NodeId(10), NodeId(11)];

fn cut(seqnos: [u64; 2]) -> Cut {
    let at =
        |seqno| Position { vbuuid: Vbuuid(if seqno == 0 { 0 } else { 7 }), seqno: Seqno(seqno) };
    Cut::from_positions(seqnos.map(at).to_vec())
}

/// Returns a commit. `parts` contains the seqno before the commit and its last seqno, for each
/// vbucket.
fn commit(transaction: u64, parts: [(u64, u64); 2]) -> PushedCommit {
    let part = |(n, (after, end)): (usize, (u64, u64))| PushedPart {
        vbucket: VbucketId(n as u16),
        after: Seqno(after),
        end: Position { vbuuid: Vbuuid(7), seqno: Seqno(end) },
    };
    let parts = parts.into_iter().enumerate().map(part).collect();
    PushedCommit { transaction: ProducerTransactionId(transaction), parts }
}

struct World {
    leader: Leader,
    state: StateContext,
    now_ms: u64,
}

impl World {
    fn new() -> Self {
        let (mut state, leader) = (with_bucket(), Leader::new(1, 0, 20, MoveSettings::default()));
        apply(&mut state, RegisterNode { node: node(OWNERS[1].0, Role::Projector) });
        apply(&mut state, create_bucket_of("pushed", SourceKind::Push));
        one_branch(&mut state, BUCKET, 7);
        let mut world = Self { leader, state, now_ms: 0 };
        world.assign(&OWNERS);
        world
    }

    /// Gives the vbuckets to these owners in turn.
    fn assign(&mut self, owners: &[NodeId]) {
        assign(&mut self.state, BUCKET, owners);
    }

    /// Delivers SYNC of the owner of a vbucket.
    fn sync(&mut self, vbucket: u16, end: u64, pushed: &[PushedCommit]) {
        self.sync_of(OWNERS[usize::from(vbucket)], &[(vbucket, end)], pushed);
    }

    /// Delivers SYNC of a projector that owns these vbuckets.
    fn sync_of(&mut self, owner: NodeId, ends: &[(u16, u64)], pushed: &[PushedCommit]) {
        let kept: VbucketSet = ends.iter().map(|(vbucket, _)| VbucketId(*vbucket)).collect();
        let mut seqnos = [0; 2];
        ends.iter().for_each(|(vbucket, end)| seqnos[usize::from(*vbucket)] = *end);
        let report = BucketReport {
            open: pushed.iter().cloned().map(OpenCommit::Pushed).collect(),
            ..BucketReport::new(BUCKET, kept, cut(seqnos))
        };
        self.leader.record_sync_report(&self.state, owner, report, self.now_ms).unwrap();
    }

    /// Plans at the next tick. Returns the seqnos at which the newest epoch then ends.
    fn tick(&mut self) -> [u64; 2] {
        self.now_ms += 20;
        let plan = self.leader.plan(&self.state, self.now_ms);
        for command in plan.commands {
            if matches!(command, Command::PromoteEpochs(_)) {
                apply(&mut self.state, command);
            }
        }
        let last = &self.state.bucket(BUCKET).unwrap().epochs.last().cut;
        [0, 1].map(|n| last.get(VbucketId(n)).seqno.0)
    }
}

#[test]
fn an_epoch_ends_before_a_commit_of_which_a_part_is_missing_however_long_that_takes() {
    let mut world = World::new();
    let first = commit(1, [(2, 4), (3, 5)]);
    world.sync(0, 6, std::slice::from_ref(&first));
    world.sync(1, 3, &[]);
    assert_eq!(world.tick(), [2, 3]);
    world.now_ms += 60_000;
    world.sync(0, 8, std::slice::from_ref(&first));
    assert_eq!(world.tick(), [2, 3]);
    world.sync(1, 5, &[first]);
    assert_eq!(world.tick(), [8, 5]);
}

#[test]
fn a_new_leader_learns_of_a_commit_from_either_owner() {
    let mut world = World::new();
    world.sync(1, 5, &[commit(1, [(2, 4), (3, 5)])]);
    assert_eq!(world.tick(), [0, 3]);
    // The other owner's report does not name it, as a projector that has only plain mutations.
    world.sync(0, 2, &[]);
    assert_eq!(world.tick(), [2, 3]);
}

#[test]
fn a_commit_is_forgotten_neither_by_a_hand_over_nor_behind_it() {
    let mut world = World::new();
    let half = commit(1, [(2, 4), (3, 5)]);
    world.sync(0, 6, std::slice::from_ref(&half));
    assert_eq!(world.tick(), [2, 0]);
    // The hand-over of the vbucket is in progress, or the next owner has not reported it yet.
    world.sync_of(OWNERS[1], &[(1, 3)], &[]);
    assert_eq!(world.tick(), [2, 3]);
    world.assign(&OWNERS[1..]);
    world.sync_of(OWNERS[1], &[(0, 6), (1, 3)], std::slice::from_ref(&half));
    assert_eq!(world.tick(), [2, 3]);
    // The wait for the remaining parts is over. The first owner has nothing to report.
    world.sync_of(OWNERS[1], &[(0, 6), (1, 3)], &[]);
    assert_eq!(world.tick(), [6, 3]);
}

#[test]
fn an_owner_that_has_given_a_vbucket_away_takes_no_commit_along() {
    let mut world = World::new();
    let half = commit(1, [(2, 4), (3, 5)]);
    world.assign(&OWNERS[..1]);
    world.sync_of(OWNERS[0], &[(0, 6), (1, 3)], std::slice::from_ref(&half));
    world.assign(&[OWNERS[1], OWNERS[0]]);
    world.sync_of(OWNERS[0], &[(1, 3)], &[]);
    assert_eq!(world.tick(), [2, 3], "the next owner has not reported");
    world.sync_of(OWNERS[1], &[(0, 6)], &[]);
    assert_eq!(world.tick(), [6, 3]);
}

#[test]
fn both_versions_of_a_commit_count_while_it_is_committed_anew() {
    let mut world = World::new();
    let (first, anew) = (commit(1, [(2, 4), (0, 1)]), commit(1, [(2, 4), (3, 5)]));
    world.sync(1, 3, std::slice::from_ref(&first));
    world.sync(0, 6, std::slice::from_ref(&anew));
    assert_eq!(world.tick(), [2, 0]);
    world.sync(1, 5, &[anew]);
    assert_eq!(world.tick(), [6, 5]);
}

#[test]
fn an_older_report_takes_no_commit_away() {
    let mut world = World::new();
    world.sync(0, 4, &[commit(1, [(2, 4), (0, 1)])]);
    world.sync(0, 2, &[]);
    assert_eq!(world.tick(), [2, 0]);
}

/// A part that a commit of a producer holds is lost by a new branch or a failed disk: the projector
/// then has less than it has reported, on a known branch.
#[test]
fn an_owner_that_has_lost_a_held_part_is_queried_and_its_reports_count_again() {
    let mut world = World::new();
    let half = commit(1, [(2, 6), (3, 5)]);
    let plain = |world: &mut World, end| {
        world.sync(0, 3, &[]);
        world.sync(1, end, &[]);
    };
    world.sync(0, 6, std::slice::from_ref(&half));
    world.sync(1, 3, &[]);
    assert_eq!(world.tick(), [2, 3]);
    let mut queried = Vec::new();
    for end in 4..=6 {
        world.now_ms += 500;
        plain(&mut world, end);
        queried.extend(world.leader.queries_due(&world.state, world.now_ms));
    }
    assert!(queried.contains(&BUCKET), "{queried:?}");
    let asked = world.leader.begin_query();
    let logs = Arc::clone(world.state.bucket(BUCKET).unwrap().logs);
    let answer = SourceHistory { durable: cut([3, 6]), logs, kept: VbucketSet::all(2) };
    world.leader.record_history(&world.state, BUCKET, asked, answer).unwrap();
    world.tick();
    plain(&mut world, 6);
    assert_eq!(world.tick(), [3, 6]);
}

/// Returns the heartbeat of an indexer whose queue is full, and whose streams have reached a
/// position.
fn full_indexer(at: [u64; 2]) -> Heartbeat {
    let progress = BucketProgress {
        bucket: BUCKET,
        high_watermark: cut(at),
        applied: Epoch(1),
        durable: Epoch(1),
        queue_bytes: 100,
        queue_bytes_max: 100,
    };
    with_bucket_at(30, progress)
}

/// A stream pauses within a part that is larger than the frames that an indexer may hold ahead of an epoch.
#[test]
fn a_part_that_fills_the_queues_of_indexers_gets_its_epoch() {
    let mut world = World::new();
    let large = commit(1, [(2, 1_000), (3, 5)]);
    world.sync(0, 2, &[]);
    world.sync(1, 5, std::slice::from_ref(&large));
    assert_eq!(world.tick(), [2, 3]);
    world.sync(0, 1_000, std::slice::from_ref(&large));
    world.leader.record_heartbeat(full_indexer([500, 5]), world.now_ms);
    let seen: Vec<_> = (0..30).map(|_| world.tick()).collect();
    assert!(seen[..20].iter().all(|at| *at == [2, 3]), "slow indexers get time: {seen:?}");
    assert_eq!(seen[29], [1_000, 5], "and no more than half a second");
}

#[test]
fn a_caller_that_waits_for_a_held_commit_does_not_hasten_other_epochs() {
    let mut world = World::new();
    world.sync(0, 4, &[commit(1, [(2, 4), (0, 1)])]);
    assert_eq!(world.tick(), [2, 0]);
    world.leader.stability.add_waiter(BUCKET, cut([4, 0]));
    world.leader.record_promotion_end(world.now_ms, world.now_ms);
    let other = BucketReport::new(BucketId(1), VbucketSet::all(2), cut([1, 1]));
    world.leader.record_sync_report(&world.state, NodeId(10), other, world.now_ms).unwrap();
    let plan = world.leader.plan(&world.state, world.now_ms + 1);
    assert_eq!(plan.commands, [], "the tick is not over");
    assert_eq!(plan.next_ms, Some(world.now_ms + 20));
}

#[test]
fn a_waiting_caller_gets_no_epoch_with_a_part() {
    let mut world = World::new();
    world.sync(0, 4, &[commit(1, [(2, 4), (0, 1)])]);
    world.leader.stability.add_waiter(BUCKET, cut([4, 0]));
    assert_eq!(world.tick(), [2, 0]);
    assert_eq!(world.tick(), [2, 0]);
}

/// Reports of other vbuckets arrive meanwhile.
#[test]
fn a_caller_that_waits_for_a_held_place_hastens_no_epochs_of_its_bucket() {
    let mut world = World::new();
    world.sync(0, 4, &[commit(1, [(2, 4), (5, 6)])]);
    assert_eq!(world.tick(), [2, 0]);
    world.leader.stability.add_waiter(BUCKET, cut([4, 0]));
    world.leader.record_promotion_end(world.now_ms, world.now_ms);
    world.sync(1, 3, &[]);
    let plan = world.leader.plan(&world.state, world.now_ms + 1);
    assert_eq!((plan.commands, plan.next_ms), (vec![], Some(world.now_ms + 20)));
    assert_eq!(world.tick(), [2, 3], "with the next tick");
}

/// The report is late, or its projector has not received the hand-over yet.
#[test]
fn a_former_owner_takes_no_commit_of_the_next_one_away() {
    let mut world = World::new();
    let half = commit(1, [(2, 4), (3, 5)]);
    world.assign(&OWNERS[1..]);
    world.sync_of(OWNERS[1], &[(0, 6), (1, 3)], std::slice::from_ref(&half));
    world.sync(0, 6, &[]);
    assert_eq!(world.tick(), [2, 3]);
}
