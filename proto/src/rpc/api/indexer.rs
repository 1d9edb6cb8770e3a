//! The interface of an indexer.

use async_trait::async_trait;

use super::streams::ResultStream;
use crate::error::Result;
use crate::model::ids::{Epoch, SliceId};
use crate::rpc::export::{ExportMessage, ExportRequest};
use crate::rpc::scan::{AppliedReport, ShardBatch, ShardScan};

/// An indexer: keeps slices and reads them.
#[async_trait]
pub trait IndexerApi: Send + Sync + 'static {
    /// Scans a shard at one epoch. The call waits for an epoch that is not applied yet; `SnapshotTooOld` if the epoch is below
    /// the floor of a slice.
    async fn scan(&self, scan: ShardScan) -> Result<ResultStream<ShardBatch>>;

    /// Streams the epochs that the node has applied: now, and at each change (several changes may be combined).
    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>>;

    /// Returns the additive checksum of a slice's entries at an epoch, and their number.
    async fn checksum(&self, slice: SliceId, epoch: Epoch) -> Result<(u64, u64)>;

    /// Sends a slice's files to the target of a move.
    async fn export(&self, request: ExportRequest) -> Result<ResultStream<ExportMessage>>;
}
