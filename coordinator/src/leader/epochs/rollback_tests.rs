use std::sync::Arc;

use proto::model::assignment::VbucketSet;
use proto::model::cut::{Cut, Position};
use proto::model::history::{FailoverLogs, SourceHistory};
use proto::model::ids::{Generation, IndexId, Seqno, VbucketId, Vbuuid};
use proto::rpc::api::{BucketProgress, BucketReport};
use proto::rpc::command::{IndexReady, Proposal, Rollback};

use super::*;
use crate::leader::memory::Leader;
use crate::leader::memory::tests::with_bucket_at;
use crate::leader::moves::settings::MoveSettings;
use crate::state::Decisions;
use crate::state::tests::{apply, create_index, spec, with_bucket};

const BUCKET: BucketId = BucketId(1);

fn cut(vbuuid: u64, ends: [u64; 2]) -> Cut {
    let at = |seqno| Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) };
    Cut::from_positions(ends.map(at).to_vec())
}

/// Returns a history in which both vbuckets are on branch 7, and the first continues with branch 8
/// after `began`.
fn branched(began: u64, ends: [u64; 2]) -> SourceHistory {
    let logs =
        FailoverLogs::new(vec![vec![(Vbuuid(8), began), (Vbuuid(7), 0)], vec![(Vbuuid(7), 0)]]);
    let mut durable = cut(7, ends);
    let vbuuid = logs.branch_of(VbucketId(0), Seqno(ends[0]));
    durable.set(VbucketId(0), Position { vbuuid, seqno: Seqno(ends[0]) });
    SourceHistory { durable, logs: Arc::new(logs), kept: VbucketSet::all(2) }
}

struct World {
    leader: Leader,
    state: StateContext,
    now_ms: u64,
}

impl World {
    /// Returns a state whose epoch 2 ends at (5, 5).
    fn new() -> Self {
        let leader = Leader::new(1, 0, 20, MoveSettings::default());
        let mut world = Self { leader, state: with_bucket(), now_ms: 0 };
        world.sync(cut(7, [5, 5]));
        world.run();
        assert_eq!(world.last().0, 2);
        world
    }

    fn sync(&mut self, cut: Cut) {
        let told = BucketReport::new(BUCKET, VbucketSet::all(2), cut);
        self.leader.record_sync_report(&self.state, NodeId(10), told, self.now_ms).unwrap();
    }

    /// Delivers SYNC of a projector that owns one vbucket.
    fn sync_of(&mut self, vbucket: u16, cut: Cut) {
        let kept = [VbucketId(vbucket)].into_iter().collect();
        let told = BucketReport::new(BUCKET, kept, cut);
        self.leader.record_sync_report(&self.state, NodeId(10), told, self.now_ms).unwrap();
    }

    /// Plans and carries plans out until nothing is left to do; returns the number of rounds.
    fn run(&mut self) -> usize {
        for done in 0.. {
            self.now_ms += 50;
            let plan = self.leader.plan(&self.state, self.now_ms);
            if plan.commands.is_empty() {
                return done;
            }
            for command in plan.commands {
                let position = 1_000 + self.now_ms;
                let request = Proposal::from(command);
                self.state.apply(position, &Decisions::at(self.now_ms), &request);
            }
            assert!(done < 20, "it does not come to rest");
        }
        unreachable!()
    }

    fn last(&self) -> Epoch {
        self.state.bucket(BUCKET).unwrap().epochs.last().epoch
    }

    fn record_history(&mut self) -> usize {
        self.leader.queries_due(&self.state, self.now_ms).len()
    }

    /// Queries the source, which returns this history.
    fn told(&mut self, history: SourceHistory) {
        let asked = self.leader.begin_query();
        self.leader.record_history(&self.state, BUCKET, asked, history).unwrap();
    }

    fn says(&mut self, node: u64, applied: u64) {
        let progress = BucketProgress {
            bucket: BUCKET,
            high_watermark: Cut::zero(2),
            applied: Epoch(applied),
            durable: Epoch(applied),
            queue_bytes: 0,
            queue_bytes_max: 1,
        };
        let heartbeat = with_bucket_at(node, progress);
        self.leader.record_heartbeat(heartbeat, self.now_ms);
    }

    fn stage(&self) -> Option<RollbackStage> {
        let bucket = self.state.bucket(BUCKET).unwrap();
        bucket.info.rollback.as_ref().map(|rollback| rollback.stage)
    }
}

#[test]
fn an_unknown_branch_causes_a_query_and_then_its_reports_count() {
    let mut world = World::new();
    world.now_ms += 100;
    let history = branched(5, [8, 5]);
    world.sync(history.durable.clone());
    assert!(world.leader.has_suspects());
    assert_eq!(world.run(), 0, "nothing is known yet");
    assert_eq!(world.record_history(), 1);
    world.told(history.clone());
    world.run();
    assert_eq!(
        (world.last(), world.stage()),
        (Epoch(2), None),
        "no rollback, and an answer is no cut"
    );
    world.sync(history.durable.clone());
    world.run();
    assert_eq!((world.last(), world.stage()), (Epoch(3), None));
    assert_eq!(*world.state.bucket(BUCKET).unwrap().epochs.last().cut, history.durable);
    assert!(!world.leader.has_suspects());
}

#[test]
fn a_source_that_ends_earlier_is_queried_even_on_a_known_branch() {
    let mut world = World::new();
    world.sync(cut(7, [4, 5]));
    assert!(world.leader.has_suspects());
}

#[test]
fn a_rollback_ends_when_each_live_indexer_has_applied_its_first_epoch() {
    let mut world = World::new();
    apply(&mut world.state, create_index(spec("i")));
    let command = Command::IndexReady(IndexReady { index: IndexId(1), generation: Generation(1) });
    apply(&mut world.state, command);
    world.says(20, 2);
    world.says(21, 2);
    world.told(branched(3, [4, 5]));
    world.run();
    assert_eq!(world.stage(), Some(RollbackStage::Started), "the surviving history is queried now");
    assert!(world.leader.has_suspects());
    world.told(branched(3, [4, 5]));
    world.run();
    assert_eq!((world.last(), world.stage()), (Epoch(3), Some(RollbackStage::Rollback)));
    world.says(20, 3);
    world.run();
    assert!(world.stage().is_some(), "node 21 has not applied it");
    // Epochs continue meanwhile.
    let mut next = branched(3, [6, 5]).durable;
    next.set(VbucketId(1), Position { vbuuid: Vbuuid(7), seqno: Seqno(6) });
    world.sync(next);
    world.run();
    assert_eq!(world.last(), Epoch(4));
    world.says(21, 4);
    world.run();
    assert_eq!(world.stage(), None);
}

#[test]
fn a_new_leader_continues_a_rollback_and_ignores_a_dead_indexer() {
    let mut world = World::new();
    apply(&mut world.state, create_index(spec("i")));
    let lost = branched(3, [4, 5]);
    let step = RollbackStep::Compare(lost.clone());
    apply(&mut world.state, Rollback { bucket: BUCKET, step });
    world.leader = Leader::new(2, world.now_ms, 20, MoveSettings::default());
    world.run();
    assert_eq!(world.stage(), Some(RollbackStage::Started), "it does not know the history");
    assert!(world.leader.has_suspects());
    world.told(lost);
    world.run();
    assert_eq!(world.stage(), Some(RollbackStage::Rollback));
    world.now_ms += SILENT_MS_MAX;
    world.run();
    assert_eq!(world.stage(), None);
}

#[test]
fn cuts_of_a_lost_history_are_not_promoted() {
    let mut world = World::new();
    // Reported, but not promoted yet.
    world.sync(cut(7, [9, 9]));
    let lost = branched(3, [4, 5]);
    for _ in 0..2 {
        world.told(lost.clone());
        world.run();
    }
    let last = world.state.bucket(BUCKET).unwrap().epochs.last();
    assert_eq!(*last.cut, lost.durable);
    assert!(lost.logs.includes_cut(&last.cut));
}

#[test]
fn a_late_answer_is_not_taken_for_a_loss() {
    let mut world = World::new();
    let asked = world.leader.begin_query();
    let mut late = branched(5, [5, 5]);
    late.logs = Arc::clone(world.state.bucket(BUCKET).unwrap().logs);
    // While the answer is in flight, SYNC reports more and an epoch ends there.
    world.sync(cut(7, [5, 6]));
    world.run();
    for history in [late, branched(5, [5, 5])] {
        world.leader.record_history(&world.state, BUCKET, asked, history).unwrap();
        world.run();
        assert_eq!((world.last(), world.stage()), (Epoch(3), None), "nothing is lost");
        assert!(world.leader.has_suspects(), "the source is queried again");
    }
    world.told(branched(5, [5, 6]));
    world.run();
    assert_eq!((world.last(), world.stage()), (Epoch(3), None), "a branch without a loss");
}

#[test]
fn an_answer_to_an_earlier_term_is_ignored() {
    let mut world = World::new();
    let asked = world.leader.begin_query();
    world.leader = Leader::new(2, world.now_ms, 20, MoveSettings::default());
    world.leader.record_history(&world.state, BUCKET, asked, branched(3, [4, 5])).unwrap();
    assert_eq!((world.run(), world.stage()), (0, None));
}

#[test]
fn a_history_of_another_shape_is_refused() {
    let mut world = World::new();
    let (durable, kept) = (Cut::zero(1), VbucketSet::all(1));
    let narrow = SourceHistory { durable, logs: Arc::default(), kept };
    let asked = world.leader.begin_query();
    assert!(world.leader.record_history(&world.state, BUCKET, asked, narrow).is_err());
    assert_eq!(world.run(), 0);
}

#[test]
fn a_partial_sync_is_completed_only_from_the_current_history() {
    let mut world = World::new();
    world.sync_of(0, cut(7, [6, 0]));
    world.sync_of(1, cut(7, [0, 9]));
    world.run();
    let last = |world: &World| world.state.bucket(BUCKET).unwrap().epochs.last().cut.clone();
    assert_eq!(*last(&world), cut(7, [6, 9]), "both are in one epoch");
    // The first vbucket has lost everything beyond 3. Until the rollback has ended, its last position is invalid.
    world.told(branched(3, [3, 9]));
    world.run();
    world.sync_of(1, cut(7, [0, 10]));
    world.told(branched(3, [3, 10]));
    world.run();
    let history = branched(3, [3, 10]);
    assert!(history.logs.includes_cut(&last(&world)), "no epoch of the lost history follows");
    assert_eq!(last(&world).get(VbucketId(1)).seqno, Seqno(10));
}

/// A pushed source that loses its end begins no branch by itself, so the lost position stays valid on a live branch.
/// The reports of other projectors must not be combined with it.
#[test]
fn a_loss_without_a_branch_is_rolled_back_once_despite_other_reports() {
    let mut world = World::new();
    let logs = FailoverLogs::new(vec![vec![(Vbuuid(7), 0)]; 2]);
    let ends =
        |durable| SourceHistory { durable, logs: logs.clone().into(), kept: VbucketSet::all(2) };
    // This cut is not published yet when the second vbucket moves back from 5 to 3.
    world.sync_of(0, cut(7, [6, 0]));
    world.sync_of(1, cut(7, [0, 3]));
    world.told(ends(cut(7, [6, 3])));
    let mut rollbacks = 0;
    let mut seqno = 6;
    for _ in 0..40 {
        world.now_ms += 10;
        let plan = world.leader.plan(&world.state, world.now_ms);
        for command in plan.commands {
            let begins = matches!(
                &command,
                Command::Rollback(Rollback { step: RollbackStep::Compare(_), .. })
            );
            rollbacks += u32::from(begins);
            let request = Proposal::from(command);
            world.state.apply(1_000 + world.now_ms, &Decisions::at(world.now_ms), &request);
            // The first vbucket is written all the while.
            seqno += 1;
            world.sync_of(0, cut(7, [seqno, 0]));
        }
        if world.leader.has_suspects() {
            world.told(ends(cut(7, [seqno, 3])));
        }
        world.sync_of(1, cut(7, [0, 3]));
    }
    let last = world.state.bucket(BUCKET).unwrap().epochs.last().cut.clone();
    assert_eq!(last.get(VbucketId(1)).seqno, Seqno(3), "the surviving history: {last:?}");
    assert!(last.get(VbucketId(0)).seqno.0 > 6, "{last:?}");
    assert_eq!(rollbacks, 1);
}
