//! Detection of slices that no node can answer. A node counts as lost only if two observers agree:
//! the coordinator's leader receives no heartbeat from it, and the router's connection to it is
//! broken. A node that one of the two can reach may still serve. A slice that was lost on all
//! nodes, and that one node rebuilds from the documents, becomes readable when the rebuild ends.

use proto::model::catalog::Catalog;
use proto::model::ids::{NodeId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::topology::TopologyProvider;
use proto::{Error, Result};

use crate::context::RouterContext;

/// The maximum number of nodes in an error message.
const NODES_NAMED_MAX: usize = 4;

/// Slices that no node can answer now.
pub(crate) struct UnreachableSlices {
    /// The error for a scan that needs these slices.
    pub error: Error,
    /// True if all of these slices are being rebuilt, so they may be readable soon.
    pub is_rebuilt: bool,
}

/// Returns an error if one of the slices has no copy on a node that may answer. The error names
/// index, slice and nodes.
pub(crate) fn check_reachable(
    context: &RouterContext,
    index: &IndexInfo,
    slices: &[SliceNo],
) -> Result<()> {
    find_unreachable(context, index, slices).map_or(Ok(()), |unreachable| Err(unreachable.error))
}

/// Finds the slices without a copy on a node that may answer; `None` if there are none.
pub(crate) fn find_unreachable(
    context: &RouterContext,
    index: &IndexInfo,
    slices: &[SliceNo],
) -> Option<UnreachableSlices> {
    // Almost always no node is silent and no slice is rebuilt, so this check is cheap.
    if context.silent.borrow().is_empty() && !context.applied.has_rebuilds() {
        return None;
    }
    let silent = context.silent.borrow().clone();
    let catalog = context.catalog.load();
    let is_silent = |node: &NodeId| silent.contains(node) && !context.applied.is_connected(*node);
    let mut lost: Vec<LostSlice> = Vec::new();
    for slice in slices {
        let nodes = possible_copies(context, &catalog, index, *slice);
        let rebuilds = |node: &&NodeId| context.applied.is_being_rebuilt(**node, index, *slice);
        let rebuilt_on = nodes.iter().find(rebuilds).copied();
        if !nodes.is_empty() && nodes.iter().all(|node| is_silent(node) || rebuilds(&node)) {
            lost.push(LostSlice { slice: *slice, nodes, rebuilt_on });
        }
    }
    // A slice that no node rebuilds is named first, since it does not return by itself.
    let worst = lost.iter().min_by_key(|lost| lost.rebuilt_on.is_some())?;
    Some(describe_lost(&catalog, index, worst, lost.len() - 1))
}

/// A slice whose copies are all on lost nodes or being rebuilt.
struct LostSlice {
    slice: SliceNo,
    nodes: Vec<NodeId>,
    rebuilt_on: Option<NodeId>,
}

/// Returns the nodes that may have a slice.
fn possible_copies(
    context: &RouterContext,
    catalog: &Catalog,
    index: &IndexInfo,
    slice: SliceNo,
) -> Vec<NodeId> {
    let mut nodes = context.applied.known_copies(index, slice);
    // A scan may have begun before its slices moved.
    let newest = catalog.local_index(index.local_id());
    nodes.extend(newest.iter().flat_map(|newest| newest.topology.replicas(slice)));
    // A node that was removed does not come back with the slice.
    nodes.retain(|node| catalog.nodes.contains_key(node) || context.applied.is_connected(*node));
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Makes the error of a lost slice; `more` is the number of further lost slices.
fn describe_lost(
    catalog: &Catalog,
    index: &IndexInfo,
    lost: &LostSlice,
    more: usize,
) -> UnreachableSlices {
    let LostSlice { slice, nodes, rebuilt_on } = lost;
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = |id: &NodeId| match catalog.nodes.get(id) {
        Some(node) => format!("node {id} ({})", node.address),
        None => format!("node {id}"),
    };
    let what = format!("index \"{}\": slice {slice}{more} cannot be read", index.spec.name);
    if let Some(node) = rebuilt_on {
        let why = format!("{} rebuilds it from the documents, since no node has it", named(node));
        let error = Error::unavailable(format!("{what}: {why}"))
            .with_hint("try again later; SHOW SLICES shows how far the rebuild is");
        return UnreachableSlices { error, is_rebuilt: true };
    }
    let names: Vec<String> = nodes.iter().take(NODES_NAMED_MAX).map(named).collect();
    let are = if nodes.len() == 1 { "is" } else { "are" };
    let error = Error::unavailable(format!("{what}: {} {are} silent", names.join(", "))).with_hint(
        "start the node again, or REMOVE NODE … FORCE if its data is lost for good; SHOW NODES and SHOW SLICES show which \
         nodes are missing and what they have",
    );
    UnreachableSlices { error, is_rebuilt: false }
}
