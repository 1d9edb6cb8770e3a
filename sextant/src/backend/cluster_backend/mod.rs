//! The cluster that the ports of a process use: scans and the catalog are sent to the router,
//! commands to the coordinator, documents to the projector of their bucket.

mod calls;
mod reads;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proto::env::Env;
use proto::model::bucket::BucketInfo;
use proto::model::cut::{Cut, WritePosition};
use proto::model::ids::Epoch;
use proto::rpc::api::{CoordinatorApi, Directory, ProjectorApi};
use proto::rpc::command::{AppliedCommand, Command, DrainNode, Outcome, Proposal, RequestId};
use proto::{Error, ErrorCode, Result};
use router::Router;
use tokio::time::{Instant, timeout};

use super::counters::Counters;
use super::drain_wait;
use super::keep_alive::TransactionKeeper;
use super::source_calls::SourceCalls;
use crate::access::{Authorization, Cluster};
use crate::audit::Attempt;
use crate::auth::newest_users::NewestUsers;
use crate::flow::Flow;

/// The time limit of a statement's wait until the catalog of this process contains a committed
/// command, or a name that another process has just created.
const CATALOG_BEHIND: Duration = Duration::from_secs(2);

/// The cluster that the ports of a process use.
pub struct ClusterBackend {
    calls: SourceCalls,
    kept: Arc<TransactionKeeper>,
    env: Env,
    /// A number that identifies this process in request ids.
    client: u64,
    requests: AtomicU64,
    /// The highest `cas` of a catalog in the answers to this process.
    newest_cas: AtomicU64,
    /// The newest users that this process has received.
    users: Arc<NewestUsers>,
}

impl ClusterBackend {
    /// Creates a backend over a router and the other services.
    pub fn new(
        router: Arc<Router>,
        directory: Arc<dyn Directory>,
        env: Env,
        counters: Arc<Counters>,
    ) -> Self {
        let client = env.random.next_u64();
        let (requests, newest_cas) = (AtomicU64::default(), AtomicU64::default());
        let calls = SourceCalls { router, directory, counters };
        let kept = Arc::new(TransactionKeeper::new(calls.clone(), env.clone()));
        Self { calls, kept, env, client, requests, newest_cas, users: Arc::default() }
    }

    /// Sets the users, which a task keeps up to date; without this call there are none.
    pub fn with_users(self, users: Arc<NewestUsers>) -> Self {
        Self { users, ..self }
    }

    /// Returns the authorization of principals in the cluster, within the limits of a process.
    pub fn authorization(self: &Arc<Self>, flow: &Flow) -> Authorization {
        let clock = Arc::clone(&self.env.clock);
        Authorization::new(Arc::clone(self) as _, clock, flow.definitions.clone())
    }

    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        self.calls.directory.coordinator()
    }

    /// Returns the clock, files, random numbers and tasks of this process.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Returns the projectors of a bucket according to the newest catalog.
    pub fn source(&self, bucket: &BucketInfo) -> Result<Arc<dyn ProjectorApi>> {
        self.calls.source(bucket)
    }

    /// Returns the oldest epoch that covers a write, from a member of the coordinators.
    async fn covering(&self, write: &WritePosition, deadline: Instant) -> Result<Epoch> {
        let catalog = self.catalog();
        let missing = || Error::new(ErrorCode::Unknown, "the bucket of the last write was dropped");
        let bucket = catalog.buckets.get(&write.bucket).ok_or_else(missing)?;
        let cut = Cut::zero(bucket.vbuckets).with(&write.positions);
        let known = self.calls.router.newest_published(bucket.id);
        let left_ms = deadline.saturating_duration_since(Instant::now()).as_millis() as u64;
        let asked = self.coordinator().epoch_covering(bucket.id, cut, None, known, left_ms).await;
        asked.map(|covering| covering.oldest)
    }

    /// Waits until the catalog of this process contains the change `cas`, and those of earlier
    /// answers. Returns false after [`CATALOG_BEHIND`].
    async fn wait_cas(&self, cas: u64) -> bool {
        let cas = cas.max(self.newest_cas.fetch_max(cas, Ordering::Relaxed));
        let shown = self.calls.router.wait_catalog(|catalog| catalog.cas >= cas);
        let is_shown = timeout(CATALOG_BEHIND, shown).await.is_ok();
        if !is_shown {
            tracing::warn!(cas, "the router's catalog does not show a committed change yet");
        }
        is_shown
    }

    /// Runs a command. It returns after the catalog of this process contains the change, or the
    /// reason of a refusal: the next statement of the session must find what was created.
    async fn propose(&self, proposal: Proposal, attempt: &Attempt) -> Result<Outcome> {
        let sequence = self.requests.fetch_add(1, Ordering::Relaxed);
        let request = Some(RequestId { client: self.client, sequence });
        let coordinator = self.coordinator();
        let drains = match proposal.command {
            Command::DrainNode(DrainNode { node, drain: true }) => Some(node),
            _ => None,
        };
        let proposal = Proposal { request, ..proposal };
        attempt.begin().await?;
        let began = Instant::now();
        let AppliedCommand { outcome, catalog_cas } = coordinator.propose(proposal).await?;
        self.calls.counters.commands.inc();
        self.calls.counters.command.observe(began.elapsed().as_secs_f64());
        if !matches!(outcome, Outcome::Refused(_)) {
            attempt.made();
        }
        self.wait_cas(catalog_cas).await;
        if let Outcome::Refused(error) = outcome {
            return Err(error);
        }
        if let Some(node) = drains {
            drain_wait::wait_planned(&self.calls.router, node).await;
        }
        Ok(outcome)
    }
}
