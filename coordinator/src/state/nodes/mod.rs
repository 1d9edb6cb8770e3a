//! The nodes of the cluster: registration, draining of indexers, and removal.
//!
//! A draining node receives no more slices, and the leader moves its slices away. A removed node loses its copies at
//! once, without moves, so it must not have the only copy of any slice, unless the removal is forced: then another node
//! rebuilds the slice (see `lost`). Indexes that are not being built yet have nothing to move: their slices are simply assigned to
//! other nodes.

pub mod coordinators;
pub mod lost;

use std::sync::Arc;

use proto::client::of_another_cluster;
use proto::model::bucket::SourceKind;
use proto::model::identity::{JoinRequest, NodeProof};
use proto::model::ids::{LocalIndexId, NodeId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::moves::{MoveStage, SliceMove};
use proto::model::node::{NodeInfo, Role};
use proto::plant::{self, Plant};
use proto::rpc::command::{DrainNode, Join, Outcome, PlaceLost, RegisterNode, RemoveNode};
use proto::{Error, ErrorCode, Result};

use crate::planner::{self, replace_copy};
use crate::state::capacity::limits::REMOVED_NODES_MAX;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect};
use crate::state::indexes::placement::{Placement, change_placement};
use crate::state::nodes::lost::{Heirs, no_heir};

/// The error of a second process under the number of a node.
pub(crate) fn taken(node: NodeId, known: Option<&Arc<NodeInfo>>) -> Error {
    let at = known.map_or_else(String::new, |known| format!(" at {}", known.address));
    let what = format!("node {node} is another process{at}, with another data directory");
    Error::new(ErrorCode::NodeTaken, what).with_hint(
        "give each process its own --id; a process that lost its directory takes the number over once the old one \
         has been silent for some seconds, or after REMOVE NODE",
    )
}

/// The length limit of an address and of a zone.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// The fate of slices that are on a removed indexer alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::state) enum Removal {
    /// The indexer is not removed.
    Kept,
    /// Other indexers rebuild the slices.
    Forced,
}

impl Apply for RegisterNode {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.register_unproven(&self.node)
    }
}

impl Apply for Join {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        state.join(&self.request, decided.replaces)
    }
}

impl Apply for DrainNode {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        state.drain_node(self.node, self.drain, &decided.silent)
    }
}

impl Apply for RemoveNode {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let removal = if self.force { Removal::Forced } else { Removal::Kept };
        state.remove_node(self.node, removal, &decided.silent)
    }
}

impl Apply for PlaceLost {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        state.place_lost(&self.lost, &self.lost_to_builds, &decided.silent)
    }
}

impl StateContext {
    /// Registers a process without a data directory.
    pub(in crate::state) fn register_unproven(&mut self, node: &NodeInfo) -> Change {
        match self.proofs.contains_key(&node.id) {
            true => Err(taken(node.id, self.nodes.get(&node.id))),
            false => self.register_node(node),
        }
    }

    /// Registers a process with a data directory. The first one gives the cluster its id.
    pub(in crate::state) fn join(
        &mut self,
        request: &JoinRequest,
        replaces: Option<NodeProof>,
    ) -> Change {
        let JoinRequest { node, proof, .. } = request;
        if let Some(own) = request.cluster.filter(|own| self.cluster != Some(*own)) {
            let whose = format!("the data directory of {} {}", node.role.name(), node.id);
            return Err(of_another_cluster(&whose, own, self.cluster));
        }
        let known = self.proofs.get(&node.id);
        if known.is_some_and(|known| known != proof && replaces != Some(*known)) {
            return Err(taken(node.id, self.nodes.get(&node.id)));
        }
        let is_same = known == Some(proof);
        let (_, mut effects) = self.register_node(node)?;
        let cluster = *self.cluster.get_or_insert(request.fresh);
        self.proofs.insert(node.id, *proof);
        if !is_same && effects.is_empty() {
            effects.push(Effect::CatalogChanged);
        }
        Ok((Outcome::Joined(cluster), effects))
    }

    fn register_node(&mut self, node: &NodeInfo) -> Change {
        let bad = |what: String| Err(Error::new(ErrorCode::InvalidParameter, what));
        if node.id.0 == 0 {
            return bad("0 is not a valid node id".into());
        }
        let lengths = [node.address.len(), node.zone.len()];
        if node.address.is_empty() || lengths.iter().any(|len| *len > NAME_BYTES_MAX) {
            return bad(format!(
                "node {}: the address is empty, or the address or the zone is too long",
                node.id
            ));
        }
        let was = self.removed.iter().find(|removed| removed.id == node.id);
        if node.role == Role::Coordinator && was.is_some_and(|was| was.role == node.role) {
            return bad(format!("coordinator {} was removed", node.id));
        }
        match self.nodes.get(&node.id) {
            Some(known) if known.role != node.role => {
                bad(format!("node {} is registered as a {}", node.id, known.role.name()))
            }
            Some(known) if **known == *node => Ok((Outcome::Done, Vec::new())),
            known => {
                if known.is_none() {
                    self.check_room_for_node()?;
                }
                self.removed.retain(|removed| removed.id != node.id);
                self.nodes.insert(node.id, Arc::new(node.clone()));
                if plant::is(Plant::PartitionsMoved) && node.role == Role::Projector {
                    let versions = self.data_sets.values_mut().flat_map(|set| &mut set.versions);
                    versions.for_each(|(_, version)| version.nodes.push(node.id));
                }
                Ok((Outcome::Done, vec![Effect::CatalogChanged]))
            }
        }
    }

    pub(in crate::state) fn drain_node(
        &mut self,
        node: NodeId,
        drain: bool,
        silent: &[NodeId],
    ) -> Change {
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
            self.place_unbuilt_elsewhere(node, silent);
        } else {
            self.draining.remove(&node);
        }
        Ok((Outcome::Done, vec![Effect::CatalogChanged]))
    }

    /// Checks that there is room elsewhere for each copy on the node.
    fn check_drain(&self, node: NodeId) -> Result<()> {
        let left: Vec<NodeId> = self.receiving_indexers().filter(|id| *id != node).collect();
        if left.is_empty() {
            let what = format!("node {node} is the last indexer that receives slices");
            return Err(Error::new(ErrorCode::InvalidParameter, what)
                .with_hint("start another indexer first, or stop draining one"));
        }
        let has_copies =
            |info: &IndexInfo| info.topology.placement.iter().any(|nodes| nodes.contains(&node));
        for info in self.indexes().map(|record| &record.info).filter(|info| has_copies(info)) {
            planner::check_enough(info.spec.replicas, &left).map_err(|error| {
                Error { code: ErrorCode::InvalidParameter, ..error }
                    .context(format!("drain node {node}: index \"{}\"", info.spec.name))
            })?;
        }
        Ok(())
    }

    pub(in crate::state) fn remove_node(
        &mut self,
        node: NodeId,
        removal: Removal,
        silent: &[NodeId],
    ) -> Change {
        let role = self.role_of(node)?;
        let refuse = |what: String, hint: &str| {
            Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(hint))
        };
        match role {
            Role::Coordinator => {
                let what = format!("node {node} is a coordinator");
                return refuse(what, "use REMOVE COORDINATOR");
            }
            Role::Projector => self.remove_projector(node).map_err(|error| match removal {
                Removal::Kept => error,
                Removal::Forced => documents_stay(error),
            })?,
            Role::Indexer => self.remove_copies(node, removal, silent)?,
            Role::Router => {}
        }
        if let Some(info) = self.nodes.remove(&node) {
            self.note_removed(info);
        }
        self.proofs.remove(&node);
        self.draining.remove(&node);
        Ok((Outcome::Done, vec![Effect::CatalogChanged]))
    }

    /// Removes a projector from the copies of embedded buckets, or changes nothing.
    fn remove_projector(&mut self, node: NodeId) -> Result<()> {
        self.check_copies_without(node)?;
        self.check_versions_without(node)?;
        let last = self.nodes.values().filter(|other| other.role == Role::Projector).count() == 1;
        let stays = |kind: SourceKind| kind != SourceKind::Files || last;
        let mut owned = self.buckets.values().filter(|bucket| stays(bucket.info.source));
        let kept = owned.find(|bucket| bucket.info.assignment.concerns(node));
        if let Some(bucket) = kept {
            let what = format!("node {node} owns vbuckets of bucket \"{}\"", bucket.info.name);
            return Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(
                "move its vbuckets with ALTER BUCKET … MOVE VBUCKET, or use DROP BUCKET",
            ));
        }
        self.leave_copies(node);
        self.leave_versions(node);
        Ok(())
    }

    /// Removes a node from all topologies and moves, or changes nothing.
    fn remove_copies(&mut self, node: NodeId, removal: Removal, silent: &[NodeId]) -> Result<()> {
        let mut heirs = self.heirs(&[node], silent);
        let mut placements: Vec<(LocalIndexId, Placement)> = Vec::new();
        for info in self.indexes().map(|record| &record.info) {
            let without = placement_without(info, node, removal, &mut heirs)?;
            placements.extend(without.map(|placement| (info.local_id(), placement)));
        }
        for id in placements.iter().map(|(id, _)| *id) {
            // The new node begins without data, so no move of the slice can continue.
            let lost = self.alone_on(id, &[node]);
            self.end_moves_of_lost(id, &lost);
        }
        self.undo_moves_to(node, "was removed");
        let left = |m: &SliceMove| m.stage == MoveStage::Done && m.from == Some(node);
        let leaves = |m: &SliceMove| m.from == Some(node);
        for id in self.local_ids() {
            self.end_moves(id, None, left);
            if self.record(id).is_some_and(|record| record.info.moves.iter().any(leaves)) {
                self.change_index(id, |info| {
                    // The target's copy is then an additional one, copied from another source.
                    info.moves.iter_mut().filter(|m| leaves(m)).for_each(|m| m.from = None);
                });
            }
        }
        for (id, placement) in placements {
            self.change_index(id, |info| change_placement(info, placement));
        }
        Ok(())
    }

    fn undo_moves_to(&mut self, node: NodeId, why: &str) {
        let why = format!("target node {node} {why}");
        let goes_there = |m: &SliceMove| m.stage < MoveStage::Done && m.to == Some(node);
        for id in self.local_ids() {
            self.end_moves(id, Some(&why), goes_there);
        }
    }

    /// Assigns the node's slices of unbuilt indexes to other nodes.
    fn place_unbuilt_elsewhere(&mut self, node: NodeId, silent: &[NodeId]) {
        let mut heirs = self.heirs(&[node], silent);
        for id in self.local_ids() {
            let Some(info) = self.record(id).map(|record| &record.info) else { continue };
            let unbuilt = info.state == IndexState::Pending;
            // A slice stays if no other node can take it.
            let placement = Some(info)
                .filter(|_| unbuilt)
                .and_then(|info| placement_without(info, node, Removal::Kept, &mut heirs).ok())
                .flatten();
            if let Some(placement) = placement {
                self.change_index(id, |info| change_placement(info, placement));
            }
        }
    }

    /// Adds a node to the list of recently removed nodes.
    pub(in crate::state) fn note_removed(&mut self, info: Arc<NodeInfo>) {
        self.removed.push(info);
        let surplus = self.removed.len().saturating_sub(REMOVED_NODES_MAX);
        self.removed.drain(..surplus);
    }
}

/// The placement of an index without a node; `None` if the node has no slice of it. Only slices that are not being
/// built, or that are lost with the node, can be placed elsewhere at once.
fn placement_without(
    info: &IndexInfo,
    node: NodeId,
    removal: Removal,
    heirs: &mut Heirs,
) -> Result<Option<Placement>> {
    if !info.topology.placement.iter().any(|copies| copies.contains(&node)) {
        return Ok(None);
    }
    let mut placement = info.topology.placement.clone();
    for (slice, copies) in placement.iter_mut().enumerate() {
        if !copies.contains(&node) {
            continue;
        }
        let slice = SliceNo(slice as u16);
        let others: Vec<NodeId> = copies.iter().copied().filter(|copy| *copy != node).collect();
        let to = match (info.state, removal) {
            (IndexState::Pending, _) => heirs.host(&others),
            (_, Removal::Forced) if others.is_empty() => heirs.heir(info, slice),
            _ => None,
        };
        if to.is_none() && others.is_empty() {
            return Err(match removal {
                Removal::Kept => only_copy(info, slice, node),
                Removal::Forced => no_heir(info, slice, node),
            });
        }
        replace_copy(copies, Some(node), to);
    }
    Ok(Some(placement))
}

/// The refusal to remove a node that has the only copy of a slice. DRAIN NODE moves slices that serve, and no others.
fn only_copy(info: &IndexInfo, slice: SliceNo, node: NodeId) -> Error {
    let what = format!("node {node} has {}", only_copy_of(info, slice));
    match info.state {
        IndexState::Retired => Error::new(ErrorCode::WrongState, what).with_hint(OLD_ONES_GO),
        IndexState::Backfill => Error::new(ErrorCode::WrongState, what).with_hint(
            "DRAIN NODE moves it away when it is built; SHOW INDEXES shows the progress, CANCEL BUILD ends the build",
        ),
        IndexState::Pending | IndexState::Maintenance => {
            Error::new(ErrorCode::InvalidParameter, what).with_hint(format!(
                "use DRAIN NODE first; if its data is lost for good, REMOVE NODE '{node}' FORCE lets other indexers rebuild its \
                 slices from the documents"
            ))
        }
    }
}

/// The way to the removal of a node with an old generation.
pub(crate) const OLD_ONES_GO: &str = "repeat the statement when SHOW SLICES lists the generation no more: it goes when these have ended, or with its version of a \
     data set (version_idle)";

/// Names a slice that no other node has.
pub(crate) fn only_copy_of(info: &IndexInfo, slice: SliceNo) -> String {
    let name = &info.spec.name;
    match info.state {
        IndexState::Retired => format!(
            "the only copy of slice {slice} of an older generation of index \"{name}\", which scans, transactions or tokens may still read"
        ),
        IndexState::Backfill => {
            format!("the only copy of slice {slice} of index \"{name}\", which is being built")
        }
        _ => format!("the only copy of slice {slice} of index \"{name}\""),
    }
}

/// The refusal to remove a projector, when the removal was to be forced.
fn documents_stay(error: Error) -> Error {
    let hint = "FORCE gives up slices, which are rebuilt from the documents, and never documents";
    let before = error.hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
    error.with_hint(format!("{hint}{before}"))
}

#[cfg(test)]
mod tests;
