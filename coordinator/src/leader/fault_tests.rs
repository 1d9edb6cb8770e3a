//! Tests moves of slices while leaders, members and nodes fail. Each slice stays readable where the
//! topology says, and after the last fault everything becomes as requested.
//!
//! Each step takes one second. Nodes are numbers and sets: a target needs a few steps per phase,
//! loses nothing in a crash, and its copy is good or bad. The readable copies are tracked by these
//! rules alone, independently of the StateContext.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::model::cut::Cut;
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, MoveId, NodeId, SliceId, SliceNo,
};
use proto::model::index::IndexInfo;
use proto::model::moves::{MovePhase, MoveProgress, MoveStage, RebalanceRequest, SliceMove};
use proto::model::topology::TopologyProvider;
use proto::rpc::api::{BucketProgress, Heartbeat, IndexerReport, SliceProgress};
use proto::rpc::command::{
    CancelMoves, Command, DrainNode, PromoteEpochs, Promotion, Proposal, SetReplicas, StartMoves,
};

use super::*;
use crate::state::Decisions;
use crate::state::StateContext;
use crate::state::tests::{apply, promotion, serving};

const NODES: std::ops::Range<u64> = 20..24;
const SECOND: u64 = 1_000;

struct World {
    random: fastrand::Rng,
    state: StateContext,
    leader: Leader,
    now_ms: u64,
    seqno: u64,
    dead: BTreeSet<NodeId>,
    /// The readable copies.
    read: BTreeSet<(NodeId, SliceNo)>,
    phases: BTreeMap<MoveId, MovePhase>,
    /// Moves whose copy differs from that of the source.
    bad: BTreeSet<MoveId>,
    checks: Vec<CopyCheck>,
}

impl World {
    fn new(seed: u64) -> Self {
        let state = serving((seed % 2) as u8);
        let info = &state.indexes().next().unwrap().info;
        let of = |node| move |slice| (node, slice);
        let nodes = NODES.map(NodeId);
        let read = nodes.flat_map(|node| info.topology.slices_on(node).into_iter().map(of(node)));
        Self {
            random: fastrand::Rng::with_seed(seed),
            read: read.collect(),
            leader: leader(0),
            now_ms: 0,
            seqno: 0,
            dead: BTreeSet::new(),
            phases: BTreeMap::new(),
            bad: BTreeSet::new(),
            checks: Vec::new(),
            state,
        }
    }

    fn info(&self) -> Arc<IndexInfo> {
        self.state.indexes().next().unwrap().info.clone()
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.random.u32(..n) == 0
    }

    fn node(&mut self) -> NodeId {
        NodeId(self.random.u64(NODES))
    }

    fn command(&mut self, command: Command) {
        apply(&mut self.state, command);
    }

    /// Injects a fault or a request.
    fn disturb(&mut self) {
        let node = self.node();
        match self.random.u8(..40) {
            0 | 1 => self.leader = leader(self.now_ms),
            2 | 3 => drop(self.dead.insert(node)),
            4..=8 => drop(self.dead.pop_first()),
            9 => self.command(Command::CancelMoves(CancelMoves { index: None })),
            10 => self.command(Command::DrainNode(DrainNode { node, drain: true })),
            11..=13 => self.command(Command::DrainNode(DrainNode { node, drain: false })),
            14 => {
                let replicas = self.random.u8(..2);
                self.command(Command::SetReplicas(SetReplicas { index: IndexId(1), replicas }));
            }
            15..=17 => {
                let request = RebalanceRequest { index: None, dry_run: false };
                if let Ok(plan) = self.leader.rebalance(&self.state, &request, self.now_ms) {
                    self.command(Command::StartMoves(StartMoves { moves: plan.moves }));
                }
            }
            _ => {}
        }
    }

    /// Advances the target of a move by one phase, if the stage of the move allows it.
    fn work(&mut self) {
        let info = self.info();
        let reads: BTreeSet<_> = self
            .read
            .iter()
            .copied()
            .filter(|(node, slice)| info.may_keep(*node, *slice))
            .collect();
        self.read = reads;
        for m in &info.moves {
            let Some(to) = m.to.filter(|to| !self.dead.contains(to)) else { continue };
            if !self.one_in(3) {
                continue;
            }
            let copies = info.topology.replicas(m.slice);
            let lives =
                |node: &NodeId| !self.dead.contains(node) && self.read.contains(&(*node, m.slice));
            let next = match m.stage {
                MoveStage::Pending if copies.iter().any(lives) => MovePhase::Copied,
                MoveStage::Catchup => MovePhase::Installed,
                _ => continue,
            };
            self.phases.insert(m.id, next);
            if next == MovePhase::Installed && self.read.insert((to, m.slice)) && self.one_in(8) {
                self.bad.insert(m.id);
            }
        }
    }

    fn says(&self, node: NodeId) -> Heartbeat {
        let epoch = Epoch(self.seqno + 1);
        let bucket = BucketProgress {
            bucket: BucketId(1),
            high_watermark: Cut::zero(2),
            applied: epoch,
            durable: epoch,
            queue_bytes: 0,
            queue_bytes_max: 1,
        };
        let slice = |slice: SliceNo| SliceProgress {
            slice: SliceId { index: IndexId(1), generation: Generation(1), slice },
            floor: Some(Epoch(1)),
            entries: 1,
            bytes: 1,
            live_bytes: Some(1),
            built_percent: None,
            seconds_left: None,
            copied_from: None,
            trouble: None,
        };
        let progress = |m: &SliceMove| MoveProgress {
            index: LocalIndexId { index: IndexId(1), generation: Generation(1) },
            id: m.id,
            phase: self.phases.get(&m.id).copied().unwrap_or(MovePhase::Copying),
            bytes: 0,
            bytes_total: 0,
            bytes_per_s: 0,
            trouble: None,
        };
        let info = self.info();
        let report = IndexerReport {
            buckets: vec![bucket],
            slices: self.read.iter().filter(|(n, _)| *n == node).map(|(_, s)| slice(*s)).collect(),
            moves: info.moves.iter().filter(|m| m.to == Some(node)).map(progress).collect(),
            ..IndexerReport::default()
        };
        Heartbeat::new(node, 0, report)
    }

    fn answer_checks(&mut self) {
        for check in std::mem::take(&mut self.checks) {
            let reads =
                |node| !self.dead.contains(&node) && self.read.contains(&(node, check.slice.slice));
            let same = u64::from(self.bad.contains(&check.id));
            let result = match reads(check.source) && reads(check.target) {
                true => Ok(((0, 0), (same, 0))),
                false => Err(proto::Error::unavailable("no answer in time")),
            };
            self.leader.finish_check(&check, result, self.now_ms);
        }
    }

    fn step(&mut self) {
        self.now_ms += SECOND;
        if self.one_in(2) {
            self.seqno += 1;
            let horizon = Epoch(self.seqno.saturating_sub(5).max(1));
            let promotion = Promotion { horizon, ..promotion(0, 7, self.seqno) };
            self.command(Command::PromoteEpochs(PromoteEpochs {
                promotions: vec![promotion],
                joined: Vec::new(),
            }));
        }
        self.work();
        for node in NODES.map(NodeId).filter(|node| !self.dead.contains(node)) {
            let said = self.says(node);
            self.leader.record_heartbeat(said, self.now_ms);
        }
        if self.one_in(2) {
            self.answer_checks();
        }
        let plan = self.leader.plan(&self.state, self.now_ms);
        self.checks.extend(plan.checks);
        for command in plan.commands {
            // The last proposals of a leader may be lost.
            if !self.one_in(20) {
                let request = Proposal::from(command);
                self.state.apply(self.now_ms, &Decisions::at(self.now_ms), &request);
            }
        }
        self.check();
    }

    /// Checks that every copy that the topology names is readable and good.
    fn check(&self) {
        let info = self.info();
        for (slice, copies) in info.topology.placement.iter().enumerate() {
            let slice = SliceNo(slice as u16);
            assert!(copies.iter().all(|node| self.read.contains(&(*node, slice))), "{copies:?}");
        }
        let bad = |m: &SliceMove| self.bad.contains(&m.id);
        assert!(!info.moves.iter().any(|m| m.stage == MoveStage::Done && bad(m)));
    }
}

fn leader(since_ms: u64) -> Leader {
    Leader::new(1, since_ms, 20, MoveSettings::default())
}

#[test]
fn every_slice_stays_readable_and_all_moves_end_despite_failures() {
    let mut ended = (0, 0);
    for seed in 0..30 {
        let mut world = World::new(seed);
        for _ in 0..600 {
            world.disturb();
            world.step();
        }
        world.dead.clear();
        (0..400).for_each(|_| world.step());
        let info = world.info();
        assert!(info.moves.is_empty(), "seed {seed}: {:?}", info.moves);
        for copies in &info.topology.placement {
            assert_eq!(copies.len(), usize::from(info.spec.replicas) + 1, "seed {seed}");
            assert!(!copies.iter().any(|node| world.state.is_draining(*node)), "seed {seed}");
        }
        let catalog = world.state.catalog();
        let undone = catalog.ended_moves.iter().filter(|ended| ended.undone.is_some()).count();
        ended.0 += undone;
        ended.1 += catalog.ended_moves.len() - undone;
    }
    assert!(ended.0 > 50 && ended.1 > 50, "undone and carried out: {ended:?}");
}
