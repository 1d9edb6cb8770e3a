use std::sync::Arc;

use proto::model::cut::{Cut, Position};
use proto::model::history::{FailoverLogs, SourceHistory};
use proto::model::homes::VbucketSet;
use proto::model::ids::{Generation, IndexId, Seqno, VbucketId, Vbuuid};
use proto::rpc::api::{BucketProgress, Heartbeat};
use proto::rpc::command::CommandRequest;

use super::*;
use crate::leader::memory::Leader;
use crate::leader::move_settings::MoveSettings;
use crate::state::tests::{apply, create_index, spec, with_bucket};

const BUCKET: BucketId = BucketId(1);

fn cut(vbuuid: u64, ends: [u64; 2]) -> Cut {
    let at = |seqno| Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) };
    Cut::from_positions(ends.map(at).to_vec())
}

/// Both vbuckets on branch 7; the first goes on with branch 8 after `began`.
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
    /// Epoch 2 ends at (5, 5).
    fn new() -> Self {
        let leader = Leader::new(1, 0, 20, MoveSettings::default());
        let mut world = Self { leader, state: with_bucket(), now_ms: 0 };
        world.sync(cut(7, [5, 5]));
        world.run();
        assert_eq!(world.last().0, 2);
        world
    }

    fn sync(&mut self, cut: Cut) {
        let told = (BUCKET, VbucketSet::all(2), cut);
        self.leader.sync(&self.state, NodeId(10), told, self.now_ms).unwrap();
    }

    /// As a projector that keeps one vbucket.
    fn sync_of(&mut self, vbucket: u16, cut: Cut) {
        let told = (BUCKET, [VbucketId(vbucket)].into_iter().collect(), cut);
        self.leader.sync(&self.state, NodeId(10), told, self.now_ms).unwrap();
    }

    /// Plans and does what the plan says, until nothing is left for now.
    fn run(&mut self) -> usize {
        for done in 0.. {
            self.now_ms += 50;
            let plan = self.leader.plan(&self.state, self.now_ms);
            if plan.commands.is_empty() {
                return done;
            }
            for command in plan.commands {
                let position = 1_000 + self.now_ms;
                let request = CommandRequest { request: None, command };
                self.state.apply(position, self.now_ms, &request);
            }
            assert!(done < 20, "it does not come to rest");
        }
        unreachable!()
    }

    fn last(&self) -> Epoch {
        self.state.bucket(BUCKET).unwrap().epochs.last().epoch
    }

    fn enquired(&mut self) -> usize {
        self.leader.enquiries_due(&self.state, self.now_ms).len()
    }

    /// The source is asked, and says this.
    fn told(&mut self, history: SourceHistory) {
        let asked = self.leader.asking();
        self.leader.enquired(&self.state, BUCKET, asked, history).unwrap();
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
        let heartbeat = Heartbeat {
            node: NodeId(node),
            buckets: vec![progress],
            slices: vec![],
            moves: vec![],
            leases: vec![],
            scans: None,
        };
        self.leader.hear(heartbeat, self.now_ms);
    }

    fn stage(&self) -> Option<RollbackStage> {
        let bucket = self.state.bucket(BUCKET).unwrap();
        bucket.info.rollback.as_ref().map(|rollback| rollback.stage)
    }
}

#[test]
fn a_branch_that_is_not_known_is_enquired_and_then_its_positions_count() {
    let mut world = World::new();
    world.now_ms += 100;
    let history = branched(5, [8, 5]);
    world.sync(history.durable.clone());
    assert!(world.leader.is_curious());
    assert_eq!(world.run(), 0, "nothing is known yet");
    assert_eq!(world.enquired(), 1);
    world.told(history.clone());
    world.run();
    assert_eq!((world.last(), world.stage()), (Epoch(3), None), "no rollback");
    assert_eq!(*world.state.bucket(BUCKET).unwrap().epochs.last().cut, history.durable);
    assert!(!world.leader.is_curious());
}

#[test]
fn a_source_that_ends_earlier_is_enquired_though_its_branch_is_known() {
    let mut world = World::new();
    world.sync(cut(7, [4, 5]));
    assert!(world.leader.is_curious());
}

#[test]
fn a_loss_is_rolled_back_and_ends_when_each_living_indexer_has_applied_what_survived() {
    let mut world = World::new();
    apply(&mut world.state, create_index(spec("i")));
    let command = Command::IndexReady { index: IndexId(1), generation: Generation(1) };
    apply(&mut world.state, command);
    world.says(20, 2);
    world.says(21, 2);
    world.told(branched(3, [4, 5]));
    world.run();
    assert_eq!(world.stage(), Some(RollbackStage::Started), "what has survived is asked for now");
    assert!(world.leader.is_curious());
    world.told(branched(3, [4, 5]));
    world.run();
    assert_eq!((world.last(), world.stage()), (Epoch(3), Some(RollbackStage::Rollback)));
    world.says(20, 3);
    world.run();
    assert!(world.stage().is_some(), "node 21 has not applied it");
    // Epochs go on meanwhile.
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
fn a_new_leader_goes_on_with_a_rollback_and_a_dead_indexer_does_not_hold_it_up() {
    let mut world = World::new();
    apply(&mut world.state, create_index(spec("i")));
    let lost = branched(3, [4, 5]);
    let step = RollbackStep::Compare(lost.clone());
    apply(&mut world.state, Command::Rollback { bucket: BUCKET, step });
    world.leader = Leader::new(2, world.now_ms, 20, MoveSettings::default());
    world.run();
    assert_eq!(world.stage(), Some(RollbackStage::Started), "it does not know the history");
    assert!(world.leader.is_curious());
    world.told(lost);
    world.run();
    assert_eq!(world.stage(), Some(RollbackStage::Rollback));
    world.now_ms += SILENT_MS_MAX;
    world.run();
    assert_eq!(world.stage(), None);
}

#[test]
fn cuts_of_a_history_that_is_no_more_are_not_promoted() {
    let mut world = World::new();
    // Told, but not promoted yet.
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
    let asked = world.leader.asking();
    let mut late = branched(5, [5, 5]);
    late.logs = Arc::clone(&world.state.bucket(BUCKET).unwrap().logs);
    // While it is on its way, SYNC tells more, and an epoch ends there.
    world.sync(cut(7, [5, 6]));
    world.run();
    for history in [late, branched(5, [5, 5])] {
        world.leader.enquired(&world.state, BUCKET, asked, history).unwrap();
        world.run();
        assert_eq!((world.last(), world.stage()), (Epoch(3), None), "nothing is lost");
        assert!(world.leader.is_curious(), "it is asked again");
    }
    world.told(branched(5, [5, 6]));
    world.run();
    assert_eq!((world.last(), world.stage()), (Epoch(3), None), "a branch without a loss");
}

#[test]
fn an_answer_to_an_earlier_term_tells_nothing() {
    let mut world = World::new();
    let asked = world.leader.asking();
    world.leader = Leader::new(2, world.now_ms, 20, MoveSettings::default());
    world.leader.enquired(&world.state, BUCKET, asked, branched(3, [4, 5])).unwrap();
    assert_eq!((world.run(), world.stage()), (0, None));
}

#[test]
fn a_history_of_another_shape_is_refused() {
    let mut world = World::new();
    let (durable, kept) = (Cut::zero(1), VbucketSet::all(1));
    let narrow = SourceHistory { durable, logs: Arc::default(), kept };
    let asked = world.leader.asking();
    assert!(world.leader.enquired(&world.state, BUCKET, asked, narrow).is_err());
    assert_eq!(world.run(), 0);
}

#[test]
fn a_sync_of_some_vbuckets_takes_the_others_from_what_is_known_and_never_from_a_lost_history() {
    let mut world = World::new();
    world.sync_of(0, cut(7, [6, 0]));
    world.sync_of(1, cut(7, [0, 9]));
    world.run();
    let last = |world: &World| world.state.bucket(BUCKET).unwrap().epochs.last().cut.clone();
    assert_eq!(*last(&world), cut(7, [6, 9]), "both are in one epoch");
    // The first vbucket has lost what is beyond 3: until the rollback has ended its last position is no place.
    world.told(branched(3, [3, 9]));
    world.run();
    world.sync_of(1, cut(7, [0, 10]));
    world.told(branched(3, [3, 10]));
    world.run();
    let history = branched(3, [3, 10]);
    assert!(history.logs.includes_cut(&last(&world)), "no epoch of the lost history follows");
    assert_eq!(last(&world).get(VbucketId(1)).seqno, Seqno(10));
}

/// A pushed source that loses its end begins no branch by itself: the lost position stays a place on a living branch. What
/// other projectors say meanwhile must not be joined to it.
#[test]
fn a_loss_without_a_branch_is_rolled_back_once_whatever_other_projectors_say_meanwhile() {
    let mut world = World::new();
    let logs = FailoverLogs::new(vec![vec![(Vbuuid(7), 0)]; 2]);
    let ends =
        |durable| SourceHistory { durable, logs: logs.clone().into(), kept: VbucketSet::all(2) };
    // Not published yet when the second vbucket goes back from 5 to 3.
    world.sync_of(0, cut(7, [6, 0]));
    world.sync_of(1, cut(7, [0, 3]));
    world.told(ends(cut(7, [6, 3])));
    let mut rollbacks = 0;
    let mut seqno = 6;
    for _ in 0..40 {
        world.now_ms += 10;
        let plan = world.leader.plan(&world.state, world.now_ms);
        for command in plan.commands {
            let begins =
                matches!(&command, Command::Rollback { step: RollbackStep::Compare(_), .. });
            rollbacks += u32::from(begins);
            let request = CommandRequest { request: None, command };
            world.state.apply(1_000 + world.now_ms, world.now_ms, &request);
            // The first goes on writing all the while.
            seqno += 1;
            world.sync_of(0, cut(7, [seqno, 0]));
        }
        if world.leader.is_curious() {
            world.told(ends(cut(7, [seqno, 3])));
        }
        world.sync_of(1, cut(7, [0, 3]));
    }
    let last = world.state.bucket(BUCKET).unwrap().epochs.last().cut.clone();
    assert_eq!(last.get(VbucketId(1)).seqno, Seqno(3), "what is there: {last:?}");
    assert!(last.get(VbucketId(0)).seqno.0 > 6, "{last:?}");
    assert_eq!(rollbacks, 1);
}
