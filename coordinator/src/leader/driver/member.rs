//! The state that is shared by the tasks and the calls of a member.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use proto::env::Env;
use proto::lock::lock;
use proto::model::identity::UniqueId;
use proto::model::ids::NodeId;
use proto::rpc::api::{CoordinatorApi, Directory};
use proto::rpc::command::{AppliedCommand, Proposal};
use proto::{Error, Result};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::rounds::Rounds;
use crate::config::Config;
use crate::leader::{CopyCheck, Leader};
use crate::raft::{Members, RaftHandle, not_leader};
use crate::replica::{Replica, encode_record};
use crate::state::Decisions;

/// A coordinator member: its log, its copy of the state, and, on the leader, the leader's memory.
pub(crate) struct Member {
    pub(crate) config: Config,
    pub(crate) env: Env,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) raft: RaftHandle<AppliedCommand>,
    pub(crate) replica: Arc<Replica>,
    /// The leader's memory; present while this member leads.
    pub(crate) leader: Mutex<Option<Leader>>,
    /// Wakes the leader's loop.
    pub(crate) wake: Notify,
    /// The rounds of queries to projectors that fix moments.
    pub(crate) rounds: Rounds,
    /// Wakes the task that queries sources for their histories.
    pub(crate) suspect_found: Notify,
    /// The queue of checks from the leader's loop to their task.
    pub(crate) checks: (async_channel::Sender<CopyCheck>, async_channel::Receiver<CopyCheck>),
    pub(crate) started: Instant,
    /// The time of the last message of each other member, in milliseconds since the start.
    pub(crate) heard_ms: Mutex<BTreeMap<NodeId, u64>>,
    /// The error with which this member ends, set once another member reports that this member
    /// was removed.
    pub(crate) removed: watch::Sender<Option<Error>>,
}

impl Member {
    /// Locks the leader's memory; `None` in it unless this member leads.
    pub(crate) fn leader(&self) -> MutexGuard<'_, Option<Leader>> {
        lock(&self.leader)
    }

    /// Returns the milliseconds since the member started.
    pub(crate) fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Returns the members, as of the last applied entry.
    pub(crate) fn members(&self) -> Members {
        self.raft.members().borrow().clone()
    }

    /// Draws a random id for a new object.
    pub(crate) fn random_id(&self) -> UniqueId {
        UniqueId::of([self.env.random.next_u64(), self.env.random.next_u64()])
    }

    /// Records that another member has sent a message.
    pub(crate) fn record_message_from(&self, from: NodeId) {
        if self.members().contains(from) {
            lock(&self.heard_ms).insert(from, self.now_ms());
        }
    }

    /// Returns the time since the last message of each member, in ms; since the start if there was
    /// none.
    pub(crate) fn members_silent_ms(&self, now_ms: u64) -> BTreeMap<NodeId, u64> {
        let heard_ms = lock(&self.heard_ms);
        let silent_ms = |id: &NodeId| match *id == self.config.node {
            true => 0,
            false => now_ms.saturating_sub(heard_ms.get(id).copied().unwrap_or_default()),
        };
        self.members().all().iter().map(|id| (*id, silent_ms(id))).collect()
    }

    /// Proposes a command, with the present time and the given decisions. This member must lead.
    pub(crate) async fn propose_here(
        &self,
        decided: Decisions,
        proposal: Proposal,
    ) -> Result<AppliedCommand> {
        let decided = Decisions { unix_ms: self.env.clock.unix_ms(), ..decided };
        let record = encode_record(decided, proposal)?;
        self.raft.propose(record).await
    }

    /// Returns a client of the leader; `None` if this member leads itself. Returns an error while
    /// no leader is known.
    pub(crate) fn forward_to(&self) -> Result<Option<Arc<dyn CoordinatorApi>>> {
        match self.raft.role().borrow().leader {
            Some(leader) if leader == self.config.node => Ok(None),
            Some(leader) => self.directory.coordinator_member(leader).map(Some),
            None => Err(not_leader(None)),
        }
    }

    /// Returns true if this member leads and there are signs, or nodes may still report signs,
    /// that its data is an older copy. Its epochs may then have numbers that nodes know with
    /// other cuts.
    pub(crate) fn may_be_older_copy(&self) -> bool {
        let now_ms = self.now_ms();
        let leader = self.leader();
        leader
            .as_ref()
            .is_some_and(|leader| leader.may_be_older_copy(&self.replica.view().state, now_ms))
    }

    /// Calls `work` with the leader's memory. Returns an error if this member does not lead.
    pub(crate) fn as_leader<T>(&self, work: impl FnOnce(&mut Leader) -> Result<T>) -> Result<T> {
        match self.leader().as_mut() {
            Some(leader) => work(leader),
            None => Err(not_leader(None)),
        }
    }
}
