//! The trait with all calls of a cluster, which check no rights. Tests of the SQL port implement
//! the trait in memory.

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

/// The calls of a cluster. A port has no value of this type, but an [`Access`](super::Access)
/// with its handles; their methods have the descriptions of the calls. When a statement is
/// cancelled, its call is dropped at any await; requests that were sent may still take effect.
///
/// A call that changes anything other than documents has a parameter for the audited statement,
/// whose audit line is written before the first change is sent.
#[async_trait]
pub(crate) trait Cluster: Send + Sync + 'static {
    /// Returns the newest catalog of this process.
    fn catalog(&self) -> Arc<Catalog>;
    /// Returns the newest users that this process has received.
    fn users(&self) -> Arc<Users>;
    /// Returns the node number of this process's router and the state of its connection to the
    /// coordinators.
    fn knowledge(&self) -> Option<(NodeId, Knowledge)>;
    /// Counts an error that is returned to a client.
    fn note_error(&self, sqlstate: &'static str);
    /// Waits until the catalog of this process contains all that the coordinators have committed.
    /// Returns an error if they do not answer.
    async fn catch_up(&self) -> Result<()>;
    /// Runs a replicated command.
    async fn command(&self, proposal: Proposal, attempt: &Attempt) -> Result<Outcome>;
    /// Waits until an index, or one generation of it, serves scans.
    async fn wait_ready(&self, index: IndexId, generation: Option<Generation>) -> Result<()>;
    /// Waits until a version of a data set is current, or has been current before.
    async fn wait_version(&self, data_set: BucketId, version: u64) -> Result<()>;
    /// Waits until no slice is left on a draining node.
    async fn wait_drained(&self, node: NodeId) -> Result<()>;
    /// Plans a rebalance, and starts its moves if the request says so.
    async fn rebalance(
        &self,
        request: RebalanceRequest,
        attempt: &Attempt,
    ) -> Result<RebalancePlan>;
    /// Adds or removes a coordinator.
    async fn change_coordinators(
        &self,
        change: CoordinatorChange,
        attempt: &Attempt,
    ) -> Result<CoordinatorChanged>;
    /// Returns the coordinator's status.
    async fn status(&self) -> Result<CoordinatorStatus>;
    /// Returns the open transactions of all buckets.
    async fn transactions(&self) -> Result<Vec<TransactionStatus>>;
    /// Returns the results of a transaction's commit in its buckets.
    async fn committed(&self, transaction: TransactionId) -> Result<Vec<WriteReply>>;
    /// Rolls back an open transaction.
    async fn cancel_transaction(
        &self,
        transaction: TransactionId,
        attempt: &Attempt,
    ) -> Result<bool>;
    /// Reads documents by id.
    async fn get(
        &self,
        bucket: &BucketInfo,
        ids: Vec<String>,
        view: TransactionView,
    ) -> Result<Vec<Option<Bytes>>>;
    /// Returns a sample of a bucket's documents.
    async fn sample(&self, bucket: &BucketInfo) -> Result<Vec<Bytes>>;
    /// Chooses the epoch that a transaction reads in the bucket of an index, and leases it.
    async fn pin(
        &self,
        index: LocalIndexId,
        consistency: &Consistency,
        timeout_ms: u64,
    ) -> Result<Box<dyn EpochPin>>;
    /// Leases an epoch of a bucket that covers everything that was acknowledged before.
    async fn pin_bucket(&self, bucket: BucketId, timeout_ms: u64) -> Result<Box<dyn EpochPin>>;
    /// Returns the oldest epoch that contains a write.
    async fn epoch_of(&self, write: &WritePosition, timeout_ms: u64) -> Result<Epoch>;
    /// Begins a scan, or continues an interrupted one by its token.
    async fn scan(&self, request: ScanRequest, token: Option<&str>)
    -> Result<Box<dyn BatchSource>>;
    /// Writes documents atomically.
    async fn write(&self, bucket: &BucketInfo, writes: CheckedWrites) -> Result<WriteReply>;
    /// Begins a transaction that writes documents into a bucket.
    fn begin(
        &self,
        bucket: &Arc<BucketInfo>,
        owner: &str,
        id: Option<TransactionId>,
    ) -> Result<Arc<dyn BucketTransaction>>;
    /// Returns the end of the bucket's durable history.
    async fn positions(&self, bucket: &BucketInfo) -> Result<Cut>;
    /// Pushes a producer's mutations to the owners of their vbuckets.
    async fn push(&self, bucket: &BucketInfo, request: PushRequest) -> Result<PushReply>;
    /// Adds mutations to a producer's transaction.
    async fn push_in(
        &self,
        bucket: &BucketInfo,
        request: TransactionPush,
    ) -> Result<TransactionPushed>;
    /// Commits a producer's transaction.
    async fn commit_pushed(&self, bucket: &BucketInfo, commit: PushedCommit) -> Result<PushReply>;
    /// Rolls back a producer's transaction.
    async fn abort_pushed(
        &self,
        bucket: &BucketInfo,
        transaction: ProducerTransactionId,
    ) -> Result<()>;
}
