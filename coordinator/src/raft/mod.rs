//! The replicated log: tikv's `raft` crate with a log of our own, and a service around it.
//!
//! | file | what it is |
//! |---|---|
//! | [`core`] | the ready loop: inputs in, outputs out, no I/O, no time, no threads |
//! | [`memory_log`] | the log as Raft reads it |
//! | [`log_store`] | the log on disk |
//! | `guard` | which messages a core may be given |
//! | [`wire`] | messages in our own types |
//! | [`service`] | the task that owns a core, its disk and its clock, and the handle to it |
//!
//! Members are a fixed list, given to all of them alike. A member that lost its data directory must
//! not come back under its old name: what it had promised would be forgotten.

pub mod core;
mod guard;
pub mod log_store;
pub mod memory_log;
pub mod service;
mod slog_bridge;
pub mod wire;

use proto::Result;
use proto::model::ids::NodeId;

pub use self::core::{Output, RaftCore};
pub use service::{RaftHandle, RaftService};
pub use wire::RaftMessage;

/// What the log is for. Every member applies the same commands in the same order, so `apply` may
/// depend on nothing but the state and its arguments.
pub trait StateMachine: Send + 'static {
    /// What applying a command answers.
    type Outcome: Send + 'static;

    /// Applies the command at a log position. A command that is refused is an outcome; an error means
    /// that this member cannot go on (a command it cannot read, say), and stops it.
    fn apply(&mut self, index: u64, data: &[u8]) -> Result<Self::Outcome>;

    /// The state as bytes.
    fn snapshot(&self) -> Result<Vec<u8>>;

    /// Replaces the state by one from [`StateMachine::snapshot`].
    fn restore(&mut self, snapshot: &[u8]) -> Result<()>;
}

/// Takes messages to the other members. Unreliable: Raft repeats what matters. Never blocks.
pub trait PeerTransport: Send + Sync + 'static {
    /// Sends one message, or drops it.
    fn send(&self, to: NodeId, message: RaftMessage);
}

/// The settings of a member.
#[derive(Clone, Debug)]
pub struct RaftConfig {
    /// This member; never 0.
    pub member: NodeId,
    /// All members, this one too.
    pub members: Vec<NodeId>,
    /// How long a tick lasts.
    pub tick_ms: u64,
    /// Ticks between two heartbeats of a leader.
    pub heartbeat_ticks: usize,
    /// Fewest ticks of silence before a follower stands for election; the drawn time-out is between
    /// this and its double.
    pub election_ticks: usize,
    /// A snapshot is taken after this many entries …
    pub snapshot_entries: u64,
    /// … or after entries of this size.
    pub snapshot_bytes: u64,
    /// Entries that stay behind a snapshot, so that a member that was down for a moment catches up by
    /// the log, which is cheaper.
    pub keep_entries: u64,
}

impl RaftConfig {
    /// The settings for a cluster in one data centre: a new leader within 1.5 s.
    pub fn new(member: NodeId, members: Vec<NodeId>) -> Self {
        Self {
            member,
            members,
            tick_ms: 50,
            heartbeat_ticks: 2,
            election_ticks: 10,
            // At fifty promotions a second, a snapshot every three minutes.
            snapshot_entries: 10_000,
            snapshot_bytes: 16 << 20,
            keep_entries: 1_000,
        }
    }

    /// The members as Raft names them, in order, each once.
    pub fn voters(&self) -> Vec<u64> {
        let mut voters: Vec<u64> = self.members.iter().map(|member| member.0).collect();
        voters.sort_unstable();
        voters.dedup();
        voters
    }
}

/// Where a member stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// The term it is in.
    pub term: u64,
    /// The leader that it knows of.
    pub leader: Option<NodeId>,
    /// It leads, and has applied everything that earlier leaders committed: it may decide.
    pub leads: bool,
}
