//! Membership: a node registers with the cluster and then sends heartbeats.
//!
//! A node registers at each start, even if the coordinator has its registration: the node may have
//! restarted at another address. A node with a data directory joins by its identity
//! ([`NodeIdentity`]), so that no other process can take its node id. The effects of the heartbeats
//! reach the other nodes through the catalog ([`CatalogFollower`](super::CatalogFollower)).

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::identity::NodeIdentity;
use super::retry::Retry;
use crate::error::{Error, ErrorCode, Result};
use crate::model::identity::NodeProof;
use crate::model::ids::NodeId;
use crate::model::node::NodeInfo;
use crate::rpc::api::{Directory, Heartbeat};
use crate::rpc::command::{Command, Join, Outcome, Proposal, RegisterNode, RequestId};

/// The reaction of a node to a heartbeat that the coordinator answers with `Unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgottenPolicy {
    /// Continue with heartbeats. A newly elected leader will have the node's registration soon, and
    /// a node that was removed must not return until an operator starts it again.
    StayOut,
    /// Register now, without a pause.
    RegisterAtOnce,
    /// Register after a pause.
    RegisterAfterPause,
}

/// Settings of a membership.
#[derive(Clone)]
pub struct MembershipConfig {
    /// The node that registers.
    pub node: NodeInfo,
    /// Time between two heartbeats.
    pub heartbeat: Duration,
    /// The pauses after failed calls.
    pub retry: Retry,
    /// A number that identifies the node's registrations, so that a repeated registration runs
    /// once; `None` sends them without a request id.
    pub client: Option<u64>,
    /// True if the first heartbeat is sent immediately after the registration; false if it is sent
    /// after the interval.
    pub has_news_at_once: bool,
    /// The node's reaction when the coordinator has no registration of it.
    pub when_forgotten: ForgottenPolicy,
    /// The identity of the node's data directory; `None` for a process without one.
    pub identity: Option<Arc<NodeIdentity>>,
}

/// The membership of one node.
pub struct Membership {
    directory: Arc<dyn Directory>,
    config: MembershipConfig,
    registrations: u64,
    silent: watch::Sender<BTreeSet<NodeId>>,
    moment: Arc<AtomicU64>,
    answered: watch::Sender<Option<Instant>>,
    mark: Option<NodeProof>,
    taken: watch::Sender<Option<Error>>,
}

impl Membership {
    /// Creates a membership that has not begun; [`Self::run`] begins it.
    pub fn new(directory: Arc<dyn Directory>, config: MembershipConfig) -> Self {
        let (silent, moment) = (watch::Sender::default(), Arc::default());
        let (answered, taken) = Default::default();
        Self { directory, config, registrations: 0, silent, moment, answered, mark: None, taken }
    }

    /// Marks this process, which has no data directory, with a random number. While this process
    /// sends heartbeats, the coordinators refuse another process with its node id; if another
    /// process was first, this one is refused. `taken` receives the present refusal.
    pub fn with_mark(self, mark: Option<NodeProof>, taken: watch::Sender<Option<Error>>) -> Self {
        Self { mark, taken, ..self }
    }

    /// Publishes the silent nodes in the leader's last answer to `silent`. After a failed heartbeat
    /// the set is empty.
    pub fn with_silent(self, silent: watch::Sender<BTreeSet<NodeId>>) -> Self {
        Self { silent, ..self }
    }

    /// Publishes the moment in the leader's last answer ([`crate::model::moment`]) to `moment`.
    pub fn with_moment(self, moment: Arc<AtomicU64>) -> Self {
        Self { moment, ..self }
    }

    /// Publishes the time of the leader's last answer to `answered`.
    pub fn with_answered(self, answered: watch::Sender<Option<Instant>>) -> Self {
        Self { answered, ..self }
    }

    fn note_silent(&self, nodes: BTreeSet<NodeId>) {
        self.silent.send_if_modified(|known| {
            let is_news = *known != nodes;
            *known = nodes;
            is_news
        });
    }

    /// Registers the node, then sends the heartbeats that `report` makes: at the configured
    /// interval, and immediately when `changed` changes. Runs until it is dropped; safe to drop at
    /// any await.
    pub async fn run(
        mut self,
        mut report: impl FnMut() -> Heartbeat,
        mut changed: Option<watch::Receiver<u64>>,
    ) -> Infallible {
        self.register_until_known().await;
        if !self.config.has_news_at_once {
            self.wait_for_next(&mut changed).await;
        }
        loop {
            let mut heartbeat = report();
            let identity = self.config.identity.as_ref();
            heartbeat.proof = identity.map(|identity| identity.proof()).or(self.mark);
            match self.directory.coordinator().heartbeat(heartbeat).await {
                Ok(reply) => {
                    self.moment.store(reply.moment, Ordering::Relaxed);
                    self.answered.send_replace(Some(Instant::now()));
                    self.note_taken(None);
                    self.note_silent(reply.silent.into_iter().collect());
                    self.config.retry.reset();
                    self.wait_for_next(&mut changed).await;
                }
                Err(error) => {
                    self.note_silent(BTreeSet::new());
                    self.recover(error, &mut changed).await;
                }
            }
        }
    }

    /// Pauses after a failed heartbeat, or registers the node again.
    async fn recover(&mut self, error: Error, changed: &mut Option<watch::Receiver<u64>>) {
        if error.code == ErrorCode::NodeTaken {
            self.note_joined(false);
            self.note_taken(Some(&error));
            if self.mark.is_some() {
                // The node is registered, and its mark is accepted as soon as the other process is silent.
                self.pause_after(&error, "heartbeat").await;
                return;
            }
            // The other process may go away again; until then the registration is refused.
            tracing::warn!(%error, node = %self.config.node.id, "registering again");
            self.pause_after(&error, "heartbeat").await;
            self.register_until_known().await;
            return;
        }
        let is_forgotten = error.code == ErrorCode::Unknown;
        match self.config.when_forgotten {
            ForgottenPolicy::RegisterAtOnce if is_forgotten => {
                self.register_once().await;
            }
            ForgottenPolicy::RegisterAfterPause if is_forgotten => {
                self.pause_after(&error, "heartbeat").await;
                self.register_until_known().await;
                if !self.config.has_news_at_once {
                    self.wait_for_next(changed).await;
                }
            }
            _ => self.pause_after(&error, "heartbeat").await,
        }
    }

    async fn register_until_known(&mut self) {
        while !self.register_once().await {}
        tracing::info!(node = %self.config.node.id, "registered");
    }

    /// Registers the node; returns false, after a pause, if that failed.
    async fn register_once(&mut self) -> bool {
        match self.register().await {
            Ok(()) => {
                self.config.retry.reset();
                self.note_joined(true);
                true
            }
            Err(error) => {
                self.note_taken(Some(&error).filter(|error| error.code == ErrorCode::NodeTaken));
                self.pause_after(&error, "registering").await;
                false
            }
        }
    }

    fn note_taken(&self, refusal: Option<&Error>) {
        self.taken.send_if_modified(|known| {
            let is_news = known.as_ref() != refusal;
            *known = refusal.cloned();
            is_news
        });
    }

    /// Records in the identity whether the process has joined, so that it follows the catalog or
    /// stops doing so.
    fn note_joined(&self, joined: bool) {
        if let Some(identity) = &self.config.identity {
            identity.set_joined(joined);
        }
    }

    async fn register(&mut self) -> Result<()> {
        self.registrations += 1;
        let sequence = self.registrations;
        let request = self.config.client.map(|client| RequestId { client, sequence });
        let node = self.config.node.clone();
        let command = match &self.config.identity {
            Some(identity) => {
                Command::Join(Join { request: Box::new(identity.join_request(node)) })
            }
            None => Command::RegisterNode(RegisterNode { node }),
        };
        let proposal = Proposal { request, ..Proposal::from(command) };
        match self.directory.coordinator().propose(proposal).await?.outcome {
            Outcome::Refused(error) => Err(error),
            Outcome::Joined(cluster) => match &self.config.identity {
                Some(identity) => identity.accept(Some(cluster)),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    async fn wait_for_next(&self, changed: &mut Option<watch::Receiver<u64>>) {
        let news = async {
            // A watch that has ended reports changes at once, again and again.
            let is_news = match changed {
                Some(changed) => changed.changed().await.is_ok(),
                None => false,
            };
            if !is_news {
                std::future::pending().await
            }
        };
        tokio::select! {
            biased;
            () = news => {}
            () = tokio::time::sleep(self.config.heartbeat) => {}
        }
    }

    async fn pause_after(&mut self, error: &Error, doing: &str) {
        let (role, node) = (self.config.node.role.name(), self.config.node.id);
        // A lasting error is logged at a high level only once, since the next try follows within a second.
        if error.is_retry() || !self.config.retry.is_first_failure() {
            tracing::debug!(%error, "{role} {node}: {doing} failed; trying again");
        } else {
            tracing::warn!(%error, "{role} {node}: {doing} failed; trying again");
        }
        self.config.retry.pause().await;
    }
}
