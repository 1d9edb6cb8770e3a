use proto::model::ids::{BucketId, IndexId, MoveId};
use proto::model::index::IndexSpec;
use proto::rpc::command::{
    BuildIndexes, Command, CreateIndex, DrainNode, RegisterNode, RemoveNode, ReplaceLostSlices,
};

use super::*;
use crate::state::tests::{
    advance, apply, apply_decided, avoiding, copies, create_index, done, done_decided, node,
    planned, refused, serving, spec, start, with_bucket,
};

const INDEX: IndexId = IndexId(1);

fn force(node: u64) -> Command {
    Command::RemoveNode(RemoveNode { node: NodeId(node), force: true })
}

/// Runs the leader's command: the copies of complete indexes on `lost` nodes are lost, and those of
/// unfinished builds on `lost_to_builds` nodes.
fn place_lost(state: &mut StateContext, lost: &[u64], lost_to_builds: &[u64]) -> Outcome {
    let nodes = |ids: &[u64]| ids.iter().copied().map(NodeId).collect::<Vec<_>>();
    let command = Command::ReplaceLostSlices(ReplaceLostSlices {
        lost: nodes(lost),
        lost_to_builds: nodes(lost_to_builds),
    });
    done_decided(state, avoiding(&[lost, lost_to_builds].concat()), command)
}

fn all_copies(state: &StateContext) -> [Vec<u64>; 4] {
    [0, 1, 2, 3].map(|slice| copies(state, slice))
}

fn refusal(state: &mut StateContext, command: Command) -> Error {
    match apply(state, command) {
        (Outcome::Refused(error), _) => error,
        (outcome, _) => panic!("not refused: {outcome:?}"),
    }
}

#[test]
fn force_gives_the_only_copies_to_other_nodes() {
    let mut state = serving(0);
    let before = state.indexes.named()[&INDEX].info.clone();
    let refusal =
        refusal(&mut state, Command::RemoveNode(RemoveNode { node: NodeId(20), force: false }));
    assert!(refusal.hint.unwrap().contains("REMOVE NODE '20' FORCE"));
    done(&mut state, force(20));
    assert!(state.node(NodeId(20)).is_none());
    let [zero, one, two, three] = all_copies(&state);
    assert_eq!((one, three), (vec![21], vec![21]), "they stay");
    let heirs = [zero[0], two[0]];
    assert!(heirs == [22, 23] || heirs == [23, 22], "each goes to another one: {heirs:?}");
    let after = &state.indexes.named()[&INDEX].info;
    assert_eq!(after.topology.number.0, before.topology.number.0 + 1);
    assert_eq!(after.generation, before.generation, "the other slices go on");
    assert!(after.revision > before.revision);
}

#[test]
fn force_leaves_other_copies_alone() {
    let mut state = serving(1);
    done(&mut state, force(20));
    assert_eq!(all_copies(&state), [vec![21], vec![21], vec![21], vec![21]]);
    done(&mut state, force(21));
    let left = all_copies(&state);
    assert!(left.iter().all(|copies| copies.len() == 1 && copies[0] >= 22), "{left:?}");
}

#[test]
fn force_is_refused_without_a_node_that_reports_and_may_receive_slices() {
    let mut state = serving(0);
    let before = state.catalog();
    let (outcome, _) = apply_decided(&mut state, avoiding(&[21, 22, 23]), force(20));
    let Outcome::Refused(error) = outcome else { panic!("not refused: {outcome:?}") };
    assert_eq!(error.code, ErrorCode::WrongState);
    assert!(error.message.contains("slice 0 of index \"i\""), "{error}");
    assert!(error.hint.unwrap().contains("start another indexer"));
    assert_eq!(state.catalog(), before, "and nothing has changed");
    for node in [21, 22].map(NodeId) {
        done(&mut state, DrainNode { node, drain: true });
    }
    done_decided(&mut state, avoiding(&[21, 22]), force(20));
    assert_eq!((copies(&state, 0), copies(&state, 2)), (vec![23], vec![23]));
}

#[test]
fn an_index_that_is_built_is_placed_anew_and_an_unbuilt_one_too() {
    for defer_build in [false, true] {
        let mut state = with_bucket();
        let spec = IndexSpec { replicas: 0, ..spec("i") };
        done(
            &mut state,
            CreateIndex { bucket: BucketId(1), spec, defer_build, if_not_exists: false },
        );
        done(&mut state, force(20));
        assert_eq!(all_copies(&state), [vec![21], vec![21], vec![21], vec![21]]);
        assert_eq!(refused(&mut state, force(21)), ErrorCode::WrongState, "it is the last one");
    }
}

#[test]
fn moves_of_a_lost_slice_end_and_others_go_on() {
    let mut state = serving(0);
    let ids = start(&mut state, &[planned(0, 20, 22), planned(1, 21, 23), planned(2, 20, 23)]);
    advance(&mut state, ids[2], MoveStage::Catchup);
    done(&mut state, force(20));
    let left: Vec<MoveId> = state.indexes.named()[&INDEX].info.moves.iter().map(|m| m.id).collect();
    assert_eq!(left, [ids[1]]);
    let ended = state.catalog().ended_moves;
    let why = |id| ended.iter().find(|e| e.was.id == id).and_then(|e| e.undone.clone());
    assert!([ids[0], ids[2]].iter().all(|id| why(*id).is_some_and(|why| why.contains("lost"))));
    assert_eq!(copies(&state, 0).len(), 1);
}

#[test]
fn a_node_that_has_just_given_the_slice_away_takes_it_back() {
    let mut state = serving(0);
    let ids = start(&mut state, &[planned(0, 20, 22), planned(1, 21, 22)]);
    ids.iter().for_each(|id| advance(&mut state, *id, MoveStage::Done));
    done(&mut state, DrainNode { node: NodeId(20), drain: true });
    done_decided(&mut state, avoiding(&[21]), force(22));
    assert_eq!(copies(&state, 0), [20], "its copy is still fed, though it is drained");
    assert_eq!(copies(&state, 1), [23], "the copy on a silent node may be lost as well");
    assert!(state.indexes.named()[&INDEX].info.moves.is_empty());
    assert!(state.indexes.named()[&INDEX].info.is_fed(NodeId(20), SliceNo(0)));
}

#[test]
fn force_gives_up_no_documents() {
    let mut state = serving(0);
    let kept =
        refusal(&mut state, Command::RemoveNode(RemoveNode { node: NodeId(10), force: false }));
    let forced = refusal(&mut state, force(10));
    assert_eq!((kept.code, kept.message), (forced.code, forced.message));
    let hint = forced.hint.unwrap();
    assert!(hint.contains("never documents") && hint.contains(&kept.hint.unwrap()), "{hint}");
    done(&mut state, RegisterNode { node: node(30, Role::Router) });
    done(&mut state, force(30));
    assert_eq!(refused(&mut state, force(99)), ErrorCode::Unknown);
}

#[test]
fn slices_of_nodes_that_are_silent_for_very_long_go_elsewhere() {
    let mut state = serving(0);
    done(&mut state, create_index(IndexSpec { slices: 8, replicas: 1, ..spec("j") }));
    place_lost(&mut state, &[20], &[20]);
    let [zero, one, two, three] = all_copies(&state);
    assert_eq!((one, three), (vec![21], vec![21]));
    assert!(zero != [20] && two != [20], "{zero:?} {two:?}");
    assert!(state.node(NodeId(20)).is_some(), "it may come back");
    let j = state.catalog().index("j").unwrap().topology.clone();
    assert!(j.nodes().contains(&NodeId(20)), "the other copies of its slices can be read");
    let cas = state.cas();
    place_lost(&mut state, &[20], &[20]);
    assert_eq!(state.cas(), cas, "twice is once");
    place_lost(&mut state, &[21, 22, 23], &[]);
    assert_eq!(all_copies(&state), [0; 4].map(|_| vec![20]), "20 is back");
    place_lost(&mut state, &[20, 21, 22, 23], &[]);
    assert_eq!(all_copies(&state), [0; 4].map(|_| vec![20]), "nobody could take them");
}

#[test]
fn a_build_waits_for_a_silent_node_less_long_than_an_index_that_serves() {
    let mut state = serving(0);
    done(&mut state, create_index(IndexSpec { replicas: 0, ..spec("j") }));
    assert!(!state.has_lost(&[], &[]) && state.has_lost(&[], &[NodeId(22)]));
    place_lost(&mut state, &[], &[20, 22]);
    assert_eq!(copies(&state, 0), [20]);
    let nodes = state.catalog().index("j").unwrap().topology.nodes();
    assert!(!nodes.contains(&NodeId(20)) && !nodes.contains(&NodeId(22)), "{nodes:?}");
}

#[test]
fn new_indexes_avoid_silent_nodes_if_enough_others_are_there() {
    let mut state = serving(0);
    let create = |name: &str, defer_build| {
        Command::CreateIndex(CreateIndex {
            bucket: BucketId(1),
            spec: IndexSpec { slices: 16, ..spec(name) },
            defer_build,
            if_not_exists: false,
        })
    };
    done_decided(&mut state, avoiding(&[22, 23]), create("j", false));
    let nodes = |state: &StateContext, name| state.catalog().index(name).unwrap().topology.nodes();
    assert_eq!(nodes(&state, "j"), [NodeId(20), NodeId(21)]);
    done_decided(&mut state, avoiding(&[21, 22, 23]), create("k", false));
    let k = state.catalog().index("k").unwrap().topology.clone();
    let reads = |copies: &Vec<NodeId>| copies.len() == 2 && copies.contains(&NodeId(20));
    assert!(k.placement.iter().all(reads), "each slice has a copy that can be built: {k:?}");
    done(&mut state, create("l", true));
    assert!([20, 22].iter().any(|id| nodes(&state, "l").contains(&NodeId(*id))));
    let build = Command::BuildIndexes(BuildIndexes { indexes: vec![IndexId(4)] });
    done_decided(&mut state, avoiding(&[20, 22]), build);
    assert_eq!(nodes(&state, "l"), [NodeId(21), NodeId(23)]);
}
