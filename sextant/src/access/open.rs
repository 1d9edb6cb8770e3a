//! The handles that stay open after a call (scans, leases and transactions), and the values of
//! calls.

use std::sync::Arc;

use async_trait::async_trait;
use proto::Result;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch, TransactionId, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::rpc::api::{CheckedWrites, Decision, WriteReply};
use proto::rpc::scan::OwnView;
use router::ScanBatch;

/// The index or bucket that a SELECT reads.
#[derive(Clone, Debug)]
pub enum Relation {
    /// An index, which is scanned.
    Index(Arc<IndexInfo>),
    /// A bucket, whose documents are read by id.
    Bucket(Arc<BucketInfo>),
}

/// The kinds of figures in a cluster's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// Figures of buckets and indexes: their moves, slices, holds.
    Buckets,
    /// Figures of the cluster: its nodes and processes.
    Cluster,
}

/// The view that a transaction has of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionView {
    /// The epoch that the transaction reads; `None` for the present state.
    pub snapshot: Option<Epoch>,
    /// The transaction's own changes in the bucket.
    pub own: Option<OwnView>,
}

/// The changes of a transaction in one bucket. One session makes the calls, one after another. A transaction that is dropped without
/// a commit is rolled back.
#[async_trait]
pub trait BucketTransaction: Send + Sync {
    /// Returns the id of the transaction.
    fn id(&self) -> TransactionId;

    /// Returns the bucket that the transaction changes.
    fn bucket(&self) -> &BucketInfo;

    /// Returns the transaction's changes so far; `None` before the first change.
    fn own(&self) -> Option<OwnView>;

    /// Returns an error if the projector is known to have lost the transaction.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Writes documents: all of them or none. Returns the number of documents created, replaced or removed.
    async fn write(&self, snapshot: Option<Epoch>, writes: CheckedWrites) -> Result<u64>;

    /// Rolls back the changes after a place (to a savepoint).
    async fn back_to(&self, place: TransactionPlace) -> Result<()>;

    /// Commits all changes durably, or none of them. With participants, this bucket decides, and
    /// the others are already prepared.
    async fn commit(
        &self,
        snapshot: Option<Epoch>,
        participants: &[BucketId],
    ) -> Result<WriteReply>;

    /// Prepares the changes for a commit over several buckets, under the id that the transaction
    /// has in the deciding bucket. Returns the number of changed documents.
    async fn prepare(
        &self,
        snapshot: Option<Epoch>,
        joint: TransactionId,
        participants: &[BucketId],
    ) -> Result<u64>;

    /// Commits or rolls back a prepared transaction.
    async fn decide(&self, joint: TransactionId, decision: Decision) -> Result<WriteReply>;
}

/// A lease on an epoch and on its moment, which stay readable until the lease is dropped.
#[async_trait]
pub trait EpochPin: Send + Sync {
    /// Returns the leased epoch.
    fn epoch(&self) -> Epoch;

    /// Returns the catalog from just before the lease. The generations of indexes that serve in it
    /// stay readable as well.
    fn catalog(&self) -> Arc<Catalog>;

    /// Leases the epoch of another bucket at the same moment.
    async fn pin_at(&self, bucket: BucketId, timeout_ms: u64) -> Result<Box<dyn EpochPin>>;
}

/// The batches of a scan. Dropping it ends the scan.
#[async_trait]
pub trait BatchSource: Send {
    /// Returns the epoch that the scan reads.
    fn epoch(&self) -> Epoch;

    /// Returns the next batch, `None` after the last.
    async fn next(&mut self) -> Result<Option<ScanBatch>>;

    /// Parks the scan until the next batch is requested: releases its permit and its buffers.
    fn park(&mut self);

    /// Ends the page after a number of rows.
    fn end_page_after(&mut self, rows: u64);

    /// Returns true if the page has all of its rows.
    fn page_is_full(&self) -> bool;

    /// Returns the token with which the scan continues after the returned rows; `None` at the end.
    fn token(&self) -> Result<Option<String>>;
}
