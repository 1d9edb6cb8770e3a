//! The rule that decides which nodes get a document's mutation, for each index.

use proto::model::ids::NodeId;
use proto::model::index::IndexInfo;
use proto::model::topology::PartitionKey;
use proto::rpc::routing::{MutationRouter, Route};

/// The function that routes mutations to slices.
///
/// In an index that is partitioned by document id, a mutation concerns one slice. In an index that
/// is partitioned by expressions, the document may have been in any slice before. So every node
/// with a slice gets the mutation: the node with the new slice gets the entries, and all other
/// nodes get an empty list of entries, which removes old entries. During a move, the target counts
/// as having the slice from the catch-up on, and the source as long as it is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct SliceRouter;

impl MutationRouter for SliceRouter {
    /// Returns what a node gets of a mutation for an index: everything, or only an empty list of
    /// entries, or nothing.
    fn route(&self, node: NodeId, index: &IndexInfo, key: Option<PartitionKey<'_>>) -> Route {
        match key {
            Some(key @ PartitionKey::Id(_)) => {
                let slice = index.slice_of(key);
                if index.is_fed(node, slice) { Route::Owner(slice) } else { Route::Elsewhere }
            }
            Some(key) => {
                let slice = index.slice_of(key);
                if index.is_fed(node, slice) { Route::Owner(slice) } else { Route::EmptyState }
            }
            None => Route::EmptyState,
        }
    }

    fn concerns(&self, node: NodeId, index: &IndexInfo) -> bool {
        index.is_fed_any(node)
    }
}
