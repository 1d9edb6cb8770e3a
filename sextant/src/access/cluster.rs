//! The calls of a cluster, without checks of rights. Tests of the SQL port implement them in
//! memory.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use proto::Result;
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
    CheckedWrites, CoordinatorChange, CoordinatorChanged, CoordinatorStatus, PushReply,
    PushRequest, TransactionPush, TransactionPushed, TransactionStatus, WriteReply,
};
use proto::rpc::command::{Outcome, Proposal};
use proto::rpc::scan::{Consistency, ScanRequest};
use router::Knowledge;

use super::open::{BatchSource, BucketTransaction, EpochPin, TransactionView};
use crate::audit::Attempt;

/// The calls of a cluster. A port never holds a cluster: it has an [`Access`](super::Access) with
/// its handles, which describe each call. When a statement is cancelled, its call is dropped at any
/// await; requests that were sent may still take effect.
///
/// A call that changes anything other than documents takes the audited statement, whose line is
/// written before the first change is sent.
#[async_trait]
pub(crate) trait Cluster: Send + Sync + 'static {
    fn catalog(&self) -> Arc<Catalog>;
    fn users(&self) -> Arc<Users>;
    fn knowledge(&self) -> Option<(NodeId, Knowledge)>;
    fn note_error(&self, sqlstate: &'static str);
    /// Waits until the catalog of this process contains all that the coordinators have committed.
    /// Returns an error if they do not answer.
    async fn catch_up(&self) -> Result<()>;
    async fn command(&self, proposal: Proposal, attempt: &Attempt) -> Result<Outcome>;
    async fn wait_ready(&self, index: IndexId, generation: Option<Generation>) -> Result<()>;
    async fn wait_version(&self, data_set: BucketId, version: u64) -> Result<()>;
    async fn wait_drained(&self, node: NodeId) -> Result<()>;
    async fn rebalance(
        &self,
        request: RebalanceRequest,
        attempt: &Attempt,
    ) -> Result<RebalancePlan>;
    async fn change_coordinators(
        &self,
        change: CoordinatorChange,
        attempt: &Attempt,
    ) -> Result<CoordinatorChanged>;
    async fn status(&self) -> Result<CoordinatorStatus>;
    async fn transactions(&self) -> Result<Vec<TransactionStatus>>;
    async fn committed(&self, transaction: TransactionId) -> Result<Vec<WriteReply>>;
    async fn cancel_transaction(
        &self,
        transaction: TransactionId,
        attempt: &Attempt,
    ) -> Result<bool>;
    async fn get(
        &self,
        bucket: &BucketInfo,
        ids: Vec<String>,
        view: TransactionView,
    ) -> Result<Vec<Option<Bytes>>>;
    async fn sample(&self, bucket: &BucketInfo) -> Result<Vec<Bytes>>;
    async fn pin(
        &self,
        index: LocalIndexId,
        consistency: &Consistency,
        timeout_ms: u64,
    ) -> Result<Box<dyn EpochPin>>;
    async fn pin_bucket(&self, bucket: BucketId, timeout_ms: u64) -> Result<Box<dyn EpochPin>>;
    async fn epoch_of(&self, write: &WritePosition, timeout_ms: u64) -> Result<Epoch>;
    async fn scan(&self, request: ScanRequest, token: Option<&str>)
    -> Result<Box<dyn BatchSource>>;
    async fn write(&self, bucket: &BucketInfo, writes: CheckedWrites) -> Result<WriteReply>;
    fn begin(
        &self,
        bucket: &Arc<BucketInfo>,
        owner: &str,
        id: Option<TransactionId>,
    ) -> Result<Arc<dyn BucketTransaction>>;
    async fn positions(&self, bucket: &BucketInfo) -> Result<Cut>;
    async fn push(&self, bucket: &BucketInfo, request: PushRequest) -> Result<PushReply>;
    async fn push_in(
        &self,
        bucket: &BucketInfo,
        request: TransactionPush,
    ) -> Result<TransactionPushed>;
    async fn commit_pushed(&self, bucket: &BucketInfo, commit: PushedCommit) -> Result<PushReply>;
    async fn abort_pushed(
        &self,
        bucket: &BucketInfo,
        transaction: ProducerTransactionId,
    ) -> Result<()>;
}
