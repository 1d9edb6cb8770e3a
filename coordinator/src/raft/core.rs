//! The ready loop, and why its order is safe.
//!
//! [`RaftCore`] is stepped: inputs are messages, ticks, proposals and the report that a write is
//! durable; [`RaftCore::poll`] then says what to send, what to write, and what was applied. It does no
//! I/O and knows no time, so that three of them can be run in a test from one seed, thousands of times
//! faster than real members.
//!
//! One round of the loop takes one `Ready` from the `raft` crate:
//!
//! 1. Messages of a *leader* leave at once, before its own write: a follower's acknowledgement counts
//!    only what the follower has durable, and the leader counts itself only after its own write (Raft
//!    thesis 10.2.1). So an idle proposal costs one round of syncs, the leader's and the followers' side
//!    by side.
//! 2. Snapshot, entries and hard state go into the memory log and, in the same order, into the write
//!    that is handed out. Everything before [`RaftCore::persisted`] may be lost by a crash.
//! 3. Messages of a *follower or candidate* (votes, acknowledgements) promise that something is durable:
//!    they are held until the write of their round and all earlier ones were reported.
//! 4. Entries that are committed are applied to the state machine. The crate offers an entry only when
//!    it is committed and durable here, so a snapshot never contains what this member could lose.
//!
//! Several writes may be on their way while messages go on being handled: proposals that arrive during
//! a sync are sent to the followers at once and share the next sync.
//!
//! A change of the commit index alone needs no sync (it is found again); it rides along with the next
//! write. The crate draws election time-outs from a generator of its own; so that everything follows
//! from the seed, the core overwrites each draw with one from its own source.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use proto::env::Random;
use proto::model::ids::NodeId;
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};
use raft::eraftpb::{Entry, HardState, Message};
use raft::{Config, RawNode, SnapshotStatus, StateRole};

use super::config::RaftConfig;
use super::guard::makes_sense;
use super::log_write::{LogOp, LogWrite};
use super::memory_log::MemoryLog;
use super::role::{Role, not_leader};
use super::state_machine::StateMachine;
use super::wire::{LogSnapshot, MessageKind, RaftMessage};

/// No command is larger; a larger one would hold up heartbeats on a slow link.
pub const COMMAND_BYTES_MAX: usize = 8 << 20;
/// Entries of one message, so that a follower far behind gets its log in digestible pieces.
const MESSAGE_ENTRIES_BYTES_MAX: u64 = 1 << 20;
/// Proposals that may wait for a majority, in bytes; more are refused for the time being.
const UNCOMMITTED_BYTES_MAX: u64 = 64 << 20;
/// Messages to one follower that may be unanswered.
const INFLIGHT_MESSAGES_MAX: usize = 256;
/// A snapshot that was not answered after this many ticks is sent again.
const SNAPSHOT_RETRY_TICKS: u32 = 40;

/// What a round of the loop asks of its owner.
#[derive(Debug)]
pub struct Output<O> {
    /// To be sent now.
    pub messages: Vec<RaftMessage>,
    /// To be made durable, after all earlier writes, and then reported with [`RaftCore::persisted`].
    pub write: Option<LogWrite>,
    /// Commands applied, in order.
    pub applied: Vec<Applied<O>>,
}

/// A command that was applied.
#[derive(Debug)]
pub struct Applied<O> {
    /// Its position in the log.
    #[cfg(feature = "testing")]
    pub index: u64,
    /// What its proposer gave to know it by.
    pub context: Bytes,
    /// What the state machine answered.
    pub outcome: O,
}

/// A round whose write has not been reported, or that waits for an earlier one's.
struct Round {
    number: u64,
    /// Has something that must be durable before its messages leave.
    must_sync: bool,
    /// The index of the snapshot that it installs, if it does.
    snapshot: Option<u64>,
    messages: Vec<Message>,
}

/// One member's Raft, log and state machine.
pub struct RaftCore<M: StateMachine> {
    config: RaftConfig,
    random: Arc<dyn Random>,
    node: RawNode<MemoryLog>,
    machine: M,
    rounds: VecDeque<Round>,
    persisted: u64,
    /// Changes that ride along with the next write that must be durable.
    lazy_ops: Vec<LogOp>,
    applied: u64,
    applied_bytes_since_snapshot: u64,
    drawn_for: (u64, StateRole, u64),
    election_timeout_ticks: usize,
    /// Snapshots on their way: to whom, and ticks until it is sent again.
    snapshots_sent: Vec<(u64, u32)>,
}

impl<M: StateMachine> RaftCore<M> {
    /// A member that goes on from what its log has. `machine` is in its initial state.
    pub fn new(
        config: RaftConfig,
        log: MemoryLog,
        mut machine: M,
        random: Arc<dyn Random>,
    ) -> Result<Self> {
        let applied = log.snapshot_index();
        if let Some(snapshot) = &log.snapshot {
            machine.restore(&snapshot.data)?;
        }
        let raft_config = Config {
            id: config.member.0,
            election_tick: config.election_ticks,
            heartbeat_tick: config.heartbeat_ticks,
            applied,
            max_size_per_msg: MESSAGE_ENTRIES_BYTES_MAX,
            max_inflight_msgs: INFLIGHT_MESSAGES_MAX,
            max_uncommitted_size: UNCOMMITTED_BYTES_MAX,
            check_quorum: true,
            pre_vote: true,
            ..Config::default()
        };
        if !config.members.contains(&config.member) || config.member.0 == 0 {
            return Err(Error::new(
                ErrorCode::InvalidParameter,
                format!("member {} is not one of {:?}", config.member, config.members),
            ));
        }
        let node =
            RawNode::new(&raft_config, log, &super::slog_bridge::logger()).map_err(raft_error)?;
        let mut core = Self {
            config,
            random,
            node,
            machine,
            rounds: VecDeque::new(),
            persisted: 0,
            lazy_ops: Vec::new(),
            applied,
            applied_bytes_since_snapshot: 0,
            drawn_for: (u64::MAX, StateRole::Follower, 0),
            election_timeout_ticks: 0,
            snapshots_sent: Vec::new(),
        };
        core.draw_election_timeout();
        // Alone, there is nobody to wait for.
        if core.config.voters().len() == 1 {
            core.node.campaign().map_err(raft_error)?;
        }
        Ok(core)
    }

    /// One tick of time has passed.
    pub fn tick(&mut self) {
        // Until a snapshot is durable the crate does not count it as applied, and looks for the entries
        // before it when it stands for election: time stands still for as long.
        if self.rounds.iter().any(|round| round.snapshot.is_some()) {
            return;
        }
        self.node.tick();
        let mut overdue = Vec::new();
        self.snapshots_sent.retain_mut(|(to, ticks)| {
            *ticks -= 1;
            if *ticks == 0 {
                overdue.push(*to);
            }
            *ticks > 0
        });
        for to in overdue {
            self.node.report_snapshot(to, SnapshotStatus::Failure);
        }
        self.draw_election_timeout();
    }

    /// Takes a message from another member. An error means that this member has lost what it once
    /// had acknowledged and must stop; what a confused peer sends is dropped.
    pub fn step(&mut self, message: RaftMessage) -> Result<()> {
        let last = self.node.raft.raft_log.last_index();
        let (member, voters) = (self.config.member, &self.node.store().voters);
        if !makes_sense(&message, member, voters, last) {
            tracing::debug!(from = %message.from, kind = ?message.kind, "drop a raft message");
            return Ok(());
        }
        if message.kind == MessageKind::Heartbeat
            && message.term >= self.node.raft.term
            && message.commit > last
        {
            return Err(Error::new(
                ErrorCode::Corrupt,
                format!(
                    "the leader knows entry {} of this log, which ends at {last}",
                    message.commit
                ),
            )
            .with_hint(
                "this member lost data that it had acknowledged; restore its data directory",
            ));
        }
        if let Err(error) = self.node.step(message.into_raft()) {
            tracing::debug!(%error, "raft refuses a message");
        }
        self.draw_election_timeout();
        Ok(())
    }

    /// Proposes a command; its outcome comes out of a later [`RaftCore::poll`] with the same context,
    /// or never, if leadership is lost.
    pub fn propose(&mut self, context: Bytes, command: Bytes) -> Result<()> {
        if self.node.raft.state != StateRole::Leader {
            return Err(not_leader(self.role().leader));
        }
        if command.is_empty() || command.len() > COMMAND_BYTES_MAX {
            return Err(Error::new(
                ErrorCode::OverLimit,
                format!("a command of {} bytes; at most {COMMAND_BYTES_MAX}", command.len()),
            ));
        }
        self.node.propose(context.into(), command.into()).map_err(raft_error)
    }

    /// The write of this number, and with it all earlier ones, is durable.
    pub fn persisted(&mut self, number: u64) {
        self.persisted = self.persisted.max(number);
    }

    /// Runs the loop until it has nothing more to do without new input.
    pub fn poll(&mut self) -> Result<Output<M::Outcome>> {
        let mut output = Output { messages: Vec::new(), write: None, applied: Vec::new() };
        loop {
            self.release(&mut output)?;
            if !self.node.has_ready() {
                break;
            }
            self.round(&mut output)?;
        }
        self.draw_election_timeout();
        Ok(output)
    }

    /// Where this member stands.
    pub fn role(&self) -> Role {
        let raft = &self.node.raft;
        let leader = (raft.leader_id != 0).then_some(NodeId(raft.leader_id));
        let leads = raft.state == StateRole::Leader && raft.apply_to_current_term();
        Role { term: raft.term, leader, leads }
    }

    /// Does it lead, ready to decide or not?
    pub fn is_leader(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    /// The last entry applied.
    pub fn applied_index(&self) -> u64 {
        self.applied
    }

    /// The last entry known to be committed.
    pub fn committed_index(&self) -> u64 {
        self.node.raft.raft_log.committed
    }

    /// The state machine.
    #[cfg(feature = "testing")]
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// One `Ready`, in the order that the module's head gives reasons for.
    fn round(&mut self, output: &mut Output<M::Outcome>) -> Result<()> {
        let mut ready = self.node.ready();
        for message in ready.take_messages() {
            self.send(message, output)?;
        }

        let mut ops = Vec::new();
        let mut installed = None;
        if !ready.snapshot().is_empty() {
            let snapshot = LogSnapshot::from_raft(ready.snapshot().clone());
            self.install(&snapshot)?;
            installed = Some(snapshot.index);
            ops.push(LogOp::Reset(snapshot));
        }
        if !ready.entries().is_empty() {
            self.node.mut_store().append(ready.entries());
            ops.push(LogOp::Append(ready.take_entries()));
        }
        if let Some(hard_state) = ready.hs() {
            self.node.mut_store().hard_state = hard_state.clone();
            if !plant::is(Plant::VoteNotPersisted) {
                ops.push(LogOp::HardState(hard_state.clone()));
            }
        }

        let committed = ready.take_committed_entries();
        let round = Round {
            number: ready.number(),
            must_sync: ready.must_sync(),
            snapshot: installed,
            messages: ready.take_persisted_messages(),
        };
        self.lazy_ops.append(&mut ops);
        if round.must_sync {
            let write = output.write.get_or_insert_with(LogWrite::default);
            write.number = round.number;
            write.ops.append(&mut self.lazy_ops);
        }
        self.rounds.push_back(round);
        self.node.advance_append_async(ready);
        self.apply(committed, output)
    }

    /// Sends what waited for writes that are durable by now, and counts them.
    fn release(&mut self, output: &mut Output<M::Outcome>) -> Result<()> {
        while let Some(round) = self.rounds.front() {
            let unsynced = round.must_sync && round.number > self.persisted;
            if unsynced && !plant::is(Plant::AppliedEarly) {
                break;
            }
            let Some(round) = self.rounds.pop_front() else { break };
            self.node.on_persist_ready(round.number);
            if let Some(index) = round.snapshot {
                self.node.advance_apply_to(index);
            }
            for message in round.messages {
                self.send(message, output)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, message: Message, output: &mut Output<M::Outcome>) -> Result<()> {
        let message = RaftMessage::from_raft(message)?;
        if message.kind == MessageKind::Snapshot {
            self.snapshots_sent.retain(|(to, _)| *to != message.to.0);
            self.snapshots_sent.push((message.to.0, SNAPSHOT_RETRY_TICKS));
        }
        output.messages.push(message);
        Ok(())
    }

    fn apply(&mut self, entries: Vec<Entry>, output: &mut Output<M::Outcome>) -> Result<()> {
        let Some(last) = entries.last().map(|entry| entry.index) else { return Ok(()) };
        for entry in entries {
            self.applied = entry.index;
            self.applied_bytes_since_snapshot += (entry.data.len() + entry.context.len()) as u64;
            // The entry with which a leader opens its term has no command.
            if entry.data.is_empty() {
                continue;
            }
            let outcome = self
                .machine
                .apply(entry.index, &entry.data)
                .map_err(|error| error.context(format!("apply log entry {}", entry.index)))?;
            output.applied.push(Applied {
                #[cfg(feature = "testing")]
                index: entry.index,
                context: entry.context,
                outcome,
            });
        }
        self.node.advance_apply_to(last);
        self.take_snapshot_if_due()
    }

    /// Replaces log and state by the leader's snapshot.
    fn install(&mut self, snapshot: &LogSnapshot) -> Result<()> {
        self.machine.restore(&snapshot.data).map_err(|error| {
            error.context(format!("restore the snapshot at {}", snapshot.index))
        })?;
        self.node.mut_store().reset_to(snapshot.clone());
        self.applied = snapshot.index;
        self.applied_bytes_since_snapshot = 0;
        Ok(())
    }

    /// Keeps the log short. The snapshot is written with the next write that must be durable anyway.
    fn take_snapshot_if_due(&mut self) -> Result<()> {
        let store = self.node.store();
        let entries = self.applied - store.snapshot_index();
        if entries < self.config.snapshot_entries
            && self.applied_bytes_since_snapshot < self.config.snapshot_bytes
        {
            return Ok(());
        }
        let Some(term) = store.term_of(self.applied) else { return Ok(()) };
        let keep_from = self.applied.saturating_sub(self.config.keep_entries);
        let dropped = store.term_of(keep_from).filter(|_| keep_from > store.start.0);
        let snapshot = LogSnapshot {
            index: self.applied,
            term,
            voters: self.config.voters(),
            data: self.machine.snapshot()?.into(),
        };
        let hard_state: HardState = self.node.raft.hard_state();
        let store = self.node.mut_store();
        store.snapshot = Some(snapshot.clone());
        self.lazy_ops.push(LogOp::Snapshot(snapshot));
        self.lazy_ops.push(LogOp::HardState(hard_state));
        if let Some(term) = dropped {
            store.drop_through(keep_from);
            self.lazy_ops.push(LogOp::DropThrough { index: keep_from, term });
        }
        self.applied_bytes_since_snapshot = 0;
        Ok(())
    }

    /// Overwrites the crate's own draw, once for each state it draws for.
    fn draw_election_timeout(&mut self) {
        let raft = &mut self.node.raft;
        let state = (raft.term, raft.state, raft.leader_id);
        if self.drawn_for != state {
            self.drawn_for = state;
            let spread = self.config.election_ticks.max(1) as u64;
            self.election_timeout_ticks =
                self.config.election_ticks + (self.random.next_u64() % spread) as usize;
        }
        raft.set_randomized_election_timeout(self.election_timeout_ticks);
    }
}

fn raft_error(error: raft::Error) -> Error {
    match error {
        raft::Error::ProposalDropped => {
            Error::unavailable("too many commands wait for a majority of the coordinators")
        }
        error => Error::internal(format!("raft: {error}")),
    }
}
