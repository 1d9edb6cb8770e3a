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
use crate::flow::ClientCapacity;

/// The time limit of a statement's wait for the catalog of this process. The statement waits
/// until the catalog contains a committed command, or a name that another process has just
/// created.
const CATALOG_BEHIND: Duration = Duration::from_secs(2);

/// The cluster that the ports of a process use.
pub struct ClusterBackend {
    calls: SourceCalls,
    kept: Arc<TransactionKeeper>,
    env: Env,
    /// A number that identifies this process in request ids.
    client: u64,
    requests: AtomicU64,
    /// The highest `cas` of a catalog that an answer to this process has named.
    newest_cas: AtomicU64,
    /// The newest users that this process has received.
    users: Arc<NewestUsers>,
}

impl ClusterBackend {
    /// Creates a backend that calls a router and the other services.
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

    /// Sets the users, which another task keeps up to date. Without this call there are no users.
    pub fn with_users(self, users: Arc<NewestUsers>) -> Self {
        Self { users, ..self }
    }

    /// Returns a provider that authorizes principals in this cluster, within the limits of the
    /// process.
    pub fn authorization(self: &Arc<Self>, flow: &ClientCapacity) -> Authorization {
        let clock = Arc::clone(&self.env.clock);
        Authorization::new(Arc::clone(self) as _, clock, flow.definitions.clone())
    }

    /// Returns a client of the coordinators.
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        self.calls.directory.coordinator()
    }

    /// Returns the clock, files, random numbers and tasks of this process.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Returns a connection to the projectors of a bucket, according to the newest catalog.
    pub fn source(&self, bucket: &BucketInfo) -> Result<Arc<dyn ProjectorApi>> {
        self.calls.source(bucket)
    }

    /// Returns the oldest epoch that contains a write, as a coordinator reports it.
    async fn covering_epoch(&self, write: &WritePosition, deadline: Instant) -> Result<Epoch> {
        let catalog = self.catalog();
        let missing = || Error::new(ErrorCode::Unknown, "the bucket of the last write was dropped");
        let bucket = catalog.buckets.get(&write.bucket).ok_or_else(missing)?;
        let cut = Cut::zero(bucket.vbuckets).with(&write.positions);
        let known = self.calls.router.newest_published(bucket.id);
        let left_ms = deadline.saturating_duration_since(Instant::now()).as_millis() as u64;
        let asked = self.coordinator().epoch_covering(bucket.id, cut, None, known, left_ms).await;
        asked.map(|covering| covering.oldest)
    }

    /// Waits until the catalog of this process contains the change `cas` and the changes of
    /// earlier answers. Returns false if that takes longer than [`CATALOG_BEHIND`].
    async fn wait_cas(&self, cas: u64) -> bool {
        let cas = cas.max(self.newest_cas.fetch_max(cas, Ordering::Relaxed));
        let shown = self.calls.router.wait_catalog(|catalog| catalog.cas >= cas);
        let is_shown = timeout(CATALOG_BEHIND, shown).await.is_ok();
        if !is_shown {
            tracing::warn!(cas, "the router's catalog does not show a committed change yet");
        }
        is_shown
    }

    /// Runs a command. Returns after the catalog of this process contains the change, or the
    /// reason of a refusal, because the next statement of the session must find what was created.
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
            attempt.note_change_made();
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
