//! A member of the coordinator: the log, the leader's loop, and the calls that come in.
//!
//! What any member answers from its own copy: watches, status, epochs that are published. All else is
//! the leader's: a member that does not lead forwards. The chain of forwards ends, because each member
//! forwards to the leader of its own term, and a member that led a term and forwards in turn is in a
//! later one.
//!
//! Tasks: the log's (its end is the member's end), one for each other member (see `peers`), the
//! three of the leader (see `lead`), and one that says that this member is alive. They end when the
//! [`Coordinator`] is dropped; what was acknowledged is safe.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::env::{Env, Task, create_dir_durably};
use proto::model::cut::{Cut, EpochMark};
use proto::model::ids::{BucketId, IndexId, NodeId, TopologyNo};
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::topology::IndexTopology;
use proto::rpc::api::{
    CoordinatorApi, CoordinatorStatus, Directory, Heartbeat, ResultStream, SyncReport, WatchMessage,
};
use proto::rpc::command::{Command, CommandRequest, Outcome};
use proto::{Error, ErrorCode, Result};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::leader::Leader;
use crate::leader::bootstrap::changes_membership;
use crate::leader::moves::{Check, MoveSettings};
use crate::peers::Peers;
use crate::raft::core::not_leader;
use crate::raft::{RaftConfig, RaftHandle, RaftMessage, RaftService};
use crate::replica::{Machine, Replica, encode_record};

/// How often a member says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// While a leader is in its bootstrap, how often what waits for its end looks again.
const BOOTSTRAP_LOOK: Duration = Duration::from_millis(20);
/// Checks that may wait: more than there are moves at a time.
const CHECKS_MAX: usize = 64;

/// The settings of a member.
#[derive(Clone, Debug)]
pub struct Config {
    /// This member.
    pub node: NodeId,
    /// All members and their addresses, this one too; the same list on all of them.
    pub members: Vec<(NodeId, String)>,
    /// Where its log is kept; nobody else uses the directory.
    pub dir: PathBuf,
    /// Stability timestamps come no closer together than this, unless somebody waits.
    pub tick_ms: u64,
    /// How slices are moved.
    pub moves: MoveSettings,
    /// Raft's own settings.
    pub raft: RaftConfig,
}

impl Config {
    /// The settings for a cluster in one data centre.
    pub fn new(node: NodeId, members: Vec<(NodeId, String)>, dir: PathBuf) -> Self {
        let raft = RaftConfig::new(node, members.iter().map(|(member, _)| *member).collect());
        Self { node, members, dir, tick_ms: 20, moves: MoveSettings::default(), raft }
    }
}

/// A running member.
pub struct Coordinator {
    inner: Arc<Inner>,
    // In this order: tasks end before the directory is free for another process.
    _tasks: Vec<Task>,
    _lock: Box<dyn Send + Sync>,
}

pub(crate) struct Inner {
    pub(crate) config: Config,
    pub(crate) env: Env,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) raft: RaftHandle<Outcome>,
    pub(crate) replica: Arc<Replica>,
    /// Present while this member leads.
    leader: Mutex<Option<Leader>>,
    /// Wakes the leader's loop.
    pub(crate) wake: Notify,
    /// Wakes who enquires sources.
    pub(crate) strange: Notify,
    /// Checks that the leader's loop orders.
    pub(crate) checks: (async_channel::Sender<Check>, async_channel::Receiver<Check>),
    started: Instant,
}

impl Coordinator {
    /// Opens the member's log, recovers its state and starts its tasks.
    pub async fn start(
        config: Config,
        env: Env,
        directory: Arc<dyn Directory>,
    ) -> Result<Arc<Self>> {
        let others = config.members.iter().map(|(id, _)| *id).filter(|id| *id != config.node);
        let (peers, mut tasks) = Peers::new(&env, &directory, others);
        let replica = Replica::new();
        let machine = Machine(replica.clone());
        let (open_env, open_config) = (env.clone(), config.clone());
        let (lock, service, raft) = env
            .blocking(move || {
                create_dir_durably(&*open_env.fs, &open_config.dir)?;
                let lock = open_env.fs.lock_dir(&open_config.dir)?;
                let Config { raft, dir, .. } = open_config;
                let (service, handle) = RaftService::open(raft, &dir, machine, open_env, peers)?;
                Ok::<_, Error>((lock, service, handle))
            })
            .await
            .map_err(|error| error.context(format!("start coordinator {}", config.node)))?;
        let inner = Arc::new(Inner {
            config,
            env: env.clone(),
            directory,
            raft,
            replica,
            leader: Mutex::new(None),
            wake: Notify::new(),
            strange: Notify::new(),
            checks: async_channel::bounded(CHECKS_MAX),
            started: Instant::now(),
        });
        let node = inner.config.node;
        tasks.push(env.spawn("coordinator-log", async move {
            if let Err(error) = service.run().await {
                tracing::error!(%node, %error, "a coordinator member stops");
            }
        }));
        tasks.push(env.spawn("coordinator-leader", crate::lead::run(inner.clone())));
        tasks.push(env.spawn("coordinator-enquiries", crate::lead::enquire_sources(inner.clone())));
        tasks.push(env.spawn("coordinator-checks", crate::lead::compare_copies(inner.clone())));
        tasks.push(env.spawn("coordinator-alive", say_alive(inner.clone())));
        Ok(Arc::new(Self { inner, _tasks: tasks, _lock: lock }))
    }

    /// Waits until the member has stopped by itself: its disk failed, or its log cannot be applied.
    pub async fn stopped(&self) {
        let mut role = self.inner.raft.role();
        while role.changed().await.is_ok() {}
    }
}

async fn say_alive(inner: Arc<Inner>) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let node = inner.config.node;
        let nothing = Heartbeat {
            node,
            buckets: vec![],
            slices: vec![],
            moves: vec![],
            leases: vec![],
            scans: None,
        };
        // Between two leaders there is nobody to tell.
        if let Err(error) = inner.heartbeat(nothing).await {
            tracing::debug!(%node, %error, "say that a coordinator is alive");
        }
    }
}

impl Inner {
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

    /// Lets what changes the membership wait until the leader is past its bootstrap.
    async fn wait_active(&self, command: &Command) -> Result<()> {
        let waits = |inner: &Self| {
            let now_ms = inner.now_ms();
            inner.as_leader(|leader| {
                let view = inner.replica.view();
                let is_member = inner.config.members.iter().any(|(id, _)| match command {
                    Command::RegisterNode(node) => node.id == *id,
                    _ => false,
                });
                Ok(!is_member
                    && changes_membership(&view.state, command)
                    && !leader.is_active(&view.state, now_ms))
            })
        };
        while waits(self)? {
            tokio::time::sleep(BOOTSTRAP_LOOK).await;
        }
        Ok(())
    }

    /// Plans a rebalance from the leader's memory, and begins it.
    async fn rebalance_here(&self, request: RebalanceRequest) -> Result<RebalancePlan> {
        let now_ms = self.now_ms();
        let plan = self.as_leader(|leader| {
            let view = self.replica.view();
            leader.rebalance(&view.state, &request, now_ms)
        })?;
        if request.dry_run || plan.moves.is_empty() {
            return Ok(plan);
        }
        let command = Command::StartMoves(plan.moves.clone());
        match self.propose_here(CommandRequest { request: None, command }).await? {
            Outcome::Refused(error) => Err(error),
            _ => Ok(plan),
        }
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

    async fn sync(&self, report: SyncReport) -> Result<()> {
        if let Some(leader) = self.forward_to()? {
            return leader.sync(report).await;
        }
        let now_ms = self.now_ms();
        self.as_leader(|leader| {
            let view = self.replica.view();
            let told = report.buckets.into_iter();
            // One bad bucket does not keep the others from being heard.
            told.map(|told| leader.sync(&view.state, report.projector, told, now_ms))
                .fold(Ok(()), Result::and)?;
            if leader.is_curious() {
                self.strange.notify_one();
            }
            Ok(())
        })?;
        self.wake.notify_one();
        Ok(())
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<()> {
        if let Some(leader) = self.forward_to()? {
            return leader.heartbeat(heartbeat).await;
        }
        let now_ms = self.now_ms();
        let news = self.as_leader(|leader| {
            if self.replica.view().state.node(heartbeat.node).is_none() {
                let what = format!("node {} is not registered", heartbeat.node);
                return Err(Error::new(ErrorCode::Unknown, what).with_hint("register it first"));
            }
            Ok(leader.hear(heartbeat, now_ms))
        })?;
        if news {
            self.wake.notify_one();
        }
        Ok(())
    }
}

#[async_trait]
impl CoordinatorApi for Coordinator {
    async fn propose(&self, request: CommandRequest) -> Result<Outcome> {
        if is_leaders_own(&request.command) {
            let what = "this command is the leading coordinator's own";
            return Err(Error::new(ErrorCode::InvalidParameter, what));
        }
        match self.inner.forward_to()? {
            Some(leader) => leader.propose(request).await,
            None => {
                self.inner.wait_active(&request.command).await?;
                self.inner.propose_here(request).await
            }
        }
    }

    async fn sync(&self, report: SyncReport) -> Result<()> {
        self.inner.sync(report).await
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<()> {
        self.inner.heartbeat(heartbeat).await
    }

    async fn epoch_covering(
        &self,
        bucket: BucketId,
        cut: Cut,
        history: Option<u64>,
        timeout_ms: u64,
    ) -> Result<EpochMark> {
        self.inner.wait_for_epoch(bucket, cut, history, timeout_ms).await
    }

    async fn watch(&self) -> Result<ResultStream<WatchMessage>> {
        let role = self.inner.raft.role();
        // A member that is cut off is not who to watch.
        if role.borrow().leader.is_none() {
            return Err(not_leader(None));
        }
        Ok(crate::watch::watch(self.inner.replica.clone(), role))
    }

    async fn status(&self) -> Result<CoordinatorStatus> {
        let role = *self.inner.raft.role().borrow();
        let (committed, applied) = self.inner.raft.progress();
        let now_ms = self.inner.now_ms();
        let mut leader = self.inner.leader();
        let view = self.inner.replica.view();
        let mut nodes = leader.as_ref().map_or_else(Vec::new, |l| l.node_status(now_ms));
        let active = leader.as_mut().is_some_and(|l| l.is_active(&view.state, now_ms));
        let differences = leader.as_ref().map_or_else(Vec::new, |l| l.differences(&view.state));
        drop(leader);
        // One that was removed was heard of, but is no longer of the cluster.
        nodes.retain(|status| view.state.node(status.node).is_some());
        Ok(CoordinatorStatus {
            node: self.inner.config.node,
            leader: role.leader,
            term: role.term,
            committed,
            applied,
            catalog_cas: view.catalog.cas,
            active,
            differences,
            nodes,
        })
    }

    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan> {
        match self.inner.forward_to()? {
            Some(leader) => leader.rebalance(request).await,
            None => self.inner.rebalance_here(request).await,
        }
    }

    async fn topology(&self, index: IndexId, number: TopologyNo) -> Result<Arc<IndexTopology>> {
        self.inner.replica.view().state.topology(index, number)
    }

    async fn raft(&self, messages: Vec<Bytes>) -> Result<()> {
        for message in messages {
            self.inner.raft.deliver(RaftMessage::decode(&message)?);
        }
        Ok(())
    }
}

/// Does the leader alone propose such commands, from what it has heard?
fn is_leaders_own(command: &Command) -> bool {
    matches!(
        command,
        Command::IndexReady { .. }
            | Command::AdvanceMove { .. }
            | Command::EndMove { .. }
            | Command::PromoteEpochs(_)
            | Command::Rollback { .. }
    )
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
