//! Routing of mutations: which slices of which node a projector's key-versions are for.

use crate::model::ids::{NodeId, SliceNo};
use crate::model::index::IndexInfo;
use crate::model::topology::PartitionKey;

/// Where a document's state in one index goes, on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// No slice of the node can hold anything of the document: nothing is sent.
    Elsewhere,
    /// The node keeps this slice, and it owns the document's entries.
    Owner(SliceNo),
    /// The node keeps slices that may have held the document before: they get the empty state.
    EmptyState,
}

/// The router, inward: takes key-versions to the slices that own them. The projector asks it for each
/// document, index and node; it never looks at a topology itself.
pub trait MutationRouter: Send + Sync + 'static {
    /// Where the state of a document in `index` goes on `node`. For an index that is partitioned by
    /// expressions, `key` is `None` when the document has no entry in the index.
    fn route(&self, node: NodeId, index: &IndexInfo, key: Option<PartitionKey<'_>>) -> Route;

    /// Does the node keep any slice of the index?
    fn concerns(&self, node: NodeId, index: &IndexInfo) -> bool;
}
