//! The interface between a session and the cluster. Tests of the SQL port implement it in memory.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, WritePosition};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, ProducerTransactionId,
    TransactionId, TransactionPlace,
};
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::pushed_commit::PushedCommit;
use proto::model::users::{UserCommand, Users};
use proto::rpc::api::{
    CheckedWrites, CoordinatorChange, CoordinatorChanged, CoordinatorStatus, Decision, PushReply,
    PushRequest, TransactionPush, TransactionPushed, TransactionStatus, WriteReply,
};
use proto::rpc::command::{Command, Outcome, Proposal};
use proto::rpc::scan::{Consistency, OwnView, ScanRequest};
use proto::{Error, ErrorCode, Result};
use router::{Knowledge, ScanBatch};

use super::plan::Relation;
use crate::audit::Attempt;
use crate::principal::Principal;

/// Makes the backends of sessions and requests.
pub trait Backends: Send + Sync + 'static {
    /// The cluster as a principal uses it.
    fn for_principal(&self, principal: Principal) -> Arc<dyn Backend>;
}

/// The cluster as a session uses it. A cancelled statement drops its call at any await; requests that are already sent may
/// still take effect.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// The sender of the requests.
    fn principal(&self) -> &Principal;

    /// An error unless the sender may read a bucket and its indexes.
    fn may_read(&self, bucket: BucketId) -> Result<()>;

    /// The newest catalog of this process, restricted to what the sender may see: buckets and indexes without a privilege are left out.
    fn catalog(&self) -> Arc<Catalog>;

    /// The newest catalog, restricted to the buckets and indexes whose figures of a kind the sender may see.
    fn catalog_of(&self, seen: FigureKind) -> Result<Arc<Catalog>>;

    /// The router whose catalog this is, and the age of its knowledge; `None` if there is no router.
    fn knowledge(&self) -> Option<(NodeId, Knowledge)> {
        None
    }

    /// Waits until the catalog of this process shows what the coordinators know: another process may have created something a moment
    /// ago. An error if it does not.
    async fn catch_up(&self) -> Result<()>;

    /// Returns the index with a name, or the bucket whose documents the name means. Without a coordinator the catalog stays as it is.
    async fn relation(&self, name: &str) -> Result<Relation> {
        let index = |catalog: &Catalog| catalog.index(name).cloned().map(Relation::Index);
        let bucket = |catalog: &Catalog| catalog.read_bucket(name).cloned().map(Relation::Bucket);
        match known(self, |catalog| index(catalog).or_else(|| bucket(catalog))).await {
            Err(error) if !error.is_retry() => Err(error),
            found => found.ok().flatten().ok_or_else(|| absent(name)),
        }
    }

    /// Returns the bucket with a name.
    async fn bucket(&self, name: &str) -> Result<Arc<BucketInfo>> {
        match self.relation(name).await? {
            Relation::Bucket(bucket) => Ok(bucket),
            Relation::Index(_) => {
                Err(Error::new(ErrorCode::Unknown, format!("{name:?} is an index, not a bucket")))
            }
        }
    }

    /// Runs a replicated command, whose request and sender this call sets. It returns after the outcome is committed and visible in this
    /// process's catalog. A refusal is an error; the catalog then shows the reason.
    async fn command(&self, proposal: Proposal) -> Result<Outcome>;

    /// Returns an error unless the sender may send a command. Statements that reveal nodes call it first, so that a user without the
    /// privilege does not learn which nodes exist.
    fn may_send(&self, _command: &Command) -> Result<()> {
        Ok(())
    }

    /// The users that this process knows, with the hashes of their secrets, which must never be shown.
    fn users(&self) -> Arc<Users>;

    /// Changes the users or their privileges. It returns after the outcome is committed and this process has received it. A refusal is an
    /// error.
    async fn change_users(&self, command: UserCommand) -> Result<Outcome>;

    /// A copy of the backend for one audited statement: its line is written before the first change is sent. `None` if the backend has no
    /// audit.
    fn audited(&self, _attempt: &Attempt) -> Option<Arc<dyn Backend>> {
        None
    }

    /// Counts an error that a client gets.
    fn note_error(&self, _sqlstate: &'static str) {}

    /// Waits until an index serves scans, or a generation of it does; an error if that was dropped.
    async fn wait_ready(&self, index: IndexId, generation: Option<Generation>) -> Result<()>;

    /// Waits until a version of a data set is current, or was current; an error if it has ended otherwise.
    async fn wait_version(&self, data_set: BucketId, version: u64) -> Result<()>;

    /// Waits until no slice is left on a draining node.
    async fn wait_drained(&self, node: NodeId) -> Result<()>;

    /// Plans a rebalance, and starts it unless it is a dry run.
    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan>;

    /// Adds or removes a member of the coordinator. It returns after the change is made and visible in this process's catalog.
    async fn change_coordinators(&self, change: CoordinatorChange) -> Result<CoordinatorChanged>;

    /// Returns the coordinator's status with its knowledge of the nodes.
    async fn status(&self) -> Result<CoordinatorStatus>;

    /// Writes documents atomically; they are durable when it returns.
    async fn write(&self, bucket: &BucketInfo, writes: CheckedWrites) -> Result<WriteReply>;

    /// Reads documents by id; `None` for missing ones.
    async fn get(&self, bucket: &BucketInfo, ids: Vec<String>) -> Result<Vec<Option<Bytes>>>;

    /// Returns some documents of a bucket, from its projectors.
    async fn sample(&self, bucket: &BucketInfo) -> Result<Vec<Bytes>>;

    /// Chooses and leases the epoch that a transaction reads in the bucket of an index, with its moment. For the first read of a transaction
    /// that may read what is a moment old.
    async fn pin(
        &self,
        index: LocalIndexId,
        consistency: &Consistency,
        timeout_ms: u64,
    ) -> Result<Box<dyn EpochPin>>;

    /// Fixes a moment that covers everything acknowledged before in all buckets, and leases the epoch of one bucket at that moment. For the
    /// first read of a transaction that may write.
    async fn pin_bucket(&self, bucket: BucketId, timeout_ms: u64) -> Result<Box<dyn EpochPin>>;

    /// Begins a transaction that writes documents of a bucket, under a number that it has in other buckets already, or a new one.
    /// Nothing is sent before its first write. `owner` names its session in status reports.
    fn begin(
        &self,
        bucket: &Arc<BucketInfo>,
        owner: &str,
        id: Option<TransactionId>,
    ) -> Result<Arc<dyn BucketTransaction>>;

    /// Returns the open transactions that have changes, of all buckets. A projector that does not answer is left out.
    async fn transactions(&self) -> Result<Vec<TransactionStatus>>;

    /// Returns the results of a transaction's commit in its buckets, as far as they are remembered.
    async fn committed(&self, transaction: TransactionId) -> Result<Vec<WriteReply>>;

    /// Rolls back the open transaction with a number; false if there is none.
    async fn cancel_transaction(&self, transaction: TransactionId) -> Result<bool>;

    /// Reads documents by id as a transaction sees them; `None` for missing ones.
    async fn get_in(
        &self,
        bucket: &BucketInfo,
        ids: Vec<String>,
        view: TransactionView,
    ) -> Result<Vec<Option<Bytes>>>;

    /// The oldest epoch that has a write. `InvalidParameter` if the source has lost it.
    async fn epoch_of(&self, write: &WritePosition, timeout_ms: u64) -> Result<Epoch>;

    /// Begins a scan, or continues an interrupted one by its token.
    async fn scan(&self, request: ScanRequest, token: Option<&str>)
    -> Result<Box<dyn BatchSource>>;

    /// The end of a bucket's durable history.
    async fn positions(&self, bucket: &BucketInfo) -> Result<Cut>;

    /// Pushes mutations to the owners of their vbuckets. While a vbucket is handed over, the push waits for the new owner.
    async fn push(&self, bucket: &BucketInfo, request: PushRequest) -> Result<PushReply>;

    /// Keeps mutations of a producer's transaction at the owners of their vbuckets. While a vbucket is handed over, the call waits for
    /// the new owner.
    async fn push_in(
        &self,
        bucket: &BucketInfo,
        request: TransactionPush,
    ) -> Result<TransactionPushed>;

    /// Commits a producer's transaction at the owners of its vbuckets, which may change meanwhile.
    async fn commit_pushed(&self, bucket: &BucketInfo, commit: PushedCommit) -> Result<PushReply>;

    /// Rolls a producer's transaction back at all owners of vbuckets.
    async fn abort_pushed(
        &self,
        bucket: &BucketInfo,
        transaction: ProducerTransactionId,
    ) -> Result<()>;
}

/// Finds an object in the catalog; catches up with the coordinators first if it is not there.
pub async fn known<T: Send>(
    backend: &(impl Backend + ?Sized),
    find: impl Fn(&Catalog) -> Option<T> + Send + Sync,
) -> Result<Option<T>> {
    if let Some(found) = find(&backend.catalog()) {
        return Ok(Some(found));
    }
    backend.catch_up().await?;
    Ok(find(&backend.catalog()))
}

/// The error for a name without an object.
pub fn absent(name: &str) -> Error {
    Error::new(ErrorCode::Unknown, format!("there is no index or bucket {name:?}"))
        .with_hint("SHOW INDEXES and SHOW BUCKETS list the names")
}

/// Figures of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// Of buckets and indexes: their moves, slices, holds.
    Buckets,
    /// Of the cluster: its nodes and processes.
    Cluster,
}

/// The view that a transaction has of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionView {
    /// The epoch that it reads; `None` for the present.
    pub snapshot: Option<Epoch>,
    /// The transaction's own changes in the bucket.
    pub own: Option<OwnView>,
}

/// The changes of a transaction in one bucket. One session makes the calls, one after another. A transaction that is dropped without
/// a commit is rolled back.
#[async_trait]
pub trait BucketTransaction: Send + Sync {
    /// The number of the transaction.
    fn id(&self) -> TransactionId;

    /// The bucket that the transaction changes.
    fn bucket(&self) -> &BucketInfo;

    /// The transaction's changes so far; `None` before the first.
    fn own(&self) -> Option<OwnView>;

    /// An error if it is known that the projector has lost the transaction.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Writes documents: all of them or none. Returns the number of documents created, replaced or removed.
    async fn write(&self, snapshot: Option<Epoch>, writes: CheckedWrites) -> Result<u64>;

    /// Takes back the changes after a place.
    async fn back_to(&self, place: TransactionPlace) -> Result<()>;

    /// Commits all changes, durably, or none of them. With participants, its bucket decides, and the others are prepared.
    async fn commit(
        &self,
        snapshot: Option<Epoch>,
        participants: &[BucketId],
    ) -> Result<WriteReply>;

    /// Prepares the changes for a commit over several buckets, under the number that the transaction has in the deciding bucket. Returns
    /// the number of documents.
    async fn prepare(
        &self,
        snapshot: Option<Epoch>,
        joint: TransactionId,
        participants: &[BucketId],
    ) -> Result<u64>;

    /// Ends what is prepared.
    async fn decide(&self, joint: TransactionId, decision: Decision) -> Result<WriteReply>;
}

/// A lease on an epoch and on its moment, which stay readable until the lease is dropped.
#[async_trait]
pub trait EpochPin: Send + Sync {
    /// The epoch that is leased.
    fn epoch(&self) -> Epoch;

    /// The catalog from before the lease: the generations of indexes that serve in it stay readable as well.
    fn catalog(&self) -> Arc<Catalog>;

    /// Leases the epoch of another bucket at the same moment.
    async fn pin_at(&self, bucket: BucketId, timeout_ms: u64) -> Result<Box<dyn EpochPin>>;
}

/// The batches of a scan. Dropping it ends the scan.
#[async_trait]
pub trait BatchSource: Send {
    /// The epoch that the scan reads.
    fn epoch(&self) -> Epoch;

    /// Returns the next batch, `None` after the last.
    async fn next(&mut self) -> Result<Option<ScanBatch>>;

    /// Parks the scan until the next batch is requested: releases its permit and its buffers.
    fn park(&mut self);

    /// Ends the page after a number of rows.
    fn end_page_after(&mut self, rows: u64);

    /// True if the page has its rows.
    fn page_is_full(&self) -> bool;

    /// The token with which the scan continues after the returned rows; `None` at the end.
    fn token(&self) -> Result<Option<String>>;
}
