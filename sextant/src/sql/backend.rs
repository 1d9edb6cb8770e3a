//! The interface between a session and the cluster. Tests of the SQL port implement it in memory.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use proto::Result;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::ids::{Epoch, IndexId};
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::rpc::api::{CheckedWrites, CoordinatorStatus, Write, WriteReply};
use proto::rpc::command::{Command, Outcome};
use proto::rpc::scan::{Consistency, ScanRequest};
use router::ScanBatch;

use super::plan::Relation;
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
    /// The newest catalog that this process has.
    fn catalog(&self) -> Arc<Catalog>;

    /// Returns the index or bucket with a name. Asks the coordinator before it fails with `Unknown`.
    async fn relation(&self, name: &str) -> Result<Relation>;

    /// Runs a replicated command. It returns after the outcome is committed and visible in this process's catalog. A refusal is
    /// an error.
    async fn command(&self, command: Command) -> Result<Outcome>;

    /// Counts an error that a client gets.
    fn note_error(&self, _sqlstate: &'static str) {}

    /// Waits until an index serves scans; an error if it is dropped.
    async fn wait_ready(&self, index: IndexId) -> Result<()>;

    /// Plans a rebalance, and starts it unless it is a dry run.
    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan>;

    /// Returns the coordinator's status with its knowledge of the nodes.
    async fn status(&self) -> Result<CoordinatorStatus>;

    /// Writes documents atomically; they are durable when it returns.
    async fn write(&self, bucket: &BucketInfo, writes: Vec<Write>) -> Result<WriteReply>;

    /// Writes documents that were checked, as [`Self::write`] does.
    async fn write_checked(
        &self,
        bucket: &BucketInfo,
        writes: CheckedWrites,
    ) -> Result<WriteReply> {
        self.write(bucket, writes.to_writes()).await
    }

    /// Reads documents by id; `None` for missing ones.
    async fn get(&self, bucket: &BucketInfo, ids: Vec<String>) -> Result<Vec<Option<Bytes>>>;

    /// Returns some documents of a bucket, from its projectors.
    async fn sample(&self, bucket: &BucketInfo) -> Result<Vec<Bytes>>;

    /// Chooses and leases the epoch that the scans of a transaction read in an index's bucket.
    async fn pin(
        &self,
        index: IndexId,
        consistency: &Consistency,
        timeout_ms: u64,
    ) -> Result<Box<dyn EpochPin>>;

    /// Begins a scan.
    async fn scan(&self, request: ScanRequest) -> Result<Box<dyn BatchSource>>;
}

/// A lease on an epoch, which stays readable until the lease is dropped.
pub trait EpochPin: Send + Sync {
    /// The epoch.
    fn epoch(&self) -> Epoch;
}

/// The batches of a scan. Dropping it ends the scan.
#[async_trait]
pub trait BatchSource: Send {
    /// Returns the next batch, `None` after the last.
    async fn next(&mut self) -> Result<Option<ScanBatch>>;

    /// Parks the scan until the next batch is requested: releases its permit and its buffers.
    fn park(&mut self);
}
