//! Slices that no node can answer. A node is given up only if two parties have lost it: the coordinator's leader hears no
//! heartbeat, and the router's own connection to it is broken. A node that only one of them reaches may still serve.

use proto::model::ids::{NodeId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::topology::TopologyProvider;
use proto::{Error, Result};

use crate::context::RouterContext;

/// The number of nodes that an error names.
const NODES_NAMED_MAX: usize = 4;

/// Checks that each of some slices has a copy on a node that may answer. The error names index, slice and nodes.
pub(crate) fn check_reachable(
    context: &RouterContext,
    index: &IndexInfo,
    slices: &[SliceNo],
) -> Result<()> {
    // Almost always nobody is silent, and the check costs nothing.
    if context.silent.borrow().is_empty() {
        return Ok(());
    }
    let silent = context.silent.borrow().clone();
    let catalog = context.catalog.load();
    // A scan may have begun before its slices moved.
    let newest = catalog.local_index(index.local_id());
    let copies = |slice: SliceNo| {
        let mut nodes = context.applied.known_copies(index, slice);
        nodes.extend(newest.iter().flat_map(|newest| newest.topology.replicas(slice)));
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    };
    let is_lost = |node: &NodeId| silent.contains(node) && !context.applied.is_connected(*node);
    let lost = |slice: &SliceNo| {
        let nodes = copies(*slice);
        (!nodes.is_empty() && nodes.iter().all(is_lost)).then_some((*slice, nodes))
    };
    let lost: Vec<_> = slices.iter().filter_map(lost).collect();
    let Some((slice, nodes)) = lost.first() else { return Ok(()) };
    let more = match lost.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = |id: &NodeId| match catalog.nodes.get(id) {
        Some(node) => format!("node {id} ({})", node.address),
        None => format!("node {id}"),
    };
    let names: Vec<String> = nodes.iter().take(NODES_NAMED_MAX).map(named).collect();
    let are = if nodes.len() == 1 { "is" } else { "are" };
    let what = format!(
        "index \"{}\": slice {slice}{more} cannot be read: {} {are} silent",
        index.spec.name,
        names.join(", ")
    );
    Err(Error::unavailable(what).with_hint(
        "start the node again; SHOW NODES and SHOW SLICES show which nodes are missing and what they have",
    ))
}
