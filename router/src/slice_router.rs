//! Routes mutations to the slices that own their key-versions.

use proto::model::ids::NodeId;
use proto::model::index::IndexInfo;
use proto::model::topology::PartitionKey;
use proto::rpc::routing::{MutationRouter, Route};

/// The function that routes mutations to slices.
///
/// In an index that is partitioned by document id, a mutation concerns one slice. In an index that
/// is partitioned by expressions, the document may have been in any slice before. So every node
/// with a slice gets the mutation: the owner of the new slice gets the entries, all other nodes an
/// empty state that removes old entries. During a move, the target counts as having the slice from
/// the catch-up on, and the source as long as it is read.
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
