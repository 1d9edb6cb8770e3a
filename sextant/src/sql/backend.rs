//! What a session asks of the cluster. The wire knows nothing else of it, so that a test can stand in.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use proto::Result;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::ids::{Epoch, IndexId};
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::rpc::api::{CoordinatorStatus, Write, WriteReply};
use proto::rpc::command::{Command, Outcome};
use proto::rpc::scan::{Consistency, ScanRequest};
use router::ScanBatch;

use super::plan::Relation;

/// The cluster, as a session needs it. Every call may be dropped at any await when its statement is
/// cancelled; what was sent on by then may still take effect.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// The catalog as it is known here.
    fn catalog(&self) -> Arc<Catalog>;

    /// What a name stands for; asks further before it says that there is nothing (`Unknown`).
    async fn relation(&self, name: &str) -> Result<Relation>;

    /// Runs a replicated command. When it answers, the outcome is committed and the catalog here
    /// shows it; a refusal is an error.
    async fn command(&self, command: Command) -> Result<Outcome>;

    /// Waits until an index serves scans; an error if it is gone, or cannot be built.
    async fn wait_ready(&self, index: IndexId) -> Result<()>;

    /// Plans a rebalance, and begins it unless it is a dry run.
    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan>;

    /// What the coordinator knows of the nodes.
    async fn status(&self) -> Result<CoordinatorStatus>;

    /// Writes documents: all of them or none, durable when it answers.
    async fn write(&self, bucket: &BucketInfo, writes: Vec<Write>) -> Result<WriteReply>;

    /// The documents of some ids, `None` for those that are not there.
    async fn get(&self, bucket: &BucketInfo, ids: Vec<String>) -> Result<Vec<Option<Bytes>>>;

    /// Fixes the epoch that the scans of a transaction read in an index's bucket.
    async fn pin(
        &self,
        index: IndexId,
        consistency: &Consistency,
        timeout_ms: u64,
    ) -> Result<Box<dyn EpochPin>>;

    /// Begins a scan.
    async fn scan(&self, request: ScanRequest) -> Result<Box<dyn BatchSource>>;
}

/// An epoch that stays readable until this is dropped.
pub trait EpochPin: Send + Sync {
    /// The epoch.
    fn epoch(&self) -> Epoch;
}

/// The batches of a scan; dropping it ends the scan.
#[async_trait]
pub trait BatchSource: Send {
    /// The next batch, `None` after the last.
    async fn next(&mut self) -> Result<Option<ScanBatch>>;

    /// Lays the scan aside until the next batch is asked for, and gives back what others may wait for.
    fn park(&mut self);
}
