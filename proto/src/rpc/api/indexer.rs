//! The interface of an indexer: scans of shards, and exports of slices.

use async_trait::async_trait;

use super::streams::ResultStream;
use crate::error::{Error, ErrorCode, Result};
use crate::model::ids::{Epoch, SliceId};
use crate::rpc::export::{ExportMessage, ExportRequest};
use crate::rpc::scan::{AppliedReport, FirstBatch, ShardBatch, ShardScan};

/// The size of a full [`FirstBatch`] in bytes; some hundred short rows.
pub const FIRST_BATCH_BYTES: usize = 16 << 10;

/// The interface of an indexer, which stores slices and reads them.
#[async_trait]
pub trait IndexerApi: Send + Sync + 'static {
    /// Scans a shard at one epoch. Waits until the epoch is applied. Returns `SnapshotTooOld` if
    /// the epoch is below the oldest readable one of a slice.
    async fn scan(&self, scan: ShardScan) -> Result<ResultStream<ShardBatch>>;

    /// Reads the beginning of a shard scan: about [`FIRST_BATCH_BYTES`], from a bounded number of
    /// entries. No scan remains open afterwards. An indexer without this call returns
    /// `Unsupported`, and the caller opens a stream instead.
    async fn first_batch(&self, _scan: ShardScan) -> Result<FirstBatch> {
        Err(Error::new(ErrorCode::Unsupported, "this indexer only answers with streams"))
    }

    /// Opens a stream of the epochs that the node has applied: first the present ones, then the
    /// changes, several of which may be combined.
    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>>;

    /// Returns the checksum of a slice's entries at an epoch, which is a sum over the entries,
    /// and the number of entries.
    async fn checksum(&self, slice: SliceId, epoch: Epoch) -> Result<(u64, u64)>;

    /// Sends a slice's files to the target of a move.
    async fn export(&self, request: ExportRequest) -> Result<ResultStream<ExportMessage>>;
}
