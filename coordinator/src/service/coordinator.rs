//! Starts a member: opens its log and spawns its tasks.

use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex, Weak};

use proto::client::{DataDir, NodeIdentity};
use proto::env::{Env, Task};
use proto::model::identity::ClusterId;
use proto::rpc::api::Directory;
use proto::{Error, Result};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::alive::send_heartbeats;
use super::ask_members::watch_members;
use super::data_dir::{open_data_dir, store_cluster_id};
use super::moments::run_rounds;
use super::peers::Peers;
use super::skip::skip_epochs;
use crate::config::Config;
use crate::leader::driver::member::Member;
use crate::leader::driver::rounds::Rounds;
use crate::leader::driver::{checks, lead, queries};
use crate::raft::RaftService;
use crate::replica::{Machine, Replica};

/// The limit of comparisons of copies in the queue: more than the limit of concurrent moves.
const CHECKS_MAX: usize = 64;

/// A running member of the coordinator.
pub struct Coordinator {
    pub(super) member: Arc<Member>,
    identity: Arc<NodeIdentity>,
    // Drop order: the tasks end before the directory is free for another process.
    _tasks: Vec<Task>,
    _lock: Box<dyn Send + Sync>,
}

impl Coordinator {
    /// Opens the member's log, recovers its state and starts its tasks.
    pub async fn start(
        config: Config,
        env: Env,
        directory: Arc<dyn Directory>,
    ) -> Result<Arc<Self>> {
        let peers = Peers::new(&env, &directory);
        let replica = Replica::new();
        let machine = Machine(replica.clone());
        let (open_env, open_config) = (env.clone(), config.clone());
        let (DataDir { lock, identity, .. }, service, raft) = env
            .blocking(move || {
                let data_dir = open_data_dir(&open_env, &open_config)?;
                let Config { raft, dir, .. } = open_config;
                let (service, handle) = RaftService::open(raft, &dir, machine, open_env, peers)?;
                Ok::<_, Error>((data_dir, service, handle))
            })
            .await
            .map_err(|error| error.context(format!("start coordinator {}", config.node)))?;
        let member = Arc::new(Member {
            config,
            env: env.clone(),
            directory,
            raft,
            replica,
            leader: Mutex::new(None),
            wake: Notify::new(),
            rounds: Rounds::default(),
            suspect_found: Notify::new(),
            checks: async_channel::bounded(CHECKS_MAX),
            started: Instant::now(),
            heard_ms: Mutex::default(),
            removed: watch::Sender::default(),
        });
        let node = member.config.node;
        // The core's state, the leader's memory: after a panic none of these loops may go on.
        let mut tasks = vec![env.spawn_service("coordinator-log", async move {
            if let Err(error) = service.run().await {
                tracing::error!(%node, %error, "the coordinator member stops");
            }
            // `stopped` reports the end to the owner of the member.
            pending::<Infallible>().await
        })];
        tasks.push(env.spawn_service("coordinator-members", watch_members(member.clone())));
        let keep = store_cluster_id(env.clone(), Arc::clone(&identity), member.replica.clone());
        tasks.push(env.spawn_service("coordinator-identity", keep));
        tasks.push(env.spawn_service("coordinator-leader", lead::run(member.clone())));
        tasks.push(env.spawn_service("coordinator-moments", run_rounds(member.clone())));
        let enquiries = queries::query_sources(member.clone());
        tasks.push(env.spawn_service("coordinator-enquiries", enquiries));
        tasks.push(env.spawn_service("coordinator-checks", checks::compare_copies(member.clone())));
        tasks.push(env.spawn_service("coordinator-alive", send_heartbeats(member.clone())));
        let skips = member.config.skip_epochs;
        Ok(Arc::new_cyclic(|coordinator: &Weak<Self>| {
            if skips {
                let skip = skip_epochs(coordinator.clone() as _, env.random.next_u64());
                tasks.push(env.spawn_service("coordinator-skip-epochs", skip));
            }
            Self { member, identity, _tasks: tasks, _lock: lock }
        }))
    }

    /// Returns the cluster that the member's directory belongs to.
    pub fn cluster(&self) -> Option<ClusterId> {
        self.identity.cluster()
    }

    /// Waits until the member has stopped because its disk failed or its log cannot be applied.
    /// Returns an error if the member was removed from the cluster.
    pub async fn stopped(&self) -> Option<Error> {
        let mut role = self.member.raft.role();
        let ended = async { while role.changed().await.is_ok() {} };
        let mut removed = self.member.removed.subscribe();
        tokio::select! {
            () = ended => None,
            error = removed.wait_for(Option::is_some) => error.ok().and_then(|error| error.clone()),
        }
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
