//! Routing of mutations: which slice of a node gets a document's entries in an index.

use crate::model::ids::{NodeId, SliceNo};
use crate::model::index::IndexInfo;
use crate::model::topology::PartitionKey;

/// The slices of a node to which the list of a document's entries in one index is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// None: no slice of the node can have entries of the document.
    Elsewhere,
    /// This slice of the node, to which the document's entries belong.
    Owner(SliceNo),
    /// All slices of the node that may have had entries of the document. The list that is sent is
    /// empty.
    EmptyState,
}

/// The rule that determines the slices for a document's entries. The projector calls it for each
/// document, index and node, and never reads a topology itself.
pub trait MutationRouter: Send + Sync + 'static {
    /// Returns the slices of `node` to which a document's entries in `index` are sent. `key` is
    /// `None` if the index is partitioned by expressions and has no entry of the document. The
    /// call may be made before the entries are known. So for a node without the slice of `key`,
    /// the result sends at least the empty lists that a call without a key would send. A
    /// superfluous empty list does no harm.
    fn route(&self, node: NodeId, index: &IndexInfo, key: Option<PartitionKey<'_>>) -> Route;

    /// Returns true if the node has a slice of the index.
    fn concerns(&self, node: NodeId, index: &IndexInfo) -> bool;
}
