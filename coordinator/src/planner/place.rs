//! Places the slices of a new index: a pure choice from the current load of the nodes.
//!
//! Slice by slice and copy by copy, the next copy goes to the node with the fewest copies; to a silent node only if every other node
//! has a copy. Copies of one slice never share a node, and share a zone only if there are too few zones. First copies, which normally answer scans, are
//! spread by their own count, so that scans of a cluster with replicas do not all hit the same few nodes.

use std::collections::BTreeSet;

use proto::model::ids::NodeId;
use proto::{Error, ErrorCode, Result};

/// A node and its load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLoad {
    /// The id of the node.
    pub node: NodeId,
    /// The zone of the node. A node without a zone name counts as a separate zone.
    pub zone: String,
    /// The number of copies on the node.
    pub copies: usize,
    /// The number of first copies on the node.
    pub first_copies: usize,
    /// True if the leader has received no heartbeat of the node for some seconds.
    pub is_silent: bool,
}

/// Chooses the nodes of each slice of a new index; returns them by slice. The first node in the
/// list of a slice has the first copy, which normally answers scans. Returns an error if there
/// are too few nodes.
pub fn place_slices(slices: u16, replicas: u8, loads: &[NodeLoad]) -> Result<Vec<Vec<NodeId>>> {
    let nodes: Vec<NodeId> = loads.iter().map(|load| load.node).collect();
    check_enough(replicas, &nodes)?;
    let mut loads = loads.to_vec();
    let mut placement = Vec::with_capacity(usize::from(slices));
    for _ in 0..slices {
        let mut chosen = Vec::with_capacity(usize::from(replicas) + 1);
        for _ in 0..=replicas {
            let next = choose_node(&chosen, &mut loads);
            chosen.extend(next);
        }
        placement.push(chosen);
    }
    Ok(placement)
}

/// Checks that there are enough nodes for the copies of a slice.
pub fn check_enough(replicas: u8, nodes: &[NodeId]) -> Result<()> {
    let copies = usize::from(replicas) + 1;
    if nodes.len() >= copies {
        return Ok(());
    }
    let there: Vec<String> = nodes.iter().map(NodeId::to_string).collect();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    let what = format!(
        "replicas = {replicas} needs {copies} indexers; indexers that receive slices: {there}"
    );
    Err(Error::new(ErrorCode::Unavailable, what)
        .with_hint("start more indexers, or ask for fewer replicas"))
}

/// Chooses the node of one more copy and counts it there; `None` if every node has a copy.
pub fn choose_node(copies: &[NodeId], loads: &mut [NodeLoad]) -> Option<NodeId> {
    let hosts = loads.iter().filter(|load| copies.contains(&load.node));
    let zones: BTreeSet<String> =
        hosts.map(|load| load.zone.clone()).filter(|zone| !zone.is_empty()).collect();
    let first = copies.is_empty();
    let best = loads.iter_mut().filter(|load| !copies.contains(&load.node)).min_by_key(|load| {
        let spread = if first { load.first_copies } else { 0 };
        (load.is_silent, zones.contains(&load.zone), spread, load.copies, load.node)
    })?;
    best.copies += 1;
    best.first_copies += usize::from(first);
    Some(best.node)
}

/// Replaces `from` by `to` in the nodes of a slice. Without `from`, adds `to`; without `to`,
/// removes `from`. A node that is in the list already is not added again.
pub fn replace_copy(copies: &mut Vec<NodeId>, from: Option<NodeId>, to: Option<NodeId>) {
    let place = copies.iter().position(|node| Some(*node) == from);
    let to = to.filter(|to| !copies.contains(to));
    match (place, to) {
        (Some(place), Some(to)) => copies[place] = to,
        (Some(place), None) => {
            copies.remove(place);
        }
        (None, Some(to)) => copies.push(to),
        (None, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn node(id: u64, zone: &str) -> NodeLoad {
        let zone = zone.to_owned();
        NodeLoad { node: NodeId(id), zone, copies: 0, first_copies: 0, is_silent: false }
    }

    fn counts(placement: &[Vec<NodeId>]) -> BTreeMap<NodeId, (usize, usize)> {
        let mut counts = BTreeMap::new();
        for nodes in placement {
            for (n, node) in nodes.iter().enumerate() {
                let count: &mut (usize, usize) = counts.entry(*node).or_default();
                count.0 += 1;
                count.1 += usize::from(n == 0);
            }
        }
        counts
    }

    #[test]
    fn slices_and_first_copies_are_spread_evenly() {
        let nodes: Vec<NodeLoad> = (1..=4).map(|id| node(id, "")).collect();
        let placement = place_slices(8, 1, &nodes).unwrap();
        assert_eq!(placement.len(), 8);
        assert!(placement.iter().all(|nodes| nodes.len() == 2 && nodes[0] != nodes[1]));
        assert!(counts(&placement).values().all(|(all, first)| (*all, *first) == (4, 2)));
    }

    #[test]
    fn copies_of_a_slice_are_in_different_zones_while_there_are_enough() {
        let nodes = [node(1, "a"), node(2, "a"), node(3, "b"), node(4, "b")];
        let zone = |id: &NodeId| nodes[id.0 as usize - 1].zone.clone();
        for copies in place_slices(6, 1, &nodes).unwrap() {
            assert_ne!(zone(&copies[0]), zone(&copies[1]));
        }
        for copies in place_slices(6, 2, &nodes).unwrap() {
            assert_eq!(copies.iter().collect::<BTreeSet<_>>().len(), 3, "never twice on one node");
        }
    }

    #[test]
    fn a_node_with_many_copies_receives_fewer() {
        let mut nodes: Vec<NodeLoad> = (1..=2).map(|id| node(id, "")).collect();
        (nodes[0].copies, nodes[0].first_copies) = (6, 6);
        let placement = place_slices(4, 0, &nodes).unwrap();
        assert_eq!(counts(&placement).get(&NodeId(1)), None);
    }

    #[test]
    fn silent_nodes_receive_only_what_no_other_node_can_take() {
        let mut nodes: Vec<NodeLoad> = (1..=4).map(|id| node(id, "")).collect();
        (nodes[0].is_silent, nodes[1].is_silent) = (true, true);
        let placement = place_slices(8, 1, &nodes).unwrap();
        assert!(placement.iter().flatten().all(|node| node.0 >= 3), "{placement:?}");
        nodes[2].is_silent = true;
        for copies in place_slices(8, 1, &nodes).unwrap() {
            assert!(copies.contains(&NodeId(4)), "each slice can be built: {copies:?}");
        }
    }

    #[test]
    fn too_few_nodes_are_an_error_that_lists_the_nodes() {
        let error = place_slices(1, 1, &[node(7, "")]).unwrap_err();
        assert!(
            error.message.contains("needs 2 indexers; indexers that receive slices: 7"),
            "{error}"
        );
    }

    #[test]
    fn a_copy_is_replaced_in_place_or_added_or_removed() {
        let changed = |from: u64, to: u64| {
            let mut copies = [1, 2, 3].map(NodeId).to_vec();
            let node = |id: u64| Some(NodeId(id)).filter(|node| node.0 > 0);
            replace_copy(&mut copies, node(from), node(to));
            copies.into_iter().map(|node| node.0).collect::<Vec<_>>()
        };
        assert_eq!(changed(2, 9), [1, 9, 3]);
        assert_eq!(changed(0, 9), [1, 2, 3, 9]);
        assert_eq!(changed(1, 0), [2, 3]);
        assert_eq!(changed(1, 3), [2, 3], "never twice");
        assert_eq!(changed(7, 9), [1, 2, 3, 9], "the copy to remove is removed");
    }
}
