//! The handles that stay open after a call: scans, leases of epochs, and transactions. Also some
//! types of the arguments and results of calls.

use std::sync::Arc;

use async_trait::async_trait;
use proto::Result;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch, TransactionId, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::rpc::api::{CheckedWrites, Decision, WriteReply};
use proto::rpc::scan::UncommittedView;
use router::ScanBatch;

/// The index or bucket that a SELECT reads.
#[derive(Clone, Debug)]
pub enum Relation {
    /// An index, which is scanned.
    Index(Arc<IndexInfo>),
    /// A bucket, whose documents are read by id.
    Bucket(Arc<BucketInfo>),
}

/// The kinds of figures (counts and sizes) in a cluster's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// Figures about buckets and indexes: their moves, slices, and holds on old data.
    Buckets,
    /// Figures about the whole cluster: its nodes and processes.
    Cluster,
}

/// The view that a transaction has of a bucket: a snapshot, and its own changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionView {
    /// The epoch that the transaction reads; `None` to read the newest documents.
    pub snapshot: Option<Epoch>,
    /// The changes that the transaction itself has made in the bucket.
    pub own: Option<UncommittedView>,
}

/// An open transaction with changes in one bucket. One session makes the calls, one after
/// another. A transaction that is dropped without a commit is rolled back.
#[async_trait]
pub trait BucketTransaction: Send + Sync {
    /// Returns the id of the transaction.
    fn id(&self) -> TransactionId;

    /// Returns the bucket that the transaction changes.
    fn bucket(&self) -> &BucketInfo;

    /// Returns the transaction's changes so far; `None` before the first change.
    fn own_changes(&self) -> Option<UncommittedView>;

    /// Returns an error if the projector is known to have lost the transaction.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Writes documents: all of them or none. Returns the number of documents created, replaced or removed.
    async fn write(&self, snapshot: Option<Epoch>, writes: CheckedWrites) -> Result<u64>;

    /// Rolls back the changes that the transaction made after `place`, such as a savepoint.
    async fn rollback_to(&self, place: TransactionPlace) -> Result<()>;

    /// Commits all changes durably, or none of them. If `participants` is not empty, this bucket
    /// decides about a commit over several buckets, and the participants are already prepared.
    async fn commit(
        &self,
        snapshot: Option<Epoch>,
        participants: &[BucketId],
    ) -> Result<WriteReply>;

    /// Prepares the changes for a commit over several buckets. `joint` is the id of the
    /// transaction in the bucket that decides about the commit. Returns the number of changed
    /// documents.
    async fn prepare(
        &self,
        snapshot: Option<Epoch>,
        joint: TransactionId,
        participants: &[BucketId],
    ) -> Result<u64>;

    /// Commits or rolls back a prepared transaction.
    async fn decide(&self, joint: TransactionId, decision: Decision) -> Result<WriteReply>;
}

/// A lease on an epoch and on the moment that it belongs to. Both stay readable until the lease
/// is dropped.
#[async_trait]
pub trait EpochPin: Send + Sync {
    /// Returns the leased epoch.
    fn epoch(&self) -> Epoch;

    /// Returns the catalog from just before the lease began. The index generations that serve
    /// scans in this catalog stay readable as well.
    fn catalog(&self) -> Arc<Catalog>;

    /// Leases the epoch that another bucket has at the moment of this lease.
    async fn pin_at(&self, bucket: BucketId, timeout_ms: u64) -> Result<Box<dyn EpochPin>>;
}

/// An open scan, which returns batches of rows. Dropping this value ends the scan.
#[async_trait]
pub trait BatchSource: Send {
    /// Returns the epoch that the scan reads.
    fn epoch(&self) -> Epoch;

    /// Returns the next batch, `None` after the last.
    async fn next(&mut self) -> Result<Option<ScanBatch>>;

    /// Releases the permit and the buffers of the scan until the next batch is requested.
    fn park(&mut self);

    /// Ends the present page of results after `rows` rows.
    fn end_page_after(&mut self, rows: u64);

    /// Returns true if the present page has all the rows of its limit.
    fn page_is_full(&self) -> bool;

    /// Returns the token with which a later call continues the scan after the returned rows;
    /// `None` at the end of the scan.
    fn token(&self) -> Result<Option<String>>;
}
