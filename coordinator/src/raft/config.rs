//! The settings of a Raft member.

use proto::model::ids::NodeId;
use proto::{Error, ErrorCode, Result};

/// The size limit, in bytes, of the entries in one message. A follower that lags far gets its log
/// in small portions.
const MESSAGE_ENTRIES_BYTES_MAX: u64 = 1 << 20;
/// The size limit, in bytes, of proposals that wait for a majority. Raft refuses further
/// proposals.
const UNCOMMITTED_BYTES_MAX: u64 = 64 << 20;
/// The limit of unacknowledged messages to one follower.
const INFLIGHT_MESSAGES_MAX: usize = 256;

/// The settings of a member.
#[derive(Clone, Debug)]
pub struct RaftConfig {
    /// The node id of this member; not 0.
    pub member: NodeId,
    /// The members of a new group, including this one; empty if this member joins an existing
    /// group. A member with a log takes the members from the log instead.
    pub founders: Vec<NodeId>,
    /// The duration of one tick, in ms.
    pub tick_ms: u64,
    /// Ticks between two heartbeats of the leader.
    pub heartbeat_ticks: usize,
    /// The shortest election timeout, in ticks. The timeout that a member draws is less than
    /// twice as long.
    pub election_ticks: usize,
    /// The log takes a snapshot after this many entries.
    pub snapshot_entries: u64,
    /// The log takes a snapshot after this many bytes of entries.
    pub snapshot_bytes: u64,
    /// Entries that stay in the log after a snapshot. A member that was down briefly catches up
    /// from the log, which is cheaper than a snapshot.
    pub keep_entries: u64,
    /// The limit, in bytes, of the entries that stay. Beyond it a snapshot is cheaper.
    pub keep_bytes: u64,
}

impl RaftConfig {
    /// The settings for a cluster in one data centre. A new leader is elected within 1.5 s.
    pub fn new(member: NodeId, founders: Vec<NodeId>) -> Self {
        Self {
            member,
            founders,
            tick_ms: 50,
            heartbeat_ticks: 2,
            election_ticks: 10,
            // At fifty promotions a second, this takes a snapshot every three minutes.
            snapshot_entries: 10_000,
            snapshot_bytes: 16 << 20,
            keep_entries: 1_000,
            keep_bytes: 16 << 20,
        }
    }

    /// The founders in the `raft` crate's form: ascending, without duplicates.
    pub fn voters(&self) -> Vec<u64> {
        let mut voters: Vec<u64> = self.founders.iter().map(|member| member.0).collect();
        voters.sort_unstable();
        voters.dedup();
        voters
    }

    /// The settings in the form of the `raft` crate, for a member that has applied its log up to an index.
    pub(super) fn to_raft(&self, applied: u64) -> Result<raft::Config> {
        let founds = self.founders.is_empty() || self.founders.contains(&self.member);
        if !founds || self.member.0 == 0 || self.founders.contains(&NodeId(0)) {
            return Err(Error::new(
                ErrorCode::InvalidParameter,
                format!("member {} is not one of {:?}", self.member, self.founders),
            ));
        }
        Ok(raft::Config {
            id: self.member.0,
            election_tick: self.election_ticks,
            heartbeat_tick: self.heartbeat_ticks,
            applied,
            max_size_per_msg: MESSAGE_ENTRIES_BYTES_MAX,
            max_inflight_msgs: INFLIGHT_MESSAGES_MAX,
            max_uncommitted_size: UNCOMMITTED_BYTES_MAX,
            check_quorum: true,
            pre_vote: true,
            ..raft::Config::default()
        })
    }
}
