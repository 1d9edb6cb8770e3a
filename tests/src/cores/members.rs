//! The coordinators. Each has a Raft core with its log and the StateContext; the leader also has
//! its leader state and a loop in place of the coordinator's driver.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use coordinator::testing::{
    CopyCheck, Decisions, Leader, LogWrite, Machine, MemoryLog, Output, Plan, RaftCore,
    RaftMessage, Replica, StateMachine, encode_record,
};
use coordinator::{MoveSettings, RaftConfig};
use proto::Result;
use proto::env::real::SeededRandom;
use proto::model::ids::{Epoch, NodeId};
use proto::rpc::command::{AppliedCommand, Command, Outcome, PromoteEpochs, Proposal, RequestId};

use super::world::{Event, World};
use crate::raft::MEMBERS;

/// The interval of Raft ticks by the member's clock, in milliseconds.
pub const RAFT_TICK_MS: u64 = 100;
/// The interval between two epochs, in milliseconds.
const EPOCH_TICK_MS: u64 = 150;
/// The pause after a failed proposal, in milliseconds.
const RETRY_MS: u64 = 50;
/// The initial time of all clocks, in milliseconds since 1970.
const UNIX_MS: u64 = 1_700_000_000_000;

/// A state machine that applies commands and keeps them until they are read.
struct Spy {
    machine: Machine,
    seen: Seen,
}

type Seen = Arc<Mutex<Vec<(u64, Vec<u8>)>>>;

impl StateMachine for Spy {
    type Outcome = AppliedCommand;

    fn apply(&mut self, index: u64, data: &[u8]) -> Result<AppliedCommand> {
        self.seen.lock().expect("not poisoned").push((index, data.to_vec()));
        self.machine.apply(index, data)
    }

    fn snapshot(&self) -> Result<Vec<u8>> {
        self.machine.snapshot()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<()> {
        self.machine.restore(snapshot)
    }
}

/// A simulated coordinator.
pub struct Member {
    id: NodeId,
    /// The number of starts of the member.
    pub boot: u64,
    disk: MemoryLog,
    /// The state of the running member; `None` while it is stopped.
    pub running: Option<Running>,
    /// The rate of the member's clock, in percent of the true rate.
    rate: u64,
    /// The offset of the member's clock, in milliseconds.
    pub jump_ms: i64,
}

/// The state of a member that runs.
pub struct Running {
    core: RaftCore<Spy>,
    /// The member's copy of the replicated state.
    pub replica: Arc<Replica>,
    seen: Seen,
    writes: VecDeque<LogWrite>,
    /// The state of the leader, if the member leads.
    pub leading: Option<Leading>,
    requests: BTreeMap<u64, RequestId>,
    /// The number of catalog changes that the judge has checked.
    pub cas: u64,
}

/// The state of a leader.
pub struct Leading {
    /// The product's leader.
    pub leader: Leader,
    term: u64,
    waiting: BTreeSet<u64>,
    promotes_since_ms: Option<u64>,
    refused: bool,
    plan_at_ms: u64,
    /// The leases of the router's newest heartbeat, each with the time of that heartbeat.
    pub reported_leases: BTreeMap<Epoch, u64>,
}

fn config(id: NodeId) -> RaftConfig {
    let mut config = RaftConfig::new(id, MEMBERS.to_vec());
    (config.tick_ms, config.election_ticks) = (RAFT_TICK_MS, 6);
    (config.snapshot_entries, config.keep_entries) = (60, 15);
    config
}

/// Returns settings of moves with short time-outs, so that seeds are short.
fn settings() -> MoveSettings {
    MoveSettings {
        target_silent_ms: 4_000,
        stuck_ms: 4_000,
        node_gone_ms: 8_000,
        ..MoveSettings::default()
    }
}

impl Member {
    /// Returns a member that has never run.
    pub fn new(id: NodeId, rate: u64) -> Self {
        let disk = MemoryLog::new(config(id).voters());
        Self { id, boot: 0, disk, running: None, rate, jump_ms: 0 }
    }

    /// Starts the member from its disk.
    pub fn start(&mut self, seed: u64) {
        self.boot += 1;
        let seen = Seen::default();
        let replica = Replica::new();
        let spy = Spy { machine: Machine(Arc::clone(&replica)), seen: Arc::clone(&seen) };
        let random = Arc::new(SeededRandom::new(seed ^ self.id.0 << 32 ^ self.boot));
        let core = RaftCore::new(config(self.id), self.disk.clone(), spy, random);
        self.running = Some(Running {
            core: core.expect("a member starts"),
            replica,
            seen,
            writes: VecDeque::new(),
            leading: None,
            requests: BTreeMap::new(),
            cas: 0,
        });
    }

    /// Crashes the member. Only the first few writes in progress reach the disk.
    pub fn crash(&mut self, random: &mut fastrand::Rng) {
        let Some(running) = self.running.take() else { return };
        let made = random.usize(..=running.writes.len());
        running.writes.into_iter().take(made).for_each(|write| self.disk.write(write));
    }

    /// Returns the time of the member's monotonic clock, in milliseconds.
    pub fn now_ms(&self, now_ms: u64) -> u64 {
        now_ms * self.rate / 100
    }

    fn unix_ms(&self, now_ms: u64) -> u64 {
        (UNIX_MS + self.now_ms(now_ms)).saturating_add_signed(self.jump_ms)
    }

    /// Returns the true duration of one of the member's ticks, in milliseconds.
    pub fn tick_ms(&self) -> u64 {
        RAFT_TICK_MS * 100 / self.rate
    }
}

impl World {
    /// Calls a function with the Raft core of a member, if the member runs.
    fn with_core(&mut self, at: usize, work: impl FnOnce(&mut RaftCore<Spy>)) {
        if let Some(running) = &mut self.members[at].running {
            work(&mut running.core);
            self.poll(at);
        }
    }

    /// A tick of a member.
    pub fn raft_tick(&mut self, at: usize) {
        let next_ms = self.members[at].tick_ms();
        self.after(next_ms, Event::RaftTick(at));
        self.with_core(at, RaftCore::tick);
    }

    /// Delivers a message to a member.
    pub fn raft_message(&mut self, message: RaftMessage) {
        if self.is_cut(message.from) || self.is_cut(message.to) {
            return;
        }
        let at = message.to.0 as usize - 1;
        self.with_core(at, |core| core.step(message).expect("no member has forgotten"));
    }

    /// Records that the writes of a member up to `number` are durable.
    pub fn raft_written(&mut self, at: usize, boot: u64, number: u64) {
        let member = &mut self.members[at];
        let Some(running) = member.running.as_mut().filter(|_| member.boot == boot) else { return };
        while running.writes.front().is_some_and(|write| write.number <= number) {
            running.writes.pop_front().into_iter().for_each(|write| member.disk.write(write));
        }
        self.with_core(at, |core| core.persisted(number));
    }

    fn poll(&mut self, at: usize) {
        let member = &mut self.members[at];
        let Some(running) = &mut member.running else { return };
        let output = running.core.poll().expect("the loop runs");
        let seen = std::mem::take(&mut *running.seen.lock().expect("not poisoned"));
        for (index, data) in &seen {
            self.judge.members.applied(*index, data);
        }
        let role = running.core.role();
        if running.core.is_leader() {
            self.judge.members.leads(role.term, member.id);
        }
        let Output { messages, write, applied, .. } = output;
        if let Some(write) = write {
            let (number, boot) = (write.number, member.boot);
            running.writes.push_back(write);
            let ms = self.random.u64(1..12);
            self.after(ms, Event::Written { at, boot, number });
        }
        for message in messages {
            self.send(Event::Raft(message));
        }
        for done in applied {
            let context = <[u8; 8]>::try_from(&done.context[..]).map_or(0, u64::from_le_bytes);
            self.outcome(at, context, done.outcome.outcome);
        }
        if !seen.is_empty() {
            self.state_changed(at);
        }
        self.follow_role(at, role.leads.then_some(role.term));
    }

    /// Creates the state of a new leader, and removes that of a former one.
    fn follow_role(&mut self, at: usize, leads: Option<u64>) {
        let member = &mut self.members[at];
        let now_ms = member.now_ms(self.now_ms);
        let Some(running) = &mut member.running else { return };
        if running.leading.as_ref().map(|leading| leading.term) == leads {
            return;
        }
        running.requests.clear();
        running.leading = leads.map(|term| Leading {
            leader: Leader::new(term, now_ms, EPOCH_TICK_MS, settings()),
            term,
            waiting: BTreeSet::new(),
            promotes_since_ms: None,
            refused: false,
            plan_at_ms: u64::MAX,
            reported_leases: BTreeMap::new(),
        });
        self.wake(at, 1);
    }

    /// Returns the leader state of a member that leads, its replica and its clock.
    pub fn leading(&mut self, at: usize) -> Option<(&mut Leading, Arc<Replica>, u64)> {
        let now_ms = self.members[at].now_ms(self.now_ms);
        let running = self.members[at].running.as_mut()?;
        let replica = Arc::clone(&running.replica);
        running.leading.as_mut().map(|leading| (leading, replica, now_ms))
    }

    /// Schedules the next run of a leader's loop.
    pub fn wake(&mut self, at: usize, in_ms: u64) {
        let (due_ms, boot) = (self.now_ms + in_ms, self.members[at].boot);
        let Some((leading, ..)) = self.leading(at) else { return };
        if due_ms < leading.plan_at_ms {
            leading.plan_at_ms = due_ms;
            self.after(in_ms, Event::Plan { at, boot });
        }
    }

    /// Runs a leader's loop: makes a plan and executes it.
    pub fn plan(&mut self, at: usize, boot: u64) {
        let (now, unix_ms) = (self.now_ms, self.members[at].unix_ms(self.now_ms));
        if self.members[at].boot != boot {
            return;
        }
        let Some((leading, replica, now_ms)) = self.leading(at) else { return };
        if now < leading.plan_at_ms {
            return;
        }
        leading.plan_at_ms = u64::MAX;
        if !leading.waiting.is_empty() {
            return;
        }
        let plan = leading.leader.plan(&replica.view().state, now_ms);
        let Plan { commands, checks, next_ms } = plan;
        if leading.leader.has_suspects() {
            self.after(1, Event::Enquire { at, boot });
        }
        for check in checks {
            let ms = self.random.u64(5..300);
            self.after(ms, Event::CopyCheck { at, boot, check });
        }
        if commands.is_empty() {
            if let Some(next_ms) = next_ms {
                self.wake(at, next_ms.saturating_sub(now_ms).max(1));
            }
            return;
        }
        self.propose_planned(at, commands, now_ms, unix_ms);
    }

    fn propose_planned(&mut self, at: usize, commands: Vec<Command>, now_ms: u64, unix_ms: u64) {
        let mut proposals = Vec::new();
        for command in commands {
            if let Command::PromoteEpochs(PromoteEpochs { promotions, .. }) = &command {
                self.judge_horizons(at, promotions);
            }
            self.last_proposal += 1;
            proposals.push((self.last_proposal, command));
        }
        let Some((leading, replica, _)) = self.leading(at) else { return };
        let promotes = |(_, command): &(u64, Command)| matches!(command, Command::PromoteEpochs(_));
        leading.promotes_since_ms = proposals.iter().any(promotes).then_some(now_ms);
        leading.refused = false;
        leading.waiting = proposals.iter().map(|(number, _)| *number).collect();
        let decided = |(_, command): &(u64, Command)| {
            let silent = leading.leader.silent_nodes_for(&replica.view().state, command, now_ms);
            Decisions { unix_ms, silent, ..Decisions::default() }
        };
        let decided: Vec<_> = proposals.iter().map(decided).collect();
        for ((number, command), decided) in proposals.into_iter().zip(decided) {
            if !self.propose(at, number, decided, command.into())
                && let Some((leading, ..)) = self.leading(at)
            {
                leading.refused = true;
                leading.waiting.remove(&number);
            }
        }
        self.all_done(at);
        self.poll(at);
    }

    fn propose(&mut self, at: usize, number: u64, decided: Decisions, proposal: Proposal) -> bool {
        let record = encode_record(decided, proposal).expect("a command is encoded");
        let context = Bytes::copy_from_slice(&number.to_le_bytes());
        let running = self.members[at].running.as_mut();
        running.is_some_and(|running| running.core.propose(context, record).is_ok())
    }

    /// Delivers a client's request to a member, which drops it unless it leads.
    pub fn client_request(&mut self, at: usize, request: Proposal) {
        let unix_ms = self.members[at].unix_ms(self.now_ms);
        let (Some(id), true) = (request.request, self.leading(at).is_some()) else { return };
        self.last_proposal += 1;
        let number = self.last_proposal;
        if let Some(running) = &mut self.members[at].running {
            running.requests.insert(number, id);
        }
        if self.propose(at, number, Decisions::at(unix_ms), request) {
            self.poll(at);
        }
    }

    /// Handles the outcome of a command that this member has applied.
    fn outcome(&mut self, at: usize, number: u64, outcome: Outcome) {
        let Some(running) = &mut self.members[at].running else { return };
        if let Some(id) = running.requests.remove(&number) {
            return self.send(Event::Answer { id, outcome: Box::new(outcome) });
        }
        let Some(leading) = &mut running.leading else { return };
        if leading.waiting.remove(&number) {
            leading.refused |= matches!(outcome, Outcome::Refused(_));
            self.all_done(at);
        }
    }

    /// Schedules the next plan after all proposals of the last one have returned.
    fn all_done(&mut self, at: usize) {
        let Some((leading, _, now_ms)) = self.leading(at) else { return };
        if !leading.waiting.is_empty() {
            return;
        }
        if let Some(begun_ms) = leading.promotes_since_ms.take() {
            leading.leader.record_promotion_end(begun_ms, now_ms);
        }
        let in_ms = if leading.refused { RETRY_MS } else { 1 };
        self.wake(at, in_ms);
    }

    /// Compares the two copies of a move for the leader.
    pub fn check(&mut self, at: usize, boot: u64, check: &CopyCheck) {
        let sum = |world: &Self, node: NodeId| {
            let indexer = world.indexers.iter().find(|indexer| indexer.id == node && indexer.up)?;
            let copy = indexer.copies.get(&check.slice)?;
            let can = copy.floor.is_some_and(|floor| floor <= check.epoch)
                && indexer.applied_epoch() >= check.epoch
                && !indexer.must_roll_back();
            can.then(|| copy.checksum(check.epoch))
        };
        let lost = proto::Error::unavailable("no answer");
        let result = match (sum(self, check.source), sum(self, check.target)) {
            (Some(source), Some(target)) => {
                if source != target && !self.judge.is_dead(check.epoch) {
                    self.judge.wrong(format!("{check:?}: the ends of a move differ"));
                }
                Ok((source, self.damage.read(check.id, target)))
            }
            _ => Err(lost),
        };
        if self.members[at].boot == boot
            && let Some((leading, _, now_ms)) = self.leading(at)
        {
            leading.leader.finish_check(check, result, now_ms);
            self.wake(at, 1);
        }
    }
}
