//! What the nodes said last, and what follows from it.

use std::collections::BTreeMap;

use proto::model::ids::{BucketId, Epoch, IndexId, MoveId, NodeId, SliceId};
use proto::model::index::IndexInfo;
use proto::model::moves::MoveProgress;
use proto::rpc::api::{BucketProgress, Heartbeat, NodeStatus, SliceProgress};

use super::horizon::LEASE_MS;

/// A node that was not heard of for this long is not counted on.
pub(super) const SILENT_MS_MAX: u64 = 5_000;

/// What the nodes said last, since a leader's term began.
#[derive(Debug)]
pub(super) struct Heartbeats {
    /// When the term began.
    pub since_ms: u64,
    pub nodes: BTreeMap<NodeId, LastHeartbeat>,
}

/// What a node said last.
#[derive(Debug)]
pub(super) struct LastHeartbeat {
    pub at_ms: u64,
    pub heartbeat: Heartbeat,
}

impl Heartbeats {
    pub(super) fn new(since_ms: u64) -> Self {
        Self { since_ms, nodes: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, heartbeat: Heartbeat, now_ms: u64) {
        self.nodes.insert(heartbeat.node, LastHeartbeat { at_ms: now_ms, heartbeat });
    }

    /// For how long the term has lasted.
    pub(super) fn leads_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.since_ms)
    }

    /// What it knows of the nodes.
    pub(super) fn status(&self, now_ms: u64) -> Vec<NodeStatus> {
        let status = |(node, heard): (&NodeId, &LastHeartbeat)| NodeStatus {
            node: *node,
            silent_ms: now_ms.saturating_sub(heard.at_ms),
            buckets: heard.heartbeat.buckets.clone(),
            slices: heard.heartbeat.slices.clone(),
            moves: heard.heartbeat.moves.clone(),
            scans: heard.heartbeat.scans,
        };
        self.nodes.iter().map(status).collect()
    }

    /// Was it heard of just now?
    pub(super) fn lives(&self, node: NodeId, now_ms: u64) -> bool {
        let heard = self.nodes.get(&node);
        heard.is_some_and(|heard| now_ms.saturating_sub(heard.at_ms) < SILENT_MS_MAX)
    }

    /// For how long it has been silent, as far as this leader can know.
    pub(super) fn silent_ms(&self, node: NodeId, now_ms: u64) -> u64 {
        let heard_ms = self.nodes.get(&node).map_or(0, |heard| heard.at_ms);
        now_ms.saturating_sub(heard_ms.max(self.since_ms))
    }

    /// The epochs of a bucket that running scans read.
    pub(super) fn leases(&self, bucket: BucketId, now_ms: u64) -> impl Iterator<Item = Epoch> {
        self.nodes
            .values()
            .filter(move |heard| now_ms.saturating_sub(heard.at_ms) <= LEASE_MS)
            .flat_map(|heard| &heard.heartbeat.leases)
            .filter(move |(leased, _)| *leased == bucket)
            .map(|(_, epoch)| *epoch)
    }

    /// What the living indexers say of a bucket.
    pub(super) fn progress(&self, bucket: BucketId, now_ms: u64) -> Vec<&BucketProgress> {
        self.nodes
            .values()
            .filter(|heard| now_ms.saturating_sub(heard.at_ms) < SILENT_MS_MAX)
            .flat_map(|heard| &heard.heartbeat.buckets)
            .filter(|progress| progress.bucket == bucket)
            .collect()
    }

    /// The newest epoch that an index can serve as a whole: of each slice the best copy counts.
    pub(super) fn servable(&self, index: &IndexInfo) -> Epoch {
        let applied = |node: &NodeId| {
            let buckets = self.nodes.get(node).map_or(&[][..], |heard| &heard.heartbeat.buckets);
            let of_bucket = buckets.iter().find(|progress| progress.bucket == index.bucket);
            of_bucket.map_or(Epoch(0), |progress| progress.applied)
        };
        let best = |nodes: &Vec<NodeId>| nodes.iter().map(applied).max().unwrap_or_default();
        index.topology.placement.iter().map(best).min().unwrap_or_default()
    }

    pub(super) fn progress_of(
        &self,
        target: NodeId,
        index: IndexId,
        id: MoveId,
    ) -> Option<&MoveProgress> {
        let moves = &self.nodes.get(&target)?.heartbeat.moves;
        moves.iter().find(|progress| progress.index == index && progress.id == id)
    }

    /// The bytes of a slice, and the oldest and the newest epoch of it, that a node says it can answer.
    pub(super) fn reach(
        &self,
        node: NodeId,
        slice: SliceId,
        bucket: BucketId,
    ) -> Option<(u64, Epoch, Epoch)> {
        let said: &Heartbeat = &self.nodes.get(&node)?.heartbeat;
        let of_slice = said.slices.iter().find(|progress| progress.slice == slice)?;
        let bucket = said.buckets.iter().find(|progress| progress.bucket == bucket)?;
        Some((of_slice.bytes, of_slice.floor?, bucket.applied))
    }
}

/// The slices that a node can answer scans of.
pub(super) fn readable(heartbeat: &Heartbeat) -> impl Iterator<Item = (NodeId, SliceId)> {
    let served = |slice: &&SliceProgress| slice.floor.is_some();
    heartbeat.slices.iter().filter(served).map(|slice| (heartbeat.node, slice.slice))
}
