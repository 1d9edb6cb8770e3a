//! The implementation of the trait `Cluster`: each call is sent to the service that answers it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, WritePosition};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, ProducerTransactionId,
    TransactionId,
};
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::pushed_commit::PushedCommit;
use proto::model::users::Users;
use proto::rpc::api::{
    CheckedWrites, CoordinatorChange, CoordinatorChanged, CoordinatorStatus, DocumentsRequest,
    ProjectorApi, PushReply, PushRequest, TransactionPush, TransactionPushed, TransactionStatus,
    WriteReply, WriteRequest,
};
use proto::rpc::command::{Outcome, Proposal};
use proto::rpc::scan::{Consistency, ScanRequest};
use proto::{Error, Result};
use router::Knowledge;
use tokio::time::{Instant, timeout};

use super::reads::{CountedBatches, RouterPin};
use super::{CATALOG_BEHIND, ClusterBackend};
use crate::access::{BatchSource, BucketTransaction, Cluster, EpochPin, TransactionView};
use crate::audit::Attempt;
use crate::backend::build_wait;
use crate::backend::drain_wait;
use crate::backend::transactions::{ClusterTransaction, find_commit, open_transactions};

/// The pause before a coordinator that lags is called again.
const BEHIND_PAUSE: Duration = Duration::from_millis(20);
/// The time limit for the leader's status; after that, the answer of another member is returned.
const LEADER_STATUS_WAIT: Duration = Duration::from_secs(2);

#[async_trait]
impl Cluster for ClusterBackend {
    fn catalog(&self) -> Arc<Catalog> {
        self.calls.router.catalog()
    }

    fn knowledge(&self) -> Option<(NodeId, Knowledge)> {
        Some((self.calls.router.node(), self.calls.router.knowledge()))
    }

    async fn catch_up(&self) -> Result<()> {
        let newest = self.coordinator().status().await?.catalog_cas;
        match self.wait_cas(newest).await {
            true => Ok(()),
            false => Err(Error::unavailable("the router lags: it lacks the newest catalog")
                .with_hint("try again in a few seconds")),
        }
    }

    async fn command(&self, proposal: Proposal, attempt: &Attempt) -> Result<Outcome> {
        let outcome = self.propose(proposal, attempt).await?;
        if let Outcome::User { cas, .. } = outcome
            && timeout(CATALOG_BEHIND, self.users.wait_for(cas)).await.is_err()
        {
            tracing::warn!("this process does not know of a committed change of the users yet");
        }
        Ok(outcome)
    }

    fn users(&self) -> Arc<Users> {
        self.users.current()
    }

    async fn wait_ready(&self, index: IndexId, generation: Option<Generation>) -> Result<()> {
        build_wait::wait_ready(&self.calls.router, index, generation).await
    }

    async fn wait_version(&self, data_set: BucketId, version: u64) -> Result<()> {
        build_wait::wait_version(&self.calls.router, data_set, version).await
    }

    async fn wait_drained(&self, node: NodeId) -> Result<()> {
        drain_wait::wait_drained(&self.calls.router, node).await
    }

    async fn rebalance(
        &self,
        request: RebalanceRequest,
        attempt: &Attempt,
    ) -> Result<RebalancePlan> {
        if request.dry_run {
            return self.coordinator().rebalance(request).await;
        }
        attempt.begin().await?;
        let plan = self.coordinator().rebalance(request).await?;
        attempt.note_change_made();
        Ok(plan)
    }

    async fn change_coordinators(
        &self,
        change: CoordinatorChange,
        attempt: &Attempt,
    ) -> Result<CoordinatorChanged> {
        attempt.begin().await?;
        let changed = self.coordinator().change_members(change).await?;
        attempt.note_change_made();
        self.wait_cas(changed.catalog_cas).await;
        Ok(changed)
    }

    /// Returns the status from the leading coordinator, because only the leader receives reports
    /// of the nodes. If the leader does not answer, returns the status from another coordinator.
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

    async fn write(&self, bucket: &BucketInfo, writes: CheckedWrites) -> Result<WriteReply> {
        let request = WriteRequest { bucket: bucket.id, writes };
        let write = |source: Arc<dyn ProjectorApi>| {
            let request = request.clone();
            async move { source.write(request).await }
        };
        self.calls.count_write(self.calls.write_to(bucket, write)).await
    }

    async fn sample(&self, bucket: &BucketInfo) -> Result<Vec<Bytes>> {
        self.calls.read_from(bucket, |source| async move { source.sample(bucket.id).await }).await
    }

    fn note_error(&self, sqlstate: &'static str) {
        self.calls.counters.count_error(sqlstate);
    }

    async fn pin(
        &self,
        index: LocalIndexId,
        consistency: &Consistency,
        timeout_ms: u64,
    ) -> Result<Box<dyn EpochPin>> {
        Ok(Box::new(RouterPin(self.calls.router.pin(index, consistency, timeout_ms).await?)))
    }

    async fn pin_bucket(&self, bucket: BucketId, timeout_ms: u64) -> Result<Box<dyn EpochPin>> {
        Ok(Box::new(RouterPin(self.calls.router.pin_bucket(bucket, timeout_ms).await?)))
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

    async fn cancel_transaction(
        &self,
        transaction: TransactionId,
        attempt: &Attempt,
    ) -> Result<bool> {
        let (mut is_found, mut ended) = (false, Ok(()));
        for (source, status) in open_transactions(&self.calls).await {
            if status.transaction == transaction {
                attempt.begin().await?;
                // Owners of a producer's commit may wait for each other, so a refusal of one must not stop the calls to the others.
                ended = ended.and(source.abort(status.bucket, transaction).await);
                is_found = true;
            }
        }
        ended?;
        if is_found {
            attempt.note_change_made();
        }
        Ok(is_found)
    }

    async fn get(
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
            let epoch = self.covering_epoch(write, deadline).await?;
            let catalog = self.catalog();
            // A coordinator may not yet know of a rollback of which this process knows.
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
        Ok(Box::new(CountedBatches { scan, began, counters: Arc::clone(&self.calls.counters) }))
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
