//! The plan of a scan: the common data of its shard scans, and the node to query for each slice.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::model::ids::{Epoch, LocalIndexId, NodeId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::topology::TopologyProvider;
use proto::plant::{self, Plant};
use proto::rpc::api::IndexerApi;
use proto::rpc::scan::{HedgeAfter, ScanRequest, ShardScan};
use proto::{Error, Result};
use tokio::time::Instant;

use super::attempt::{Copies, FIRST_BATCH_TIMEOUT};
use super::place::ShardPosition;
use crate::context::RouterContext;
use crate::epochs::read_view::{AvoidedNodes, NodeSlices, group_by_node};
use crate::hedging::Batches;

/// The common data of all shard scans of one scan.
#[derive(Clone)]
pub(crate) struct ScanPlan {
    pub context: Arc<RouterContext>,
    pub index: Arc<IndexInfo>,
    pub request: Arc<ScanRequest>,
    pub epoch: Epoch,
    pub resume_after: Option<Bytes>,
    pub rows_max: Option<u64>,
}

/// The slow nodes, as a scan treats them.
#[derive(Default)]
struct SlowNodes {
    /// Nodes that are queried only if no other node has a slice.
    slow: Vec<NodeId>,
    /// Slow nodes that this scan queries in normal order, to find out whether they are still slow.
    probed: Vec<NodeId>,
}

impl ScanPlan {
    /// Groups the slices that can have rows of the scan by the node to query first.
    pub fn shards(&self) -> Vec<NodeSlices> {
        let wanted = self.request.slices(&self.index);
        let view = self.context.view(&self.index);
        let SlowNodes { slow, probed } = self.slow_nodes();
        let busy = &*self.context.busy;
        let gives_way = |shard: &NodeSlices| {
            let to_any =
                |node| view.copies.iter().any(|other| busy.should_query_other(node, *other));
            shard.node.is_some_and(|node| busy.is_busy(node) && to_any(node))
        };
        let is_usual = slow.is_empty() && probed.is_empty() && !view.shards.iter().any(gives_way);
        if is_usual && wanted.is_none() && view.epoch == Some(self.epoch) {
            return view.shards.clone();
        }
        let all = || (0..self.index.topology.slices()).map(SliceNo).collect();
        let slices = wanted.unwrap_or_else(all);
        let avoided = AvoidedNodes { failed: &[], slow: &slow, busy: Some(busy) };
        let mut shards =
            group_by_node(&self.context.applied, &self.index, self.epoch, &slices, avoided);
        for shard in &mut shards {
            shard.is_probe = shard.node.is_some_and(|node| probed.contains(&node));
        }
        shards
    }

    /// Returns the slow nodes that this scan queries last, and those that it queries as a probe.
    fn slow_nodes(&self) -> SlowNodes {
        if !self.may_hedge() {
            return SlowNodes::default();
        }
        // A scan of a transaction's own changes waits for these, so its time says little.
        let probes = self.request.own.is_none();
        let (hedging, now) = (&self.context.hedging, Instant::now());
        let avoided = hedging.avoided().into_iter();
        let (probed, slow) = avoided.partition(|node| probes && hedging.is_probe_due(*node, now));
        SlowNodes { slow, probed }
    }

    /// Groups slices by the node to query. A node in `failed` gets a slice only if no other node
    /// has it.
    pub fn shards_without(&self, slices: &[SliceNo], failed: &[NodeId]) -> Vec<Vec<SliceNo>> {
        let avoided = AvoidedNodes { failed, slow: &self.context.hedging.avoided(), busy: None };
        let shards = group_by_node(&self.context.applied, &self.index, self.epoch, slices, avoided);
        shards.into_iter().map(|shard| shard.slices).collect()
    }

    /// Returns slices as one shard, with the node to query first for all of them.
    pub fn place_slices(&self, slices: &[SliceNo]) -> NodeSlices {
        let SlowNodes { slow, probed } = self.slow_nodes();
        let view = self.context.view(&self.index);
        let known = view.shards.iter().find(|shard| shard.slices == slices);
        let known = known.filter(|_| view.epoch == Some(self.epoch));
        let usual =
            known.map_or_else(|| self.copies(slices).node_with_all(&[]), |known| known.node);
        let is_slow = usual.is_some_and(|node| slow.contains(&node));
        let ready = || self.ready_candidate(slices, &slow);
        let node = if is_slow { ready().or(usual) } else { usual };
        let has_others = match known.filter(|known| known.node == node) {
            Some(known) => known.has_others,
            None => node.is_some_and(|node| self.copies(slices).each_has_node(&[node])),
        };
        let is_probe = node.is_some_and(|node| probed.contains(&node));
        NodeSlices { slices: slices.to_vec(), node, has_others, is_probe }
    }

    /// Returns the longest time that a shard scan may be without a node that serves it.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.request.timeout_ms).max(FIRST_BATCH_TIMEOUT)
    }

    /// Returns the nodes that have each slice.
    pub fn copies(&self, slices: &[SliceNo]) -> Copies {
        let Self { context, index, epoch, .. } = self;
        let of = |slice: &SliceNo| {
            let mut nodes = context.applied.candidates(index, *slice, *epoch);
            nodes.retain(|node| {
                index.topology.hosts(*node, *slice)
                    || context.applied.is_readable(*node, index, *slice, *epoch)
            });
            nodes
        };
        Copies(slices.iter().map(of).collect())
    }

    /// Returns a node that has all of these slices, has applied the epoch, and is not slow; `None`
    /// if there is none.
    fn ready_candidate(&self, slices: &[SliceNo], slow: &[NodeId]) -> Option<NodeId> {
        let first = self.context.applied.candidates(&self.index, *slices.first()?, self.epoch);
        first.into_iter().find(|node| !slow.contains(node) && self.is_ready(*node, slices))
    }

    /// Returns true if a node has all of these slices and has applied the epoch.
    pub fn is_ready(&self, node: NodeId, slices: &[SliceNo]) -> bool {
        let applied = &self.context.applied;
        slices.iter().all(|slice| applied.has_applied(node, &self.index, *slice, self.epoch))
    }

    /// Returns true if each slice has a copy on another node than `node` that has applied the
    /// epoch and is not slow.
    pub fn has_ready_others(&self, slices: &[SliceNo], node: NodeId) -> bool {
        let applied = &self.context.applied;
        let is_ready = |slice: SliceNo| {
            let copies = applied.known_copies(&self.index, slice);
            copies.into_iter().any(|other| {
                other != node
                    && applied.has_applied(other, &self.index, slice, self.epoch)
                    && !self.context.hedging.is_avoided(other)
            })
        };
        slices.iter().all(|slice| is_ready(*slice))
    }

    /// Returns true if a node should answer without a wait, so that its time can be measured: it
    /// has applied the epoch, and the scan reads no changes of an open transaction.
    pub fn is_expected_soon(&self, node: NodeId, slices: &[SliceNo]) -> bool {
        self.may_hedge() && self.request.own.is_none() && self.is_ready(node, slices)
    }

    /// Returns true if the settings allow parallel requests to another copy when a node is slow.
    pub fn may_hedge(&self) -> bool {
        self.hedge_after() != HedgeAfter::Never
    }

    /// Returns the setting of the session; if it has none, of the router.
    fn hedge_after(&self) -> HedgeAfter {
        match self.request.hedge_after {
            HedgeAfter::Usual => self.context.config.hedge_after,
            of_session => of_session,
        }
    }

    /// Returns the time after which another copy is queried in parallel.
    pub fn hedge_stage(&self, of: Batches) -> Duration {
        match self.hedge_after() {
            HedgeAfter::Millis(ms) => Duration::from_millis(ms.into()),
            HedgeAfter::Usual | HedgeAfter::Never => self.context.hedging.stage(of),
        }
    }

    /// Returns the client of a node.
    pub fn indexer(&self, node: NodeId) -> Result<Arc<dyn IndexerApi>> {
        let catalog = self.context.catalog.load();
        let unknown = || Error::unavailable(format!("node {node} is not in the router's catalog"));
        Ok(self.context.directory.indexer(catalog.nodes.get(&node).ok_or_else(unknown)?))
    }

    /// Returns the generation of the index that the scan reads from its beginning to its end.
    fn read_generation(&self) -> LocalIndexId {
        if plant::is(Plant::GenerationsMixed)
            && let Some(serving) = self.context.catalog.load().indexes.get(&self.index.id)
        {
            return serving.local_id();
        }
        self.index.local_id()
    }

    /// Returns the request to one node for these slices, from a position on.
    pub fn shard_scan(
        &self,
        slices: &[SliceNo],
        position: &ShardPosition,
        timeout: Duration,
    ) -> ShardScan {
        let request = &self.request;
        ShardScan {
            bucket: self.index.bucket,
            index: self.read_generation(),
            slices: slices.to_vec(),
            epoch: self.epoch,
            own: request.own,
            ranges: Arc::clone(&request.ranges),
            filter: request.filter.clone(),
            reverse: request.reverse,
            distinct_parts: request.distinct_parts,
            resume_after: position.reached.resume_after(),
            limit: position.rows_left,
            output: request.output.clone(),
            timeout_ms: timeout.as_millis() as u64,
        }
    }
}
