//! Places slices whose copies are all lost, and slices of silent indexers, on other indexers.
//!
//! The state has no heartbeats. A command that places slices therefore contains the silent
//! indexers (`Decisions::silent`), which get slices only if there are too few others.
//!
//! A slice is lost when all of its copies are on nodes that count as lost, by `REMOVE NODE …
//! FORCE` or because they are silent for very long. A lost slice gets an *heir*: an indexer that
//! becomes its only copy in the next topology. The heir has nothing of the slice and finds no
//! other copy, so it rebuilds the slice from the source. The slice becomes readable at an epoch
//! that covers all of the snapshot (its floor). Until then no node reports the slice as readable,
//! so no scan can miss its rows. A node that has just given the slice away by a move still
//! receives its mutations and is read, so it is the best heir: it rebuilds nothing. Other moves
//! of the slice end, since they have no source.
//!
//! A node that counted as lost and returns drops the slice, because the catalog assigns it to
//! another node.

use std::collections::BTreeSet;

use proto::model::ids::{LocalIndexId, NodeId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::moves::{MoveStage, SliceMove};
use proto::model::node::Role;
use proto::rpc::command::{Outcome, ReplaceLostSlices};
use proto::{Error, ErrorCode};

use crate::planner::{self, NodeLoad};
use crate::state::consequence::Consequence;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, changed_if};
use crate::state::indexes::placement::Placement;
use crate::state::indexes::state::slices_only_on;

/// The indexers that may take over slices of other nodes, with their loads.
pub(in crate::state) struct NewHosts {
    loads: Vec<NodeLoad>,
    /// The indexers that are neither silent nor lost, including draining ones.
    standing: BTreeSet<NodeId>,
}

impl NewHosts {
    /// Creates the list of indexers that may take over slices. The nodes in `given_up` are not
    /// among them.
    pub(in crate::state) fn new(
        state: &StateContext,
        given_up: &[NodeId],
        silent: &[NodeId],
    ) -> Self {
        let is_given_up = |node: &NodeId| given_up.contains(node);
        let loads = state.indexer_loads(silent).into_iter();
        let standing = state.nodes.of_role(Role::Indexer).map(|node| node.id);
        Self {
            loads: loads.filter(|load| !is_given_up(&load.node)).collect(),
            standing: standing
                .filter(|node| !is_given_up(node) && !silent.contains(node))
                .collect(),
        }
    }

    /// Returns the node for one more copy of a slice that has copies on `others`. Chooses a
    /// silent node only if each other node has a copy.
    pub(in crate::state) fn choose_host(&mut self, others: &[NodeId]) -> Option<NodeId> {
        planner::choose_node(others, &mut self.loads)
    }

    /// Returns the placement of an index in which other nodes replace silent ones where possible;
    /// `None` if there is nothing to replace.
    pub(in crate::state) fn replace_silent_nodes(&mut self, info: &IndexInfo) -> Option<Placement> {
        let mut placement = info.topology.placement.clone();
        for copies in &mut placement {
            let silent: Vec<NodeId> =
                copies.iter().copied().filter(|node| !self.standing.contains(node)).collect();
            for node in silent {
                let host = self.choose_host(copies).filter(|host| self.standing.contains(host));
                if host.is_some() {
                    planner::replace_copy(copies, Some(node), host);
                }
            }
        }
        (placement != info.topology.placement).then_some(placement)
    }

    /// Returns the new node for a slice without a remaining copy. Chooses no silent node, since
    /// the slice would be lost again there.
    pub(in crate::state) fn choose_for_lost_slice(
        &mut self,
        info: &IndexInfo,
        slice: SliceNo,
    ) -> Option<NodeId> {
        let gave = |m: &&SliceMove| m.slice == slice && m.stage == MoveStage::Done;
        let mut givers = info.moves.iter().filter(gave).rev().filter_map(|m| m.from);
        if let Some(giver) = givers.find(|node| self.standing.contains(node)) {
            return Some(giver);
        }
        let heir = planner::choose_node(&[], &mut self.loads)?;
        // A silent node is the last choice, so no reporting node is available.
        self.standing.contains(&heir).then_some(heir)
    }
}

impl Apply for ReplaceLostSlices {
    /// Places the slices that have copies on lost nodes only on other nodes. A slice that no
    /// other node can take is left as it is.
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let Self { lost, lost_to_builds } = self;
        let mut heirs =
            NewHosts::new(state, &[&lost[..], lost_to_builds].concat(), &decided.silent);
        let mut placements: Vec<(LocalIndexId, Vec<SliceNo>, Placement)> = Vec::new();
        for info in state.indexes.infos() {
            let mut placement = info.topology.placement.clone();
            let mut placed = Vec::new();
            for slice in slices_only_on(info, given_up_nodes(info, lost, lost_to_builds)) {
                let heir = heirs.choose_for_lost_slice(info, slice);
                if let (Some(heir), Some(copies)) = (heir, placement.get_mut(usize::from(slice.0)))
                {
                    *copies = vec![heir];
                    placed.push(slice);
                }
            }
            if !placed.is_empty() {
                placements.push((info.local_id(), placed, placement));
            }
        }
        let effects = changed_if(!placements.is_empty());
        state.carry_out(&Consequence::LostPlaced(placements));
        Ok((Outcome::Done, effects))
    }
}

impl StateContext {
    /// Returns a slice whose only copy is on this node, with its generation; `None` if there is
    /// none.
    pub fn only_copy_on(&self, node: NodeId) -> Option<(&IndexInfo, SliceNo)> {
        let only = |info| Some((info, slices_only_on(info, &[node]).first().copied()?));
        self.indexes.infos().find_map(|info| only(&**info))
    }

    /// Returns true if some slice has copies on lost nodes only, so that [`ReplaceLostSlices`] is needed.
    pub fn has_lost(&self, lost: &[NodeId], lost_to_builds: &[NodeId]) -> bool {
        let nodes = |info: &IndexInfo| given_up_nodes(info, lost, lost_to_builds);
        self.indexes.infos().any(|info| !slices_only_on(info, nodes(info)).is_empty())
    }
}

/// Returns the nodes whose copies of an index count as lost. Builds have a separate list, because
/// an unfinished build has no data that could return.
fn given_up_nodes<'a>(
    info: &IndexInfo,
    lost: &'a [NodeId],
    lost_to_builds: &'a [NodeId],
) -> &'a [NodeId] {
    match info.state {
        IndexState::Pending => &[],
        IndexState::Backfill => lost_to_builds,
        IndexState::Maintenance | IndexState::Retired => lost,
    }
}

/// Returns the error for a slice that would lose its last copy and that no other node can take.
pub(in crate::state) fn no_host_error(info: &IndexInfo, slice: SliceNo, node: NodeId) -> Error {
    let name = &info.spec.name;
    let what = format!(
        "node {node} has the only copy of slice {slice} of index \"{name}\", and no other indexer that reports may receive it"
    );
    Error::new(ErrorCode::WrongState, what).with_hint(
        "start another indexer first, or end its draining (CANCEL DRAIN NODE); SHOW NODES lists them",
    )
}

#[cfg(test)]
#[path = "lost_tests.rs"]
mod tests;
