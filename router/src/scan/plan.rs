//! The plan of a scan: the common part of its shard scans, and the node to ask for each slice.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::model::ids::{Epoch, NodeId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::topology::TopologyProvider;
use proto::rpc::scan::{ScanRequest, ShardScan};
use tokio::time::Instant;

use super::retry_round::FIRST_BATCH_TIMEOUT;
use crate::context::RouterContext;
use crate::epochs::read_view::{Placed, place};

/// The common part of all shard scans of one scan.
#[derive(Clone)]
pub(crate) struct ScanPlan {
    pub context: Arc<RouterContext>,
    pub index: Arc<IndexInfo>,
    pub request: Arc<ScanRequest>,
    pub epoch: Epoch,
    pub resume_after: Option<Bytes>,
    pub rows_max: Option<u64>,
    /// True: a shard scan reports slices that have moved. False: it follows them to their new nodes.
    pub reports_moved: bool,
    /// True if other copies are asked beside a node: each of them once.
    pub is_beside: bool,
    /// When a shard scan gives up if no node has served it; `None`: the scan's time-out after the shard scan began.
    pub deadline: Option<Instant>,
}

impl ScanPlan {
    /// Groups the slices that can have rows by the node to ask first.
    pub fn shards(&self) -> Vec<Placed> {
        let wanted = self.request.slices(&self.index);
        let view = self.context.view(&self.index);
        if wanted.is_none() && view.epoch == Some(self.epoch) {
            return view.shards.clone();
        }
        let all = || (0..self.index.topology.slices()).map(SliceNo).collect();
        let slices = wanted.unwrap_or_else(all);
        place(&self.context.applied, &self.index, self.epoch, &slices, &[])
    }

    /// Groups slices by the node to ask, and avoids some nodes where a slice has another.
    pub fn shards_without(&self, slices: &[SliceNo], failed: &[NodeId]) -> Vec<Vec<SliceNo>> {
        let shards = place(&self.context.applied, &self.index, self.epoch, slices, failed);
        shards.into_iter().map(|shard| shard.slices).collect()
    }

    /// Slices as a shard scan of their own, and the node to ask first for all of them.
    pub fn placed(&self, slices: &[SliceNo]) -> Placed {
        let view = self.context.view(&self.index);
        let known = view.shards.iter().find(|shard| shard.slices == slices);
        if let Some(placed) = known.filter(|_| view.epoch == Some(self.epoch)) {
            return placed.clone();
        }
        let node = self.common_candidate(slices, &[]);
        let has_others = node.is_some_and(|node| self.can_split(slices, &[node]));
        Placed { slices: slices.to_vec(), node, has_others }
    }

    /// How long a shard scan may be without a node that serves it.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.request.timeout_ms).max(FIRST_BATCH_TIMEOUT)
    }

    /// Returns a node that has all the slices and is not among the failed ones.
    pub fn common_candidate(&self, slices: &[SliceNo], failed: &[NodeId]) -> Option<NodeId> {
        let first = self.context.applied.candidates(&self.index, *slices.first()?, self.epoch);
        let has = |node: NodeId, slice: SliceNo| {
            self.index.topology.hosts(node, slice)
                || self.context.applied.is_readable(node, &self.index, slice, self.epoch)
        };
        let has_all = |node: &NodeId| slices.iter().all(|slice| has(*node, *slice));
        first.into_iter().find(|node| !failed.contains(node) && has_all(node))
    }

    /// True if each slice has another copy that has applied the epoch and is not slow.
    pub fn has_ready_others(&self, slices: &[SliceNo], node: NodeId) -> bool {
        let applied = &self.context.applied;
        let is_ready = |slice: SliceNo| {
            let copies = applied.known_copies(&self.index, slice);
            copies.into_iter().any(|other| {
                other != node
                    && applied.has_applied(other, &self.index, slice, self.epoch)
                    && !self.context.hedging.avoids(other)
            })
        };
        slices.iter().all(|slice| is_ready(*slice))
    }

    /// True if each slice has a node that has not failed; not necessarily the same node.
    pub fn can_split(&self, slices: &[SliceNo], failed: &[NodeId]) -> bool {
        slices.iter().all(|slice| self.common_candidate(&[*slice], failed).is_some())
    }

    /// The request to one node.
    pub fn shard_scan(
        &self,
        slices: &[SliceNo],
        (resume_after, limit): (Option<Bytes>, Option<u64>),
        timeout_ms: u64,
    ) -> ShardScan {
        let request = &self.request;
        ShardScan {
            bucket: self.index.bucket,
            index: self.index.local_id(),
            slices: slices.to_vec(),
            epoch: self.epoch,
            own: request.own,
            ranges: request.ranges.clone(),
            filter: request.filter.clone(),
            reverse: request.reverse,
            distinct_parts: request.distinct_parts,
            resume_after,
            limit,
            output: request.output.clone(),
            timeout_ms,
        }
    }
}
