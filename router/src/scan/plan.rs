//! The plan of a scan: what all of its shard scans have in common, and which node is asked for which slice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::model::ids::{Epoch, NodeId, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::scan::{ScanRequest, ShardScan};
use tokio::time::Instant;

use super::retry_round::FIRST_BATCH_TIMEOUT;
use crate::context::RouterContext;

/// What all shard scans of a scan have in common.
#[derive(Clone)]
pub(crate) struct ScanPlan {
    pub context: RouterContext,
    pub index: Arc<IndexInfo>,
    pub request: ScanRequest,
    pub epoch: Epoch,
    pub resume_after: Option<Bytes>,
    pub rows_max: Option<u64>,
    /// Are slices that have moved told, or followed?
    pub tell_moved: bool,
    /// When a shard gives up that no node has served yet; `None`: the scan's time-out after it has begun.
    pub deadline: Option<Instant>,
}

impl ScanPlan {
    /// Groups slices by the node that is asked for them first.
    pub fn shards(&self, slices: &[SliceNo]) -> Vec<Vec<SliceNo>> {
        self.shards_without(slices, &[])
    }

    /// The same without some nodes, unless a slice has no other.
    pub fn shards_without(&self, slices: &[SliceNo], failed: &[NodeId]) -> Vec<Vec<SliceNo>> {
        let mut shards: BTreeMap<Option<NodeId>, Vec<SliceNo>> = BTreeMap::new();
        for slice in slices {
            let nodes = self.context.applied.candidates(&self.index, *slice, self.epoch);
            let best = nodes.iter().find(|node| !failed.contains(node)).or(nodes.first());
            shards.entry(best.copied()).or_default().push(*slice);
        }
        shards.into_values().collect()
    }

    /// How long the shard may be without a node that serves it.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.request.timeout_ms).max(FIRST_BATCH_TIMEOUT)
    }

    /// A node that has all the slices and has not failed.
    pub fn common_candidate(&self, slices: &[SliceNo], failed: &[NodeId]) -> Option<NodeId> {
        let first = self.context.applied.candidates(&self.index, *slices.first()?, self.epoch);
        let has = |node: NodeId, slice: SliceNo| {
            self.index.topology.hosts(node, slice)
                || self.context.applied.reads(node, &self.index, slice, self.epoch)
        };
        let has_all = |node: &NodeId| slices.iter().all(|slice| has(*node, *slice));
        first.into_iter().find(|node| !failed.contains(node) && has_all(node))
    }

    /// Has each slice by itself a node that has not failed? So it is where one node has all of them.
    pub fn splits(&self, slices: &[SliceNo], failed: &[NodeId]) -> bool {
        slices.iter().all(|slice| self.common_candidate(&[*slice], failed).is_some())
    }

    /// The question to one node.
    pub fn shard_scan(
        &self,
        slices: &[SliceNo],
        (resume_after, limit): (Option<Bytes>, Option<u64>),
        timeout_ms: u64,
    ) -> ShardScan {
        let request = &self.request;
        ShardScan {
            bucket: self.index.bucket,
            index: self.index.id,
            generation: self.index.generation,
            slices: slices.to_vec(),
            epoch: self.epoch,
            ranges: request.ranges.clone(),
            filter: request.filter.clone(),
            reverse: request.reverse,
            ordered: true,
            distinct_parts: request.distinct_parts,
            resume_after,
            limit,
            output: request.output.clone(),
            timeout_ms,
        }
    }
}
