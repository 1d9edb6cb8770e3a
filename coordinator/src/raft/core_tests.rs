//! Three cores on a bad network with bad disks, from one seed. What is proved, for every seed:
//!
//! - no term has two leaders;
//! - no two members apply different commands at one index, across crashes and snapshots;
//! - a command whose outcome its proposer has seen is never lost;
//! - when the faults end, all members agree and a proposal goes through.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proto::env::{real::SystemRandom, sim::SimFs};
use raft::Storage as _;

use super::*;
use crate::raft::log_store::LogStore;

const MEMBERS: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

/// Keeps what it applied.
#[derive(Default)]
struct Journal(Vec<(u64, Vec<u8>)>);

impl StateMachine for Journal {
    type Outcome = ();

    fn apply(&mut self, index: u64, data: &[u8]) -> Result<()> {
        self.0.push((index, data.to_vec()));
        Ok(())
    }

    fn snapshot(&self) -> Result<Vec<u8>> {
        Ok(postcard::to_stdvec(&self.0).unwrap())
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<()> {
        self.0 = postcard::from_bytes(snapshot).unwrap();
        Ok(())
    }
}

fn config(member: NodeId) -> RaftConfig {
    let mut config = RaftConfig::new(member, MEMBERS.to_vec());
    (config.snapshot_entries, config.keep_entries) = (20, 5);
    config
}

struct Running {
    core: RaftCore<Journal>,
    store: LogStore,
    writes: VecDeque<LogWrite>,
}

struct Member {
    id: NodeId,
    fs: SimFs,
    boots: u64,
    running: Option<Running>,
}

impl Member {
    fn start(&mut self, seed: u64) {
        self.fs.restart();
        self.boots += 1;
        let random = Arc::new(SystemRandom::seeded(seed ^ self.id.0 << 32 ^ self.boots));
        let dir: PathBuf = Path::new("/member").join(self.id.to_string());
        let voters = config(self.id).voters();
        let (store, log) = LogStore::open(&self.fs, &dir, self.id, &voters).unwrap();
        let core = RaftCore::new(config(self.id), log, Journal::default(), random).unwrap();
        self.running = Some(Running { core, store, writes: VecDeque::new() });
    }
}

struct World {
    seed: u64,
    random: fastrand::Rng,
    members: Vec<Member>,
    network: Vec<RaftMessage>,
    /// Out of 100: messages that are lost.
    loss: u32,
    cut_off: Option<NodeId>,
    proposals: u64,
    // What the checkers have seen.
    leaders: BTreeMap<u64, NodeId>,
    applied: BTreeMap<u64, Vec<u8>>,
    acknowledged: BTreeMap<u64, Vec<u8>>,
    snapshots_installed: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let member =
            |id: NodeId| Member { id, fs: SimFs::new(seed ^ id.0), boots: 0, running: None };
        let mut world = Self {
            seed,
            random: fastrand::Rng::with_seed(seed),
            members: MEMBERS.into_iter().map(member).collect(),
            network: Vec::new(),
            loss: 0,
            cut_off: None,
            proposals: 0,
            leaders: BTreeMap::new(),
            applied: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            snapshots_installed: 0,
        };
        world.members.iter_mut().for_each(|member| member.start(seed));
        world
    }

    fn with_core(&mut self, at: usize, work: impl FnOnce(&mut RaftCore<Journal>)) {
        if let Some(running) = &mut self.members[at].running {
            work(&mut running.core);
            self.poll(at);
        }
    }

    fn poll(&mut self, at: usize) {
        let member = &mut self.members[at];
        let Some(running) = &mut member.running else { return };
        let before = running.core.machine().0.len();
        let output = running.core.poll().unwrap();
        let applied = &running.core.machine().0;
        if applied.len() > before + output.applied.len() {
            self.snapshots_installed += 1;
        }
        for (index, data) in applied.iter().rev().take(applied.len() - before) {
            let known = self.applied.entry(*index).or_insert_with(|| data.clone());
            assert_eq!(known, data, "seed {}: members differ at {index}", self.seed);
        }
        for applied in output.applied {
            if applied.context.starts_with(&member.id.0.to_le_bytes()) {
                let data = self.applied[&applied.index].clone();
                self.acknowledged.insert(applied.index, data);
            }
        }
        if running.core.is_leader() {
            let term = running.core.role().term;
            let leader = *self.leaders.entry(term).or_insert(member.id);
            assert_eq!(leader, member.id, "seed {}: two leaders in term {term}", self.seed);
        }
        running.writes.extend(output.write);
        self.network.extend(output.messages);
    }

    fn propose(&mut self, at: usize) -> bool {
        self.proposals += 1;
        let command = Bytes::from(format!("command {}", self.proposals));
        let context = Bytes::copy_from_slice(&self.members[at].id.0.to_le_bytes());
        let mut accepted = false;
        self.with_core(at, |core| accepted = core.propose(context, command).is_ok());
        accepted
    }

    fn deliver(&mut self) {
        if self.network.is_empty() {
            return;
        }
        let message = self.network.swap_remove(self.random.usize(..self.network.len()));
        let cut = [Some(message.from), Some(message.to)].contains(&self.cut_off);
        if cut || self.random.u32(..100) < self.loss {
            return;
        }
        if self.random.u32(..100) < self.loss / 4 {
            self.network.push(message.clone());
        }
        let message = RaftMessage::decode(&message.encode().unwrap()).unwrap();
        let at = message.to.0 as usize - 1;
        self.with_core(at, |core| core.step(message).unwrap());
    }

    /// Writes what gathered, as one durable transaction; a crash may come in the middle.
    fn write(&mut self, at: usize) {
        let Some(running) = &mut self.members[at].running else { return };
        let writes: Vec<_> = running.writes.drain(..).collect();
        let Some(number) = writes.iter().map(|write| write.number).max() else { return };
        match running.store.commit(&writes) {
            Ok(()) => self.with_core(at, |core| core.persisted(number)),
            Err(_) => self.members[at].running = None,
        }
    }

    fn crash(&mut self, at: usize) {
        self.members[at].fs.crash();
        self.members[at].running = None;
    }

    fn step(&mut self) {
        let at = self.random.usize(..MEMBERS.len());
        match self.random.u32(..1000) {
            0..60 => self.with_core(at, RaftCore::tick),
            60..160 => drop(self.propose(at)),
            160..300 => self.write(at),
            300..302 => self.crash(at),
            302..305 => {
                let member = &self.members[at];
                member.fs.crash_at(member.fs.operations() + self.random.u64(1..30));
            }
            305..312 => {
                if self.members[at].running.is_none() {
                    self.members[at].start(self.seed);
                }
            }
            312..314 => self.cut_off = Some(MEMBERS[at]),
            314..320 => self.cut_off = None,
            320..324 => self.loss = [0, 5, 30][self.random.usize(..3)],
            _ => self.deliver(),
        }
    }

    /// Ends the faults and lets time pass until all is quiet.
    fn heal(&mut self) {
        (self.loss, self.cut_off) = (0, None);
        for at in 0..MEMBERS.len() {
            self.crash(at);
            self.members[at].start(self.seed);
        }
        self.run_ticks(150);
    }

    fn run_ticks(&mut self, ticks: usize) {
        for _ in 0..ticks {
            for at in 0..MEMBERS.len() {
                self.with_core(at, RaftCore::tick);
            }
            self.settle();
        }
    }

    /// Delivers and writes until nothing is on its way.
    fn settle(&mut self) {
        let writes_wait = |world: &Self| {
            world.members.iter().any(|m| m.running.as_ref().is_some_and(|r| !r.writes.is_empty()))
        };
        while !self.network.is_empty() || writes_wait(self) {
            self.deliver();
            (0..MEMBERS.len()).for_each(|at| self.write(at));
        }
    }

    fn leader(&self) -> Option<usize> {
        let leads = |member: &Member| {
            member.running.as_ref().is_some_and(|running| running.core.role().leads)
        };
        self.members.iter().position(leads)
    }

    fn journal(&self, at: usize) -> &[(u64, Vec<u8>)] {
        &self.members[at].running.as_ref().unwrap().core.machine().0
    }

    /// A trace to compare runs by.
    fn digest(&self) -> String {
        let operations: Vec<u64> = self.members.iter().map(|m| m.fs.operations()).collect();
        format!("{operations:?} {} {:?} {:?}", self.proposals, self.leaders, self.applied)
    }
}

fn run(seed: u64, steps: usize) -> World {
    let mut world = World::new(seed);
    (0..steps).for_each(|_| world.step());
    world.heal();
    let leader = world.leader().unwrap_or_else(|| panic!("seed {seed}: no leader after healing"));
    assert!(world.propose(leader));
    world.run_ticks(10);
    let journal = world.journal(leader).to_vec();
    assert_eq!(journal.last().unwrap().1, format!("command {}", world.proposals).into_bytes());
    for at in 0..MEMBERS.len() {
        assert!(world.journal(at) == journal, "seed {seed}: member {} differs", at + 1);
    }
    let entries: BTreeMap<_, _> = journal.into_iter().collect();
    for (index, data) in &world.acknowledged {
        assert_eq!(entries.get(index), Some(data), "seed {seed}: acknowledged and lost: {index}");
    }
    world
}

#[test]
fn faults_never_break_the_promises() {
    let (mut acknowledged, mut terms, mut snapshots) = (0, 0, 0);
    for seed in 0..100 {
        let world = run(seed, 4000);
        acknowledged += world.acknowledged.len();
        terms += world.leaders.len();
        snapshots += world.snapshots_installed;
    }
    assert!(acknowledged > 1000 && terms > 200, "{acknowledged} commands, {terms} terms");
    assert!(snapshots > 0, "no member was ever far behind");
}

#[test]
fn a_run_follows_from_its_seed() {
    assert!(run(77, 3000).digest() == run(77, 3000).digest());
}

#[test]
fn an_idle_proposal_commits_in_one_round_of_writes() {
    let mut world = World::new(1);
    world.run_ticks(40);
    let leader = world.leader().unwrap();
    assert!(world.propose(leader));
    let before = world.journal(leader).len();
    // The entries leave before the leader's own write; then each member writes once, side by side.
    assert_eq!(world.network.iter().filter(|message| !message.entries.is_empty()).count(), 2);
    for _ in 0..2 {
        world.deliver();
    }
    (0..MEMBERS.len()).for_each(|at| world.write(at));
    while !world.network.is_empty() {
        world.deliver();
    }
    assert_eq!(world.journal(leader).len(), before + 1);
}

#[test]
fn a_leader_that_vanishes_is_replaced_within_a_second_and_a_half() {
    for seed in 0..10 {
        let mut world = World::new(seed);
        world.run_ticks(40);
        let leader = world.leader().unwrap();
        world.crash(leader);
        let ticks = (0..)
            .find(|_| {
                world.run_ticks(1);
                world.leader().is_some()
            })
            .unwrap();
        assert!(ticks * config(MEMBERS[0]).tick_ms <= 1500, "seed {seed}: {ticks} ticks");
    }
}

#[test]
fn a_member_that_was_down_for_long_gets_a_snapshot_and_a_short_log() {
    let mut world = World::new(3);
    world.run_ticks(40);
    let leader = world.leader().unwrap();
    let down = (leader + 1) % MEMBERS.len();
    world.crash(down);
    for _ in 0..100 {
        assert!(world.propose(leader));
        world.settle();
    }
    let log = world.members[leader].running.as_ref().unwrap().core.node.store();
    assert!(log.first_index().unwrap() > 50 && log.entries.len() < 40, "the log is kept short");
    world.members[down].start(3);
    world.run_ticks(100);
    assert_eq!(world.snapshots_installed, 1);
    assert_eq!(world.journal(down), world.journal(leader));
    world.crash(down);
    world.members[down].start(3);
    world.run_ticks(20);
    assert_eq!(world.journal(down), world.journal(leader), "also after a restart");
}

#[test]
fn nonsense_from_a_peer_is_dropped() {
    let mut world = World::new(1);
    world.run_ticks(40);
    let leader = world.leader().unwrap();
    let follower = (leader + 1) % MEMBERS.len();
    assert!(world.propose(leader));
    let good = world.network.iter().find(|message| !message.entries.is_empty()).unwrap().clone();
    let good = RaftMessage { to: MEMBERS[follower], ..good };
    let entry = good.entries[0].clone();
    let gap = vec![entry.clone(), super::super::wire::LogEntry { index: entry.index + 5, ..entry }];
    let bad = [
        RaftMessage { from: NodeId(9), ..good.clone() },
        RaftMessage { to: NodeId(9), ..good.clone() },
        RaftMessage { from: good.to, ..good.clone() },
        RaftMessage { term: 0, ..good.clone() },
        RaftMessage { entries: gap, ..good.clone() },
        RaftMessage { kind: MessageKind::Snapshot, ..good.clone() },
    ];
    for message in bad {
        world.with_core(follower, |core| core.step(message).unwrap());
    }
    let heartbeat = RaftMessage {
        kind: MessageKind::Heartbeat,
        commit: 1_000_000,
        entries: Vec::new(),
        ..good
    };
    let core = &mut world.members[follower].running.as_mut().unwrap().core;
    assert_eq!(core.step(heartbeat).unwrap_err().code, ErrorCode::Corrupt);
}
