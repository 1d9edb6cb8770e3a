//! Routing of mutations: the slices of a node that receive a document's key-versions.

use crate::model::ids::{NodeId, SliceNo};
use crate::model::index::IndexInfo;
use crate::model::topology::PartitionKey;

/// The destination of a document's state in one index, on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// No slice of the node can hold anything of the document: nothing is sent.
    Elsewhere,
    /// The node keeps this slice, and it owns the document's entries.
    Owner(SliceNo),
    /// The node keeps slices that may have held the document before: they get the empty state.
    EmptyState,
}

/// Routes key-versions to the slices that own them. The projector calls it for each document, index and node; it never reads
/// a topology itself.
pub trait MutationRouter: Send + Sync + 'static {
    /// Returns the destination of a document's state in `index` on `node`. For an index that is partitioned by expressions,
    /// `key` is `None` if the document has no entry in the index. A document is routed before its entries are known, so a
    /// node that does not own the slice of a key gets at least the states that it gets without a key. An empty state too
    /// many does no harm.
    fn route(&self, node: NodeId, index: &IndexInfo, key: Option<PartitionKey<'_>>) -> Route;

    /// True if the node keeps any slice of the index.
    fn concerns(&self, node: NodeId, index: &IndexInfo) -> bool;
}
