//! Three Raft cores with an unreliable network and unreliable disks, from one seed. In every other
//! seed members are added and removed (`changes`). For every seed, the test checks:
//!
//! - no term has two leaders;
//! - no two members apply different commands at one index, across crashes and snapshots;
//! - a command whose outcome its proposer has received is never lost;
//! - after the faults, all members agree, all learners vote, and a proposal succeeds.
//!
//! A violation is a panic that names the seed.

mod changes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use coordinator::RaftConfig;
use coordinator::testing::{LogStore, LogWrite, MemoryLog, RaftCore, RaftMessage, StateMachine};
use proto::Result;
use proto::env::{real::SeededRandom, sim::SimFs};
use proto::model::ids::NodeId;

/// The founding members.
pub const MEMBERS: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

/// A state machine that records the applied commands.
#[derive(Default)]
pub struct Journal(Vec<(u64, Vec<u8>)>);

impl StateMachine for Journal {
    type Outcome = ();

    fn apply(&mut self, index: u64, data: &[u8]) -> Result<()> {
        self.0.push((index, data.to_vec()));
        Ok(())
    }

    fn snapshot(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec(&self.0).expect("a journal is JSON"))
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<()> {
        self.0 = serde_json::from_slice(snapshot).expect("a journal");
        Ok(())
    }
}

/// The members that may be added.
const JOINING: [NodeId; 3] = [NodeId(4), NodeId(5), NodeId(6)];

/// The settings of a member: early snapshots and a short log.
pub fn config(member: NodeId) -> RaftConfig {
    let founds = MEMBERS.contains(&member);
    let mut config = RaftConfig::new(member, if founds { MEMBERS.to_vec() } else { Vec::new() });
    (config.snapshot_entries, config.keep_entries) = (20, 5);
    config
}

/// The facts on which all members must agree, as they were first observed.
#[derive(Default)]
pub struct Agreement {
    /// The leader of each term.
    pub leaders: BTreeMap<u64, NodeId>,
    /// The command at each index of the log.
    pub applied: BTreeMap<u64, Vec<u8>>,
}

impl Agreement {
    /// Records that a member leads a term; panics if another member leads it.
    pub fn leads(&mut self, term: u64, member: NodeId) {
        let leader = *self.leaders.entry(term).or_insert(member);
        assert_eq!(leader, member, "two leaders in term {term}");
    }

    /// Records that a member applied a command; panics if another member has another command at
    /// this index.
    pub fn applied(&mut self, index: u64, data: &[u8]) {
        let known = self.applied.entry(index).or_insert_with(|| data.to_vec());
        assert!(known == data, "members differ at {index}");
    }
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
    fn open(&self) -> (LogStore, MemoryLog) {
        let dir: PathBuf = Path::new("/member").join(self.id.to_string());
        let voters = config(self.id).voters();
        LogStore::open(&self.fs, &dir, self.id, &voters).expect("a log opens")
    }

    fn start(&mut self, seed: u64) {
        self.fs.restart();
        self.boots += 1;
        let random = Arc::new(SeededRandom::new(seed ^ self.id.0 << 32 ^ self.boots));
        let (store, log) = self.open();
        let core = RaftCore::new(config(self.id), log, Journal::default(), random);
        let core = core.expect("a member starts");
        self.running = Some(Running { core, store, writes: VecDeque::new() });
    }
}

/// The members, the network between them, and the observed facts.
pub struct World {
    seed: u64,
    random: fastrand::Rng,
    members: Vec<Member>,
    /// The messages in flight.
    pub network: Vec<RaftMessage>,
    /// The percentage of lost messages.
    loss: u32,
    /// The members that are partitioned from the others.
    cut_off: BTreeSet<NodeId>,
    proposals: u64,
    /// The number of members that were added.
    added: usize,
    /// The members whose removal was answered, which are switched off.
    gone: BTreeSet<NodeId>,
    /// True if removed members continue to run, so that they may vote for others.
    keeps_removed: bool,
    /// The leader that has just answered a change.
    answering: Option<usize>,
    /// The number of answered changes of the members.
    pub answered: usize,
    /// The number of applied changes of the members.
    pub changes: usize,
    /// The observed facts on which the members must agree.
    pub seen: Agreement,
    /// The commands whose outcome the proposer has received.
    pub acknowledged: BTreeMap<u64, Vec<u8>>,
    /// The number of snapshots that were sent to lagging members.
    pub snapshots_installed: u64,
}

impl World {
    /// Returns a world with three members that have just been started.
    pub fn new(seed: u64) -> Self {
        Self::with_members(seed, &MEMBERS)
    }

    /// Returns a world with the founders, and with members that wait until they are added.
    pub fn with_joining(seed: u64) -> Self {
        Self::with_members(seed, &[MEMBERS, JOINING].concat())
    }

    fn with_members(seed: u64, members: &[NodeId]) -> Self {
        let member =
            |id: NodeId| Member { id, fs: SimFs::new(seed ^ id.0), boots: 0, running: None };
        let mut world = Self {
            seed,
            random: fastrand::Rng::with_seed(seed),
            members: members.iter().copied().map(member).collect(),
            network: Vec::new(),
            loss: 0,
            cut_off: BTreeSet::new(),
            proposals: 0,
            added: 0,
            gone: BTreeSet::new(),
            keeps_removed: false,
            answering: None,
            answered: 0,
            changes: 0,
            seen: Agreement::default(),
            acknowledged: BTreeMap::new(),
            snapshots_installed: 0,
        };
        world.members.iter_mut().for_each(|member| member.start(seed));
        world
    }

    /// Calls a function with the Raft core of a member, if the member runs.
    pub fn with_core(&mut self, at: usize, work: impl FnOnce(&mut RaftCore<Journal>)) {
        if let Some(running) = &mut self.members[at].running {
            work(&mut running.core);
            self.poll(at);
        }
    }

    fn poll(&mut self, at: usize) {
        let member = &mut self.members[at];
        let Some(running) = &mut member.running else { return };
        let before = running.core.machine().0.len();
        let output = running.core.poll().expect("the loop runs");
        let applied = &running.core.machine().0;
        if applied.len() > before + output.applied.len() {
            self.snapshots_installed += 1;
        }
        for (index, data) in applied.iter().rev().take(applied.len() - before) {
            self.seen.applied(*index, data);
        }
        for applied in output.applied {
            if applied.context.starts_with(&member.id.0.to_le_bytes()) {
                let data = self.seen.applied[&applied.index].clone();
                self.acknowledged.insert(applied.index, data);
            }
        }
        if running.core.is_leader() {
            self.seen.leads(running.core.role().term, member.id);
        }
        running.writes.extend(output.write);
        self.network.extend(output.messages);
        self.changes += output.changed.iter().filter(|changed| changed.result.is_ok()).count();
        // A follower has no caller to answer.
        if running.core.is_leader() {
            self.take_answers(at, &output.changed);
        }
    }

    /// Proposes a command to a member; true if the member accepted it.
    pub fn propose(&mut self, at: usize) -> bool {
        self.proposals += 1;
        let command = Bytes::from(format!("command {}", self.proposals));
        let context = Bytes::copy_from_slice(&self.members[at].id.0.to_le_bytes());
        let mut accepted = false;
        self.with_core(at, |core| accepted = core.propose(context, command).is_ok());
        accepted
    }

    /// Delivers, loses or repeats one message.
    pub fn deliver(&mut self) {
        if self.network.is_empty() {
            return;
        }
        let message = self.network.swap_remove(self.random.usize(..self.network.len()));
        let is_cut = self.cut_off.contains(&message.from) != self.cut_off.contains(&message.to);
        if is_cut || self.random.u32(..100) < self.loss {
            return;
        }
        if self.random.u32(..100) < self.loss / 4 {
            self.network.push(message.clone());
        }
        let message = message.encode().and_then(|bytes| RaftMessage::decode(&bytes));
        let message = message.expect("a message comes back");
        let at = message.to.0 as usize - 1;
        self.with_core(at, |core| core.step(message).expect("no member has forgotten"));
    }

    /// Writes the pending entries of a member as one durable transaction, which a crash may
    /// interrupt.
    pub fn write(&mut self, at: usize) {
        let Some(running) = &mut self.members[at].running else { return };
        let writes: Vec<_> = running.writes.drain(..).collect();
        let Some(number) = writes.iter().map(|write| write.number).max() else { return };
        match running.store.commit(&writes) {
            Ok(()) => self.with_core(at, |core| core.persisted(number)),
            Err(_) => self.members[at].running = None,
        }
    }

    /// Crashes a member.
    pub fn crash(&mut self, at: usize) {
        self.members[at].fs.crash();
        self.members[at].running = None;
    }

    fn step(&mut self) {
        let at = self.random.usize(..self.members.len());
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
                    self.start(at);
                }
            }
            312..314 => self.cut_off = BTreeSet::from([self.members[at].id]),
            314..320 => self.cut_off.clear(),
            320..324 => self.loss = [0, 5, 30][self.random.usize(..3)],
            _ => self.deliver(),
        }
    }

    /// Ends the faults and runs until nothing happens any more.
    fn heal(&mut self) {
        (self.loss, self.cut_off) = (0, BTreeSet::new());
        for at in 0..self.members.len() {
            self.crash(at);
            self.start(at);
        }
        self.run_ticks(150);
    }

    /// Runs this number of ticks without faults.
    pub fn run_ticks(&mut self, ticks: usize) {
        for _ in 0..ticks {
            for at in 0..self.members.len() {
                self.with_core(at, RaftCore::tick);
            }
            self.settle();
        }
    }

    /// Restarts a member that is down, unless it was removed.
    pub fn start(&mut self, at: usize) {
        if !self.gone.contains(&self.members[at].id) {
            self.members[at].start(self.seed);
        }
    }

    /// Returns the log on the disk of a stopped member.
    pub fn log_on_disk(&mut self, at: usize) -> MemoryLog {
        let member = &mut self.members[at];
        member.fs.restart();
        member.open().1
    }

    /// Delivers and writes until no message is in flight.
    pub fn settle(&mut self) {
        let writes_wait = |world: &Self| {
            world.members.iter().any(|m| m.running.as_ref().is_some_and(|r| !r.writes.is_empty()))
        };
        while !self.network.is_empty() || writes_wait(self) {
            self.deliver();
            (0..self.members.len()).for_each(|at| self.write(at));
        }
    }

    /// The index of the last entry of a member's log.
    pub fn log_end(&self, at: usize) -> u64 {
        self.members[at].running.as_ref().expect("it runs").core.log_end()
    }

    /// Returns the leading member, if there is one.
    pub fn leader(&self) -> Option<usize> {
        let leads = |member: &Member| {
            member.running.as_ref().is_some_and(|running| running.core.role().leads)
        };
        self.members.iter().position(leads)
    }

    /// The commands that a member has applied.
    pub fn journal(&self, at: usize) -> &[(u64, Vec<u8>)] {
        &self.members[at].running.as_ref().expect("it runs").core.machine().0
    }

    /// Returns a text by which two runs are compared.
    pub fn digest(&self) -> String {
        let operations: Vec<u64> = self.members.iter().map(|m| m.fs.operations()).collect();
        format!("{operations:?} {} {:?} {:?}", self.proposals, self.seen.leaders, self.seen.applied)
    }
}

/// Runs a seed: `steps` steps with faults, then steps without, after which all members must agree.
pub fn run(seed: u64, steps: usize) -> World {
    let changes = seed.is_multiple_of(2);
    let mut world = if changes { World::with_joining(seed) } else { World::new(seed) };
    world.keeps_removed = seed % 8 != 2;
    for _ in 0..steps {
        if changes {
            world.change_step();
        }
        world.step();
    }
    world.heal();
    let leader = world.leader().unwrap_or_else(|| panic!("seed {seed}: no leader after healing"));
    assert!(world.propose(leader));
    world.run_ticks(10);
    let journal = world.journal(leader).to_vec();
    assert_eq!(
        journal.last().expect("a command").1,
        format!("command {}", world.proposals).into_bytes()
    );
    for at in world.present(leader) {
        assert!(world.journal(at) == journal, "seed {seed}: member {} differs", at + 1);
    }
    let entries: BTreeMap<_, _> = journal.into_iter().collect();
    for (index, data) in &world.acknowledged {
        assert_eq!(entries.get(index), Some(data), "seed {seed}: acknowledged and lost: {index}");
    }
    world
}
