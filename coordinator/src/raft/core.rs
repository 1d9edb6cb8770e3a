//! One member's Raft, log and state machine without I/O, and its inputs: messages, proposals, and
//! the report that a write is durable. The ready loop (`ready`) processes the inputs.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use proto::env::Random;
use proto::model::ids::NodeId;
use proto::{Error, ErrorCode, Result};
use raft::eraftpb::Message;
use raft::{RawNode, StateRole};

use super::config::RaftConfig;
use super::election_timeout::ElectionTimeout;
use super::guard::{Receiver, is_valid};
use super::log_write::{LogOp, LogWrite};
use super::members::Members;
use super::memory_log::MemoryLog;
use super::role::{RaftRole, not_leader};
use super::snapshots_sent::SnapshotsSent;
use super::state_machine::StateMachine;
use super::unsettled_removal::UnsettledRemoval;
use super::wire::{MessageKind, RaftMessage};

/// The size limit of a command, in bytes. A larger command would delay heartbeats on a slow link.
pub const COMMAND_BYTES_MAX: usize = 8 << 20;

/// The results of one poll, with which the caller has to continue: it sends, writes and answers.
#[derive(Debug)]
pub struct Output<O> {
    /// Messages to send now.
    pub messages: Vec<RaftMessage>,
    /// Changes to make durable after all earlier writes. The owner then calls [`RaftCore::persisted`].
    pub write: Option<LogWrite>,
    /// The applied commands, in log order.
    pub applied: Vec<AppliedEntry<O>>,
    /// The applied changes of the members. A removal is among them when it is settled (`removal`).
    pub changed: Vec<AppliedChange>,
}

/// An applied change of the members.
#[derive(Debug)]
pub struct AppliedChange {
    /// The context that the proposer gave; empty for a change that the leader itself proposed.
    pub context: Bytes,
    /// `Ok`, or the refusal of the change.
    pub result: Result<()>,
}

/// An applied command.
#[derive(Debug)]
pub struct AppliedEntry<O> {
    /// The index of the entry in the log.
    #[cfg(feature = "testing")]
    pub index: u64,
    /// The context that the proposer gave, to recognize the command.
    pub context: Bytes,
    /// The answer of the state machine.
    pub outcome: O,
}

/// A round of the ready loop that waits until its write, or the write of an earlier round, is
/// durable.
pub(super) struct Round {
    pub(super) number: u64,
    /// True if the round has changes that must be durable before its messages leave.
    pub(super) must_sync: bool,
    /// The index of the snapshot that the round installs.
    pub(super) snapshot: Option<u64>,
    pub(super) messages: Vec<Message>,
}

/// One member's Raft, log and state machine.
pub struct RaftCore<M: StateMachine> {
    pub(super) config: RaftConfig,
    pub(super) node: RawNode<MemoryLog>,
    pub(super) machine: M,
    /// The members, as of the last applied entry.
    pub(super) members: Members,
    pub(super) rounds: VecDeque<Round>,
    pub(super) persisted: u64,
    /// Changes that require no sync. They are written with the next write that is synced.
    pub(super) lazy_ops: Vec<LogOp>,
    pub(super) applied: u64,
    pub(super) applied_bytes_since_snapshot: u64,
    /// True if the members have changed since the last snapshot.
    pub(super) snapshot_is_due: bool,
    pub(super) unsettled: Vec<UnsettledRemoval>,
    pub(super) election_timeout: ElectionTimeout,
    pub(super) snapshots_sent: SnapshotsSent,
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

    /// Handles a message from another member. Drops a malformed message. An error means that this
    /// member lost data that it had acknowledged, and must stop.
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

    /// Proposes a command. A later [`RaftCore::poll`] returns its outcome with the same context.
    /// No outcome follows if leadership is lost.
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

    /// Returns the term and the leader, as far as this member knows them.
    pub fn role(&self) -> RaftRole {
        let raft = &self.node.raft;
        // The crate remembers the leader of a member that does not vote for ever.
        let is_heard = raft.promotable() || raft.election_elapsed < 2 * self.config.election_ticks;
        let leader = (raft.leader_id != 0 && is_heard).then_some(NodeId(raft.leader_id));
        let leads = raft.state == StateRole::Leader && raft.apply_to_current_term();
        RaftRole { term: raft.term, leader, leads }
    }

    /// True if this member is the leader. A new leader may not decide yet, until it has applied
    /// the entries of earlier leaders.
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
}

/// Converts an error of the `raft` crate.
pub(super) fn raft_error(error: raft::Error) -> Error {
    match error {
        raft::Error::ProposalDropped => {
            Error::unavailable("too many commands wait for a majority of the coordinators")
        }
        error => Error::internal(format!("raft: {error}")),
    }
}
