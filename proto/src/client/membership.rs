//! Membership: a node registers with the coordinators and then sends them heartbeats.
//!
//! A node registers at each start, even if it is registered already, because its address may have
//! changed. A node with a data directory registers with its identity ([`NodeIdentity`]), so that
//! no other process can take its node id. Other nodes learn of the node from the catalog
//! ([`CatalogFollower`](super::CatalogFollower)).

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

/// A node's reaction when the coordinator answers a heartbeat with `Unknown`, because it has no
/// registration of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgottenPolicy {
    /// Continue with heartbeats, without a registration. A newly elected leader will soon have
    /// the registration, and a removed node must not return until an operator starts it again.
    StayOut,
    /// Register immediately.
    RegisterAtOnce,
    /// Register after a pause.
    RegisterAfterPause,
}

/// Settings of a membership.
#[derive(Clone)]
pub struct MembershipConfig {
    /// The node that registers.
    pub node: NodeInfo,
    /// The time between two heartbeats.
    pub heartbeat: Duration,
    /// The pauses after failed calls.
    pub retry: Retry,
    /// A random number of this process, from which request ids of its registrations are made. The
    /// coordinator then carries out a repeated registration once. `None` sends no request id.
    pub client: Option<u64>,
    /// True if the node sends its first heartbeat immediately after the registration; false if it
    /// first waits for the heartbeat interval.
    pub has_news_at_once: bool,
    /// The reaction when the coordinator has no registration of the node.
    pub when_forgotten: ForgottenPolicy,
    /// The identity of the node's data directory; `None` for a process without one.
    pub identity: Option<Arc<NodeIdentity>>,
}

/// A task that registers one node and sends its heartbeats.
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

    /// Sets a random number that identifies this process in its heartbeats, for a process without
    /// a data directory. The coordinators accept heartbeats of a node id from one process only,
    /// while that process sends them. If another process has the id, `taken` receives the
    /// refusal; otherwise `None`.
    pub fn with_process_number(
        self,
        mark: Option<NodeProof>,
        taken: watch::Sender<Option<Error>>,
    ) -> Self {
        Self { mark, taken, ..self }
    }

    /// Makes the task publish to `silent` the nodes without heartbeats, from the leader's last
    /// answer. After a failed heartbeat the set is empty.
    pub fn with_silent_nodes(self, silent: watch::Sender<BTreeSet<NodeId>>) -> Self {
        Self { silent, ..self }
    }

    /// Makes the task store in `moment` the moment of the leader's last answer
    /// ([`crate::model::moment`]).
    pub fn with_moment(self, moment: Arc<AtomicU64>) -> Self {
        Self { moment, ..self }
    }

    /// Makes the task publish to `answered` the time of the leader's last answer.
    pub fn with_answer_times(self, answered: watch::Sender<Option<Instant>>) -> Self {
        Self { answered, ..self }
    }

    /// Publishes the set of silent nodes if it has changed.
    fn publish_silent_nodes(&self, nodes: BTreeSet<NodeId>) {
        self.silent.send_if_modified(|known| {
            let is_news = *known != nodes;
            *known = nodes;
            is_news
        });
    }

    /// Registers the node, then sends heartbeats, which `report` makes. A heartbeat is sent at
    /// the configured interval, and immediately when `changed` changes. Runs until it is dropped,
    /// which is safe at any await.
    pub async fn run(
        mut self,
        mut report: impl FnMut() -> Heartbeat,
        mut changed: Option<watch::Receiver<u64>>,
    ) -> Infallible {
        self.register_with_retries().await;
        if !self.config.has_news_at_once {
            self.wait_for_next_heartbeat(&mut changed).await;
        }
        loop {
            let mut heartbeat = report();
            let identity = self.config.identity.as_ref();
            heartbeat.proof = identity.map(|identity| identity.proof()).or(self.mark);
            match self.directory.coordinator().heartbeat(heartbeat).await {
                Ok(reply) => {
                    self.moment.store(reply.moment, Ordering::Relaxed);
                    self.answered.send_replace(Some(Instant::now()));
                    self.publish_refusal(None);
                    self.publish_silent_nodes(reply.silent.into_iter().collect());
                    self.config.retry.reset();
                    self.wait_for_next_heartbeat(&mut changed).await;
                }
                Err(error) => {
                    self.publish_silent_nodes(BTreeSet::new());
                    self.recover(error, &mut changed).await;
                }
            }
        }
    }

    /// Reacts to a failed heartbeat: pauses, or registers the node again.
    async fn recover(&mut self, error: Error, changed: &mut Option<watch::Receiver<u64>>) {
        if error.code == ErrorCode::NodeTaken {
            self.note_joined(false);
            self.publish_refusal(Some(&error));
            if self.mark.is_some() {
                // The node is registered, and its mark is accepted as soon as the other process is silent.
                self.pause_after(&error, "heartbeat").await;
                return;
            }
            // The other process may go away again; until then the registration is refused.
            tracing::warn!(%error, node = %self.config.node.id, "registering again");
            self.pause_after(&error, "heartbeat").await;
            self.register_with_retries().await;
            return;
        }
        let is_forgotten = error.code == ErrorCode::Unknown;
        match self.config.when_forgotten {
            ForgottenPolicy::RegisterAtOnce if is_forgotten => {
                self.register_once().await;
            }
            ForgottenPolicy::RegisterAfterPause if is_forgotten => {
                self.pause_after(&error, "heartbeat").await;
                self.register_with_retries().await;
                if !self.config.has_news_at_once {
                    self.wait_for_next_heartbeat(changed).await;
                }
            }
            _ => self.pause_after(&error, "heartbeat").await,
        }
    }

    /// Registers the node; repeats the attempt, with pauses, until it succeeds.
    async fn register_with_retries(&mut self) {
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
                self.publish_refusal(
                    Some(&error).filter(|error| error.code == ErrorCode::NodeTaken),
                );
                self.pause_after(&error, "registering").await;
                false
            }
        }
    }

    /// Publishes the refusal of this node's id, or its end (`None`), if it has changed.
    fn publish_refusal(&self, refusal: Option<&Error>) {
        self.taken.send_if_modified(|known| {
            let is_news = known.as_ref() != refusal;
            *known = refusal.cloned();
            is_news
        });
    }

    /// Records in the identity whether the process has joined; the process follows the catalog
    /// only while it has.
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
                Some(identity) => identity.accept_cluster(Some(cluster)),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    async fn wait_for_next_heartbeat(&self, changed: &mut Option<watch::Receiver<u64>>) {
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
