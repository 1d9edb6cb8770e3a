use std::sync::Arc;

use proto::model::ids::{BucketId, Generation, IndexId, TopologyNo};
use proto::model::index::IndexSpec;
use proto::rpc::command::{
    AdvanceMove, CancelMoves, Command, DrainNode, DropBucket, DropIndex, EndMove, PromoteEpochs,
    RegisterNode, RemoveNode, SetReplicas, StartMoves,
};

use super::*;
use crate::state::tests::{
    advance, apply, copies, create_index, done, node, planned, promotion, refused, serving, spec,
    start,
};

const INDEX: IndexId = IndexId(1);
const UNFINISHED: [MoveStage; 3] = [MoveStage::Start, MoveStage::Pending, MoveStage::Catchup];

fn moves(state: &StateContext) -> &[SliceMove] {
    &state.indexes.named()[&INDEX].info.moves
}

fn end(id: MoveId, undone: Option<&str>) -> Command {
    Command::EndMove(EndMove { index: INDEX, id, undone: undone.map(str::to_owned) })
}

/// Returns the indexers that receive the mutations of a slice.
fn fed(state: &StateContext, slice: u16) -> Vec<u64> {
    let info = &state.indexes.named()[&INDEX].info;
    (20..30).filter(|id| info.is_fed(NodeId(*id), SliceNo(slice))).collect()
}

#[test]
fn a_move_passes_its_stages_and_changes_the_topology_once() {
    let mut state = serving(1);
    let ids = start(&mut state, &[planned(0, 20, 22)]);
    let mut seen = Vec::new();
    for stage in [MoveStage::Pending, MoveStage::Catchup, MoveStage::Done] {
        apply(
            &mut state,
            PromoteEpochs { promotions: vec![promotion(0, 7, stage as u64)], joined: Vec::new() },
        );
        done(&mut state, AdvanceMove { index: INDEX, id: ids[0], stage });
        let m = moves(&state)[0].clone();
        let number = state.indexes.named()[&INDEX].info.topology.number.0;
        seen.push((m.stage, m.epoch.0, fed(&state, 0), copies(&state, 0), number));
    }
    assert_eq!(seen[0], (MoveStage::Pending, 2, vec![20, 21], vec![20, 21], 1));
    assert_eq!(seen[1], (MoveStage::Catchup, 3, vec![20, 21, 22], vec![20, 21], 1));
    assert_eq!(seen[2], (MoveStage::Done, 4, vec![20, 21, 22], vec![22, 21], 2), "in its place");
    done(&mut state, end(ids[0], None));
    assert_eq!((fed(&state, 0), moves(&state).len()), (vec![21, 22], 0));
    let ended = &state.catalog().ended_moves[0];
    assert_eq!((ended.was.id, ended.was.stage, &ended.undone), (ids[0], MoveStage::Done, &None));
    let before =
        state.topology(state.indexes.named()[&INDEX].info.local_id(), TopologyNo(1)).unwrap();
    assert_eq!(before.placement[0], [NodeId(20), NodeId(21)], "scans that began before know it");
}

#[test]
fn a_stage_that_does_not_follow_changes_nothing() {
    let mut state = serving(0);
    let id = start(&mut state, &[planned(0, 20, 22)])[0];
    let nothing = |state: &mut StateContext, command| {
        let cas = state.cas();
        done(state, command);
        assert_eq!(state.cas(), cas);
    };
    let to = |id, stage| Command::AdvanceMove(AdvanceMove { index: INDEX, id, stage });
    nothing(&mut state, to(id, MoveStage::Catchup));
    nothing(&mut state, to(id, MoveStage::Start));
    nothing(&mut state, to(MoveId(99), MoveStage::Pending));
    let elsewhere =
        Command::AdvanceMove(AdvanceMove { index: IndexId(9), id, stage: MoveStage::Pending });
    nothing(&mut state, elsewhere);
    nothing(&mut state, end(id, None));
    advance(&mut state, id, MoveStage::Done);
    nothing(&mut state, to(id, MoveStage::Done));
    nothing(&mut state, end(id, Some("too late")));
    done(&mut state, end(id, None));
    nothing(&mut state, end(id, None));
}

#[test]
fn a_move_that_is_undone_in_any_stage_leaves_no_trace_but_the_reason() {
    for stage in UNFINISHED {
        let mut state = serving(0);
        let before = state.indexes.named()[&INDEX].clone();
        let id = start(&mut state, &[planned(0, 20, 22)])[0];
        advance(&mut state, id, stage);
        done(&mut state, end(id, Some("the disk is full")));
        let mut after = state.indexes.named()[&INDEX].clone();
        let revision =
            std::mem::replace(&mut Arc::make_mut(&mut after.info).revision, before.info.revision);
        assert!(revision > before.info.revision, "no scan depends on the move any more");
        assert_eq!(after, before, "{stage:?}");
        let ended = &state.catalog().ended_moves[0];
        assert_eq!(ended.undone.as_deref(), Some("the disk is full"));
        assert_eq!(ended.was.stage, stage);
    }
}

#[test]
fn a_copy_is_added_at_the_end_and_a_removed_copy_goes_at_once() {
    let mut state = serving(0);
    let id = start(&mut state, &[planned(0, 0, 22)])[0];
    advance(&mut state, id, MoveStage::Done);
    assert_eq!(copies(&state, 0), [20, 22]);
    done(&mut state, end(id, None));
    let off = start(&mut state, &[planned(0, 20, 0)])[0];
    assert_eq!((copies(&state, 0), fed(&state, 0)), (vec![22], vec![20, 22]), "still read");
    assert_eq!(moves(&state)[0].stage, MoveStage::Done);
    let last = Command::StartMoves(StartMoves { moves: vec![planned(0, 22, 0)] });
    assert_eq!(refused(&mut state, last), ErrorCode::InvalidParameter);
    done(&mut state, end(off, None));
    assert_eq!(fed(&state, 0), [22]);
}

#[test]
fn moves_that_cannot_be_made_are_refused_or_left_out() {
    let mut state = serving(1);
    done(&mut state, DrainNode { node: NodeId(23), drain: true });
    let mut other = planned(0, 20, 22);
    other.generation = Generation(2);
    let unknown = PlannedMove { index: IndexId(7), ..planned(0, 20, 22) };
    let bad = [
        (unknown, ErrorCode::Unknown),
        (planned(0, 20, 99), ErrorCode::Unknown),
        (other, ErrorCode::InvalidParameter),
        (planned(4, 20, 22), ErrorCode::InvalidParameter),
        (planned(0, 0, 0), ErrorCode::InvalidParameter),
        (planned(0, 22, 23), ErrorCode::InvalidParameter),
        (planned(0, 20, 10), ErrorCode::InvalidParameter),
        (planned(0, 20, 21), ErrorCode::InvalidParameter),
        (planned(0, 20, 23), ErrorCode::InvalidParameter),
    ];
    for (planned, code) in &bad {
        let command = Command::StartMoves(StartMoves { moves: vec![planned.clone()] });
        assert_eq!(refused(&mut state, command), *code, "{planned:?}");
    }
    let mut all: Vec<_> = bad.into_iter().map(|(planned, _)| planned).collect();
    all.push(planned(0, 20, 22));
    assert_eq!(start(&mut state, &all), [MoveId(1)], "the others are left out");
    let twice = Command::StartMoves(StartMoves { moves: vec![planned(0, 21, 22)] });
    assert_eq!(refused(&mut state, twice), ErrorCode::Unavailable, "one at a time");
    assert_eq!(done(&mut state, StartMoves { moves: vec![] }), Outcome::Moves(vec![]));
}

#[test]
fn slices_of_an_index_that_does_not_serve_do_not_move() {
    let mut state = serving(0);
    done(&mut state, create_index(IndexSpec { replicas: 0, ..spec("j") }));
    let building = PlannedMove { index: IndexId(2), ..planned(0, 20, 22) };
    assert_eq!(refused(&mut state, StartMoves { moves: vec![building] }), ErrorCode::Unavailable);
}

#[test]
fn a_slice_may_move_on_and_may_return_after_its_move_has_ended() {
    let mut state = serving(0);
    let first = start(&mut state, &[planned(0, 20, 22)])[0];
    advance(&mut state, first, MoveStage::Done);
    let back = Command::StartMoves(StartMoves { moves: vec![planned(0, 22, 20)] });
    assert_eq!(refused(&mut state, back.clone()), ErrorCode::Unavailable);
    let second = start(&mut state, &[planned(0, 22, 23)])[0];
    advance(&mut state, second, MoveStage::Done);
    assert_eq!(fed(&state, 0), [20, 22, 23], "two are still read");
    done(&mut state, end(first, None));
    let back = PlannedMove { from: Some(NodeId(23)), ..planned(0, 0, 20) };
    start(&mut state, &[back]);
}

#[test]
fn a_cancel_undoes_what_is_not_done() {
    let mut state = serving(0);
    let plan: Vec<_> = (0..4).map(|slice| planned(slice, 20 + u64::from(slice % 2), 22)).collect();
    let ids = start(&mut state, &plan);
    let stages = [MoveStage::Start, MoveStage::Pending, MoveStage::Catchup, MoveStage::Done];
    ids.iter().zip(stages).for_each(|(id, stage)| advance(&mut state, *id, stage));
    let of = |index| Command::CancelMoves(CancelMoves { index: Some(IndexId(index)) });
    assert_eq!(refused(&mut state, of(9)), ErrorCode::Changed);
    assert_eq!(done(&mut state, of(1)), Outcome::Moves(ids[..3].to_vec()));
    assert_eq!(moves(&state).iter().map(|m| m.id).collect::<Vec<_>>(), ids[3..]);
    let ended = state.catalog().ended_moves;
    assert!(ended.len() == 3 && ended.iter().all(|e| e.undone.as_deref() == Some("cancelled")));
    let cas = state.cas();
    let all = Command::CancelMoves(CancelMoves { index: None });
    assert_eq!(done(&mut state, all), Outcome::Moves(vec![]));
    assert_eq!(state.cas(), cas);
}

#[test]
fn ended_moves_are_bounded_and_numbers_are_given_once() {
    let mut state = serving(0);
    for n in 1..=100 {
        let id = start(&mut state, &[planned(0, 20, 22)])[0];
        assert_eq!(id, MoveId(n));
        done(&mut state, end(id, Some("again")));
    }
    let ended = state.catalog().ended_moves;
    assert_eq!((ended.len(), ended[0].was.id, ended[63].was.id), (64, MoveId(37), MoveId(100)));
}

#[test]
fn ddl_continues_during_moves() {
    let mut state = serving(0);
    start(&mut state, &[planned(0, 20, 22), planned(1, 21, 22)]);
    let copy = StateContext::from_bytes(&state.to_bytes().unwrap()).unwrap();
    assert_eq!(copy, state, "moves survive a snapshot");
    done(&mut state, RegisterNode { node: node(22, Role::Indexer) });
    assert_eq!(
        state,
        StateContext { clock: state.clock.clone(), ..copy },
        "the stage is known already"
    );
    done(&mut state, create_index(IndexSpec { slices: 3, replicas: 0, ..spec("j") }));
    let placed = &state.indexes.named()[&IndexId(2)].info.topology.placement;
    assert_eq!(placed[0], [NodeId(23)], "an arriving slice counts already");
    done(&mut state, DropIndex { index: IndexId(1) });
    done(&mut state, AdvanceMove { index: INDEX, id: MoveId(1), stage: MoveStage::Pending });
    done(&mut state, end(MoveId(1), Some("gone")));
    assert!(state.catalog().ended_moves.is_empty());
    done(&mut state, DropBucket { bucket: BucketId(1), restrict: false });
}

/// Returns a random command, valid or not.
fn random_command(random: &mut fastrand::Rng, state: &StateContext) -> Command {
    let info = &state.indexes.named()[&INDEX].info;
    let any_move = |random: &mut fastrand::Rng| {
        let at = random.usize(..info.moves.len().max(1));
        info.moves.get(at).map_or((MoveId(1), MoveStage::Start), |m| (m.id, m.stage))
    };
    let indexer = |random: &mut fastrand::Rng| random.u64(20..26);
    match random.u8(..20) {
        0..=5 => {
            let one = |random: &mut fastrand::Rng| {
                let mut end = |none: u8| if random.u8(..4) < none { 0 } else { indexer(random) };
                let (from, to) = (end(2), end(1));
                planned(random.u16(..4), from, to)
            };
            Command::StartMoves(StartMoves {
                moves: (0..random.usize(1..4)).map(|_| one(random)).collect(),
            })
        }
        6..=12 => {
            let (id, stage) = any_move(random);
            let next = match stage {
                MoveStage::Start => MoveStage::Pending,
                MoveStage::Pending => MoveStage::Catchup,
                _ => MoveStage::Done,
            };
            Command::AdvanceMove(AdvanceMove { index: INDEX, id, stage: next })
        }
        13..=15 => {
            let undone = if random.u8(..4) == 0 { Some("why") } else { None };
            end(any_move(random).0, undone)
        }
        16 => Command::DrainNode(DrainNode { node: NodeId(indexer(random)), drain: random.bool() }),
        17 => Command::RemoveNode(RemoveNode { node: NodeId(indexer(random)), force: false }),
        18 => match random.bool() {
            true => Command::CancelMoves(CancelMoves { index: None }),
            false => {
                Command::SetReplicas(SetReplicas { index: IndexId(1), replicas: random.u8(..3) })
            }
        },
        _ => Command::RegisterNode(RegisterNode { node: node(indexer(random), Role::Indexer) }),
    }
}

/// Checks the properties that every state has.
fn check_state(state: &StateContext) {
    let record = &state.indexes.named()[&INDEX];
    let info = &record.info;
    for copies in &info.topology.placement {
        assert!(!copies.is_empty(), "a slice lost its last copy");
        let mut once = copies.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), copies.len(), "two copies on a node");
        assert!(copies.iter().all(|node| state.nodes.all().contains_key(node)));
    }
    let numbers = record.topologies.iter().map(|record| record.topology.number);
    assert!(numbers.is_sorted_by(|a, b| a < b), "each number once");
    assert_eq!(record.topologies.last().unwrap().topology, info.topology);
    for slice in 0..4 {
        let of_slice = || info.moves.iter().filter(|m| m.slice.0 == slice);
        assert!(of_slice().filter(|m| m.stage < MoveStage::Done).count() <= 1);
        for m in of_slice().filter(|m| m.stage < MoveStage::Done) {
            assert!(m.from.is_none_or(|from| info.topology.hosts(from, m.slice)));
            assert!(m.to.is_some_and(|to| !info.topology.hosts(to, m.slice)));
        }
    }
}

/// Checks the rules for changes of the nodes that receive or serve a slice.
fn check_change(before: &StateContext, after: &StateContext) {
    let [old, new] = [before, after].map(|state| &state.indexes.named()[&INDEX].info);
    for (slice, id) in (0..4).flat_map(|slice| (20..26).map(move |id| (SliceNo(slice), NodeId(id))))
    {
        let hosts = [old, new].map(|info| info.topology.hosts(id, slice));
        if hosts == [false, true] {
            assert!(old.is_fed(id, slice), "node {id} answers for slice {slice} unprepared");
        }
        if hosts == [true, false] {
            let removed = !after.nodes.all().contains_key(&id);
            assert_eq!(new.is_fed(id, slice), !removed, "scans read slice {slice} on node {id}");
        }
        let at = |info: &IndexInfo, stage| {
            let of = |m: &&SliceMove| (m.slice, m.stage) == (slice, stage);
            info.moves.iter().filter(of).any(|m| match stage {
                MoveStage::Catchup => m.to == Some(id),
                _ => m.from == Some(id),
            })
        };
        let due = new.topology.hosts(id, slice)
            || at(new, MoveStage::Catchup)
            || at(new, MoveStage::Done);
        assert_eq!(new.is_fed(id, slice), due);
    }
}

#[test]
fn no_sequence_of_commands_loses_a_slice_or_serves_an_unfed_copy() {
    let mut carried_out = 0;
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut state = serving((seed % 2) as u8);
        for _ in 0..200 {
            let before = state.clone();
            let command = random_command(&mut random, &state);
            let (outcome, effects) = apply(&mut state, command);
            check_state(&state);
            check_change(&before, &state);
            if matches!(outcome, Outcome::Refused(_)) {
                assert!(effects.is_empty());
                assert_eq!(before.catalog(), state.catalog());
            }
        }
        let ended = state.moves.ended().iter();
        carried_out += ended.filter(|ended| ended.undone.is_none()).count();
        assert_eq!(StateContext::from_bytes(&state.to_bytes().unwrap()).unwrap(), state);
    }
    assert!(carried_out > 1_000, "the commands come to something: {carried_out}");
}
