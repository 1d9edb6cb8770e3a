//! Plans moves of slices of indexes that serve scans.
//!
//! First come the necessary moves. Slices with surplus copies lose one, slices with missing
//! copies gain one, copies on gone nodes are replaced, and draining nodes are emptied. The
//! heaviest slices come first; each goes to the lightest node, in a zone without a copy if there
//! is one.
//!
//! Then, on request, come the moves that improve the balance. Copies in the same zone are
//! separated. Then copies move as long as this clearly lowers the *imbalance*. The imbalance is a
//! sum over all nodes: the square of the node's weight, plus, for each index, the square of the
//! index's weight on the node times the importance of the index. So the cluster is balanced, and
//! each index by itself. A move that improves one of the two balances and worsens the other is
//! made if the sum falls. The heaviest node gives slices away first, each time by its most
//! effective move, so that few moves are made. Among equals, the planner prefers the move that
//! spreads the copies and the first copies of the index better.
//!
//! Copies of a slice never share a node. A move never puts more copies into one zone unless it is
//! necessary. A slice without a live copy gets no move, because there is no copy to read from.

use std::cmp::Reverse;

use proto::model::ids::NodeId;
use proto::model::moves::RebalancePlan;

use super::draft::{NodeDraft, PlanDraft};
use super::view::{ClusterView, Health};

/// The purpose of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Necessary moves only: draining nodes are emptied, and each slice has its copies.
    Repair,
    /// Necessary moves, then balance.
    Balance,
}

/// Plans the moves of the slices in a view.
pub fn plan(view: &ClusterView, goal: Goal) -> RebalancePlan {
    let mut draft = PlanDraft::new(view);
    let mut order: Vec<usize> = (0..draft.pieces.len()).collect();
    order.sort_by_key(|at| (Reverse(draft.pieces[*at].weight), *at));
    for step in [remove_surplus, add_missing, replace_gone, empty_drained] {
        for at in &order {
            if draft.is_free(*at) && has_living_copy(&draft, *at) {
                step(&mut draft, *at);
            }
        }
    }
    if goal == Goal::Balance {
        order.iter().for_each(|at| spread_zones(&mut draft, *at));
        balance(&mut draft);
    }
    draft.finish()
}

fn has_living_copy(draft: &PlanDraft<'_>, at: usize) -> bool {
    draft.pieces[at].copies.iter().any(|node| draft.health(*node) == Health::Alive)
}

/// Removes surplus copies: first those on gone or draining nodes, then those that share a zone,
/// then those on the heaviest nodes. The last live copy stays.
fn remove_surplus(draft: &mut PlanDraft<'_>, at: usize) {
    let wanted = draft.pieces[at].index.copies.max(1);
    while draft.pieces[at].copies.len() > wanted {
        let copies = &draft.pieces[at].copies;
        let lives = |node: &&NodeId| draft.health(**node) == Health::Alive;
        let last = copies.iter().filter(lives).count() == 1;
        let victims = copies.iter().enumerate().filter(|(_, node)| !(last && lives(node)));
        let worst = victims.max_by_key(|(place, node)| {
            let conflicts = draft.conflicts(at, Some(**node), None);
            let away = (draft.health(**node), draft.is_draining(**node));
            (away, Reverse(conflicts), draft.weight_of(**node), *place)
        });
        let Some((_, worst)) = worst else { return };
        let (worst, there) = (*worst, copies.len());
        draft.plan_move(
            at,
            Some(worst),
            None,
            format!("the slice has {there} copies, {wanted} are wanted"),
        );
    }
}

/// Plans one more copy of a slice that has too few.
fn add_missing(draft: &mut PlanDraft<'_>, at: usize) {
    let (there, wanted) = (draft.pieces[at].copies.len(), draft.pieces[at].index.copies);
    if there < wanted {
        let reason = format!("the slice has {there} of {wanted} copies");
        add_copy(draft, at, None, reason);
    }
}

/// Plans the replacement of a copy on a node that counts as lost.
fn replace_gone(draft: &mut PlanDraft<'_>, at: usize) {
    let copies = &draft.pieces[at].copies;
    let gone = copies.iter().copied().find(|node| draft.health(*node) == Health::Gone);
    if let Some(gone) = gone {
        add_copy(draft, at, Some(gone), format!("node {gone} has been silent for too long"));
    }
}

/// Plans the move of a copy away from a draining node.
fn empty_drained(draft: &mut PlanDraft<'_>, at: usize) {
    let copies = &draft.pieces[at].copies;
    let drained = copies.iter().copied().find(|node| draft.is_draining(*node));
    if let Some(drained) = drained {
        add_copy(draft, at, Some(drained), format!("node {drained} is being drained"));
    }
}

/// Plans a copy on the best node that may receive it: an additional one, or one that replaces the
/// copy on `from`.
fn add_copy(draft: &mut PlanDraft<'_>, at: usize, from: Option<NodeId>, reason: String) {
    let best = draft
        .candidates(at)
        .min_by_key(|to| (draft.conflicts(at, from, Some(*to)), draft.weight_of(*to), *to));
    if best.is_some() {
        draft.plan_move(at, from, best, reason);
    }
}

/// Moves a copy out of a zone that has another copy.
fn spread_zones(draft: &mut PlanDraft<'_>, at: usize) {
    let now = draft.conflicts(at, None, None);
    if now == 0 || !draft.is_free(at) {
        return;
    }
    let gives = |node: &&NodeId| draft.nodes.get(*node).is_some_and(NodeDraft::receives);
    let best = draft.pieces[at]
        .copies
        .iter()
        .filter(gives)
        .flat_map(|from| draft.candidates(at).map(move |to| (*from, to)))
        .map(|(from, to)| {
            let conflicts = draft.conflicts(at, Some(from), Some(to));
            (conflicts, Reverse(draft.weight_of(from)), draft.weight_of(to), from, to)
        })
        .min();
    if let Some((conflicts, .., from, to)) = best
        && conflicts < now
    {
        let zone = draft.nodes.get(&from).map_or("", |held| held.node.zone.as_str());
        let reason = format!("zone \"{zone}\" has another copy, the zone of node {to} has none");
        draft.plan_move(at, Some(from), Some(to), reason);
    }
}

/// Moves copies between nodes until no move is worth its cost. Each step lowers the imbalance, or
/// keeps it and removes a move from the plan, so the loop ends.
fn balance(draft: &mut PlanDraft<'_>) {
    while let Some((at, from, to)) = next_to_balance(draft) {
        let reason = reason_to_balance(draft, at, from, to);
        draft.plan_move(at, Some(from), Some(to), reason);
    }
}

fn reason_to_balance(draft: &PlanDraft<'_>, at: usize, from: NodeId, to: NodeId) -> String {
    let index = draft.pieces[at].index;
    let copies = |node: NodeId| draft.nodes[&node].of_index(index.index).0;
    let is_heavier = draft.weight_of(from) > draft.weight_of(to);
    if !is_heavier {
        let (from_copies, to_copies) = (copies(from), copies(to));
        return format!(
            "node {from} has {from_copies} copies of index \"{}\", node {to} has {to_copies}",
            index.name
        );
    }
    let what = |node: NodeId| {
        let held = &draft.nodes[&node];
        format!("node {node} has {} copies of {}", held.pieces.len(), format_bytes(held.bytes))
    };
    format!("{}, {}", what(from), what(to))
}

/// Returns the most effective move, as the position of the slice, the source and the target. The
/// heaviest node that has an effective move is the source.
fn next_to_balance(draft: &PlanDraft<'_>) -> Option<(usize, NodeId, NodeId)> {
    let mut nodes: Vec<&NodeDraft<'_>> =
        draft.nodes.values().filter(|held| held.receives()).collect();
    nodes.sort_by_key(|held| (held.weight, held.node.node));
    nodes.iter().rev().find_map(|from| {
        let others = nodes.iter().filter(|to| to.node.node != from.node.node);
        let moves = others.filter_map(|to| best_move_between(draft, from, to));
        // The first of equals is the lightest target.
        let best = moves.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map(|(_, at, to)| (at, from.node.node, to))
    })
}

/// The effect of a move, compared in this order: how much it lowers the imbalance, spreads the
/// copies of the index over the nodes, and spreads the first copies.
type MoveEffect = (i128, i128, i128);

/// Returns the most effective move of a slice from one node to another; `None` if no move is
/// worth its cost.
fn best_move_between(
    draft: &PlanDraft<'_>,
    from: &NodeDraft<'_>,
    to: &NodeDraft<'_>,
) -> Option<(MoveEffect, usize, NodeId)> {
    let (from_id, to_id) = (from.node.node, to.node.node);
    let may = |at: usize| {
        draft.may_move(at, from_id)
            && draft.may_get(at, to_id)
            && draft.conflicts(at, Some(from_id), Some(to_id)) <= draft.conflicts(at, None, None)
    };
    let moves = from.pieces.iter().filter_map(|at| {
        let effect = effect(draft, *at, from, to)?;
        may(*at).then_some((effect, Reverse(*at)))
    });
    moves.max().map(|(effect, Reverse(at))| (effect, at, to_id))
}

/// Returns the effect of a move; `None` if the move is not worth its cost.
fn effect(
    draft: &PlanDraft<'_>,
    at: usize,
    from: &NodeDraft<'_>,
    to: &NodeDraft<'_>,
) -> Option<MoveEffect> {
    let piece = &draft.pieces[at];
    let (weight, importance) = (piece.weight as i128, piece.importance as i128);
    let (of_index_from, of_index_to) =
        (from.of_index(piece.index.index), to.of_index(piece.index.index));
    // Half of what the move takes off the sum of the two squares, divided by the weight.
    let nearer = |from: u128, to: u128| from as i128 - to as i128 - weight;
    let own = importance.saturating_mul(nearer(of_index_from.1, of_index_to.1));
    let lowers = nearer(from.weight, to.weight).saturating_add(own);
    // An improvement of less than a quarter of the moved weight is not worth the move. Later moves may have made a planned
    // one superfluous: leaving it out costs nothing.
    let is_worth_it = match draft.would_undo(at, to.node.node) {
        true => lowers >= 0,
        false => lowers > weight / 4,
    };
    if !is_worth_it {
        return None;
    }
    let spreads = |from: u64, to: u64| i128::from(from) - i128::from(to);
    let is_first = piece.copies.first() == Some(&from.node.node);
    let firsts = if is_first { spreads(from.firsts, to.firsts) } else { 0 };
    Some((weight.saturating_mul(lowers), spreads(of_index_from.0, of_index_to.0), firsts))
}

/// Formats a number of bytes with its unit, for messages.
fn format_bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let unit =
        (0..units.len() - 1).find(|n| bytes >> (10 * (n + 1)) == 0).unwrap_or(units.len() - 1);
    let tenths = (u128::from(bytes) * 10) >> (10 * unit);
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{}.{} {}", tenths / 10, tenths % 10, units[unit]),
    }
}

#[cfg(test)]
#[path = "rebalance_tests.rs"]
mod tests;
