//! The cluster behind the ports of a process: scans and the catalog go to the router, commands to the coordinator,
//! documents to the projector of their bucket.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::env::Env;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, WritePosition};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, ProducerTransactionId,
    TransactionId,
};
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::pushed::PushedCommit;
use proto::model::users::{UserCommand, Users};
use proto::rpc::api::{
    CheckedWrites, CoordinatorApi, CoordinatorChange, CoordinatorChanged, CoordinatorStatus,
    Directory, DocumentsRequest, ProjectorApi, PushReply, PushRequest, TransactionPush,
    TransactionPushed, TransactionStatus, Write, WriteReply, WriteRequest,
};
use proto::rpc::command::{Command, CommandRequest, Outcome, RequestId};
use proto::rpc::scan::{Consistency, ScanRequest};
use proto::{Error, ErrorCode, Result};
use router::{Knowledge, PinnedEpoch, Router, ScanBatch, ScanStream};
use tokio::time::{Instant, timeout};

use super::built;
use super::counters::Counters;
use super::kept::KeptTransactions;
use super::shown::{shows, shows_change};
use super::source_calls::SourceCalls;
use super::transactions::{ClusterTransaction, find_commit, open_transactions};
use crate::audit::Attempt;
use crate::auth::known::KnownUsers;
use crate::principal::Principal;
use crate::sql::backend::{
    Backend, BatchSource, BucketTransaction, EpochPin, Seen, TransactionView,
};
use crate::sql::plan::Relation;

/// How long a statement waits for the catalog of this process to show a committed command, or a name that another
/// process has just created.
const CATALOG_BEHIND: Duration = Duration::from_secs(2);
/// Pause before a member that is behind is asked again.
const BEHIND_PAUSE: Duration = Duration::from_millis(20);
/// Time limit for the leader's status; beyond it the answer is that of another member.
const LEADER_STATUS_WAIT: Duration = Duration::from_secs(2);

/// The cluster behind the ports of a process, as one principal uses it; cheap to clone.
#[derive(Clone)]
pub struct ClusterBackend {
    calls: SourceCalls,
    kept: Arc<KeptTransactions>,
    env: Env,
    /// Identifies this process in request ids.
    client: u64,
    requests: Arc<AtomicU64>,
    /// The users that this process knows.
    users: Arc<KnownUsers>,
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
        let (requests, principal) = (Arc::default(), Principal::Trusted);
        let calls = SourceCalls { router, directory, counters };
        let kept = Arc::new(KeptTransactions::new(calls.clone(), env.clone()));
        let (users, attempt) = (Arc::default(), Attempt::default());
        Self { calls, kept, env, client, requests, users, principal, attempt }
    }

    /// The same with the users that a task follows; without them there are none.
    pub fn with_users(self, users: Arc<KnownUsers>) -> Self {
        Self { users, ..self }
    }

    /// The users that this process knows.
    pub(super) fn known_users(&self) -> &Arc<KnownUsers> {
        &self.users
    }

    /// The same cluster for another principal.
    pub(super) fn with_principal(&self, principal: Principal) -> Self {
        Self { principal, ..self.clone() }
    }

    /// The same cluster for a statement in the audit.
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

    /// Waits until the catalog of this process shows what the coordinators know: another process may have created something a moment
    /// ago. Without a coordinator the catalog stays as it is.
    pub(super) async fn catch_up(&self) {
        if let Ok(status) = self.coordinator().status().await {
            self.wait_cas(status.catalog_cas).await;
        }
    }

    /// The index or bucket with a name.
    pub(super) fn find(catalog: &Catalog, name: &str) -> Option<Relation> {
        let index = catalog.index(name).cloned().map(Relation::Index);
        index.or_else(|| catalog.read_bucket(name).cloned().map(Relation::Bucket))
    }

    /// The oldest epoch that covers a write, as a member of the coordinators knows it.
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

    /// Waits until the catalog of this process shows a committed change.
    async fn wait_cas(&self, cas: u64) {
        let shown = self.calls.router.wait_catalog(|catalog| catalog.cas >= cas);
        if timeout(CATALOG_BEHIND, shown).await.is_err() {
            tracing::warn!(cas, "the router's catalog does not show a committed change yet");
        }
    }
}

/// The error of a name that stands for nothing.
pub(super) fn absent(name: &str) -> Error {
    Error::new(ErrorCode::Unknown, format!("there is no index or bucket {name:?}"))
        .with_hint("SHOW INDEXES and SHOW BUCKETS list the names")
}

impl ClusterBackend {
    /// Runs a command about users. It returns after this process knows of the change.
    pub(super) async fn run_users(&self, command: Command) -> Result<Outcome> {
        let outcome = self.command(command).await?;
        if let Outcome::User { cas, .. } = outcome
            && timeout(CATALOG_BEHIND, self.users.wait_for(cas)).await.is_err()
        {
            tracing::warn!("this process does not know of a committed change of the users yet");
        }
        Ok(outcome)
    }
}

#[async_trait]
impl Backend for ClusterBackend {
    fn principal(&self) -> &Principal {
        &self.principal
    }

    fn may_read(&self, _: BucketId) -> Result<()> {
        Ok(())
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.calls.router.catalog()
    }

    fn catalog_of(&self, _: Seen) -> Result<Arc<Catalog>> {
        Ok(self.catalog())
    }

    fn knowledge(&self) -> Option<(NodeId, Knowledge)> {
        Some((self.calls.router.node(), self.calls.router.knowledge()))
    }

    async fn relation(&self, name: &str) -> Result<Relation> {
        if let Some(relation) = Self::find(&self.calls.router.catalog(), name) {
            return Ok(relation);
        }
        self.catch_up().await;
        Self::find(&self.calls.router.catalog(), name).ok_or_else(|| absent(name))
    }

    async fn command(&self, command: Command) -> Result<Outcome> {
        let sequence = self.requests.fetch_add(1, Ordering::Relaxed);
        let request = Some(RequestId { client: self.client, sequence });
        let coordinator = self.coordinator();
        tracing::debug!(principal = %self.principal, ?command, "running a command");
        let asked = CommandRequest { request, command: command.clone() };
        self.attempt.begin().await?;
        let began = Instant::now();
        let outcome = coordinator.propose(asked).await?;
        self.calls.counters.commands.inc();
        self.calls.counters.command.observe(began.elapsed().as_secs_f64());
        if let Outcome::Refused(error) = outcome {
            return Err(error);
        }
        self.attempt.made();
        // The session that created something must find it with its next statement.
        let shown = self.calls.router.wait_catalog(|catalog| shows(catalog, &command));
        if timeout(CATALOG_BEHIND, shown).await.is_err() {
            tracing::warn!(
                "the router's catalog does not show a committed command, or no longer does"
            );
        }
        Ok(outcome)
    }

    fn users(&self) -> Arc<Users> {
        self.users.now()
    }

    async fn change_users(&self, command: UserCommand) -> Result<Outcome> {
        self.run_users(Command::Users(Box::new(command))).await
    }

    async fn wait_ready(&self, index: IndexId, generation: Option<Generation>) -> Result<()> {
        built::wait_ready(&self.calls.router, index, generation).await
    }

    async fn wait_version(&self, data_set: BucketId, version: u64) -> Result<()> {
        built::wait_version(&self.calls.router, data_set, version).await
    }

    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan> {
        if request.dry_run {
            return self.coordinator().rebalance(request).await;
        }
        self.attempt.begin().await?;
        let plan = self.coordinator().rebalance(request).await?;
        self.attempt.made();
        Ok(plan)
    }

    async fn change_coordinators(&self, change: CoordinatorChange) -> Result<CoordinatorChanged> {
        tracing::debug!(principal = %self.principal, ?change, "changing the coordinators");
        self.attempt.begin().await?;
        let changed = self.coordinator().change_members(change.clone()).await?;
        self.attempt.made();
        let shown = self.calls.router.wait_catalog(|catalog| shows_change(catalog, &change));
        if timeout(CATALOG_BEHIND, shown).await.is_err() {
            tracing::warn!("the router's catalog does not show a change of the coordinators");
        }
        Ok(changed)
    }

    /// Asks the leader if it answers, because the other members know nothing of the nodes.
    async fn status(&self) -> Result<CoordinatorStatus> {
        let status = self.coordinator().status().await?;
        let leader = status.leader.filter(|leader| *leader != status.node);
        let Some(leader) = leader.and_then(|id| self.calls.directory.coordinator_member(id).ok())
        else {
            return Ok(status);
        };
        let answer = timeout(LEADER_STATUS_WAIT, leader.status()).await;
        Ok(answer.ok().and_then(Result::ok).unwrap_or(status))
    }

    async fn write(&self, bucket: &BucketInfo, writes: Vec<Write>) -> Result<WriteReply> {
        let request = WriteRequest { bucket: bucket.id, writes };
        let write = |source: Arc<dyn ProjectorApi>| {
            let request = request.clone();
            async move { source.write(request).await }
        };
        self.calls.counted(self.calls.write_to(bucket, write)).await
    }

    async fn write_checked(
        &self,
        bucket: &BucketInfo,
        writes: CheckedWrites,
    ) -> Result<WriteReply> {
        let write = |source: Arc<dyn ProjectorApi>| {
            let (bucket, writes) = (bucket.id, writes.clone());
            async move { source.write_checked(bucket, writes).await }
        };
        self.calls.counted(self.calls.write_to(bucket, write)).await
    }

    async fn get(&self, bucket: &BucketInfo, ids: Vec<String>) -> Result<Vec<Option<Bytes>>> {
        let request = DocumentsRequest { bucket: bucket.id, ids, snapshot: None, own: None };
        self.calls.read_documents(bucket, request).await
    }

    async fn sample(&self, bucket: &BucketInfo) -> Result<Vec<Bytes>> {
        self.calls.read_from(bucket, |source| async move { source.sample(bucket.id).await }).await
    }

    fn audited(&self, attempt: &Attempt) -> Option<Arc<dyn Backend>> {
        Some(Arc::new(self.with_attempt(attempt)))
    }

    fn note_error(&self, sqlstate: &'static str) {
        self.calls.counters.failed(sqlstate);
    }

    async fn pin(
        &self,
        index: LocalIndexId,
        consistency: &Consistency,
        timeout_ms: u64,
    ) -> Result<Box<dyn EpochPin>> {
        Ok(Box::new(Pin(self.calls.router.pin(index, consistency, timeout_ms).await?)))
    }

    async fn pin_bucket(&self, bucket: BucketId, timeout_ms: u64) -> Result<Box<dyn EpochPin>> {
        Ok(Box::new(Pin(self.calls.router.pin_bucket(bucket, timeout_ms).await?)))
    }

    fn begin(
        &self,
        bucket: &Arc<BucketInfo>,
        owner: &str,
        id: Option<TransactionId>,
    ) -> Result<Arc<dyn BucketTransaction>> {
        let (calls, kept) = (self.calls.clone(), Arc::clone(&self.kept));
        let bucket = Arc::clone(bucket);
        Ok(Arc::new(ClusterTransaction::new(calls, kept, &self.env, bucket, (owner, id))))
    }

    async fn transactions(&self) -> Result<Vec<TransactionStatus>> {
        Ok(open_transactions(&self.calls).await.into_iter().map(|(_, status)| status).collect())
    }

    async fn committed(&self, transaction: TransactionId) -> Result<Vec<WriteReply>> {
        find_commit(&self.calls, transaction).await
    }

    async fn cancel_transaction(&self, transaction: TransactionId) -> Result<bool> {
        let (mut is_found, mut ended) = (false, Ok(()));
        for (source, status) in open_transactions(&self.calls).await {
            if status.transaction == transaction {
                self.attempt.begin().await?;
                // Owners of a producer's commit may wait for each other, so one that refuses keeps none of the others from it.
                ended = ended.and(source.abort(status.bucket, transaction).await);
                is_found = true;
            }
        }
        ended?;
        if is_found {
            self.attempt.made();
        }
        Ok(is_found)
    }

    async fn get_in(
        &self,
        bucket: &BucketInfo,
        ids: Vec<String>,
        view: TransactionView,
    ) -> Result<Vec<Option<Bytes>>> {
        let TransactionView { snapshot, own } = view;
        let request = DocumentsRequest { bucket: bucket.id, ids, snapshot, own };
        self.calls.read_documents(bucket, request).await
    }

    async fn epoch_of(&self, write: &WritePosition, timeout_ms: u64) -> Result<Epoch> {
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        loop {
            let epoch = self.covering(write, deadline).await?;
            let catalog = self.catalog();
            // A member may be behind a rollback that this process has heard of.
            let is_dead = catalog.buckets.get(&write.bucket).is_some_and(|of| of.is_dead(epoch));
            if !is_dead {
                return Ok(epoch);
            }
            if Instant::now() > deadline {
                return Err(Error::unavailable("the coordinators have not heard of a rollback"));
            }
            tokio::time::sleep(BEHIND_PAUSE).await;
        }
    }

    async fn scan(
        &self,
        request: ScanRequest,
        token: Option<&str>,
    ) -> Result<Box<dyn BatchSource>> {
        let (index, began) = (request.index.index, Instant::now());
        let scan = self.calls.router.scan(request, token).await?;
        self.calls.counters.scan_begun(index, began);
        Ok(Box::new(Batches { scan, began, counters: Arc::clone(&self.calls.counters) }))
    }

    async fn positions(&self, bucket: &BucketInfo) -> Result<Cut> {
        let positions =
            |source: Arc<dyn ProjectorApi>| async move { source.positions(bucket.id).await };
        self.calls.read_from(bucket, positions).await
    }

    async fn push(&self, bucket: &BucketInfo, request: PushRequest) -> Result<PushReply> {
        self.calls.push(bucket, request).await
    }

    async fn push_in(
        &self,
        bucket: &BucketInfo,
        request: TransactionPush,
    ) -> Result<TransactionPushed> {
        self.calls.push_in(bucket, request).await
    }

    async fn commit_pushed(&self, bucket: &BucketInfo, commit: PushedCommit) -> Result<PushReply> {
        self.calls.commit_pushed(bucket, commit).await
    }

    async fn abort_pushed(
        &self,
        bucket: &BucketInfo,
        transaction: ProducerTransactionId,
    ) -> Result<()> {
        self.calls.abort_pushed(bucket, transaction).await
    }
}

struct Pin(PinnedEpoch);

#[async_trait]
impl EpochPin for Pin {
    fn epoch(&self) -> Epoch {
        self.0.epoch()
    }

    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(self.0.catalog())
    }

    async fn pin_at(&self, bucket: BucketId, timeout_ms: u64) -> Result<Box<dyn EpochPin>> {
        Ok(Box::new(Pin(self.0.pin_at(bucket, timeout_ms).await?)))
    }
}

struct Batches {
    scan: ScanStream,
    began: Instant,
    counters: Arc<Counters>,
}

#[async_trait]
impl BatchSource for Batches {
    fn epoch(&self) -> Epoch {
        self.scan.epoch()
    }

    async fn next(&mut self) -> Result<Option<ScanBatch>> {
        let batch = self.scan.next().await?;
        match &batch {
            Some(ScanBatch::Rows(block)) => self.counters.scan_rows.inc_by(u64::from(block.rows)),
            Some(ScanBatch::Aggregates(_)) => 0,
            None => {
                self.counters.scan_whole.observe(self.began.elapsed().as_secs_f64());
                0
            }
        };
        Ok(batch)
    }

    fn park(&mut self) {
        self.scan.park();
    }

    fn end_page_after(&mut self, rows: u64) {
        self.scan.end_page_after(rows);
    }

    fn page_is_full(&self) -> bool {
        self.scan.page_is_full()
    }

    fn token(&self) -> Result<Option<String>> {
        self.scan.token()
    }
}
