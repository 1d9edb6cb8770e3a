//! The ready loop, and why its order is safe.
//!
//! A caller steps [`RaftCore`]. The inputs are messages, ticks, proposals, and the report that a write is durable.
//! [`RaftCore::poll`] returns the messages to send, the changes to write, and the commands that were applied. The
//! core does no I/O and reads no clock, so that a test can run three of them from one seed, thousands of times faster
//! than real members.
//!
//! One round of the loop takes one `Ready` from the `raft` crate:
//!
//! 1. Messages of a *leader* leave at once, before the leader's own write. A follower's acknowledgement covers only
//!    what the follower has durable, and the leader counts itself only after its own write (Raft thesis 10.2.1). An
//!    idle proposal therefore costs one round of syncs: the leader and the followers sync side by side.
//! 2. Snapshot, entries and hard state go into the memory log and, in the same order, into the returned write. A
//!    crash may lose everything that [`RaftCore::persisted`] has not confirmed.
//! 3. Messages of a *follower or candidate* (votes, acknowledgements) promise that something is durable. The core
//!    holds them until the write of their round and all earlier writes are confirmed.
//! 4. The state machine applies committed entries. The crate offers an entry only when it is committed and durable
//!    here, so a snapshot never contains an entry that this member could lose.
//!
//! Several writes may be in flight while the core handles messages. Proposals that arrive during a sync go to the
//! followers at once and share the next sync.
//!
//! A change of the commit index alone needs no sync, because a restarted member learns it again. It is written with
//! the next write. Election timeouts are our own (`election_timeout`), so that everything follows from the seed.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use proto::env::Random;
use proto::model::ids::NodeId;
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};
use raft::eraftpb::{Entry, EntryType, Message};
use raft::{RawNode, SnapshotStatus, StateRole};

use super::config::RaftConfig;
use super::election_timeout::ElectionTimeout;
use super::guard::{Receiver, is_valid};
use super::log_write::{LogOp, LogWrite};
use super::members::Members;
use super::memory_log::MemoryLog;
use super::role::{RaftRole, not_leader};
use super::snapshots_sent::SnapshotsSent;
use super::state_machine::StateMachine;
use super::unsettled::Unsettled;
use super::wire::{LogSnapshot, MessageKind, RaftMessage};

/// The size limit of a command. A larger command would delay heartbeats on a slow link.
pub const COMMAND_BYTES_MAX: usize = 8 << 20;

/// The requests of one poll to the core's owner.
#[derive(Debug)]
pub struct Output<O> {
    /// Messages to send now.
    pub messages: Vec<RaftMessage>,
    /// Changes to make durable after all earlier writes. The owner then calls [`RaftCore::persisted`].
    pub write: Option<LogWrite>,
    /// The applied commands, in log order.
    pub applied: Vec<Applied<O>>,
    /// The applied changes of the members. A removal is among them when it is settled (`removal`).
    pub changed: Vec<Changed>,
}

/// An applied change of the members.
#[derive(Debug)]
pub struct Changed {
    /// The context that its proposer gave; empty for a change of the leader itself.
    pub context: Bytes,
    /// The refusal, if the change was refused.
    pub result: Result<()>,
}

/// An applied command.
#[derive(Debug)]
pub struct Applied<O> {
    /// Its position in the log.
    #[cfg(feature = "testing")]
    pub index: u64,
    /// The context that its proposer gave, to recognize the command.
    pub context: Bytes,
    /// The answer of the state machine.
    pub outcome: O,
}

/// A round whose write is not confirmed yet, or which waits for an earlier round.
struct Round {
    number: u64,
    /// True if the round has changes that must be durable before its messages leave.
    must_sync: bool,
    /// The index of the snapshot that the round installs.
    snapshot: Option<u64>,
    messages: Vec<Message>,
}

/// One member's Raft, log and state machine.
pub struct RaftCore<M: StateMachine> {
    pub(super) config: RaftConfig,
    pub(super) node: RawNode<MemoryLog>,
    pub(super) machine: M,
    /// The members, as of the last applied entry.
    pub(super) members: Members,
    rounds: VecDeque<Round>,
    persisted: u64,
    /// Changes that need no sync of their own. They are written with the next write that does.
    pub(super) lazy_ops: Vec<LogOp>,
    pub(super) applied: u64,
    pub(super) applied_bytes_since_snapshot: u64,
    /// The members have changed since the last snapshot.
    pub(super) snapshot_is_due: bool,
    pub(super) unsettled: Vec<Unsettled>,
    election_timeout: ElectionTimeout,
    snapshots_sent: SnapshotsSent,
}

impl<M: StateMachine> RaftCore<M> {
    /// Creates a member that continues from its log. `machine` must be in its initial state.
    pub fn new(
        config: RaftConfig,
        log: MemoryLog,
        mut machine: M,
        random: Arc<dyn Random>,
    ) -> Result<Self> {
        let applied = log.snapshot_index();
        if let Some(snapshot) = &log.snapshot {
            machine.restore(snapshot.state()?)?;
        }
        let members = log.members()?;
        let raft_config = config.to_raft(applied)?;
        let node =
            RawNode::new(&raft_config, log, &super::slog_bridge::logger()).map_err(raft_error)?;
        let election_timeout = ElectionTimeout::new(random, config.election_ticks);
        let mut core = Self {
            config,
            node,
            machine,
            members,
            rounds: VecDeque::new(),
            persisted: 0,
            lazy_ops: Vec::new(),
            applied,
            applied_bytes_since_snapshot: 0,
            snapshot_is_due: false,
            unsettled: Vec::new(),
            election_timeout,
            snapshots_sent: SnapshotsSent::default(),
        };
        core.election_timeout.set(&mut core.node.raft);
        // A single member elects itself at once.
        if core.members.voters == [core.config.member.0] {
            core.node.campaign().map_err(raft_error)?;
        }
        Ok(core)
    }

    /// Advances time by one tick.
    pub fn tick(&mut self) {
        // The crate counts a snapshot as applied only when it is durable. Until then an election would look for the
        // entries before the snapshot, which are gone. So time stands still.
        if self.rounds.iter().any(|round| round.snapshot.is_some()) {
            return;
        }
        // The only member that votes elects itself at once, and the crate asserts that all its entries are durable then.
        let is_alone = self.members.voters == [self.config.member.0];
        if is_alone && !self.is_leader() && self.rounds.iter().any(|round| round.must_sync) {
            return;
        }
        self.node.tick();
        for to in self.snapshots_sent.tick() {
            self.node.report_snapshot(to, SnapshotStatus::Failure);
        }
        self.promote_learner();
        self.election_timeout.set(&mut self.node.raft);
    }

    /// Handles a message from another member. An error means that this member lost data that it had acknowledged, and
    /// must stop. Malformed messages are dropped.
    pub fn step(&mut self, message: RaftMessage) -> Result<()> {
        let last = self.node.raft.raft_log.last_index();
        let receiver = Receiver {
            member: self.config.member,
            members: &self.members,
            last_index: last,
            term: self.node.raft.term,
            leader: self.node.raft.leader_id,
        };
        if !is_valid(&message, &receiver) {
            tracing::debug!(from = %message.from, kind = ?message.kind, "dropped an invalid raft message");
            return Ok(());
        }
        if message.kind == MessageKind::Heartbeat
            && message.term >= self.node.raft.term
            && message.commit > last
        {
            return Err(Error::new(
                ErrorCode::Corrupt,
                format!(
                    "the leader has acknowledgements of this log up to entry {}, but the log ends at {last}",
                    message.commit
                ),
            )
            .with_hint(
                "this member lost data that it had acknowledged: restore its data directory, or remove it with REMOVE \
                 COORDINATOR and add one with a new --id and an empty directory with ADD COORDINATOR",
            ));
        }
        if let Err(error) = self.node.step(message.into_raft()) {
            tracing::debug!(%error, "the raft crate refused a message");
        }
        self.election_timeout.set(&mut self.node.raft);
        Ok(())
    }

    /// Proposes a command. A later [`RaftCore::poll`] returns its outcome with the same context, or none does if
    /// leadership is lost.
    pub fn propose(&mut self, context: Bytes, command: Bytes) -> Result<()> {
        if self.node.raft.state != StateRole::Leader {
            return Err(not_leader(self.role().leader));
        }
        if command.is_empty() || command.len() > COMMAND_BYTES_MAX {
            return Err(Error::new(
                ErrorCode::OverLimit,
                format!("a command of {} bytes, the limit is {COMMAND_BYTES_MAX}", command.len()),
            ));
        }
        if self.node.raft.lead_transferee.is_some() {
            return Err(Error::unavailable("the leading coordinator hands over"));
        }
        self.node.propose(context.into(), command.into()).map_err(raft_error)
    }

    /// Confirms that the write with this number and all earlier writes are durable.
    pub fn persisted(&mut self, number: u64) {
        self.persisted = self.persisted.max(number);
    }

    /// Runs the loop until it needs new input.
    pub fn poll(&mut self) -> Result<Output<M::Outcome>> {
        let (messages, applied, changed) = Default::default();
        let mut output = Output { messages, write: None, applied, changed };
        loop {
            self.release(&mut output)?;
            self.settle(&mut output);
            if !self.node.has_ready() {
                break;
            }
            self.round(&mut output)?;
        }
        self.election_timeout.set(&mut self.node.raft);
        Ok(output)
    }

    /// Returns the term and the leader as this member knows them.
    pub fn role(&self) -> RaftRole {
        let raft = &self.node.raft;
        // The crate remembers the leader of a member that does not vote for ever.
        let is_heard = raft.promotable() || raft.election_elapsed < 2 * self.config.election_ticks;
        let leader = (raft.leader_id != 0 && is_heard).then_some(NodeId(raft.leader_id));
        let leads = raft.state == StateRole::Leader && raft.apply_to_current_term();
        RaftRole { term: raft.term, leader, leads }
    }

    /// True if this member is the leader, even if it may not decide yet.
    pub fn is_leader(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    /// The index of the last applied entry.
    pub fn applied_index(&self) -> u64 {
        self.applied
    }

    /// The index of the last entry that is known to be committed.
    pub fn committed_index(&self) -> u64 {
        self.node.raft.raft_log.committed
    }

    /// The index of the last entry.
    #[cfg(feature = "testing")]
    pub fn log_end(&self) -> u64 {
        self.node.raft.raft_log.last_index()
    }

    /// The state machine.
    #[cfg(feature = "testing")]
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Handles one `Ready`. The module's head explains the order.
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

    /// Sends the messages whose writes are durable by now, and tells the crate.
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

    fn send(&mut self, mut message: Message, output: &mut Output<M::Outcome>) -> Result<()> {
        message.commit = self.told_commit(message.to, message.commit);
        let message = RaftMessage::from_raft(message, self.members.group())?;
        if message.kind == MessageKind::Snapshot {
            self.snapshots_sent.add(message.to.0);
        }
        output.messages.push(message);
        Ok(())
    }

    fn apply(&mut self, entries: Vec<Entry>, output: &mut Output<M::Outcome>) -> Result<()> {
        let Some(last) = entries.last().map(|entry| entry.index) else { return Ok(()) };
        for entry in entries {
            self.applied = entry.index;
            self.applied_bytes_since_snapshot += (entry.data.len() + entry.context.len()) as u64;
            if entry.entry_type == EntryType::EntryConfChange {
                output.changed.extend(self.change(&entry)?);
                continue;
            }
            // The entry with which a leader opens its term, or settles a removal, carries no command.
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
}

pub(super) fn raft_error(error: raft::Error) -> Error {
    match error {
        raft::Error::ProposalDropped => {
            Error::unavailable("too many commands wait for a majority of the coordinators")
        }
        error => Error::internal(format!("raft: {error}")),
    }
}
