//! Which processes belong to the cluster: they register, indexers are drained, and who is gone for good
//! is removed.
//!
//! A node that is drained gets no more slices; what it has is moved away by the leader, as moves. A node
//! that is removed loses its copies at once, without moves: so it must not have the only one of any slice.
//! Indexes that are not being built yet have nothing to be moved: their slices are just given to others.

use std::sync::Arc;

use proto::model::ids::{IndexId, NodeId};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::moves::{MoveStage, SliceMove};
use proto::model::node::{NodeInfo, Role};
use proto::rpc::command::Outcome;
use proto::{Error, ErrorCode, Result};

use super::context::StateContext;
use super::effect::{Change, Effect};
use super::placement::change_placement;
use crate::planner::{self, Load, replace_copy};

/// No address and no zone is longer.
const NAME_BYTES_MAX: usize = 255;

/// The places of an index's slices.
type Placement = Vec<Vec<NodeId>>;

impl StateContext {
    pub(super) fn register_node(&mut self, node: &NodeInfo) -> Change {
        let bad = |what: String| Err(Error::new(ErrorCode::InvalidParameter, what));
        if node.id.0 == 0 {
            return bad("node 0 does not exist".into());
        }
        let lengths = [node.address.len(), node.zone.len()];
        if node.address.is_empty() || lengths.iter().any(|len| *len > NAME_BYTES_MAX) {
            return bad(format!("node {}: the address or the zone has no valid length", node.id));
        }
        match self.nodes.get(&node.id) {
            Some(known) if known.role != node.role => {
                bad(format!("node {} is a {} already", node.id, known.role.name()))
            }
            Some(known) if **known == *node => Ok((Outcome::Done, Vec::new())),
            _ => {
                self.nodes.insert(node.id, Arc::new(node.clone()));
                Ok((Outcome::Done, vec![Effect::CatalogChanged]))
            }
        }
    }

    pub(super) fn drain_node(&mut self, node: NodeId, drain: bool) -> Change {
        let role = self.role_of(node)?;
        if role != Role::Indexer {
            let what = format!("node {node} is a {}; only indexers are drained", role.name());
            return Err(Error::new(ErrorCode::InvalidParameter, what));
        }
        if drain == self.draining.contains(&node) {
            return Ok((Outcome::Done, Vec::new()));
        }
        if drain {
            self.check_drain(node)?;
            self.draining.insert(node);
            self.undo_moves_to(node, "is being drained");
            self.place_unbuilt_elsewhere(node);
        } else {
            self.draining.remove(&node);
        }
        Ok((Outcome::Done, vec![Effect::CatalogChanged]))
    }

    /// Would there be a place for each copy that the node has?
    fn check_drain(&self, node: NodeId) -> Result<()> {
        let left: Vec<NodeId> = self.receiving_indexers().filter(|id| *id != node).collect();
        if left.is_empty() {
            let what = format!("node {node} is the last indexer that gets slices");
            return Err(Error::new(ErrorCode::InvalidParameter, what)
                .with_hint("start another indexer first, or stop draining one"));
        }
        let has_copies =
            |info: &IndexInfo| info.topology.placement.iter().any(|nodes| nodes.contains(&node));
        for info in self.indexes.values().map(|record| &record.info).filter(|info| has_copies(info))
        {
            planner::check_enough(info.spec.replicas, &left).map_err(|error| {
                Error { code: ErrorCode::InvalidParameter, ..error }
                    .context(format!("drain node {node}: index \"{}\"", info.spec.name))
            })?;
        }
        Ok(())
    }

    pub(super) fn remove_node(&mut self, node: NodeId) -> Change {
        let role = self.role_of(node)?;
        let refuse = |what: String, hint: &str| {
            Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(hint))
        };
        match role {
            Role::Coordinator => {
                let what = format!("node {node} is a coordinator");
                return refuse(what, "the coordinators are those that their settings name");
            }
            Role::Projector => {
                let kept = self.buckets.values().find(|bucket| bucket.info.homes.concerns(node));
                if let Some(bucket) = kept {
                    let what = format!("node {node} keeps bucket \"{}\"", bucket.info.name);
                    return refuse(
                        what,
                        "ALTER BUCKET … MOVE VBUCKET what it keeps elsewhere, or DROP BUCKET it",
                    );
                }
            }
            Role::Indexer => self.give_up_copies(node)?,
            Role::Router => {}
        }
        self.nodes.remove(&node);
        self.draining.remove(&node);
        Ok((Outcome::Done, vec![Effect::CatalogChanged]))
    }

    /// Takes a node out of all topologies and moves; all or nothing.
    fn give_up_copies(&mut self, node: NodeId) -> Result<()> {
        let mut loads = self.loads_without(node);
        let mut placements: Vec<(IndexId, Placement)> = Vec::new();
        for (id, record) in &self.indexes {
            placements.extend(placement_without(&record.info, node, &mut loads)?.map(|p| (*id, p)));
        }
        self.undo_moves_to(node, "was removed");
        let ids: Vec<IndexId> = self.indexes.keys().copied().collect();
        let left = |m: &SliceMove| m.stage == MoveStage::Done && m.from == Some(node);
        for id in ids {
            self.end_moves(id, None, left);
            if self.indexes[&id].info.moves.iter().any(|m| m.from == Some(node)) {
                self.change_index(id, |info| {
                    // The target's copy is one more then; another copy is its source.
                    let leaves = |m: &&mut SliceMove| m.from == Some(node);
                    info.moves.iter_mut().filter(leaves).for_each(|m| m.from = None);
                });
            }
        }
        for (id, placement) in placements {
            self.change_index(id, |info| change_placement(info, placement));
        }
        Ok(())
    }

    fn undo_moves_to(&mut self, node: NodeId, why: &str) {
        let why = format!("node {node}, the target, {why}");
        let ids: Vec<IndexId> = self.indexes.keys().copied().collect();
        let goes_there = |m: &SliceMove| m.stage < MoveStage::Done && m.to == Some(node);
        for id in ids {
            self.end_moves(id, Some(&why), goes_there);
        }
    }

    /// Gives the slices of indexes that nobody builds yet to other nodes.
    fn place_unbuilt_elsewhere(&mut self, node: NodeId) {
        let mut loads = self.loads_without(node);
        let ids: Vec<IndexId> = self.indexes.keys().copied().collect();
        for id in ids {
            let info = &self.indexes[&id].info;
            let unbuilt = info.state == IndexState::Pending;
            // It may stay where nobody else can have it.
            let placement = Some(info)
                .filter(|_| unbuilt)
                .and_then(|info| placement_without(info, node, &mut loads).ok().flatten());
            if let Some(placement) = placement {
                self.change_index(id, |info| change_placement(info, placement));
            }
        }
    }

    fn loads_without(&self, node: NodeId) -> Vec<Load> {
        self.indexer_loads().into_iter().filter(|load| load.node != node).collect()
    }

    fn change_index(&mut self, id: IndexId, change: impl FnOnce(&mut IndexInfo)) {
        if let Some(record) = self.indexes.get_mut(&id) {
            record.change(self.position, self.unix_ms, change);
        }
    }
}

/// The places of an index's slices without a node, if it has any of them. Only slices that are not being
/// built can be given to another node at once.
fn placement_without(
    info: &IndexInfo,
    node: NodeId,
    loads: &mut [Load],
) -> Result<Option<Placement>> {
    if !info.topology.placement.iter().any(|copies| copies.contains(&node)) {
        return Ok(None);
    }
    let mut placement = info.topology.placement.clone();
    for (slice, copies) in placement.iter_mut().enumerate() {
        if !copies.contains(&node) {
            continue;
        }
        let unbuilt = info.state == IndexState::Pending;
        let others: Vec<NodeId> = copies.iter().copied().filter(|copy| *copy != node).collect();
        let to = if unbuilt { planner::choose(&others, loads) } else { None };
        if to.is_none() && others.is_empty() {
            let what = format!(
                "node {node} has the only copy of slice {slice} of index \"{}\"",
                info.spec.name
            );
            return Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(
                "DRAIN NODE it first; if it is gone for good, DROP INDEX and make it again",
            ));
        }
        replace_copy(copies, Some(node), to);
    }
    Ok(Some(placement))
}

#[cfg(test)]
#[path = "nodes_tests.rs"]
mod tests;
