//! Inward: takes key-versions to the slices that own them.

use proto::ids::NodeId;
use proto::index::IndexInfo;
use proto::topology::{MutationRouter, PartitionKey, Route, TopologyProvider};

/// The routing of mutations. Where an index is partitioned by id, a mutation concerns one slice; where
/// it is partitioned by expressions, the document may have been in any slice before, so every node
/// with a slice hears of it: the owner gets the entries, the others an empty state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inward;

impl MutationRouter for Inward {
    fn route(&self, node: NodeId, index: &IndexInfo, key: Option<PartitionKey<'_>>) -> Route {
        let topology = &index.topology;
        match key {
            Some(key @ PartitionKey::Id(_)) => {
                let slice = topology.partition(key);
                if topology.hosts(node, slice) { Route::Owner(slice) } else { Route::Elsewhere }
            }
            Some(key) => {
                let slice = topology.partition(key);
                if topology.hosts(node, slice) { Route::Owner(slice) } else { Route::EmptyState }
            }
            None => Route::EmptyState,
        }
    }

    fn concerns(&self, node: NodeId, index: &IndexInfo) -> bool {
        index.topology.placement.iter().flatten().any(|host| *host == node)
    }
}
