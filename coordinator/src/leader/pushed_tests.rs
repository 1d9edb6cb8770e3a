//! Epochs never have a part of a producer's commit.

use proto::model::assignment::VbucketSet;
use proto::model::bucket::SourceKind;
use proto::model::cut::{Cut, Position};
use proto::model::ids::{BucketId, NodeId, ProducerTransactionId, Seqno, VbucketId, Vbuuid};
use proto::model::pushed::{PushedCommit, PushedPart};
use proto::rpc::api::BucketReport;
use proto::rpc::command::Command;

use crate::leader::{Leader, MoveSettings};
use crate::state::StateContext;
use crate::state::tests::{apply, create_bucket_of, one_branch, with_bucket};

/// A pushed bucket with two vbuckets, one of them at each of two projectors.
const BUCKET: BucketId = BucketId(2);
const OWNERS: [NodeId; 2] = [NodeId(10), NodeId(11)];

fn cut(seqnos: [u64; 2]) -> Cut {
    let at =
        |seqno| Position { vbuuid: Vbuuid(if seqno == 0 { 0 } else { 7 }), seqno: Seqno(seqno) };
    Cut::from_positions(seqnos.map(at).to_vec())
}

/// A commit: for each vbucket the seqno before it, and its last one.
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
        apply(&mut state, create_bucket_of("pushed", SourceKind::Push));
        one_branch(&mut state, BUCKET, 7);
        Self { leader, state, now_ms: 0 }
    }

    /// SYNC of the owner of a vbucket.
    fn sync(&mut self, vbucket: u16, end: u64, pushed: &[PushedCommit]) {
        let kept: VbucketSet = [VbucketId(vbucket)].into_iter().collect();
        let mut seqnos = [0; 2];
        seqnos[usize::from(vbucket)] = end;
        let report = BucketReport {
            pushed: pushed.to_vec(),
            ..BucketReport::new(BUCKET, kept, cut(seqnos))
        };
        let owner = OWNERS[usize::from(vbucket)];
        self.leader.sync(&self.state, owner, report, self.now_ms).unwrap();
    }

    /// Plans at the next tick. Returns the seqnos of the last epoch then.
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
fn an_older_report_takes_no_commit_away() {
    let mut world = World::new();
    world.sync(0, 4, &[commit(1, [(2, 4), (0, 1)])]);
    world.sync(0, 2, &[]);
    assert_eq!(world.tick(), [2, 0]);
}

#[test]
fn a_waiting_caller_gets_no_epoch_with_a_part() {
    let mut world = World::new();
    world.sync(0, 4, &[commit(1, [(2, 4), (0, 1)])]);
    world.leader.stability.add_waiter(BUCKET, cut([4, 0]));
    assert_eq!(world.tick(), [2, 0]);
    assert_eq!(world.tick(), [2, 0]);
}
