//! Scans: the requests of a front end to a router and of a router to a shard, and their answers.
//!
//! An *entry* is the encoded key parts followed by the raw bytes of the document id (see `key`);
//! its bytes are its order and its identity, so a range, a resume point and a merge are byte
//! comparisons. A row is an entry and the encoded included values.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::expr::Expr;
use crate::expr::aggregate::{AggregateFunction, PartialAggregate};
use crate::model::cut::Position;
use crate::model::ids::{
    BucketId, Epoch, LocalIndexId, NodeId, SliceNo, TransactionId, TransactionPlace, VbucketId,
};
use crate::model::index::{IndexInfo, PartitionBy};
use crate::model::topology::PartitionKey;
use crate::rpc::rows::RowBlock;

/// A half-open range of entry bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRange {
    /// The inclusive lower bound; empty means the beginning.
    pub low: Bytes,
    /// The exclusive upper bound; `None` means the end.
    pub high: Option<Bytes>,
}

impl KeyRange {
    /// The range of all entries.
    pub fn all() -> Self {
        Self::default()
    }

    /// True if the entry lies in the range.
    pub fn contains(&self, entry: &[u8]) -> bool {
        entry >= &self.low[..] && self.high.as_ref().is_none_or(|high| entry < &high[..])
    }
}

/// The moment that a scan reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Consistency {
    /// The newest epoch that all slices have applied.
    #[default]
    Any,
    /// An epoch that covers these positions.
    AtPlus(Vec<(VbucketId, Position)>),
    /// An epoch that covers the source's durable end at the time of the request.
    RequestPlus,
    /// The given epoch, for the later scans of a transaction.
    Epoch(Epoch),
    /// The newest epoch that all slices have applied, but at least the given one; for later scans of a session.
    AtLeast(Epoch),
}

/// The changes of a transaction up to a place, which the transaction itself sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnView {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The place up to which changes are visible.
    pub place: TransactionPlace,
}

/// The result of a scan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Output {
    /// Entries, with the included values if requested.
    Rows {
        /// True if the included values are needed.
        include: bool,
    },
    /// One row of aggregates over all matching entries.
    Aggregates(Arc<[AggregateCall]>),
}

/// One aggregate of a scan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AggregateCall {
    /// The aggregate function.
    pub function: AggregateFunction,
    /// The argument; `None` for `count(*)`.
    pub argument: Option<Expr>,
}

/// A scan of one index, as a front end requests it from a router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScanRequest {
    /// The index, in the generation that the request was planned for.
    pub index: LocalIndexId,
    /// The ranges to read, ascending and disjoint; an empty list gives an empty result.
    pub ranges: Arc<[KeyRange]>,
    /// All partition keys that matching entries can have: the values of the partition expressions as ascending key parts, or the ids of
    /// the documents if the index is partitioned by id. `None` if they are not known; then all slices are read.
    pub partitions: Option<Vec<Bytes>>,
    /// A further condition on each entry, over `Expr::Column` and `Expr::DocumentId`.
    pub filter: Option<Arc<Expr>>,
    /// True to read from the last entry to the first.
    pub reverse: bool,
    /// True if rows must be in the index's order (or its reverse). Otherwise slices follow each other.
    pub ordered: bool,
    /// Returns only the first row of each run of equal leading key parts; the number of these parts. Implies `ordered`.
    pub distinct_parts: Option<u16>,
    /// Maximum number of rows.
    pub limit: Option<u64>,
    /// Number of rows to skip first.
    pub offset: u64,
    /// The kind of result.
    pub output: Output,
    /// The moment to read.
    pub consistency: Consistency,
    /// The changes of the reader's own transaction, which the scan sees in addition.
    pub own: Option<OwnView>,
    /// Time limit for starting to serve the scan, in milliseconds.
    pub timeout_ms: u64,
    /// When another copy is queried in addition to a slow node.
    pub hedge_after: HedgeAfter,
}

/// When a scan queries another copy in addition to a node that does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HedgeAfter {
    /// As set in the router; without a setting, after three times the usual time, and at least 10 ms.
    #[default]
    Usual,
    /// After so many milliseconds.
    Millis(u32),
    /// Never: a slow node is waited for until it fails.
    Never,
}

impl ScanRequest {
    /// The slices that can have matching entries, ascending; `None` if that can be all of them.
    pub fn slices(&self, index: &IndexInfo) -> Option<Vec<SliceNo>> {
        let of = |key: &Bytes| {
            let key = match index.spec.partition {
                PartitionBy::DocumentId => PartitionKey::Id(std::str::from_utf8(key).ok()?),
                PartitionBy::Exprs(_) | PartitionBy::Range(_) => PartitionKey::Encoded(key),
            };
            Some(index.slice_of(key))
        };
        let mut slices: Vec<SliceNo> =
            self.partitions.as_ref()?.iter().map(of).collect::<Option<_>>()?;
        slices.sort_unstable();
        slices.dedup();
        Some(slices)
    }
}

/// A scan of one shard, as a router requests it from an indexer. All shards of a scan share its ranges, filter and output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardScan {
    /// The bucket, in which the epoch is counted.
    pub bucket: BucketId,
    /// The index and its generation.
    pub index: LocalIndexId,
    /// The slices to read, ascending. If the node lacks one of them, the answer is `ShardBatch::Moved` alone.
    pub slices: Vec<SliceNo>,
    /// The epoch to read. The indexer waits for it until `timeout_ms`, and refuses it below the floor of a slice.
    pub epoch: Epoch,
    /// The changes of the reader's own transaction, which the scan sees in addition. The indexer waits for them until `timeout_ms`.
    pub own: Option<OwnView>,
    /// The ranges to read, ascending and disjoint.
    pub ranges: Arc<[KeyRange]>,
    /// A further condition on each entry.
    pub filter: Option<Arc<Expr>>,
    /// True to read from the last entry to the first.
    pub reverse: bool,
    /// Returns only the first row of each run of equal leading key parts; the number of these parts.
    pub distinct_parts: Option<u16>,
    /// The entry after which to begin, in the scan's direction.
    pub resume_after: Option<Bytes>,
    /// Maximum number of rows of this shard.
    pub limit: Option<u64>,
    /// The kind of result.
    pub output: Output,
    /// Time limit for starting to serve the scan, in milliseconds.
    pub timeout_ms: u64,
}

/// A part of a shard's answer; the last one is `Done`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ShardBatch {
    /// Rows in the scan's order. An empty batch tells the router that the scan is still running.
    Rows(RowBlock),
    /// Slices that the node does not have, each with a node that may have it. Nothing was read, and nothing follows.
    Moved(Vec<(SliceNo, NodeId)>),
    /// Partial aggregates of the whole shard, in the order of the calls.
    Partials(Vec<PartialAggregate>),
    /// The end of the answer.
    Done,
    /// The condition has no value for this entry, which is after all rows so far. This is the end of the answer. A scan that ends before
    /// the entry has no error.
    Failed(Bytes, Error),
}

impl ShardBatch {
    /// The approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Rows(block) => block.data.len(),
            Self::Moved(places) => size_of_val(&places[..]),
            Self::Partials(partials) => size_of_val(&partials[..]),
            Self::Done => 0,
            Self::Failed(entry, _) => entry.len(),
        }
    }
}

/// The beginning of a shard's answer, as one reply. Most answers are not longer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstBatch {
    /// The first rows, all partial aggregates, or the slices that the node does not have.
    pub batch: ShardBatch,
    /// True if this is the whole answer. If not, a scan that resumes after the last row, or from the beginning if there is none, reads the
    /// rest.
    pub is_whole: bool,
}

/// The epochs that a node has applied, by which routers choose the epoch of a scan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedReport {
    /// The node that answers.
    pub node: NodeId,
    /// The newest epoch applied, by bucket; only changed buckets, all of them in the first report.
    pub applied: Vec<(BucketId, Epoch)>,
    /// The oldest epoch that each readable slice can answer; all slices if any changed, else `None`.
    pub readable: Option<Vec<(crate::model::ids::SliceId, Epoch)>>,
    /// The slices that the node rebuilds from the source, since no node has them any more; all of them, with `readable`.
    pub rebuilt: Vec<crate::model::ids::SliceId>,
}
