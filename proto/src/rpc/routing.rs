//! Routing of mutations: the slices of a node that receive a document's key-versions.

use crate::model::ids::{NodeId, SliceNo};
use crate::model::index::IndexInfo;
use crate::model::topology::PartitionKey;

/// The destination of a document's state in one index, among the slices of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// None: no slice of the node can have entries of the document, so no state is sent.
    Elsewhere,
    /// This slice of the node, which owns the document's entries.
    Owner(SliceNo),
    /// All slices of the node that may have had the document before: the empty state is sent.
    EmptyState,
}

/// A router of key-versions to the slices that own them. The projector calls it for each document,
/// index and node, and never reads a topology itself.
pub trait MutationRouter: Send + Sync + 'static {
    /// Returns the destination of a document's state in `index` on `node`. `key` is `None` if the
    /// index is partitioned by expressions and the document has no entry in it. A document is
    /// routed before its entries are known, so a node that does not own the key's slice gets at
    /// least the states that a call without a key gives. A superfluous empty state does no harm.
    fn route(&self, node: NodeId, index: &IndexInfo, key: Option<PartitionKey<'_>>) -> Route;

    /// True if the node has a slice of the index.
    fn concerns(&self, node: NodeId, index: &IndexInfo) -> bool;
}
