use proto::model::ids::Epoch;
use proto::model::moves::PlannedMove;
use proto::rpc::api::SliceProgress;
use proto::rpc::command::{Command, DrainNode, SetReplicas, StartMoves};

use super::*;
use crate::leader::memory::Leader;
use crate::leader::memory::tests::{heartbeat, with_slices};
use crate::state::tests::{
    advance, apply, copies, create_index, done, planned, serving, spec, start,
};

const SECOND: u64 = 1_000;

fn leader() -> Leader {
    Leader::new(1, 0, 20, MoveSettings::default())
}

fn nodes_report(leader: &mut Leader, nodes: impl IntoIterator<Item = u64>, now_ms: u64) {
    for node in nodes {
        leader.record_heartbeat(heartbeat(node), now_ms);
    }
}

/// Plans repairs and carries them out; returns them as (slice, from, to).
fn repairs(leader: &mut Leader, state: &mut StateContext, now_ms: u64) -> Vec<(u16, u64, u64)> {
    let mut plan = Plan::default();
    leader.repairs.plan(state, &leader.heartbeats, &leader.moves, now_ms, &mut plan);
    assert!(plan.next_ms.is_some_and(|next_ms| next_ms > now_ms));
    let mut rows = Vec::new();
    for command in plan.commands {
        let Command::StartMoves(StartMoves { moves }) = &command else { panic!("{command:?}") };
        let id = |node: Option<NodeId>| node.map_or(0, |node| node.0);
        rows.extend(moves.iter().map(|m: &PlannedMove| (m.slice.0, id(m.from), id(m.to))));
        done(state, command);
    }
    rows
}

fn rebalance(leader: &Leader, state: &StateContext, index: Option<u64>) -> Result<RebalancePlan> {
    let request = RebalanceRequest { index: index.map(IndexId), dry_run: true };
    leader.rebalance(state, &request, 100)
}

#[test]
fn a_draining_node_is_emptied_without_a_request() {
    let (mut state, mut leader) = (serving(0), leader());
    nodes_report(&mut leader, 20..24, 0);
    assert_eq!(repairs(&mut leader, &mut state, 0), [], "balance is not ordered");
    done(&mut state, DrainNode { node: NodeId(20), drain: true });
    let planned = repairs(&mut leader, &mut state, SECOND);
    assert_eq!(planned, [(0, 20, 22), (2, 20, 23)], "at once, since the statement waits");
    assert_eq!(repairs(&mut leader, &mut state, 2 * SECOND), [], "every few seconds");
    nodes_report(&mut leader, 20..24, 6 * SECOND);
    assert_eq!(repairs(&mut leader, &mut state, 6 * SECOND), [], "the moves are in progress");
}

#[test]
fn copies_follow_the_wanted_number_of_replicas() {
    let (mut state, mut leader) = (serving(0), leader());
    nodes_report(&mut leader, 20..24, 0);
    let replicas = |replicas| Command::SetReplicas(SetReplicas { index: IndexId(1), replicas });
    done(&mut state, replicas(1));
    let made = repairs(&mut leader, &mut state, 0);
    assert!(
        made.len() == 4 && made.iter().all(|(_, from, to)| *from == 0 && *to >= 22),
        "{made:?}"
    );
    let ids: Vec<_> = state.indexes().next().unwrap().info.moves.iter().map(|m| m.id).collect();
    ids.iter().for_each(|id| advance(&mut state, *id, MoveStage::Done));
    done(&mut state, replicas(0));
    let off = repairs(&mut leader, &mut state, 3 * SECOND);
    assert!(off.len() == 4 && off.iter().all(|(_, from, to)| *from > 0 && *to == 0), "{off:?}");
    assert!((0..4).all(|slice| copies(&state, slice).len() == 1));
}

#[test]
fn the_copies_of_a_gone_node_are_made_elsewhere() {
    let (mut state, mut leader) = (serving(1), leader());
    let mut ordered = Vec::new();
    for minute in 0..=10 {
        assert_eq!(ordered, [], "it may come back");
        let now_ms = minute * 60 * SECOND;
        nodes_report(&mut leader, 21..24, now_ms);
        ordered = repairs(&mut leader, &mut state, now_ms);
    }
    assert_eq!(ordered.len(), 4);
    assert!(ordered.iter().all(|(_, from, to)| *from == 20 && [22, 23].contains(to)));
}

#[test]
fn a_new_leader_waits_for_all_reports_before_repairs() {
    let (mut state, mut leader) = (serving(0), leader());
    done(&mut state, DrainNode { node: NodeId(20), drain: true });
    nodes_report(&mut leader, 20..23, 0);
    assert_eq!(repairs(&mut leader, &mut state, 0), []);
    nodes_report(&mut leader, [23], 1);
    let early = rebalance(&leader, &state, None).unwrap();
    assert_eq!(early.moves.len(), 2);
    nodes_report(&mut leader, 20..24, 3 * SECOND);
    assert_eq!(repairs(&mut leader, &mut state, 3 * SECOND).len(), 2);

    let mut deaf = Leader::new(1, 0, 20, MoveSettings::default());
    nodes_report(&mut deaf, 20..23, 0);
    let error = rebalance(&deaf, &state, None).unwrap_err();
    assert!(error.is_retry() && error.message.contains("node 23"), "{error}");
    nodes_report(&mut deaf, 20..23, 6 * SECOND);
    assert!(unreported_indexer(&state, &deaf.heartbeats, 6 * SECOND).is_none(), "node 23 is dead");
}

#[test]
fn a_failed_repair_is_not_repeated_at_once() {
    let (mut state, mut leader) = (serving(0), leader());
    done(&mut state, DrainNode { node: NodeId(20), drain: true });
    leader.moves.settings.target_silent_ms = 2 * SECOND;
    nodes_report(&mut leader, 20..24, 0);
    assert_eq!(repairs(&mut leader, &mut state, 0).len(), 2);
    let mut plan = Plan::default();
    leader.moves.plan(&state, &leader.heartbeats, 2 * SECOND, &mut plan);
    assert_eq!(plan.commands.len(), 2, "both targets are silent");
    plan.commands.into_iter().for_each(|command| drop(apply(&mut state, command)));
    for s in [4, 10, 31] {
        nodes_report(&mut leader, 20..24, s * SECOND);
        assert_eq!(repairs(&mut leader, &mut state, s * SECOND), []);
    }
    nodes_report(&mut leader, 20..24, 32 * SECOND);
    assert_eq!(repairs(&mut leader, &mut state, 32 * SECOND).len(), 2);
}

#[test]
fn a_rebalance_of_one_index_ignores_the_others() {
    let (mut state, mut leader) = (serving(0), leader());
    done(&mut state, create_index(proto::model::index::IndexSpec { replicas: 0, ..spec("j") }));
    nodes_report(&mut leader, 20..24, 0);
    let slice = |slice| SliceProgress {
        slice: SliceId {
            index: IndexId(1),
            generation: proto::model::ids::Generation(1),
            slice: SliceNo(slice),
        },
        floor: Some(Epoch(1)),
        entries: 10,
        bytes: 1 << 20,
        live_bytes: Some(1 << 20),
        built_percent: None,
        seconds_left: None,
        copied_from: None,
        trouble: None,
    };
    let slices = (0..4).map(slice).collect();
    leader.record_heartbeat(with_slices(20, slices), 1);
    let plan = rebalance(&leader, &state, Some(1)).unwrap();
    assert_eq!(plan.moves.len(), 2);
    assert!(plan.moves.iter().all(|m| m.index == IndexId(1)));
    assert_eq!((plan.loads[0].copies, plan.loads[0].bytes), ((2, 1), (2 << 20, 1 << 20)));

    let unknown = rebalance(&leader, &state, Some(9)).unwrap_err();
    assert_eq!(unknown.code, ErrorCode::Changed);
    let building = rebalance(&leader, &state, Some(2)).unwrap_err();
    assert!(building.message.contains("\"j\" is backfill") && building.hint.is_some());
    let ids = start(&mut state, &[planned(0, 20, 22), planned(1, 21, 23)]);
    assert_eq!(ids.len(), 2);
    assert_eq!(rebalance(&leader, &state, Some(1)).unwrap().moves, [], "as if they were done");
}
