use proto::model::identity::{ClusterId, NodeProof};
use proto::model::ids::{BucketId, IndexId, SliceNo};
use proto::model::index::IndexSpec;
use proto::model::moves::MoveStage;
use proto::rpc::command::{
    BuildGeneration, Command, CreateIndex, DrainNode, DropGeneration, DropIndex, IndexReady, Join,
    RegisterNode, RemoveNode, SetReplicas,
};

use super::*;
use crate::state::Decisions;
use crate::state::tests::{
    advance, apply, apply_decided, copies, create_bucket, create_index, done, done_decided, node,
    planned, refused, serving, spec, start,
};

const INDEX: IndexId = IndexId(1);

fn drain(node: u64, drain: bool) -> Command {
    Command::DrainNode(DrainNode { node: NodeId(node), drain })
}

fn remove(node: u64) -> Command {
    Command::RemoveNode(RemoveNode { node: NodeId(node), force: false })
}

fn replicas(replicas: u8) -> Command {
    Command::SetReplicas(SetReplicas { index: IndexId(1), replicas })
}

fn refusal(state: &mut StateContext, command: Command) -> Error {
    match apply(state, command) {
        (Outcome::Refused(error), _) => error,
        (outcome, _) => panic!("not refused: {outcome:?}"),
    }
}

#[test]
fn a_draining_node_receives_nothing() {
    let mut state = serving(0);
    let to_22 = start(&mut state, &[planned(0, 20, 22)])[0];
    done(&mut state, drain(22, true));
    assert_eq!(state.catalog().draining, [NodeId(22)].into());
    let ended = &state.catalog().ended_moves[0];
    assert_eq!(ended.was.id, to_22);
    assert_eq!(ended.undone.as_deref(), Some("target node 22 is being drained"));
    done(&mut state, create_index(IndexSpec { slices: 64, replicas: 2, ..spec("j") }));
    assert!(!state.catalog().index("j").unwrap().topology.nodes().contains(&NodeId(22)));
    let cas = state.cas();
    done(&mut state, drain(22, true));
    assert_eq!(state.cas(), cas, "twice is once");
    done(&mut state, drain(22, false));
    assert!(state.catalog().draining.is_empty());
    start(&mut state, &[planned(0, 20, 22)]);
}

#[test]
fn a_drain_that_could_never_end_is_refused() {
    let mut state = serving(1);
    assert_eq!(refused(&mut state, drain(10, true)), ErrorCode::InvalidParameter, "a projector");
    assert_eq!(refused(&mut state, drain(99, true)), ErrorCode::Unknown);
    [22, 23].iter().for_each(|id| assert_eq!(done(&mut state, drain(*id, true)), Outcome::Done));
    let error = refusal(&mut state, drain(20, true));
    assert_eq!(error.code, ErrorCode::InvalidParameter);
    assert!(error.message.contains("\"i\": replicas = 1 needs 2 indexers"), "{error}");
    done(&mut state, DropIndex { index: IndexId(1) });
    done(&mut state, drain(20, true));
    let error = refusal(&mut state, drain(21, true));
    assert!(error.message.contains("last indexer") && error.hint.is_some(), "{error}");
}

#[test]
fn slices_of_an_unbuilt_index_are_reassigned_at_once() {
    let mut state = serving(0);
    let deferred = Command::CreateIndex(CreateIndex {
        bucket: BucketId(1),
        spec: IndexSpec { slices: 8, replicas: 1, ..spec("j") },
        defer_build: true,
        if_not_exists: false,
    });
    done(&mut state, deferred);
    let nodes = |state: &StateContext| state.catalog().index("j").unwrap().topology.nodes();
    assert!(nodes(&state).contains(&NodeId(22)));
    done(&mut state, drain(22, true));
    assert!(!nodes(&state).contains(&NodeId(22)));
    done(&mut state, remove(23));
    assert_eq!(nodes(&state), [NodeId(20), NodeId(21)]);
    let topology = state.catalog().index("j").unwrap().topology.clone();
    assert!(topology.placement.iter().all(|copies| copies.len() == 2));
    assert_eq!(topology.number.0, 3, "each a state of its own");
}

#[test]
fn a_node_with_the_only_copy_is_not_removed() {
    let mut state = serving(0);
    let error = refusal(&mut state, remove(20));
    assert!(error.message.contains("only copy of slice 0 of index \"i\""), "{error}");
    assert!(error.hint.unwrap().contains("DRAIN NODE"));
    assert_eq!(refused(&mut state, remove(20)), ErrorCode::InvalidParameter);
    done(&mut state, remove(22));
    assert!(state.node(NodeId(22)).is_none());
    assert_eq!(refused(&mut state, remove(22)), ErrorCode::Unknown);
}

#[test]
fn a_drained_node_with_the_only_copy_of_a_retired_slice_is_not_removed_before_that_is_gone() {
    let mut state = serving(0);
    let old = state.indexes.named()[&INDEX].info.clone();
    let spec = Box::new((*old.spec).clone());
    let build = Command::BuildGeneration(BuildGeneration { index: old.id, spec });
    done(&mut state, drain(20, true));
    let Outcome::Generation(next) = done(&mut state, build) else { panic!("no generation") };
    done(&mut state, IndexReady { index: next.index, generation: next.generation });
    assert!(old.topology.hosts(NodeId(20), SliceNo(0)));
    let serving = state.indexes.named()[&INDEX].info.clone();
    assert!(!serving.topology.nodes().contains(&NodeId(20)), "it is drained");
    let before = state.clone();
    let error = refusal(&mut state, remove(20));
    assert_eq!(error.code, ErrorCode::WrongState);
    assert!(error.message.contains("slice 0 of an older generation of index \"i\""), "{error}");
    assert!(error.hint.as_ref().unwrap().contains("SHOW SLICES"), "{error:?}");
    assert_eq!(state.indexes, before.indexes);
    done(&mut state, DropGeneration { generation: old.local_id() });
    done(&mut state, remove(20));
}

#[test]
fn removing_a_node_removes_its_copies_and_moves() {
    let mut state = serving(1);
    let plan = [planned(0, 20, 22), planned(1, 20, 23), planned(2, 21, 22), planned(3, 21, 23)];
    let ids = start(&mut state, &plan);
    advance(&mut state, ids[1], MoveStage::Catchup);
    advance(&mut state, ids[3], MoveStage::Done);
    done(&mut state, drain(20, true));
    done(&mut state, remove(20));
    let all: Vec<_> = (0..4).map(|slice| copies(&state, slice)).collect();
    assert_eq!(all, [vec![21], vec![21], vec![21], vec![23]]);
    assert!(state.catalog().draining.is_empty());
    let left: Vec<_> =
        state.indexes.named()[&INDEX].info.moves.iter().map(|m| (m.id, m.from)).collect();
    let node_21 = Some(NodeId(21));
    assert_eq!(left, [(ids[0], None), (ids[1], None), (ids[2], node_21), (ids[3], node_21)]);
    advance(&mut state, ids[1], MoveStage::Done);
    assert_eq!(copies(&state, 1), [21, 23], "its target's copy is one more");

    done(&mut state, remove(22));
    let undone: Vec<_> = state.catalog().ended_moves.iter().map(|e| e.was.id).collect();
    assert_eq!(undone, [ids[0], ids[2]], "moves to it are undone");
    assert_eq!(
        refused(&mut state, remove(21)),
        ErrorCode::InvalidParameter,
        "slice 0 is there alone"
    );
}

#[test]
fn a_removed_node_that_a_move_leaves_is_read_no_more() {
    let mut state = serving(0);
    let plan = [planned(0, 20, 22), planned(2, 20, 22)];
    let ids = start(&mut state, &plan);
    ids.iter().for_each(|id| advance(&mut state, *id, MoveStage::Done));
    done(&mut state, remove(20));
    let info = &state.indexes.named()[&INDEX].info;
    assert!(info.moves.is_empty() && !info.is_fed(NodeId(20), SliceNo(0)));
    let ended = state.catalog().ended_moves;
    assert!(ended.len() == 2 && ended.iter().all(|e| e.undone.is_none()), "they were done");
    done(&mut state, RegisterNode { node: node(20, Role::Indexer) });
    start(&mut state, &[planned(0, 22, 20)]);
}

#[test]
fn other_roles_are_removed_when_nothing_depends_on_them() {
    let mut state = serving(0);
    done(&mut state, RegisterNode { node: node(1, Role::Coordinator) });
    done(&mut state, RegisterNode { node: node(30, Role::Router) });
    done(&mut state, RegisterNode { node: node(11, Role::Projector) });
    assert_eq!(refused(&mut state, remove(1)), ErrorCode::InvalidParameter);
    assert_eq!(refused(&mut state, remove(10)), ErrorCode::InvalidParameter, "it keeps bucket b");
    [30, 11].iter().for_each(|id| assert_eq!(done(&mut state, remove(*id)), Outcome::Done));
    done(&mut state, create_bucket("c"));
}

#[test]
fn replicas_need_enough_nodes() {
    let mut state = serving(1);
    done(&mut state, drain(23, true));
    assert_eq!(refused(&mut state, replicas(8)), ErrorCode::InvalidParameter);
    assert_eq!(refused(&mut state, replicas(3)), ErrorCode::Unavailable, "one is being drained");
    let unknown = Command::SetReplicas(SetReplicas { index: IndexId(9), replicas: 0 });
    assert_eq!(refused(&mut state, unknown), ErrorCode::Changed);
    let before = state.indexes.named()[&INDEX].info.topology.clone();
    done(&mut state, replicas(2));
    assert_eq!(state.catalog().index("i").unwrap().spec.replicas, 2);
    let cas = state.cas();
    done(&mut state, replicas(2));
    assert_eq!(state.cas(), cas);
    done(&mut state, replicas(0));
    assert_eq!(
        state.indexes.named()[&INDEX].info.topology,
        before,
        "the leader moves, not the command"
    );
}

/// Returns the join request of a process whose directory has this cluster and this proof.
fn join(id: u64, cluster: Option<u128>, proof: u128) -> Command {
    Command::Join(Join {
        request: Box::new(JoinRequest {
            node: node(id, Role::Indexer),
            cluster: cluster.map(ClusterId),
            fresh: ClusterId(7),
            proof: NodeProof(proof),
        }),
    })
}

#[test]
fn the_first_node_founds_the_cluster_and_data_of_another_one_is_refused() {
    let mut state = StateContext::default();
    let early = refused(&mut state, join(20, Some(9), 1));
    assert_eq!(early, ErrorCode::InvalidParameter, "others have data, this coordinator has none");
    assert_eq!(state.catalog().cluster, None);
    assert_eq!(done(&mut state, join(20, None, 1)), Outcome::Joined(ClusterId(7)));
    assert_eq!(state.catalog().cluster, Some(ClusterId(7)));
    assert_eq!(refused(&mut state, join(21, Some(9), 2)), ErrorCode::InvalidParameter);
    assert_eq!(done(&mut state, join(21, Some(7), 2)), Outcome::Joined(ClusterId(7)));
}

#[test]
fn a_second_process_gets_a_nodes_number_only_in_place_of_the_one_that_the_leader_names() {
    let mut state = StateContext::default();
    done(&mut state, join(20, None, 1));
    done(&mut state, join(20, Some(7), 1));
    assert_eq!(refused(&mut state, join(20, None, 2)), ErrorCode::NodeTaken);
    let replacing = |proof| {
        let replaces = Some(NodeProof(proof));
        Decisions { replaces, ..Decisions::default() }
    };
    let (other, _) = apply_decided(&mut state, replacing(3), join(20, None, 2));
    assert!(matches!(other, Outcome::Refused(error) if error.code == ErrorCode::NodeTaken));
    let unproven = Command::RegisterNode(RegisterNode { node: node(20, Role::Indexer) });
    assert_eq!(refused(&mut state, unproven), ErrorCode::NodeTaken);
    assert_eq!(state.proof(NodeId(20)), Some(NodeProof(1)));
    done_decided(&mut state, replacing(1), join(20, None, 2));
    assert_eq!(refused(&mut state, join(20, Some(7), 1)), ErrorCode::NodeTaken, "the old one");
    done(&mut state, remove(20));
    done(&mut state, join(20, Some(7), 1));
}
