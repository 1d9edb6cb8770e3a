//! Scans: what the SQL front end and the gRPC service ask of a router, what a router asks of a shard,
//! and the packed rows that come back.
//!
//! An *entry* is the encoded key parts followed by the raw bytes of the document id (`key` says how);
//! its bytes are its order and its identity, so a range, a resume point and a merge are byte
//! comparisons. A row is an entry and the encoded included values.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::expr::Expr;
use crate::expr::aggregate::{AggregateFunction, Partial};
use crate::model::cut::Position;
use crate::model::ids::{BucketId, Epoch, Generation, IndexId, NodeId, SliceNo, VbucketId};
use crate::rpc::rows::RowBlock;

/// A half-open range of entry bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRange {
    /// Inclusive; empty is the beginning.
    pub low: Bytes,
    /// Exclusive; `None` is the end.
    pub high: Option<Bytes>,
}

impl KeyRange {
    /// Everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// Is an entry inside?
    pub fn contains(&self, entry: &[u8]) -> bool {
        entry >= &self.low[..] && self.high.as_ref().is_none_or(|high| entry < &high[..])
    }
}

/// Which moment a scan reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Consistency {
    /// The newest epoch that all slices have applied.
    #[default]
    Any,
    /// An epoch that covers these positions.
    AtPlus(Vec<(VbucketId, Position)>),
    /// An epoch that covers what the source has at the time of the request.
    RequestPlus,
    /// This epoch: the other scans of a transaction.
    Epoch(Epoch),
}

/// What a scan returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Output {
    /// Entries, with the included values if asked for.
    Rows {
        /// Are the included values needed?
        include: bool,
    },
    /// One row of aggregates over all matching entries.
    Aggregates(Vec<AggregateCall>),
}

/// One aggregate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AggregateCall {
    /// Which.
    pub function: AggregateFunction,
    /// Over what; `None` is `count(*)`.
    pub argument: Option<Expr>,
}

/// A scan of one index, as asked of a router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScanRequest {
    /// The index.
    pub index: IndexId,
    /// What is read: ascending, disjoint ranges; none is an empty result.
    pub ranges: Vec<KeyRange>,
    /// What must hold for an entry besides, over `Expr::Column` and `Expr::DocumentId`.
    pub filter: Option<Expr>,
    /// From the last entry to the first.
    pub reverse: bool,
    /// Must rows come in the index's order (or its reverse)? If not, slices follow each other.
    pub ordered: bool,
    /// Only the first row of each run of equal leading key parts: how many parts. Implies `ordered`.
    pub distinct_parts: Option<u16>,
    /// At most so many rows.
    pub limit: Option<u64>,
    /// After leaving out so many.
    pub offset: u64,
    /// What is returned.
    pub output: Output,
    /// Which moment.
    pub consistency: Consistency,
    /// Give up after so long without being able to serve.
    pub timeout_ms: u64,
}

/// A scan of one shard, as a router asks it of an indexer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardScan {
    /// The bucket, in which the epoch is counted.
    pub bucket: BucketId,
    /// The index.
    pub index: IndexId,
    /// Its generation.
    pub generation: Generation,
    /// The slices to read, ascending; if one is not here, the answer is `ShardBatch::Moved` alone.
    pub slices: Vec<SliceNo>,
    /// The epoch to read; waited for until `timeout_ms`, refused below the floor of a slice.
    pub epoch: Epoch,
    /// What is read.
    pub ranges: Vec<KeyRange>,
    /// What must hold besides.
    pub filter: Option<Expr>,
    /// From the last entry to the first.
    pub reverse: bool,
    /// Must rows come in order over all the slices?
    pub ordered: bool,
    /// Only the first row of each run of equal leading key parts.
    pub distinct_parts: Option<u16>,
    /// The entry after which (in the scan's direction) to begin.
    pub resume_after: Option<Bytes>,
    /// At most so many rows of this shard.
    pub limit: Option<u64>,
    /// What is returned.
    pub output: Output,
    /// Give up after so long without being able to serve.
    pub timeout_ms: u64,
}

/// What a shard returns: some batches, the last of which is `done`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ShardBatch {
    /// Rows in the scan's order; none of them is a sign of life, for any scan.
    Rows(RowBlock),
    /// These slices are not here, and where they may be: nothing else was read, and nothing follows.
    Moved(Vec<(SliceNo, NodeId)>),
    /// Partial aggregates of the whole shard, in the order of the calls.
    Partials(Vec<Partial>),
    /// Nothing follows.
    Done,
}

impl ShardBatch {
    /// Bytes in memory, about.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Rows(block) => block.data.len(),
            Self::Moved(places) => size_of_val(&places[..]),
            Self::Partials(partials) => size_of_val(&partials[..]),
            Self::Done => 0,
        }
    }
}

/// What a node has applied: routers choose epochs by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedReport {
    /// The node.
    pub node: NodeId,
    /// The newest epoch applied, by bucket; only changed buckets, all of them in the first report.
    pub applied: Vec<(BucketId, Epoch)>,
    /// For each slice that can be read, the oldest epoch it answers; all slices, if any changed.
    pub readable: Option<Vec<(crate::model::ids::SliceId, Epoch)>>,
}
