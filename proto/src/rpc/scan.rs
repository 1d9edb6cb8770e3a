//! The messages of scans: from a front end to a router, from a router to a shard, and the
//! answers.
//!
//! An *entry* is the encoded key parts followed by the raw bytes of the document id (see `key`).
//! Entries are ordered and identified by their bytes, so ranges, resume points and merges compare
//! bytes. A row is an entry with the encoded included values.

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
    /// Returns the range of all entries.
    pub fn all() -> Self {
        Self::default()
    }

    /// Returns true if the entry lies in the range.
    pub fn contains(&self, entry: &[u8]) -> bool {
        entry >= &self.low[..] && self.high.as_ref().is_none_or(|high| entry < &high[..])
    }
}

/// The choice of the epoch that a scan reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Consistency {
    /// The newest epoch that all slices have applied.
    #[default]
    Any,
    /// An epoch that covers these positions. The scan waits for it.
    AtPlus(Vec<(VbucketId, Position)>),
    /// An epoch that covers the source's durable end at the time of the request. The scan waits
    /// for it.
    RequestPlus,
    /// This epoch, for later scans of a transaction.
    Epoch(Epoch),
    /// The newest epoch that all slices have applied, and at least this one; for later scans of a
    /// session.
    AtLeast(Epoch),
}

/// A transaction whose uncommitted changes, up to a place, are visible to its scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncommittedView {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The place up to which changes are visible: a number of the transaction's changes and
    /// rollbacks.
    pub place: TransactionPlace,
}

/// The kind of result that a scan returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Output {
    /// Entries, and the included values if requested.
    Rows {
        /// True if the included values are returned too.
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

/// A scan of one index, in the form in which a front end requests it from a router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScanRequest {
    /// The index, in the generation for which the request was planned.
    pub index: LocalIndexId,
    /// The ranges to read, ascending and disjoint; an empty list gives an empty result.
    pub ranges: Arc<[KeyRange]>,
    /// The partition keys of all entries that can match: the values of the partition expressions
    /// as ascending key parts, or the documents' ids if the index is partitioned by id. `None` if
    /// unknown; all slices are then read.
    pub partitions: Option<Vec<Bytes>>,
    /// A further condition on each entry, whose operands are `Expr::Column` and `Expr::DocumentId`.
    pub filter: Option<Arc<Expr>>,
    /// True to read from the last entry to the first.
    pub reverse: bool,
    /// True if rows must be in the order of the index, or in its reverse. If false, the order
    /// between rows of different slices is arbitrary.
    pub ordered: bool,
    /// Returns only the first of the rows that agree in this number of leading key parts
    /// (DISTINCT). `None` returns all rows. A number implies `ordered`.
    pub distinct_parts: Option<u16>,
    /// The maximum number of rows to return.
    pub limit: Option<u64>,
    /// The number of rows to skip first.
    pub offset: u64,
    /// The kind of result.
    pub output: Output,
    /// The epoch to read.
    pub consistency: Consistency,
    /// The reader's transaction, whose uncommitted changes the scan sees too.
    pub own: Option<UncommittedView>,
    /// The time limit for the first answer, in milliseconds.
    pub timeout_ms: u64,
    /// The time after which a scan queries a second copy in addition to a slow node.
    pub hedge_after: HedgeAfter,
}

/// The time after which a scan queries a second copy in addition to a slow node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HedgeAfter {
    /// The router's setting. Without a setting, three times the usual time of an answer, and at
    /// least 10 ms.
    #[default]
    Usual,
    /// This number of milliseconds.
    Millis(u32),
    /// Never: the scan waits for a slow node until it fails.
    Never,
}

impl ScanRequest {
    /// Returns the slices that can have matching entries, ascending; `None` if every slice can.
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

/// A scan of one shard, in the form in which a router requests it from an indexer. All shards of a
/// scan have equal ranges, filter and output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardScan {
    /// The bucket to which the epoch belongs.
    pub bucket: BucketId,
    /// The index, in one generation.
    pub index: LocalIndexId,
    /// The slices to read, ascending. If the node lacks one of them, its only answer is
    /// `ShardBatch::Moved`.
    pub slices: Vec<SliceNo>,
    /// The epoch to read. The indexer waits at most `timeout_ms` until it has applied the epoch.
    /// An epoch below the oldest readable one of a slice is refused.
    pub epoch: Epoch,
    /// The reader's transaction, whose uncommitted changes the scan sees too. The indexer waits
    /// at most `timeout_ms` for them.
    pub own: Option<UncommittedView>,
    /// The ranges to read, ascending and disjoint.
    pub ranges: Arc<[KeyRange]>,
    /// A further condition on each entry.
    pub filter: Option<Arc<Expr>>,
    /// True to read from the last entry to the first.
    pub reverse: bool,
    /// Returns only the first of the rows that agree in this number of leading key parts
    /// (DISTINCT). `None` returns all rows.
    pub distinct_parts: Option<u16>,
    /// The entry after which the scan begins, in the scan's direction.
    pub resume_after: Option<Bytes>,
    /// The maximum number of rows that this shard returns.
    pub limit: Option<u64>,
    /// The kind of result.
    pub output: Output,
    /// The time limit for the first answer, in milliseconds.
    pub timeout_ms: u64,
}

/// A message of a shard's answer; the last one is `Done`, `Moved` or `Failed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ShardBatch {
    /// Rows in the scan's order. An empty block only shows that the scan is still working.
    Rows(RowBlock),
    /// The slices that the node lacks, each with a node that may have it. The node has read
    /// nothing, and sends no further message.
    Moved(Vec<(SliceNo, NodeId)>),
    /// The partial aggregates of all entries that the shard has read, in the order of the calls.
    Partials(Vec<PartialAggregate>),
    /// The regular end of the answer.
    Done,
    /// The end of the answer by an error: the filter fails for this entry, which comes after all
    /// rows that were sent. A scan that is satisfied before this entry ignores the error.
    Failed(Bytes, Error),
}

impl ShardBatch {
    /// Returns the approximate size in memory, in bytes.
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

/// The beginning of a shard's answer, or all of it, in one message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstBatch {
    /// The first rows, or all partial aggregates, or the slices that the node lacks.
    pub batch: ShardBatch,
    /// True if `batch` is the complete answer. If false, a further scan reads the following rows:
    /// it resumes after the last row, or begins anew if there are no rows.
    pub is_whole: bool,
}

/// The epochs that a node has applied, as reported to routers, which choose the epoch of a scan
/// by them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedReport {
    /// The node that reports.
    pub node: NodeId,
    /// The newest applied epoch by bucket. The first report has all buckets, a later one those
    /// that changed.
    pub applied: Vec<(BucketId, Epoch)>,
    /// The oldest readable epoch of each readable slice. Contains all slices if one of them has
    /// changed, otherwise `None`.
    pub readable: Option<Vec<(crate::model::ids::SliceId, Epoch)>>,
    /// The slices that the node rebuilds from the source because every copy was lost. The list is
    /// complete if `readable` is not `None`.
    pub rebuilt: Vec<crate::model::ids::SliceId>,
}
