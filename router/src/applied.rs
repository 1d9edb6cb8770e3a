//! What each indexer has applied and which slices it can read: told by the indexers themselves, so that
//! scans go on when no coordinator answers. A node whose stream broke is not counted until it is back.

use std::collections::BTreeMap;
use std::sync::Arc;

use dashmap::DashMap;
use proto::ids::{BucketId, Epoch, NodeId, SliceId, SliceNo};
use proto::index::IndexInfo;
use proto::scan::AppliedReport;
use proto::topology::TopologyProvider;
use tokio::sync::watch;

/// What the indexers have.
#[derive(Clone)]
pub struct Applied {
    nodes: Arc<DashMap<NodeId, NodeApplied>>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct NodeApplied {
    applied: BTreeMap<BucketId, Epoch>,
    readable: BTreeMap<SliceId, Epoch>,
}

impl Default for Applied {
    fn default() -> Self {
        Self { nodes: Arc::default(), changed: watch::Sender::new(0) }
    }
}

impl Applied {
    /// Takes in what a node says.
    pub fn report(&self, report: AppliedReport) {
        let mut node = self.nodes.entry(report.node).or_default();
        node.applied.extend(report.applied);
        if let Some(readable) = report.readable {
            node.readable = readable.into_iter().collect();
        }
        drop(node);
        self.changed.send_modify(|count| *count += 1);
    }

    /// A node cannot be reached.
    pub fn lost(&self, node: NodeId) {
        self.nodes.remove(&node);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Tells of each change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The newest epoch that every slice of an index can answer now.
    pub fn newest_common(&self, index: &IndexInfo) -> Option<Epoch> {
        let newest = |slice: SliceNo| {
            let here = |node: &NodeId| {
                let node = self.nodes.get(node)?;
                let floor = node.readable.get(&slice_id(index, slice))?;
                node.applied.get(&index.bucket).filter(|applied| *applied >= floor).copied()
            };
            index.topology.replicas(slice).iter().filter_map(here).max()
        };
        let slices = (0..index.topology.slices()).map(SliceNo);
        let newest: Option<Vec<Epoch>> = slices.map(newest).collect();
        newest?.into_iter().min()
    }

    /// The replicas of a slice that may be asked for an epoch: those that have applied it first, in
    /// the order of the topology, then those that will; a node that is not connected comes last.
    pub fn candidates(&self, index: &IndexInfo, slice: SliceNo, epoch: Epoch) -> Vec<NodeId> {
        let mut candidates: Vec<NodeId> = index.topology.replicas(slice).to_vec();
        candidates.sort_by_key(|node| match self.nodes.get(node) {
            Some(node) => {
                let floor = node.readable.get(&slice_id(index, slice));
                let applied = node.applied.get(&index.bucket);
                match (floor, applied) {
                    (Some(floor), Some(applied)) if *floor <= epoch && epoch <= *applied => 0,
                    (Some(floor), _) if *floor <= epoch => 1,
                    _ => 2,
                }
            }
            None => 3,
        });
        candidates
    }
}

fn slice_id(index: &IndexInfo, slice: SliceNo) -> SliceId {
    SliceId { index: index.id, generation: index.generation, slice }
}
