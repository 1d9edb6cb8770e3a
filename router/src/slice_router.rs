//! Routes key-versions to the slices that own them.

use proto::model::ids::NodeId;
use proto::model::index::IndexInfo;
use proto::model::topology::{PartitionKey, TopologyProvider};
use proto::rpc::routing::{MutationRouter, Route};

/// The routing of mutations. Where an index is partitioned by id, a mutation concerns one slice; where
/// it is partitioned by expressions, the document may have been in any slice before, so every node
/// with a slice hears of it: the owner gets the entries, the others an empty state. A node has a slice here
/// from when a move's target catches up until a move's source is no longer read.
#[derive(Clone, Copy, Debug, Default)]
pub struct SliceRouter;

impl MutationRouter for SliceRouter {
    fn route(&self, node: NodeId, index: &IndexInfo, key: Option<PartitionKey<'_>>) -> Route {
        match key {
            Some(key @ PartitionKey::Id(_)) => {
                let slice = index.topology.partition(key);
                if index.feeds(node, slice) { Route::Owner(slice) } else { Route::Elsewhere }
            }
            Some(key) => {
                let slice = index.topology.partition(key);
                if index.feeds(node, slice) { Route::Owner(slice) } else { Route::EmptyState }
            }
            None => Route::EmptyState,
        }
    }

    fn concerns(&self, node: NodeId, index: &IndexInfo) -> bool {
        index.feeds_any(node)
    }
}
