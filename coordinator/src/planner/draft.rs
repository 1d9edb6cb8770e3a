//! A draft of a plan: the cluster as it will be when the moves planned so far are done.
//!
//! The weight of a copy has three equal parts: one for the copy itself, one for its bytes, and
//! one for its load. The unit is the mean size of a slice in bytes, so that a mean copy weighs
//! three units. The unit does not change with the moves, so copies that are balanced now are
//! balanced afterwards.
//!
//! The *importance* of an index is a factor that weighs the balance of its own copies against
//! that of the cluster: twice the weight of the cluster divided by the weight of the index. So
//! the spread of a small index counts too, although its copies weigh little.
//!
//! Each slice has at most one move in a plan, because it has at most one unfinished move. Moves
//! that only remove a copy do not count, because they take effect at once. Moving a planned copy
//! again only changes its target; if the new target is its source, the move is cancelled.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::ids::{IndexId, NodeId, SliceNo};
use proto::model::moves::{PlannedLoad, PlannedMove, RebalancePlan};

use super::place::replace_copy;
use super::view::{ClusterView, Health, IndexView, NodeView, SliceView};

/// A draft of a plan: the nodes and slices as they will be after the moves planned so far.
pub(super) struct PlanDraft<'a> {
    /// The nodes that can hold copies, with their planned load.
    pub nodes: BTreeMap<NodeId, NodeDraft<'a>>,
    /// All slices of all indexes. Other fields and methods name a slice by its position in this
    /// list.
    pub pieces: Vec<SliceDraft<'a>>,
    /// The planned moves. A cancelled move leaves `None`.
    planned: Vec<Option<PlannedMove>>,
    before: BTreeMap<NodeId, (u64, u64)>,
}

/// A node and its planned copies.
pub(super) struct NodeDraft<'a> {
    /// The node as the view describes it.
    pub node: &'a NodeView,
    /// The copies on this node, by position in [`Draft::pieces`].
    pub pieces: BTreeSet<usize>,
    /// The weight of all copies on the node.
    pub weight: u128,
    /// The bytes of all copies on the node.
    pub bytes: u64,
    /// The number of first copies on the node. A first copy normally answers scans.
    pub firsts: u64,
    /// The number of copies of each index on the node, and their weight.
    pub by_index: BTreeMap<IndexId, (u64, u128)>,
}

impl NodeDraft<'_> {
    /// Returns true if the node may receive slices.
    pub fn receives(&self) -> bool {
        self.node.health == Health::Alive && !self.node.draining
    }

    /// Returns the number of copies of an index on the node, and their weight.
    pub fn of_index(&self, index: IndexId) -> (u64, u128) {
        self.by_index.get(&index).copied().unwrap_or_default()
    }
}

/// A slice and the nodes of its copies.
pub(super) struct SliceDraft<'a> {
    /// The index of the slice.
    pub index: &'a IndexView,
    /// The number of the slice.
    pub no: SliceNo,
    /// The slice in the planner's input.
    pub slice: &'a SliceView,
    /// The nodes that have a copy.
    pub copies: Vec<NodeId>,
    /// The weight of one copy.
    pub weight: u128,
    /// The importance of the balance of the slice's index.
    pub importance: u128,
    /// The nodes that lose their copy of the slice, where scans may still read it. They cannot
    /// receive a new copy yet.
    leaving: Vec<NodeId>,
    /// The position in [`Draft::planned`] of the slice's move.
    planned: Option<usize>,
}

impl<'a> PlanDraft<'a> {
    pub fn new(view: &'a ClusterView) -> Self {
        let held = |node: &'a NodeView| NodeDraft {
            node,
            pieces: BTreeSet::new(),
            weight: 0,
            bytes: 0,
            firsts: 0,
            by_index: BTreeMap::new(),
        };
        let mut draft = Self {
            nodes: view.nodes.iter().map(|node| (node.node, held(node))).collect(),
            pieces: slice_drafts(view),
            planned: Vec::new(),
            before: BTreeMap::new(),
        };
        (0..draft.pieces.len()).for_each(|piece| draft.count_slice(piece, true));
        draft.before = draft.loads();
        draft
    }

    /// Adds a slice to the totals of the nodes that have copies of it (`add`), or subtracts it.
    fn count_slice(&mut self, at: usize, add: bool) {
        let piece = &self.pieces[at];
        for (place, node) in piece.copies.iter().enumerate() {
            // The view may still name a node that was removed.
            let Some(held) = self.nodes.get_mut(node) else { continue };
            let by_index = held.by_index.entry(piece.index.index).or_default();
            let first = u64::from(place == 0);
            if add {
                held.pieces.insert(at);
                held.weight += piece.weight;
                held.bytes = held.bytes.saturating_add(piece.slice.bytes);
                held.firsts += first;
                *by_index = (by_index.0 + 1, by_index.1 + piece.weight);
            } else {
                held.pieces.remove(&at);
                held.weight -= piece.weight;
                held.bytes = held.bytes.saturating_sub(piece.slice.bytes);
                held.firsts -= first;
                *by_index = (by_index.0 - 1, by_index.1 - piece.weight);
            }
        }
    }

    /// Returns for each node the number of its copies, and their bytes.
    fn loads(&self) -> BTreeMap<NodeId, (u64, u64)> {
        let load = |held: &NodeDraft<'_>| (held.pieces.len() as u64, held.bytes);
        self.nodes.iter().map(|(node, held)| (*node, load(held))).collect()
    }

    /// Returns true if the slice may move and has no planned move yet. `at` is the position of
    /// the slice.
    pub fn is_free(&self, at: usize) -> bool {
        let piece = &self.pieces[at];
        piece.index.movable && !piece.slice.busy && piece.planned.is_none()
    }

    /// Returns true if the copy of the slice on node `from` may move: either the slice has no
    /// planned move yet, or its planned move brings the copy to `from`, so that only the target
    /// changes.
    pub fn may_move(&self, at: usize, from: NodeId) -> bool {
        let target = |planned: usize| self.planned[planned].as_ref().and_then(|m| m.to);
        self.is_free(at) || self.pieces[at].planned.and_then(target) == Some(from)
    }

    /// Returns true if node `to` is the source of the slice's planned move, so that a move back
    /// to it cancels the move.
    pub fn would_undo(&self, at: usize, to: NodeId) -> bool {
        let source = |planned: usize| self.planned[planned].as_ref().and_then(|m| m.from);
        self.pieces[at].planned.and_then(source) == Some(to)
    }

    pub fn health(&self, node: NodeId) -> Health {
        self.nodes.get(&node).map_or(Health::Gone, |held| held.node.health)
    }

    pub fn is_draining(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|held| held.node.draining)
    }

    pub fn weight_of(&self, node: NodeId) -> u128 {
        self.nodes.get(&node).map_or(0, |held| held.weight)
    }

    /// Returns true if the node may receive a copy of the slice.
    pub fn may_get(&self, at: usize, node: NodeId) -> bool {
        let piece = &self.pieces[at];
        self.nodes.get(&node).is_some_and(NodeDraft::receives)
            && !piece.copies.contains(&node)
            && !piece.leaving.contains(&node)
    }

    /// Iterates over the nodes that may receive a copy of the slice.
    pub fn candidates(&self, at: usize) -> impl Iterator<Item = NodeId> {
        self.nodes.keys().copied().filter(move |node| self.may_get(at, *node))
    }

    /// Returns the number of copies of a slice that would share a zone with another copy if the
    /// copy on `from` were removed and one on `to` added.
    pub fn conflicts(&self, at: usize, from: Option<NodeId>, to: Option<NodeId>) -> usize {
        let copies = self.pieces[at].copies.iter().copied().filter(|node| Some(*node) != from);
        let zones = copies.chain(to).filter_map(|node| self.nodes.get(&node));
        let mut zones: Vec<&str> =
            zones.map(|held| held.node.zone.as_str()).filter(|zone| !zone.is_empty()).collect();
        let all = zones.len();
        zones.sort_unstable();
        zones.dedup();
        all - zones.len()
    }

    /// Plans a move of one copy, and updates the totals of the nodes. Without `from` a copy is
    /// added, without `to` one is removed.
    pub fn plan_move(
        &mut self,
        at: usize,
        from: Option<NodeId>,
        to: Option<NodeId>,
        reason: String,
    ) {
        self.count_slice(at, false);
        let piece = &mut self.pieces[at];
        replace_copy(&mut piece.copies, from, to);
        match (piece.planned, to) {
            (Some(planned), _) => {
                let planned_move = &mut self.planned[planned];
                planned_move.iter_mut().for_each(|m| m.to = to);
                if planned_move.as_ref().is_some_and(|m| m.from == to) {
                    (*planned_move, piece.planned) = (None, None);
                }
            }
            (None, to) => {
                match to {
                    Some(_) => piece.planned = Some(self.planned.len()),
                    None => piece.leaving.extend(from),
                }
                self.planned.push(Some(PlannedMove {
                    index: piece.index.index,
                    generation: piece.index.generation,
                    slice: piece.no,
                    from,
                    to,
                    reason,
                }));
            }
        }
        self.count_slice(at, true);
    }

    /// Returns the plan: the moves, and the loads of the nodes before and after them.
    pub fn finish(self) -> RebalancePlan {
        let after = self.loads();
        let load = |(node, before): (&NodeId, &(u64, u64))| {
            let after = after.get(node).copied().unwrap_or_default();
            PlannedLoad { node: *node, copies: (before.0, after.0), bytes: (before.1, after.1) }
        };
        let loads = self.before.iter().map(load).collect();
        RebalancePlan { moves: self.planned.into_iter().flatten().collect(), loads }
    }
}

/// Returns the slices of a view, with their weights.
fn slice_drafts(view: &ClusterView) -> Vec<SliceDraft<'_>> {
    let slices = || view.indexes.iter().flat_map(|index| &index.slices);
    let bytes: u128 = slices().map(|slice| u128::from(slice.bytes)).sum();
    let load: u128 = slices().map(|slice| u128::from(slice.load)).sum::<u128>().max(1);
    let count = (slices().count() as u128).max(1);
    let unit = (bytes / count).max(1);
    let all = unit.saturating_mul(count);
    let weight = |slice: &SliceView| {
        let asked = u128::from(slice.load).saturating_mul(all) / load;
        unit + u128::from(slice.bytes) + asked
    };
    let piece = |index, (no, slice)| SliceDraft {
        index,
        no: SliceNo(no as u16),
        slice,
        copies: slice.copies.clone(),
        weight: weight(slice),
        importance: 1,
        leaving: slice.leaving.clone(),
        planned: None,
    };
    let mut pieces = Vec::new();
    for index in &view.indexes {
        pieces.extend(index.slices.iter().enumerate().map(|slice| piece(index, slice)));
    }
    let held = |piece: &SliceDraft<'_>| piece.weight * (piece.copies.len() as u128);
    let total: u128 = pieces.iter().map(held).sum();
    for of_index in pieces.chunk_by_mut(|left, right| left.index.index == right.index.index) {
        let own: u128 = of_index.iter().map(held).sum();
        of_index.iter_mut().for_each(|piece| piece.importance = 2 * total / own.max(1));
    }
    pieces
}
