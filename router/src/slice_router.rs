//! Routes mutations to the slices that own their key-versions.

use proto::model::ids::NodeId;
use proto::model::index::IndexInfo;
use proto::model::topology::PartitionKey;
use proto::rpc::routing::{MutationRouter, Route};

/// Routes mutations to slices.
///
/// If an index is partitioned by document id, a mutation concerns one slice. If it is partitioned by expressions, the
/// document may have been in any slice before. So every node with a slice gets the mutation: the owner gets the
/// entries, all others an empty state that removes old entries. A node counts as having a slice from a move's catch-up
/// at the target until the source is no longer read.
#[derive(Clone, Copy, Debug, Default)]
pub struct SliceRouter;

impl MutationRouter for SliceRouter {
    fn route(&self, node: NodeId, index: &IndexInfo, key: Option<PartitionKey<'_>>) -> Route {
        match key {
            Some(key @ PartitionKey::Id(_)) => {
                let slice = index.slice_of(key);
                if index.feeds(node, slice) { Route::Owner(slice) } else { Route::Elsewhere }
            }
            Some(key) => {
                let slice = index.slice_of(key);
                if index.feeds(node, slice) { Route::Owner(slice) } else { Route::EmptyState }
            }
            None => Route::EmptyState,
        }
    }

    fn concerns(&self, node: NodeId, index: &IndexInfo) -> bool {
        index.feeds_any(node)
    }
}
