//! Slices without a copy that is left, and indexers that are silent.
//!
//! The state has no heartbeats. A command that places slices therefore contains the silent indexers (`Decisions::silent`), which get slices
//! only if there are too few others.
//!
//! A slice whose copies are all on nodes that count as lost, by `REMOVE NODE … FORCE` or because they are silent for very
//! long, gets an *heir*: an indexer that becomes its only copy in the next topology. The heir has nothing of the slice and finds no
//! other copy, so it rebuilds the slice from the source, and shows it with an epoch that covers all of the snapshot as its floor.
//! Until then no node reports the slice as readable, so no scan can miss its rows. A node that has just given the slice away by a
//! move is still fed and read, so it is the best heir: it rebuilds nothing. Other moves of the slice end, since they have no source.
//!
//! A node that counted as lost and returns drops the slice, because the catalog assigns it to another node.

use std::collections::BTreeSet;

use proto::model::ids::{LocalIndexId, NodeId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::moves::{MoveStage, SliceMove};
use proto::model::node::Role;
use proto::rpc::command::{Outcome, PlaceLost};
use proto::{Error, ErrorCode};

use crate::planner::{self, Load};
use crate::state::consequence::Consequence;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, changed_if};
use crate::state::indexes::placement::Placement;
use crate::state::indexes::state::lost_with;

/// The indexers that may get slices, with their loads.
pub(in crate::state) struct Heirs {
    loads: Vec<Load>,
    /// The indexers that are neither silent nor lost, including draining ones.
    standing: BTreeSet<NodeId>,
}

impl Heirs {
    /// Creates the list of indexers that may take over given-up slices.
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

    /// Returns the node for one more copy besides `others`; a silent node only if each other node
    /// has a copy.
    pub(in crate::state) fn host(&mut self, others: &[NodeId]) -> Option<NodeId> {
        planner::choose(others, &mut self.loads)
    }

    /// Returns the placement of an index in which other nodes replace silent ones where possible;
    /// `None` if nothing changes.
    pub(in crate::state) fn avoid(&mut self, info: &IndexInfo) -> Option<Placement> {
        let mut placement = info.topology.placement.clone();
        for copies in &mut placement {
            let silent: Vec<NodeId> =
                copies.iter().copied().filter(|node| !self.standing.contains(node)).collect();
            for node in silent {
                let host = self.host(copies).filter(|host| self.standing.contains(host));
                if host.is_some() {
                    planner::replace_copy(copies, Some(node), host);
                }
            }
        }
        (placement != info.topology.placement).then_some(placement)
    }

    /// Returns the node for a lost slice: one that is not silent, since the slice would be lost
    /// again there.
    pub(in crate::state) fn heir(&mut self, info: &IndexInfo, slice: SliceNo) -> Option<NodeId> {
        let gave = |m: &&SliceMove| m.slice == slice && m.stage == MoveStage::Done;
        let mut givers = info.moves.iter().filter(gave).rev().filter_map(|m| m.from);
        if let Some(giver) = givers.find(|node| self.standing.contains(node)) {
            return Some(giver);
        }
        let heir = planner::choose(&[], &mut self.loads)?;
        // A silent node is the last choice, so no reporting node is available.
        self.standing.contains(&heir).then_some(heir)
    }
}

impl Apply for PlaceLost {
    /// Places the slices whose copies are all on silent nodes on other nodes. A slice that no other
    /// node can take stays.
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let Self { lost, lost_to_builds } = self;
        let mut heirs = Heirs::new(state, &[&lost[..], lost_to_builds].concat(), &decided.silent);
        let mut placements: Vec<(LocalIndexId, Vec<SliceNo>, Placement)> = Vec::new();
        for info in state.indexes.infos() {
            let mut placement = info.topology.placement.clone();
            let mut placed = Vec::new();
            for slice in lost_with(info, given_up(info, lost, lost_to_builds)) {
                let heir = heirs.heir(info, slice);
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
    /// Returns a generation, and one of its slices, whose only copy is on this node.
    pub fn only_copy_on(&self, node: NodeId) -> Option<(&IndexInfo, SliceNo)> {
        let only = |info| Some((info, lost_with(info, &[node]).first().copied()?));
        self.indexes.infos().find_map(|info| only(&**info))
    }

    /// Returns true if [`PlaceLost`] would place a slice on another node.
    pub fn has_lost(&self, lost: &[NodeId], lost_to_builds: &[NodeId]) -> bool {
        let nodes = |info: &IndexInfo| given_up(info, lost, lost_to_builds);
        self.indexes.infos().any(|info| !lost_with(info, nodes(info)).is_empty())
    }
}

/// Returns the nodes whose copies of an index are given up. Builds have a separate list, because an
/// unfinished build has no data that could return.
fn given_up<'a>(
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

/// Returns the refusal to give up a slice that no other node can take.
pub(in crate::state) fn no_heir(info: &IndexInfo, slice: SliceNo, node: NodeId) -> Error {
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
