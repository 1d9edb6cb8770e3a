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

use proto::model::ids::{IndexId, LocalIndexId, NodeId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::moves::{MoveStage, SliceMove};
use proto::model::node::Role;
use proto::rpc::command::Outcome;
use proto::{Error, ErrorCode};

use crate::planner::{self, Load};
use crate::state::context::StateContext;
use crate::state::effect::Change;
use crate::state::indexes::placement::{Placement, change_placement};
use crate::state::moves::catalog_changed;

/// The indexers that may get slices, with their loads.
pub(in crate::state) struct Heirs {
    loads: Vec<Load>,
    /// The indexers that are neither silent nor lost, including draining ones.
    standing: BTreeSet<NodeId>,
}

impl Heirs {
    /// The node for one more copy beside others; a silent one only if each other node has a copy.
    pub(in crate::state) fn host(&mut self, others: &[NodeId]) -> Option<NodeId> {
        planner::choose(others, &mut self.loads)
    }

    /// The placement of an index without the copies on silent nodes that another node can take; `None` if there are none.
    fn avoid(&mut self, info: &IndexInfo) -> Option<Placement> {
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

    /// The node for a slice that is lost. It reports, since a slice on a silent node would be lost again.
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

impl StateContext {
    /// The indexers that may get slices when some are given up.
    pub(in crate::state) fn heirs(&self, given_up: &[NodeId], silent: &[NodeId]) -> Heirs {
        let is_given_up = |node: &NodeId| given_up.contains(node);
        let loads = self.indexer_loads(silent).into_iter();
        let indexers = self.nodes.values().filter(|node| node.role == Role::Indexer);
        let standing = indexers.map(|node| node.id);
        Heirs {
            loads: loads.filter(|load| !is_given_up(&load.node)).collect(),
            standing: standing
                .filter(|node| !is_given_up(node) && !silent.contains(node))
                .collect(),
        }
    }

    /// The slices of an index whose copies are all on these nodes. An index whose build has not begun has nothing to lose.
    pub(in crate::state) fn alone_on(&self, id: LocalIndexId, nodes: &[NodeId]) -> Vec<SliceNo> {
        let info = self.record(id).map(|record| &record.info);
        let begun = info.filter(|info| info.state != IndexState::Pending);
        begun.map(|info| alone_on(info, nodes)).unwrap_or_default()
    }

    /// A generation, and one of its slices, whose only copy is on this node.
    pub fn only_copy_on(&self, node: NodeId) -> Option<(&IndexInfo, SliceNo)> {
        self.indexes().find_map(|record| {
            let slice = self.alone_on(record.info.local_id(), &[node]).first().copied()?;
            Some((&*record.info, slice))
        })
    }

    /// True if a slice would be given to another node by [`Command::PlaceLost`](proto::rpc::command::Command::PlaceLost).
    pub fn has_lost(&self, lost: &[NodeId], lost_to_builds: &[NodeId]) -> bool {
        let nodes = |info: &IndexInfo| given_up(info, lost, lost_to_builds);
        self.indexes().any(|record| !alone_on(&record.info, nodes(&record.info)).is_empty())
    }

    /// Gives the slices that are on silent nodes alone to other nodes. A slice stays if no other node can take it.
    pub(in crate::state) fn place_lost(
        &mut self,
        lost: &[NodeId],
        lost_to_builds: &[NodeId],
        silent: &[NodeId],
    ) -> Change {
        let mut heirs = self.heirs(&[lost, lost_to_builds].concat(), silent);
        let mut placements: Vec<(LocalIndexId, Vec<SliceNo>, Placement)> = Vec::new();
        for info in self.indexes().map(|record| &record.info) {
            let mut placement = info.topology.placement.clone();
            let mut placed = Vec::new();
            for slice in alone_on(info, given_up(info, lost, lost_to_builds)) {
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
        let effects = catalog_changed(!placements.is_empty());
        for (id, placed, placement) in placements {
            self.end_moves_of_lost(id, &placed);
            self.change_index(id, |info| change_placement(info, placement));
        }
        Ok((Outcome::Done, effects))
    }

    /// Ends all moves of slices that are lost.
    pub(in crate::state) fn end_moves_of_lost(&mut self, id: LocalIndexId, slices: &[SliceNo]) {
        let is_done = |m: &SliceMove| slices.contains(&m.slice) && m.stage == MoveStage::Done;
        self.end_moves(id, None, is_done);
        let why = "the nodes with the slice are lost; another one rebuilds it";
        self.end_moves(id, Some(why), |m| slices.contains(&m.slice));
    }

    /// BUILD INDEX: the copies on silent nodes go to others first, if there are any.
    pub(in crate::state) fn build_on(&mut self, indexes: &[IndexId], silent: &[NodeId]) -> Change {
        let (outcome, effects) = self.build_indexes(indexes)?;
        if let Outcome::Building(ids) = &outcome {
            let mut heirs = self.heirs(&[], silent);
            for id in ids {
                let Some(info) = self.indexes.get(id).map(|record| &record.info) else { continue };
                let id = info.local_id();
                if let Some(placement) = heirs.avoid(info) {
                    self.change_index(id, |info| change_placement(info, placement));
                }
            }
        }
        Ok((outcome, effects))
    }
}

/// The nodes whose copies of an index are given up. An index that is being built has no data that could return.
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

fn alone_on(info: &IndexInfo, nodes: &[NodeId]) -> Vec<SliceNo> {
    let is_alone = |copies: &Vec<NodeId>| copies.iter().all(|node| nodes.contains(node));
    let all = info.topology.placement.iter().enumerate();
    all.filter(|(_, copies)| is_alone(copies)).map(|(slice, _)| SliceNo(slice as u16)).collect()
}

/// The refusal to give up a slice that no other node can take.
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
