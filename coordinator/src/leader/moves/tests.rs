use proto::model::cut::Cut;
use proto::model::ids::{BucketId, Epoch, Generation, LocalIndexId, SliceNo};
use proto::model::moment::Moment;
use proto::model::moves::PlannedMove;
use proto::rpc::api::{BucketProgress, Heartbeat, IndexerReport, SliceProgress};
use proto::rpc::command::{CancelMoves, PromoteEpochs, RemoveNode};
use proto::{Error, ErrorCode};

use super::*;
use crate::leader::epochs::horizon::LEASE_MS;
use crate::leader::memory::Leader;
use crate::leader::memory::tests::{heartbeat, indexer_of, with_leases, with_moments};
use crate::state::Decisions;
use crate::state::tests::{advance, apply, copies, done, planned, promotion, serving, start};

const INDEX: IndexId = IndexId(1);
const BUCKET: BucketId = BucketId(1);
const SECOND: u64 = 1_000;
/// A time, in ms, at which a leader has received all leases.
const LATER: u64 = LEASE_MS;

/// A StateContext, its leader, and nodes with scripted heartbeats.
struct World {
    state: StateContext,
    leader: Leader,
    now_ms: u64,
    /// The nodes that send heartbeats, with the content of these.
    alive: BTreeMap<NodeId, Heartbeat>,
}

impl World {
    /// Returns a world with four live indexers that have applied epoch 1 and serve their slices of
    /// the topology.
    fn new(replicas: u8) -> Self {
        let state = serving(replicas);
        let mut world =
            Self { state, leader: leader(LATER), now_ms: LATER, alive: BTreeMap::new() };
        world.leader.heartbeats.since_ms = 0;
        for node in 20..24 {
            world.alive.insert(NodeId(node), heartbeat(node));
            world.applied(node, 1);
            for slice in 0..4 {
                if copies(&world.state, slice).contains(&node) {
                    world.reads(node, slice, 1);
                }
            }
        }
        world
    }

    /// Changes the leader; the new leader has received no reports yet.
    fn change_leader(&mut self) {
        self.leader = leader(self.now_ms);
    }

    fn start(&mut self, moves: &[PlannedMove]) -> Vec<MoveId> {
        start(&mut self.state, moves)
    }

    fn indexer(&mut self, node: u64) -> &mut IndexerReport {
        indexer_of(self.alive.get_mut(&NodeId(node)).unwrap())
    }

    fn applied(&mut self, node: u64, epoch: u64) {
        let progress = BucketProgress {
            bucket: BUCKET,
            high_watermark: Cut::zero(2),
            applied: Epoch(epoch),
            durable: Epoch(epoch),
            queue_bytes: 0,
            queue_bytes_max: 1,
        };
        self.indexer(node).buckets = vec![progress];
    }

    fn reads(&mut self, node: u64, slice: u16, floor: u64) {
        let progress = SliceProgress {
            slice: slice_id(slice),
            floor: Some(Epoch(floor)),
            entries: 10,
            bytes: 1_000,
            live_bytes: Some(1_000),
            built_percent: None,
            seconds_left: None,
            copied_from: None,
            trouble: None,
        };
        self.indexer(node).slices.push(progress);
    }

    /// Sets the progress that a target reports.
    fn says(&mut self, node: u64, id: MoveId, phase: MovePhase, trouble: Option<&str>) {
        let progress = MoveProgress {
            index: LocalIndexId { index: INDEX, generation: Generation(1) },
            id,
            phase,
            bytes: 5,
            bytes_total: 10,
            bytes_per_s: 1,
            trouble: trouble.map(str::to_owned),
        };
        let moves = &mut self.indexer(node).moves;
        moves.retain(|progress| progress.id != id);
        moves.push(progress);
    }

    fn publish(&mut self, seqno: u64, horizon: u64) {
        let promotion =
            proto::rpc::command::Promotion { horizon: Epoch(horizon), ..promotion(0, 7, seqno) };
        apply(&mut self.state, PromoteEpochs { promotions: vec![promotion], joined: Vec::new() });
    }

    /// Advances time, delivers all heartbeats, and carries out the plan except repairs.
    fn pass(&mut self, ms: u64) -> Plan {
        self.now_ms += ms;
        for heartbeat in self.alive.values() {
            self.leader.record_heartbeat(heartbeat.clone(), self.now_ms);
        }
        let mut plan = Plan::default();
        self.leader.moves.plan(&self.state, &self.leader.heartbeats, self.now_ms, &mut plan);
        for command in &plan.commands {
            let request = command.clone().into();
            self.state.apply(self.now_ms, &Decisions::at(self.now_ms), &request);
        }
        plan
    }

    fn stages(&self) -> Vec<MoveStage> {
        let moves = &self.state.indexes().next().unwrap().info.moves;
        moves.iter().map(|m| m.stage).collect()
    }

    fn undone(&self) -> Vec<String> {
        let ended = self.state.catalog().ended_moves;
        ended.into_iter().filter_map(|ended| ended.undone).collect()
    }

    /// Starts a move of slice 0 from node 20 to node 22, and advances it to the comparison of the
    /// copies.
    fn installed(&mut self) -> MoveId {
        let id = self.start(&[planned(0, 20, 22)])[0];
        advance(&mut self.state, id, MoveStage::Catchup);
        self.says(22, id, MovePhase::Installed, None);
        self.reads(22, 0, 1);
        id
    }
}

fn leader(since_ms: u64) -> Leader {
    Leader::new(1, since_ms, 20, MoveSettings::default())
}

fn slice_id(slice: u16) -> SliceId {
    SliceId { index: INDEX, generation: Generation(1), slice: SliceNo(slice) }
}

#[test]
fn a_move_survives_changes_of_leader() {
    // Without a change of leader, then with one at each stage.
    for changes in [false, true] {
        let mut world = World::new(0);
        let change = |world: &mut World| {
            if changes {
                world.change_leader()
            }
        };
        let id = world.start(&[planned(0, 20, 22)])[0];
        change(&mut world);
        world.pass(SECOND);
        assert_eq!(world.stages(), [MoveStage::Pending]);
        change(&mut world);
        world.says(22, id, MovePhase::Copying, None);
        assert_eq!(world.pass(SECOND).commands, []);
        world.says(22, id, MovePhase::Copied, None);
        world.pass(SECOND);
        assert_eq!(world.stages(), [MoveStage::Catchup]);
        change(&mut world);
        assert_eq!(
            world.pass(SECOND),
            Plan { next_ms: Some(world.now_ms + 500), ..Plan::default() }
        );

        world.says(22, id, MovePhase::Installed, None);
        world.reads(22, 0, 1);
        let checks = world.pass(SECOND).checks;
        assert_eq!((checks.len(), checks[0].source.0, checks[0].target.0), (1, 20, 22));
        change(&mut world);
        let again = world.pass(SECOND).checks;
        assert_eq!(again, if changes { checks.clone() } else { vec![] }, "asked once");
        world.leader.finish_check(&checks[0], Ok(((5, 9), (5, 9))), world.now_ms);
        world.pass(SECOND);
        assert_eq!((world.stages(), copies(&world.state, 0)), (vec![MoveStage::Done], vec![22]));

        change(&mut world);
        (0..4).for_each(|_| assert_eq!(world.pass(SECOND).commands, []));
        (0..12).for_each(|_| drop(world.pass(SECOND)));
        assert_eq!(world.stages(), []);
        assert_eq!(world.state.catalog().ended_moves[0].undone, None);
        assert_eq!(world.pass(SECOND), Plan::default(), "nothing is left to look at");
    }
}

#[test]
fn a_node_takes_part_in_few_moves_at_a_time_and_others_pass() {
    let mut world = World::new(0);
    world.leader.moves.settings = MoveSettings { targets_max: 1, ..MoveSettings::default() };
    let ids = world.start(&[planned(0, 20, 22), planned(2, 20, 22), planned(1, 21, 23)]);
    world.pass(SECOND);
    assert_eq!(world.stages(), [MoveStage::Pending, MoveStage::Start, MoveStage::Pending]);
    advance(&mut world.state, ids[0], MoveStage::Catchup);
    assert_eq!(world.pass(SECOND).commands, [], "the target is still busy");
    advance(&mut world.state, ids[0], MoveStage::Done);
    world.pass(SECOND);
    assert_eq!(world.stages()[1], MoveStage::Pending);

    let of = |settings| {
        let mut world = World::new(0);
        world.leader.moves.settings = settings;
        world.start(&[planned(0, 20, 22), planned(2, 20, 23), planned(1, 21, 22)]);
        world.pass(SECOND);
        world.stages().iter().filter(|stage| **stage == MoveStage::Pending).count()
    };
    assert_eq!(of(MoveSettings { sources_max: 1, ..MoveSettings::default() }), 2);
    assert_eq!(of(MoveSettings { in_all_max: 1, ..MoveSettings::default() }), 1);
    assert_eq!(of(MoveSettings::default()), 3);
}

#[test]
fn a_dead_target_is_abandoned_in_every_stage() {
    for stage in [MoveStage::Start, MoveStage::Pending, MoveStage::Catchup] {
        let mut world = World::new(0);
        world.pass(0);
        world.alive.remove(&NodeId(22));
        world.pass(10 * SECOND);
        let id = world.start(&[planned(0, 20, 22)])[0];
        advance(&mut world.state, id, stage);
        world.pass(49 * SECOND);
        assert_eq!(world.stages(), [stage], "it may come back");
        world.pass(SECOND);
        assert_eq!(world.stages(), []);
        assert_eq!(world.undone(), ["target node 22 has been silent for 60 s"]);
        assert_eq!(copies(&world.state, 0), [20]);
    }
}

#[test]
fn a_new_leader_restarts_the_timeout_of_a_target() {
    let mut world = World::new(0);
    world.start(&[planned(0, 20, 22)]);
    world.alive.remove(&NodeId(22));
    world.change_leader();
    world.pass(59 * SECOND);
    assert_eq!(world.stages(), [MoveStage::Start]);
    world.pass(SECOND);
    assert_eq!(world.stages(), []);
}

#[test]
fn another_copy_replaces_a_dead_source() {
    let mut world = World::new(1);
    let id = world.installed();
    world.alive.remove(&NodeId(20));
    let checks = world.pass(SECOND).checks;
    assert_eq!((checks[0].id, checks[0].source), (id, NodeId(21)));
    world.leader.finish_check(&checks[0], Ok(((1, 1), (1, 1))), world.now_ms);
    world.pass(SECOND);
    assert_eq!(copies(&world.state, 0), [22, 21]);
}

#[test]
fn a_move_waits_for_a_source_with_the_only_copy() {
    let mut world = World::new(0);
    world.installed();
    let asleep = world.alive.remove(&NodeId(20)).unwrap();
    world.says(22, MoveId(1), MovePhase::Copying, Some("node 20 does not answer"));
    (0..20).for_each(|_| assert_eq!(world.pass(10 * SECOND).commands, []));
    world.alive.insert(NodeId(20), asleep);
    world.says(22, MoveId(1), MovePhase::Installed, None);
    assert_eq!(world.pass(SECOND).checks.len(), 1);

    let mut world = World::new(0);
    world.alive.remove(&NodeId(20));
    world.start(&[planned(0, 20, 22)]);
    assert_eq!(world.pass(20 * SECOND).commands, [], "no move begins either");
}

#[test]
fn a_move_ends_when_each_node_with_the_slice_is_gone() {
    for stage in [MoveStage::Start, MoveStage::Pending, MoveStage::Catchup] {
        let mut world = World::new(0);
        world.pass(0);
        world.alive.remove(&NodeId(20));
        (0..10).for_each(|_| drop(world.pass(SECOND)));
        let id = world.start(&[planned(0, 20, 22)])[0];
        advance(&mut world.state, id, stage);
        (0..589).for_each(|_| drop(world.pass(SECOND)));
        assert_eq!(world.stages(), [stage], "it may come back");
        world.pass(SECOND);
        assert_eq!(world.stages(), []);
        assert_eq!(world.undone(), ["each node with the slice has been silent for 600 s"]);
    }
}

#[test]
fn a_slice_that_its_node_builds_is_not_copied_from_there() {
    let mut world = World::new(1);
    let slices = &mut world.indexer(20).slices;
    slices.clear();
    world.reads(20, 0, 1);
    world.indexer(20).slices[0].floor = None;
    let id = world.start(&[planned(0, 20, 22)])[0];
    world.pass(SECOND);
    assert_eq!(world.stages(), [MoveStage::Pending], "another node has it");
    done(&mut world.state, RemoveNode { node: NodeId(21), force: false });
    world.says(22, id, MovePhase::Copying, Some("node 20 does not have the slice"));
    (0..120).for_each(|_| drop(world.pass(SECOND)));
    assert_eq!(world.stages(), [MoveStage::Pending], "it waits for the end of the build");
}

#[test]
fn copies_that_differ_undo_the_move_with_a_reason() {
    let undone = |source: Checksum, target: Checksum| {
        let mut world = World::new(0);
        world.installed();
        let check = world.pass(SECOND).checks.remove(0);
        world.leader.finish_check(&check, Ok((source, target)), world.now_ms);
        world.pass(SECOND);
        assert_eq!((world.stages(), copies(&world.state, 0)), (vec![], vec![20]));
        world.undone()
    };
    assert_eq!(
        undone((0xAB, 9), (0xCD, 8)),
        ["checksums differ at epoch 1: 00000000000000ab of 9 entries on node 20, \
          00000000000000cd of 8 entries on node 22"]
    );
    for (source, target) in [((0xAB, 9), (0xCD, 9)), ((0xAB, 9), (0xAB, 8))] {
        assert_eq!(undone(source, target).len(), 1, "{source:?} on the source, {target:?}");
    }
}

#[test]
fn a_failed_check_is_repeated_and_a_late_result_is_ignored() {
    let mut world = World::new(0);
    world.installed();
    let first = world.pass(SECOND).checks.remove(0);
    let gone = || Err(Error::new(ErrorCode::SnapshotTooOld, "the epoch is gone"));
    world.leader.finish_check(&first, gone(), world.now_ms);
    assert_eq!(world.pass(SECOND / 2).checks, []);
    world.publish(1, 1);
    [20, 22].iter().for_each(|node| world.applied(*node, 2));
    let second = world.pass(SECOND).checks.remove(0);
    assert_eq!((first.epoch, second.epoch), (Epoch(1), Epoch(2)), "at the newest");
    world.leader.finish_check(&first, Ok(((1, 1), (2, 2))), world.now_ms);
    assert_eq!(world.pass(SECOND), Plan { next_ms: Some(world.now_ms + 500), ..Plan::default() });
    world.leader.finish_check(&second, Ok(((1, 1), (1, 1))), world.now_ms);
    world.pass(SECOND);
    assert_eq!(world.stages(), [MoveStage::Done]);
}

#[test]
fn copies_are_compared_at_an_epoch_that_both_can_answer() {
    let mut world = World::new(0);
    (1..=4).for_each(|seqno| world.publish(seqno, 1));
    world.installed();
    let mut epoch = |source: u64, target: u64, floor: u64| {
        world.change_leader();
        world.applied(20, source);
        world.applied(22, target);
        world.indexer(22).slices.clear();
        world.reads(22, 0, floor);
        world.pass(SECOND).checks.first().map(|check| check.epoch.0)
    };
    assert_eq!(epoch(5, 4, 1), None, "the target has not applied what came before the catch-up");
    assert_eq!(epoch(4, 5, 1), None, "the source has not applied it");
    assert_eq!(epoch(7, 6, 1), Some(6));
    assert_eq!(epoch(5, 7, 6), None, "below the target's floor");
    assert_eq!(epoch(7, 7, 7), Some(7));
    world.publish(5, 1);
    world.publish(6, 7);
    world.indexer(22).slices.clear();
    world.change_leader();
    assert_eq!(world.pass(SECOND).checks, [], "the target does not show it");
}

#[test]
fn a_hand_over_is_cancelled_once_and_nothing_follows() {
    for stage in [MoveStage::Start, MoveStage::Pending, MoveStage::Catchup] {
        let mut world = World::new(0);
        let id = world.installed();
        if stage < MoveStage::Catchup {
            done(&mut world.state, CancelMoves { index: None });
            let id = world.start(&[planned(0, 20, 22)])[0];
            advance(&mut world.state, id, stage);
        }
        let check = world.pass(0).checks.pop();
        done(&mut world.state, CancelMoves { index: None });
        if let Some(check) = check {
            assert_eq!(check.id, id);
            world.leader.finish_check(&check, Ok(((1, 1), (1, 1))), world.now_ms);
        }
        assert_eq!(world.pass(SECOND), Plan::default(), "{stage:?}");
        assert_eq!(copies(&world.state, 0), [20]);
    }
}

#[test]
fn a_target_without_progress_is_abandoned_with_its_trouble() {
    let mut world = World::new(0);
    let id = world.start(&[planned(0, 20, 22)])[0];
    world.pass(SECOND);
    let mut trouble = |phase, trouble: Option<&str>, s: u64| {
        world.says(22, id, phase, trouble);
        (0..s).for_each(|_| drop(world.pass(SECOND)));
        world.undone()
    };
    let none: [&str; 0] = [];
    assert_eq!(trouble(MovePhase::Copying, None, 100), none, "slow is no trouble");
    assert_eq!(trouble(MovePhase::Copying, Some("the disk is full"), 59), none);
    assert_eq!(trouble(MovePhase::Copying, None, 1), none, "the target has room again");
    assert_eq!(trouble(MovePhase::Copying, Some("the disk is full"), 60), none);
    let why = ["the target has made no progress for 60 s: the disk is full"];
    assert_eq!(trouble(MovePhase::Copying, Some("the disk is full"), 1), why);
}

/// Returns a world with a move that has just become done, at epoch 2 of the bucket.
fn just_done() -> World {
    let mut world = World::new(0);
    world.publish(1, 1);
    let id = world.installed();
    advance(&mut world.state, id, MoveStage::Done);
    world.pass(0);
    world
}

#[test]
fn a_source_is_kept_until_no_scan_can_ask_for_it() {
    let mut world = just_done();
    let router = |epoch| with_leases(30, vec![(BUCKET, Epoch(epoch))], 0);
    world.alive.insert(NodeId(30), router(2));
    (0..60).for_each(|_| drop(world.pass(SECOND)));
    assert_eq!(world.stages(), [MoveStage::Done], "a scan reads the epoch of the move");
    world.publish(2, 1);
    world.alive.insert(NodeId(30), router(3));
    world.pass(SECOND);
    assert_eq!(world.stages(), [], "later ones go by the new topology");

    let mut world = just_done();
    let of = |moment| with_moments(30, vec![moment]);
    world.alive.insert(NodeId(30), of(Moment::at(world.state.position())));
    (0..60).for_each(|_| drop(world.pass(SECOND)));
    assert_eq!(world.stages(), [MoveStage::Done], "a transaction may read at its moment");
    world.publish(2, 1);
    world.alive.insert(NodeId(30), of(Moment::at(world.state.position())));
    world.pass(SECOND);
    assert_eq!(world.stages(), [], "a later one goes by the new topology");

    let mut world = just_done();
    world.alive.insert(NodeId(30), router(2));
    world.publish(2, 3);
    world.pass(4 * SECOND);
    assert_eq!(world.stages(), [MoveStage::Done], "some seconds in any case");
    world.pass(SECOND);
    assert_eq!(world.stages(), [], "below the horizon a lease holds nothing");

    let mut world = just_done();
    world.change_leader();
    (0..9).for_each(|_| drop(world.pass(SECOND)));
    assert_eq!(world.stages(), [MoveStage::Done], "a new leader does not know the leases yet");
    world.alive.insert(NodeId(30), router(2));
    (0..LEASE_AGE_MS_MAX / SECOND).for_each(|_| drop(world.pass(SECOND)));
    assert_eq!(world.stages(), [], "no scan is that old");
}

/// Without writes, all scans read the same epoch, and some scan runs at any time.
#[test]
fn scans_that_began_after_a_move_hold_no_source_in_an_idle_bucket() {
    let mut world = just_done();
    let cas = world.state.catalog_cas();
    let router = |epoch, reads_since| with_leases(30, vec![(BUCKET, Epoch(epoch))], reads_since);
    world.alive.insert(NodeId(30), router(2, cas - 1));
    (0..60).for_each(|_| drop(world.pass(SECOND)));
    assert_eq!(world.stages(), [MoveStage::Done], "a scan may have begun before");
    world.alive.insert(NodeId(30), router(1, cas));
    (0..60).for_each(|_| drop(world.pass(SECOND)));
    assert_eq!(world.stages(), [MoveStage::Done], "the new copy may not have an older epoch");
    world.alive.insert(NodeId(30), router(2, cas));
    world.pass(SECOND);
    assert_eq!(world.stages(), []);
}

#[test]
fn a_source_is_not_kept_if_the_setting_is_off() {
    let mut world = just_done();
    world.leader.moves.settings.keep_sources = false;
    world.pass(0);
    assert_eq!(world.stages(), []);
}

#[test]
fn a_source_is_kept_while_no_other_copy_is_readable() {
    let mut world = just_done();
    let asleep = world.alive.remove(&NodeId(22)).unwrap();
    (0..60).for_each(|_| drop(world.pass(SECOND)));
    assert_eq!(world.stages(), [MoveStage::Done]);
    world.alive.insert(NodeId(22), asleep);
    world.pass(SECOND);
    assert_eq!(world.stages(), []);
}
