//! The source of a scan's rows: shards that are merged, or shards that are read one after another.

use std::collections::BTreeSet;

use proto::model::index::IndexInfo;
use proto::rpc::scan::{Output, ScanRequest};

use super::gather::{BLOCK_BYTES, ShardMerge};
use super::merge_ahead::{AHEAD_BYTES, MergeAhead};
use super::plan::ScanPlan;
use super::shard_stream::ShardStream;
use super::unordered::{PARALLEL_SHARDS, Unordered};
use super::virtual_scan::UnorderedProgress;

/// The source of a scan's rows.
pub(super) enum RowSource {
    Ordered(ShardMerge),
    /// A long ordered scan, whose merge runs in a task.
    Ahead(MergeAhead),
    Unordered(Box<Unordered>),
}

/// Estimates the memory of a scan in bytes. For each shard that is read in parallel: its channel,
/// a transport window of equal size, the merged block and the block that marks its position. In
/// addition the blocks that are merged ahead in a task.
pub(super) fn memory_estimate(
    index: &IndexInfo,
    request: &ScanRequest,
    ahead_bytes: usize,
) -> usize {
    let places = index.topology.placement.iter().filter_map(|replicas| replicas.first());
    let nodes = places.collect::<BTreeSet<_>>().len().max(1);
    let shards = match request.slices(index) {
        Some(slices) => slices.len().clamp(1, nodes),
        None if is_merged(request) => nodes,
        None => PARALLEL_SHARDS.min(nodes),
    };
    let is_merged_ahead = shards > 1 && is_merged(request) && request.distinct_parts.is_none();
    let merged_ahead = if is_merged_ahead { AHEAD_BYTES } else { 0 };
    shards * (2 * ahead_bytes + 2 * BLOCK_BYTES) + merged_ahead
}

/// Returns true if the scan merges its shards, and so reads all of them in parallel. Unordered
/// scans of a few slices are merged too.
pub(super) fn is_merged(request: &ScanRequest) -> bool {
    let aggregates = matches!(request.output, Output::Aggregates(_));
    let is_ordered = request.ordered || request.distinct_parts.is_some();
    is_ordered || aggregates || request.partitions.is_some()
}

/// Returns the source of a scan's rows. `progress` is the position of an unordered scan that a
/// token continues.
pub(super) fn row_source(plan: &ScanPlan, progress: Option<UnorderedProgress>) -> RowSource {
    if !is_merged(&plan.request) {
        let progress = progress.unwrap_or_else(|| UnorderedProgress::new(&plan.index.topology));
        return RowSource::Unordered(Box::new(Unordered::new(plan.clone(), progress)));
    }
    let distinct = plan.request.distinct_parts.map(|parts| (parts, plan.index.spec.descending()));
    RowSource::Ordered(ShardMerge::new(begin_shards(plan), plan.request.reverse, distinct))
}

/// Begins the shard scans of all slices.
pub(super) fn begin_shards(plan: &ScanPlan) -> Vec<ShardStream> {
    plan.shards().into_iter().map(|shard| plan.start(shard, false)).collect()
}
