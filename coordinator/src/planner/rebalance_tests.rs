use std::collections::BTreeSet;
use std::iter::repeat;

use proto::model::ids::{Generation, IndexId};
use proto::model::moves::PlannedMove;

use super::*;
use crate::planner::{IndexView, NodeLoad, NodeView, SliceView, place_slices, replace_copy};

const MIB: u64 = 1 << 20;

fn node(id: u64, zone: &str) -> NodeView {
    NodeView { node: NodeId(id), zone: zone.into(), draining: false, health: Health::Alive }
}

fn nodes(ids: impl IntoIterator<Item = u64>) -> Vec<NodeView> {
    ids.into_iter().map(|id| node(id, "")).collect()
}

/// Returns an index of equal slices on these nodes.
fn index(id: u64, wanted: usize, placement: &[&[u64]]) -> IndexView {
    let slice = |copies: &&[u64]| SliceView {
        copies: copies.iter().copied().map(NodeId).collect(),
        bytes: MIB,
        load: 1_000,
        ..SliceView::default()
    };
    IndexView {
        index: IndexId(id),
        generation: Generation(1),
        name: format!("i{id}"),
        copies: wanted,
        movable: true,
        slices: placement.iter().map(slice).collect(),
    }
}

/// Returns the moves as (index, slice, from, to); 0 means no node.
fn moves(plan: &RebalancePlan) -> Vec<(u64, u16, u64, u64)> {
    let id = |node: Option<NodeId>| node.map_or(0, |node| node.0);
    let row = |m: &PlannedMove| (m.index.0, m.slice.0, id(m.from), id(m.to));
    plan.moves.iter().map(row).collect()
}

fn carry_out(view: &mut ClusterView, plan: &RebalancePlan) {
    for m in &plan.moves {
        let index = view.indexes.iter_mut().find(|index| index.index == m.index).unwrap();
        let copies = &mut index.slices[usize::from(m.slice.0)].copies;
        assert!(m.from.is_none_or(|from| copies.contains(&from)), "{m:?}");
        assert!(m.to.is_none_or(|to| !copies.contains(&to)), "{m:?}");
        replace_copy(copies, m.from, m.to);
        assert!(!copies.is_empty());
    }
}

fn copies_on(view: &ClusterView, node: NodeId) -> usize {
    let slices = view.indexes.iter().flat_map(|index| &index.slices);
    slices.filter(|slice| slice.copies.contains(&node)).count()
}

#[test]
fn a_new_node_gets_its_share_and_no_more() {
    let placement: Vec<&[u64]> = vec![&[1], &[2], &[3], &[1], &[2], &[3], &[1], &[2]];
    let mut view = ClusterView { nodes: nodes(1..=4), indexes: vec![index(1, 1, &placement)] };
    let result = plan(&view, Goal::Balance);
    assert_eq!(moves(&result), [(1, 1, 2, 4), (1, 0, 1, 4)]);
    assert_eq!(
        result.moves[0].reason,
        "node 2 has 3 copies of 3.0 MiB, node 4 has 0 copies of 0 B"
    );
    let new = &result.loads[3];
    assert_eq!((new.node, new.copies, new.bytes), (NodeId(4), (0, 2), (0, 2 * MIB)));
    carry_out(&mut view, &result);
    assert_eq!(moves(&plan(&view, Goal::Balance)), []);
    assert_eq!(moves(&plan(&ClusterView::default(), Goal::Balance)), []);
}

#[test]
fn bytes_count_besides_the_number_of_copies() {
    // Three copies against two are balanced by number.
    let placement: Vec<&[u64]> = vec![&[1], &[1], &[1], &[2], &[2]];
    let mut large = index(1, 1, &placement);
    (large.slices[0].bytes, large.slices[1].bytes) = (100 * MIB, 100 * MIB);
    let view = ClusterView { nodes: nodes(1..=2), indexes: vec![large] };
    let result = plan(&view, Goal::Balance);
    assert_eq!(moves(&result), [(1, 0, 1, 2)], "one of the large ones");
    // The load of a single slice is no reason to move it back and forth.
    let mut busy = index(1, 1, &[&[1], &[2]]);
    busy.slices[0].load = 1_000_000;
    let view = ClusterView { nodes: nodes(1..=2), indexes: vec![busy] };
    assert_eq!(moves(&plan(&view, Goal::Balance)), []);
}

#[test]
fn each_index_is_spread_over_nodes_of_equal_weight() {
    let first = index(1, 1, &[&[1], &[1], &[1], &[1]]);
    let second = index(2, 1, &[&[2], &[2], &[1], &[1]]);
    let view = ClusterView { nodes: nodes(1..=2), indexes: vec![first, second] };
    let result = plan(&view, Goal::Balance);
    assert_eq!(moves(&result), [(1, 0, 1, 2), (1, 1, 1, 2)], "index 2 is spread already");
}

/// Returns the number of copies of an index on each receiving node, in the order of the nodes.
fn copies_of(view: &ClusterView, index: &IndexView) -> Vec<usize> {
    let here = |node: &&NodeView| {
        index.slices.iter().filter(|slice| slice.copies.contains(&node.node)).count()
    };
    receiving(view).iter().map(here).collect()
}

fn spread(counts: &[usize]) -> usize {
    counts.iter().max().unwrap_or(&0) - counts.iter().min().unwrap_or(&0)
}

#[test]
fn a_new_node_gets_its_share_of_each_index_and_not_all_of_one() {
    // Three nodes with two large indexes and a small one; the fourth has just joined.
    let on_three: Vec<&[u64]> = vec![&[1], &[2], &[3], &[1], &[2], &[3], &[1], &[2]];
    let mut indexes: Vec<IndexView> = (1..=3).map(|id| index(id, 1, &on_three)).collect();
    for slice in indexes[..2].iter_mut().flat_map(|index| &mut index.slices) {
        (slice.bytes, slice.load) = (90 * MIB, 90_000);
    }
    let mut view = ClusterView { nodes: nodes(1..=4), indexes };
    settle(&mut view, Goal::Balance);
    for index in &view.indexes {
        assert_eq!(copies_of(&view, index), [2, 2, 2, 2], "{}", index.name);
    }
    // A small index on one node is spread, although the nodes have equal weight without it.
    let mut large = index(1, 1, &[&[1], &[2], &[3], &[1], &[2], &[3]]);
    large.slices.iter_mut().for_each(|slice| slice.bytes = 100 * MIB);
    let small = index(2, 1, &[&[4], &[4], &[4], &[4], &[4], &[4], &[4], &[4]]);
    let mut view = ClusterView { nodes: nodes(1..=4), indexes: vec![large, small] };
    settle(&mut view, Goal::Balance);
    for index in &view.indexes {
        assert!(spread(&copies_of(&view, index)) <= 1, "{}", index.name);
    }
}

#[test]
fn first_copies_move_where_there_are_few() {
    let placement: Vec<&[u64]> = vec![&[1, 2], &[2, 1], &[1, 2], &[1, 2]];
    let view = ClusterView { nodes: nodes(1..=3), indexes: vec![index(1, 2, &placement)] };
    let result = plan(&view, Goal::Balance);
    assert_eq!(moves(&result).len(), 2);
    assert!(moves(&result).contains(&(1, 0, 1, 3)), "node 1 has three of four: {result:?}");
}

#[test]
fn a_draining_node_is_emptied_without_balancing() {
    let placement: Vec<&[u64]> = vec![&[1], &[1], &[2], &[1], &[1]];
    let mut view = ClusterView { nodes: nodes(1..=3), indexes: vec![index(1, 1, &placement)] };
    view.nodes[1].draining = true;
    let result = plan(&view, Goal::Repair);
    assert_eq!(moves(&result), [(1, 2, 2, 3)]);
    assert_eq!(result.moves[0].reason, "node 2 is being drained");
    assert_eq!(moves(&plan(&view, Goal::Balance)).len(), 2, "and one from node 1");
}

#[test]
fn missing_copies_are_added_and_surplus_copies_removed() {
    let view = ClusterView {
        nodes: nodes(1..=3),
        indexes: vec![index(1, 2, &[&[1], &[1, 2], &[1, 2, 3]])],
    };
    let result = plan(&view, Goal::Repair);
    assert_eq!(moves(&result), [(1, 2, 1, 0), (1, 0, 0, 3)]);
    assert_eq!(result.moves[0].reason, "the slice has 3 copies, 2 are wanted");
    assert_eq!(result.moves[1].reason, "the slice has 1 of 2 copies");
}

#[test]
fn the_least_useful_surplus_copies_go_and_a_live_one_stays() {
    let mut view =
        ClusterView { nodes: nodes(1..=4), indexes: vec![index(1, 1, &[&[1, 2, 3, 4]])] };
    view.nodes[0].draining = true;
    view.nodes[2].health = Health::Gone;
    view.nodes[3].health = Health::Silent;
    let result = plan(&view, Goal::Repair);
    assert_eq!(moves(&result), [(1, 0, 3, 0), (1, 0, 4, 0), (1, 0, 1, 0)]);
    view.nodes[1].health = Health::Silent;
    let result = plan(&view, Goal::Repair);
    assert!(moves(&result).iter().all(|(.., from, _)| *from != 1), "the only one that lives");
}

#[test]
fn a_silent_node_is_kept_and_a_gone_node_is_replaced() {
    let mut view =
        ClusterView { nodes: nodes(1..=3), indexes: vec![index(1, 2, &[&[1, 2], &[2, 1]])] };
    view.nodes[1].health = Health::Silent;
    assert_eq!(moves(&plan(&view, Goal::Repair)), []);
    view.nodes[1].health = Health::Gone;
    let result = plan(&view, Goal::Repair);
    assert_eq!(moves(&result), [(1, 0, 2, 3), (1, 1, 2, 3)]);
    assert_eq!(result.moves[0].reason, "node 2 has been silent for too long");
    view.nodes[0].health = Health::Silent;
    assert_eq!(moves(&plan(&view, Goal::Repair)), [], "no node has a copy");
}

#[test]
fn copies_in_one_zone_are_separated_and_balancing_keeps_them_apart() {
    let mut view = ClusterView {
        nodes: vec![node(1, "a"), node(2, "a"), node(3, "b")],
        indexes: vec![index(1, 2, &[&[1, 2], &[1, 3], &[1, 3]])],
    };
    let result = plan(&view, Goal::Balance);
    assert_eq!(moves(&result)[0], (1, 0, 1, 3), "the heavier of the two goes");
    assert_eq!(result.moves[0].reason, "zone \"a\" has another copy, the zone of node 3 has none");
    carry_out(&mut view, &result);
    for slice in &view.indexes[0].slices {
        assert!(slice.copies.contains(&NodeId(3)), "zone b has but one node");
    }
    assert_eq!(moves(&plan(&view, Goal::Repair)), []);
}

#[test]
fn a_replacement_goes_to_the_zone_that_loses_its_copy() {
    let zoned = |replaced: &dyn Fn(&mut NodeView)| {
        let mut view = ClusterView {
            nodes: vec![node(1, "a"), node(2, "b"), node(3, "a"), node(4, "b")],
            indexes: vec![index(1, 2, &[&[1, 2]])],
        };
        replaced(&mut view.nodes[1]);
        moves(&plan(&view, Goal::Repair))
    };
    assert_eq!(zoned(&|node| node.draining = true), [(1, 0, 2, 4)]);
    assert_eq!(zoned(&|node| node.health = Health::Gone), [(1, 0, 2, 4)]);
}

#[test]
fn moving_and_unserved_slices_only_count_as_weight() {
    let mut busy = index(1, 1, &[&[1], &[1], &[1], &[1]]);
    busy.slices[0].busy = true;
    busy.slices[1].leaving = vec![NodeId(2)];
    busy.slices[2].busy = true;
    let mut building = index(2, 1, &[&[1], &[1]]);
    building.movable = false;
    let view = ClusterView { nodes: nodes(1..=2), indexes: vec![busy, building] };
    assert_eq!(moves(&plan(&view, Goal::Balance)), [(1, 3, 1, 2)]);
}

#[test]
fn numbers_from_a_broken_node_do_no_harm() {
    let mut odd = index(1, 1, &[&[1], &[1], &[9], &[]]);
    odd.slices.iter_mut().for_each(|slice| (slice.bytes, slice.load) = (u64::MAX, u64::MAX));
    let view = ClusterView { nodes: nodes(1..=2), indexes: vec![odd] };
    assert_eq!(moves(&plan(&view, Goal::Balance)), [(1, 0, 1, 2)]);
    assert_eq!(
        [0, 1023, 1536, u64::MAX].map(format_bytes),
        ["0 B", "1023 B", "1.5 KiB", "16383.9 PiB"]
    );
}

// ---- properties of every plan -------------------------------------------------------------------

/// Returns a random cluster: indexes were placed on some nodes, then nodes joined, were drained or
/// fell silent, and numbers of copies changed.
fn random_view(random: &mut fastrand::Rng, copies_max: usize) -> ClusterView {
    let zones = ["", "a", "b", "c"];
    let zone = |random: &mut fastrand::Rng, zoned: bool| {
        if zoned { zones[random.usize(1..zones.len())] } else { "" }
    };
    let zoned = random.bool();
    let all = random.u64(copies_max as u64 + 1..9);
    let nodes: Vec<NodeView> = (1..=all).map(|id| node(id, zone(random, zoned))).collect();
    let old = random.usize(copies_max..=nodes.len());
    let load = |node: &NodeView| NodeLoad {
        is_silent: false,
        node: node.node,
        zone: node.zone.clone(),
        copies: 0,
        first_copies: 0,
    };
    let loads: Vec<NodeLoad> = nodes[..old].iter().map(load).collect();
    let mut view = ClusterView { nodes, indexes: Vec::new() };
    for id in 1..=random.u64(1..4) {
        let copies = random.usize(1..=copies_max);
        let placement = place_slices(random.u16(1..25), copies as u8 - 1, &loads).unwrap();
        let mut index = index(id, copies, &[]);
        for copies in placement {
            let bytes = random.u64(..100) * MIB;
            index.slices.push(SliceView {
                copies,
                bytes,
                load: random.u64(..9),
                ..SliceView::default()
            });
        }
        view.indexes.push(index);
    }
    view
}

fn receiving(view: &ClusterView) -> Vec<&NodeView> {
    let receives = |node: &&NodeView| !node.draining && node.health == Health::Alive;
    view.nodes.iter().filter(receives).collect()
}

fn shared_zones(view: &ClusterView, copies: &[NodeId]) -> usize {
    let zones = copies.iter().map(|id| &view.nodes.iter().find(|n| n.node == *id).unwrap().zone);
    let zones: Vec<_> = zones.filter(|zone| !zone.is_empty()).collect();
    zones.len() - zones.iter().collect::<BTreeSet<_>>().len()
}

/// Plans and carries plans out until nothing is left to do; returns the number of rounds.
fn settle(view: &mut ClusterView, goal: Goal) -> usize {
    for round in 0..20 {
        let result = plan(view, goal);
        assert_eq!(result, plan(view, goal), "the same from the same");
        for m in &result.moves {
            let receives = |to| receiving(view).iter().any(|node| node.node == to);
            assert!(m.to.is_none_or(receives), "{m:?}");
        }
        if result.moves.is_empty() {
            return round;
        }
        carry_out(view, &result);
        for load in &result.loads {
            assert_eq!(load.copies.1, copies_on(view, load.node) as u64, "as announced");
        }
    }
    panic!("it never ends: {view:?}");
}

#[test]
fn a_settled_plan_is_valid_and_stable() {
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut view = random_view(&mut random, 3);
        for index in &mut view.indexes {
            index.copies = random.usize(1..=2);
        }
        // As many as leave a node for each copy.
        for _ in 0..random.usize(..=view.nodes.len() - 3) {
            let node = random.usize(..view.nodes.len());
            view.nodes[node].draining = true;
        }
        let before = view.clone();
        let rounds = settle(&mut view, Goal::Balance);
        assert!(rounds <= 3, "seed {seed}: a round for each copy, and {rounds} were needed");
        let receiving = receiving(&view);
        let mut zones: Vec<_> =
            receiving.iter().map(|n| &n.zone).filter(|z| !z.is_empty()).collect();
        let zoneless = receiving.len() - zones.len();
        zones.sort();
        zones.dedup();
        let slices = view.indexes.iter().flat_map(|index| index.slices.iter().zip(repeat(index)));
        for (slice, index) in slices {
            assert_eq!(slice.copies.len(), index.copies, "seed {seed}");
            assert!(
                !slice
                    .copies
                    .iter()
                    .any(|id| view.nodes.iter().any(|n| n.node == *id && n.draining))
            );
            let apart = (zones.len() + zoneless).min(index.copies);
            assert_eq!(shared_zones(&view, &slice.copies), index.copies - apart, "seed {seed}");
        }
        let drained = before.nodes.iter().filter(|node| node.draining);
        assert!(drained.into_iter().all(|node| copies_on(&view, node.node) == 0), "seed {seed}");
    }
}

#[test]
fn without_replicas_one_plan_is_enough() {
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut view = random_view(&mut random, 1);
        let drained = random.usize(..view.nodes.len());
        view.nodes[drained].draining = random.bool() && view.nodes.len() > 1;
        assert!(settle(&mut view, Goal::Balance) <= 1, "seed {seed}: a fixed point");
    }
}

#[test]
fn equal_slices_are_spread_evenly_with_the_fewest_moves() {
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut view = random_view(&mut random, 2);
        view.nodes.iter_mut().for_each(|node| node.zone.clear());
        let slices = view.indexes.iter_mut().flat_map(|index| &mut index.slices);
        slices.for_each(|slice| (slice.bytes, slice.load) = (MIB, 1));
        let counts = |view: &ClusterView| -> Vec<usize> {
            view.nodes.iter().map(|node| copies_on(view, node.node)).collect()
        };
        let before = counts(&view);
        // The most that each index by itself may need.
        let most_moves: usize = view
            .indexes
            .iter()
            .map(|index| {
                let held = copies_of(&view, index);
                let share = held.iter().sum::<usize>() / held.len();
                held.iter().map(|n| n.saturating_sub(share)).sum::<usize>()
            })
            .sum();
        let mut made = 0;
        for _ in 0..2 {
            let result = plan(&view, Goal::Balance);
            carry_out(&mut view, &result);
            made += result.moves.len();
        }
        assert!(plan(&view, Goal::Balance).moves.is_empty(), "seed {seed}: a plan for each copy");
        let after = counts(&view);
        let share = before.iter().sum::<usize>() / before.len();
        let above = |share: usize| before.iter().map(|n| n.saturating_sub(share)).sum::<usize>();
        let bounds = above(share + 1)..=most_moves;
        assert!(bounds.contains(&made), "seed {seed}: {made} moves, {before:?} {after:?}");
        // A node has at most one copy of each slice, which may keep it below its share.
        let most = view.indexes.iter().map(|index| index.slices.len()).sum::<usize>();
        assert!(spread(&after) <= 1 || share + 1 >= most, "seed {seed}: {before:?} {after:?}");
    }
}

#[test]
fn each_index_of_equal_slices_is_spread_whatever_else_the_nodes_have() {
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut view = random_view(&mut random, 1);
        for index in &mut view.indexes {
            let (bytes, load) = (random.u64(..100) * MIB, random.u64(..9));
            // The copies of the index may be on any of the nodes, even all on one.
            let at_most = random.usize(1..=view.nodes.len());
            for slice in &mut index.slices {
                let node = view.nodes[random.usize(..at_most)].node;
                (slice.bytes, slice.load, slice.copies) = (bytes, load, vec![node]);
            }
        }
        settle(&mut view, Goal::Balance);
        for index in &view.indexes {
            let counts = copies_of(&view, index);
            // A third copy more would always move; a second one may be worth more where the whole is lighter.
            assert!(spread(&counts) <= 2, "seed {seed}: index {} {counts:?}", index.name);
        }
    }
}

/// Returns the sum of the squared weights of the nodes, and of each index on them; lower is more
/// even.
fn unevenness(view: &ClusterView) -> u128 {
    let draft = PlanDraft::new(view);
    let importance = |id: &IndexId| {
        draft
            .pieces
            .iter()
            .find(|piece| piece.index.index == *id)
            .map_or(0, |piece| piece.importance)
    };
    let of_node = |held: &NodeDraft<'_>| {
        let own = held.by_index.iter().map(|(id, (_, weight))| importance(id) * weight.pow(2));
        held.weight.pow(2) + own.sum::<u128>()
    };
    draft.nodes.values().map(of_node).sum()
}

#[test]
fn each_move_reduces_the_imbalance() {
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        let view = random_view(&mut random, 1);
        let result = plan(&view, Goal::Balance);
        let carried_out = |moves: Vec<PlannedMove>| {
            let mut view = view.clone();
            carry_out(&mut view, &RebalancePlan { moves, ..RebalancePlan::default() });
            unevenness(&view)
        };
        let all = carried_out(result.moves.clone());
        for n in 0..result.moves.len() {
            let mut others = result.moves.clone();
            let left_out = others.remove(n);
            assert!(all < carried_out(others), "seed {seed}: {left_out:?}");
        }
    }
}
