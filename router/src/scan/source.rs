//! Where the rows of a scan come from: shards that are merged, or shards that are read one after another.

use std::collections::BTreeSet;

use proto::model::ids::SliceNo;
use proto::model::index::IndexInfo;
use proto::model::topology::TopologyProvider;
use proto::rpc::scan::{Output, ScanRequest};

use super::gather::{BLOCK_BYTES, Gather};
use super::plan::ScanPlan;
use super::shard_stream::{AHEAD_BYTES, ShardStream};
use super::unordered::{SIDE_BY_SIDE, Unordered};
use super::virtual_scan::Progress;

/// What a shard scan holds here, about; the transport's window is as large as what it may be ahead.
const SHARD_BYTES: usize = 2 * AHEAD_BYTES + BLOCK_BYTES;

/// Where the rows of a scan come from.
pub(super) enum Source {
    Ordered(Gather),
    Unordered(Box<Unordered>),
}

/// What rows on their way take: of each shard that is read at once what it is ahead, a window of the transport,
/// and the block that is merged.
pub(super) fn bytes_held(index: &IndexInfo, request: &ScanRequest) -> usize {
    let places = index.topology.placement.iter().filter_map(|replicas| replicas.first());
    let nodes = places.collect::<BTreeSet<_>>().len().max(1);
    let shards = if is_merged(request) { nodes } else { SIDE_BY_SIDE.min(nodes) };
    shards * SHARD_BYTES
}

/// Are all shards read at once?
pub(super) fn is_merged(request: &ScanRequest) -> bool {
    let aggregates = matches!(request.output, Output::Aggregates(_));
    request.ordered || request.distinct_parts.is_some() || aggregates
}

pub(super) fn plan_source(plan: &ScanPlan, progress: Option<Progress>) -> Source {
    if !is_merged(&plan.request) {
        let progress = progress.unwrap_or_else(|| Progress::new(&plan.index.topology));
        return Source::Unordered(Box::new(Unordered::new(plan.clone(), progress)));
    }
    let distinct = plan.request.distinct_parts.map(|parts| (parts, plan.index.spec.descending()));
    Source::Ordered(Gather::new(begin_shards(plan), plan.request.reverse, distinct))
}

/// Begins the shard scans of all slices.
pub(super) fn begin_shards(plan: &ScanPlan) -> Vec<ShardStream> {
    let slices: Vec<_> = (0..plan.index.topology.slices()).map(SliceNo).collect();
    plan.shards(&slices).into_iter().map(|slices| plan.start(slices)).collect()
}
