//! The settings of a member of the log.

use proto::model::ids::NodeId;

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
