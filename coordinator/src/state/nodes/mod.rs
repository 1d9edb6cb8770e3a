//! The nodes of the cluster: registration, draining of indexers, and removal.
//!
//! A draining node receives no more slices, and the leader moves its slices away. A removed node loses its copies at
//! once, without moves, so it must not have the only copy of any slice, unless the removal is forced: then another node
//! rebuilds the slice (see `lost`). Indexes that are not being built yet have nothing to move: their slices are simply assigned to
//! other nodes.

pub mod coordinators;
pub mod lost;
pub mod state;

use std::sync::Arc;

use proto::client::other_cluster_error;
use proto::model::bucket::SourceKind;
use proto::model::identity::JoinRequest;
use proto::model::ids::{LocalIndexId, NodeId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::node::{NodeInfo, Role};
use proto::rpc::command::{DrainNode, Join, Outcome, RegisterNode, RemoveNode};
use proto::{Error, ErrorCode, Result};

use crate::planner::{self, replace_copy};
use crate::state::consequence::Consequence;
use crate::state::context::StateContext;
use crate::state::copies::check_copies_without;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, catalog_changed, changed_if, nothing};
use crate::state::indexes::placement::Placement;
use crate::state::nodes::lost::{NewHosts, no_host_error};
use crate::state::versions::partitions::{check_versions_without, give_partitions_away};

/// Returns the error for a second process with the id of a registered node.
pub(crate) fn node_id_taken_error(node: NodeId, known: Option<&Arc<NodeInfo>>) -> Error {
    let at = known.map_or_else(String::new, |known| format!(" at {}", known.address));
    let what = format!("node {node} is another process{at}, with another data directory");
    Error::new(ErrorCode::NodeTaken, what).with_hint(
        "give each process its own --id; a process that lost its directory takes the number over once the old one \
         has been silent for some seconds, or after REMOVE NODE",
    )
}

/// How the removal of an indexer treats slices whose only copy is on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::state) enum Removal {
    /// The removal is refused.
    Kept,
    /// Other indexers rebuild the slices.
    Forced,
}

impl Apply for RegisterNode {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        register_unproven(state, &self.node)
    }
}

impl Apply for Join {
    /// Registers a process with a data directory. The first such process gives the cluster its id.
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let JoinRequest { node, proof, fresh, cluster: own } = &*self.request;
        let cluster = state.nodes.cluster();
        if let Some(own) = own.filter(|own| cluster != Some(*own)) {
            let whose = format!("the data directory of {} {}", node.role.name(), node.id);
            return Err(other_cluster_error(&whose, own, cluster));
        }
        let known = state.nodes.proof(node.id);
        if known.is_some_and(|known| known != proof && decided.replaces != Some(*known)) {
            return Err(node_id_taken_error(node.id, state.node(node.id)));
        }
        let is_changed = register(state, node)?;
        let (cluster, is_other) = state.nodes.record_proof(node.id, *proof, *fresh);
        Ok((Outcome::Joined(cluster), changed_if(is_changed || is_other)))
    }
}

impl Apply for DrainNode {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let node = self.node;
        let role = state.nodes.role_of(node)?;
        if role != Role::Indexer {
            let what = format!("node {node} is a {}; only indexers are drained", role.name());
            return Err(Error::new(ErrorCode::InvalidParameter, what));
        }
        if self.drain == state.is_draining(node) {
            return nothing();
        }
        if self.drain {
            check_drain(state, node)?;
        }
        state.nodes.drain(node, self.drain);
        if self.drain {
            state.carry_out(&Consequence::NoTarget { node, why: "is being drained" });
            let placements = unbuilt_elsewhere(state, node, &decided.silent);
            state.carry_out(&Consequence::Placed(placements));
        }
        catalog_changed()
    }
}

impl Apply for RemoveNode {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let node = self.node;
        let removal = if self.force { Removal::Forced } else { Removal::Kept };
        let consequence = match state.nodes.role_of(node)? {
            Role::Coordinator => {
                let what = format!("node {node} is a coordinator");
                return Err(Error::new(ErrorCode::InvalidParameter, what)
                    .with_hint("use REMOVE COORDINATOR"));
            }
            Role::Projector => {
                check_without_projector(state, node).map_err(|error| match removal {
                    Removal::Kept => error,
                    Removal::Forced => with_force_hint(error),
                })?;
                Some(Consequence::ProjectorRemoved(node))
            }
            Role::Indexer => {
                let placements = placements_without(state, node, removal, &decided.silent)?;
                Some(Consequence::IndexerRemoved { node, placements })
            }
            Role::Router => None,
        };
        state.nodes.remove(node);
        consequence.iter().for_each(|consequence| drop(state.carry_out(consequence)));
        if matches!(consequence, Some(Consequence::ProjectorRemoved(_))) {
            give_partitions_away(state, node);
        }
        catalog_changed()
    }
}

/// Registers a process without a data directory.
pub(in crate::state) fn register_unproven(state: &mut StateContext, node: &NodeInfo) -> Change {
    match state.nodes.proof(node.id) {
        Some(_) => Err(node_id_taken_error(node.id, state.node(node.id))),
        None => Ok((Outcome::Done, changed_if(register(state, node)?))),
    }
}

fn register(state: &mut StateContext, node: &NodeInfo) -> Result<bool> {
    let is_changed = state.nodes.register(node)?;
    if is_changed && node.role == Role::Projector {
        state.carry_out(&Consequence::ProjectorAdded(node.id));
    }
    Ok(is_changed)
}

/// Checks that each slice on a node could move to another node, so that the node may be drained.
fn check_drain(state: &StateContext, node: NodeId) -> Result<()> {
    let left: Vec<NodeId> =
        state.nodes.receiving().map(|other| other.id).filter(|id| *id != node).collect();
    if left.is_empty() {
        let what = format!("node {node} is the last indexer that receives slices");
        return Err(Error::new(ErrorCode::InvalidParameter, what)
            .with_hint("start another indexer first, or stop draining one"));
    }
    let has_copies =
        |info: &IndexInfo| info.topology.placement.iter().any(|nodes| nodes.contains(&node));
    for info in state.indexes.infos().filter(|info| has_copies(info)) {
        planner::check_enough(info.spec.replicas, &left).map_err(|error| {
            Error { code: ErrorCode::InvalidParameter, ..error }
                .context(format!("drain node {node}: index \"{}\"", info.spec.name))
        })?;
    }
    Ok(())
}

/// Checks that a projector may be removed: it must not own data that no other projector has.
fn check_without_projector(state: &StateContext, node: NodeId) -> Result<()> {
    check_copies_without(state, node)?;
    check_versions_without(state, node)?;
    let is_last = state.nodes.of_role(Role::Projector).count() == 1;
    let stays = |kind: SourceKind| kind != SourceKind::Files || is_last;
    let mut owned = state.buckets.all().values().filter(|info| stays(info.source));
    let Some(info) = owned.find(|info| info.assignment.concerns(node)) else { return Ok(()) };
    let what = format!("node {node} owns vbuckets of bucket \"{}\"", info.name);
    Err(Error::new(ErrorCode::InvalidParameter, what)
        .with_hint("move its vbuckets with ALTER BUCKET … MOVE VBUCKET, or use DROP BUCKET"))
}

/// Returns the placements without a node, of all generations that have slices on it. Returns an
/// error if a slice cannot be placed elsewhere.
fn placements_without(
    state: &StateContext,
    node: NodeId,
    removal: Removal,
    silent: &[NodeId],
) -> Result<Vec<(LocalIndexId, Placement)>> {
    let mut heirs = NewHosts::new(state, &[node], silent);
    let mut placements = Vec::new();
    for info in state.indexes.infos() {
        let without = placement_without(info, node, removal, &mut heirs)?;
        placements.extend(without.map(|placement| (info.local_id(), placement)));
    }
    Ok(placements)
}

/// Returns new placements for the slices on an indexer that belong to indexes whose build has not
/// begun. A slice that no other node can take is left as it is.
fn unbuilt_elsewhere(
    state: &StateContext,
    node: NodeId,
    silent: &[NodeId],
) -> Vec<(LocalIndexId, Placement)> {
    let mut heirs = NewHosts::new(state, &[node], silent);
    let unbuilt = state.indexes.infos().filter(|info| info.state == IndexState::Pending);
    let elsewhere = unbuilt.filter_map(|info| {
        let placement = placement_without(info, node, Removal::Kept, &mut heirs).ok()??;
        Some((info.local_id(), placement))
    });
    elsewhere.collect()
}

/// Returns the placement of an index without a node; `None` if the node has no slice of it. Other
/// nodes replace the node only in slices whose build has not begun, or that lose their last copy
/// by a forced removal.
fn placement_without(
    info: &IndexInfo,
    node: NodeId,
    removal: Removal,
    heirs: &mut NewHosts,
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
            (IndexState::Pending, _) => heirs.choose_host(&others),
            (_, Removal::Forced) if others.is_empty() => heirs.choose_for_lost_slice(info, slice),
            _ => None,
        };
        if to.is_none() && others.is_empty() {
            return Err(match removal {
                Removal::Kept => only_copy_error(info, slice, node),
                Removal::Forced => no_host_error(info, slice, node),
            });
        }
        replace_copy(copies, Some(node), to);
    }
    Ok(Some(placement))
}

/// Returns the refusal to remove a node that has the only copy of a slice. DRAIN NODE moves only
/// slices of serving generations.
fn only_copy_error(info: &IndexInfo, slice: SliceNo, node: NodeId) -> Error {
    let what = format!("node {node} has {}", only_copy_text(info, slice));
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

/// The advice for the removal of a node that still has slices of a retired generation.
pub(crate) const OLD_ONES_GO: &str = "repeat the statement when SHOW SLICES lists the generation no more: it goes when these have ended, or with its version of a \
     data set (version_idle)";

/// Returns a text that describes a slice whose only copy is on a node.
pub(crate) fn only_copy_text(info: &IndexInfo, slice: SliceNo) -> String {
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

/// Adds to the refusal to remove a projector that FORCE has no effect on documents.
fn with_force_hint(error: Error) -> Error {
    let hint = "FORCE gives up slices, which are rebuilt from the documents, and never documents";
    let before = error.hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
    error.with_hint(format!("{hint}{before}"))
}

#[cfg(test)]
mod tests;
