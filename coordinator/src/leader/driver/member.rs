//! What the tasks and the calls of a member work on.

use std::sync::{Arc, Mutex, MutexGuard};

use proto::Result;
use proto::env::Env;
use proto::rpc::api::{CoordinatorApi, Directory};
use proto::rpc::command::{CommandRequest, Outcome};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::config::Config;
use crate::leader::{Check, Leader};
use crate::raft::{RaftHandle, not_leader};
use crate::replica::{Replica, encode_record};

/// A member, as its tasks share it.
pub(crate) struct Member {
    pub(crate) config: Config,
    pub(crate) env: Env,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) raft: RaftHandle<Outcome>,
    pub(crate) replica: Arc<Replica>,
    /// Present while this member leads.
    pub(crate) leader: Mutex<Option<Leader>>,
    /// Wakes the leader's loop.
    pub(crate) wake: Notify,
    /// Wakes who enquires sources.
    pub(crate) strange: Notify,
    /// Checks that the leader's loop orders.
    pub(crate) checks: (async_channel::Sender<Check>, async_channel::Receiver<Check>),
    pub(crate) started: Instant,
}

impl Member {
    pub(crate) fn leader(&self) -> MutexGuard<'_, Option<Leader>> {
        self.leader.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Milliseconds since the member started.
    pub(crate) fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Runs a command here, where the leader is.
    pub(crate) async fn propose_here(&self, request: CommandRequest) -> Result<Outcome> {
        let record = encode_record(self.env.clock.unix_ms(), request)?;
        self.raft.propose(record).await
    }

    /// The leader, if it is another member.
    pub(crate) fn forward_to(&self) -> Result<Option<Arc<dyn CoordinatorApi>>> {
        match self.raft.role().borrow().leader {
            Some(leader) if leader == self.config.node => Ok(None),
            Some(leader) => self.directory.coordinator_member(leader).map(Some),
            None => Err(not_leader(None)),
        }
    }

    /// Does something with the leader's memory.
    pub(crate) fn as_leader<T>(&self, work: impl FnOnce(&mut Leader) -> Result<T>) -> Result<T> {
        match self.leader().as_mut() {
            Some(leader) => work(leader),
            None => Err(not_leader(None)),
        }
    }
}
