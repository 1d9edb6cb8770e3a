//! What stays open after a call: scans, leases and transactions; and the values of calls.

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
    /// An index: scanned.
    Index(Arc<IndexInfo>),
    /// A bucket: its documents are read by id.
    Bucket(Arc<BucketInfo>),
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
