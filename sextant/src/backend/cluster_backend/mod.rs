//! The cluster behind the ports of a process: scans and the catalog go to the router, commands to the coordinator,
//! documents to the projector of their bucket.

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
use crate::audit::Attempt;
use crate::auth::newest_users::NewestUsers;
use crate::principal::Principal;
use crate::sql::backend::Backend;

/// The time limit of a statement's wait until the catalog of this process shows a committed command, or a name that
/// another process has just created.
const CATALOG_BEHIND: Duration = Duration::from_secs(2);

/// The cluster behind the ports of a process, as one principal uses it; cheap to clone.
#[derive(Clone)]
pub struct ClusterBackend {
    calls: SourceCalls,
    kept: Arc<TransactionKeeper>,
    env: Env,
    /// Identifies this process in request ids.
    client: u64,
    requests: Arc<AtomicU64>,
    /// The `cas` of the newest catalog that an answer to this process has named.
    newest_cas: Arc<AtomicU64>,
    /// The newest users that this process has received.
    users: Arc<NewestUsers>,
    /// The sender of the requests.
    principal: Principal,
    /// The statement in the audit that the changes belong to.
    attempt: Attempt,
}

impl ClusterBackend {
    /// A backend over a router and the other services, for a client that is trusted.
    pub fn new(
        router: Arc<Router>,
        directory: Arc<dyn Directory>,
        env: Env,
        counters: Arc<Counters>,
    ) -> Self {
        let client = env.random.next_u64();
        let (requests, newest_cas) = (Arc::default(), Arc::default());
        let principal = Principal::Trusted;
        let calls = SourceCalls { router, directory, counters };
        let kept = Arc::new(TransactionKeeper::new(calls.clone(), env.clone()));
        let (users, attempt) = (Arc::default(), Attempt::default());
        Self { calls, kept, env, client, requests, newest_cas, users, principal, attempt }
    }

    /// Sets the users, which a task follows; without this call there are none.
    pub fn with_users(self, users: Arc<NewestUsers>) -> Self {
        Self { users, ..self }
    }

    /// The newest users that this process has received.
    pub(super) fn known_users(&self) -> &Arc<NewestUsers> {
        &self.users
    }

    /// A copy of the backend for another principal.
    pub(super) fn with_principal(&self, principal: Principal) -> Self {
        Self { principal, ..self.clone() }
    }

    /// A copy of the backend for an audited statement.
    pub(super) fn with_attempt(&self, attempt: &Attempt) -> Self {
        Self { attempt: attempt.clone(), ..self.clone() }
    }

    /// The coordinator; its calls are made for the principal.
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        self.calls.directory.coordinator()
    }

    /// The counters of the ports.
    pub fn counters(&self) -> &Counters {
        &self.calls.counters
    }

    /// The router of this process.
    pub fn router(&self) -> &Router {
        &self.calls.router
    }

    /// Clock, files, random numbers and tasks of this process.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Returns the projectors of a bucket according to the newest catalog.
    pub fn source(&self, bucket: &BucketInfo) -> Result<Arc<dyn ProjectorApi>> {
        self.calls.source(bucket)
    }

    /// The oldest epoch that covers a write, from a member of the coordinators.
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

    /// Waits until the catalog of this process shows a committed change, and those of earlier answers. False if it does not within a time
    /// limit.
    async fn wait_cas(&self, cas: u64) -> bool {
        let cas = cas.max(self.newest_cas.fetch_max(cas, Ordering::Relaxed));
        let shown = self.calls.router.wait_catalog(|catalog| catalog.cas >= cas);
        let is_shown = timeout(CATALOG_BEHIND, shown).await.is_ok();
        if !is_shown {
            tracing::warn!(cas, "the router's catalog does not show a committed change yet");
        }
        is_shown
    }

    /// Runs a command. It returns after the catalog of this process shows what was changed, or the reason of a refusal: the session that
    /// created something must find it with its next statement.
    async fn propose(&self, proposal: Proposal) -> Result<Outcome> {
        let sequence = self.requests.fetch_add(1, Ordering::Relaxed);
        let request = Some(RequestId { client: self.client, sequence });
        let coordinator = self.coordinator();
        tracing::debug!(principal = %self.principal, ?proposal.command, "running a command");
        let drains = match proposal.command {
            Command::DrainNode(DrainNode { node, drain: true }) => Some(node),
            _ => None,
        };
        let proposal = Proposal { request, sender: self.principal.user_id(), ..proposal };
        self.attempt.begin().await?;
        let began = Instant::now();
        let AppliedCommand { outcome, catalog_cas } = coordinator.propose(proposal).await?;
        self.calls.counters.commands.inc();
        self.calls.counters.command.observe(began.elapsed().as_secs_f64());
        if !matches!(outcome, Outcome::Refused(_)) {
            self.attempt.made();
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

    /// Runs a command about users. It returns after this process has received the change.
    pub(super) async fn run_users(&self, proposal: Proposal) -> Result<Outcome> {
        let outcome = self.propose(proposal).await?;
        if let Outcome::User { cas, .. } = outcome
            && timeout(CATALOG_BEHIND, self.users.wait_for(cas)).await.is_err()
        {
            tracing::warn!("this process does not know of a committed change of the users yet");
        }
        Ok(outcome)
    }
}
