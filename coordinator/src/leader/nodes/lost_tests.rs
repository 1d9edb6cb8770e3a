use proto::model::ids::IndexId;
use proto::model::index::IndexSpec;
use proto::rpc::command::{DropIndex, SetReplicas};

use super::*;
use crate::leader::memory::Leader;
use crate::leader::memory::tests::heartbeat;
use crate::state::Decisions;
use crate::state::tests::{copies, create_index, done, done_decided, serving, spec};

const MINUTE: u64 = 60_000;

fn leader() -> Leader {
    Leader::new(1, 0, 20, MoveSettings::default())
}

/// Delivers heartbeats of indexers each second in a period, and applies the leader's plans for lost
/// slices.
fn reporting(leader: &mut Leader, state: &mut StateContext, nodes: &[u64], from: u64, to: u64) {
    for now_ms in (from..to).step_by(1_000) {
        for node in nodes {
            leader.record_heartbeat(heartbeat(*node), now_ms);
        }
        for command in leader.plan(state, now_ms).commands {
            if matches!(command, Command::ReplaceLostSlices(_)) {
                let silent = leader.silent_nodes_for(state, &command, now_ms);
                assert!(!silent.is_empty());
                done_decided(state, Decisions { silent, ..Decisions::default() }, command);
            }
        }
    }
}

#[test]
fn slices_whose_nodes_are_silent_for_an_hour_are_rebuilt_elsewhere() {
    let (mut state, mut leader) = (serving(0), leader());
    reporting(&mut leader, &mut state, &[20, 21, 22, 23], 0, MINUTE);
    reporting(&mut leader, &mut state, &[21, 22, 23], MINUTE, 60 * MINUTE);
    assert_eq!(copies(&state, 0), [20], "its directory is worth more than a rebuild");
    reporting(&mut leader, &mut state, &[21, 22, 23], 60 * MINUTE, 61 * MINUTE + 5_000);
    let left = [0, 1, 2, 3].map(|slice| copies(&state, slice)[0]);
    assert!(!left.contains(&20) && left[1] == 21 && left[3] == 21, "{left:?}");
    assert!(state.node(NodeId(20)).is_some());
}

#[test]
fn nothing_is_given_up_if_the_setting_is_off_or_most_nodes_are_silent() {
    let settings = MoveSettings { lost_after_ms: None, ..MoveSettings::default() };
    let (mut state, mut off) = (serving(0), Leader::new(1, 0, 20, settings));
    reporting(&mut off, &mut state, &[21, 22, 23], 0, 90 * MINUTE);
    assert_eq!(copies(&state, 0), [20]);
    let mut alone = leader();
    reporting(&mut alone, &mut state, &[23], 0, 90 * MINUTE);
    assert_eq!(copies(&state, 0), [20], "three of four: it is the network rather");
    let mut new = leader();
    reporting(&mut new, &mut state, &[22, 23], 0, 30 * MINUTE);
    assert_eq!(copies(&state, 0), [20], "a new leader waits for as long");
}

#[test]
fn a_build_leaves_a_node_that_dies_meanwhile_after_a_minute() {
    let (mut state, mut leader) = (serving(0), leader());
    done(&mut state, create_index(IndexSpec { replicas: 0, ..spec("j") }));
    let hosts = |state: &StateContext| state.catalog().index("j").unwrap().topology.nodes();
    assert_eq!(hosts(&state), [22, 23].map(NodeId));
    reporting(&mut leader, &mut state, &[20, 21, 22], 0, MINUTE);
    assert!(hosts(&state).contains(&NodeId(23)), "it may be back");
    reporting(&mut leader, &mut state, &[20, 21, 22], MINUTE, MINUTE + 5_000);
    assert!(!hosts(&state).contains(&NodeId(23)));
    assert_eq!(state.indexes().next().unwrap().info.id, IndexId(1), "the other index stays");
}

#[test]
fn commands_that_place_slices_learn_which_nodes_are_silent() {
    let (state, mut leader) = (serving(0), leader());
    let create = create_index(spec("j"));
    let drop_index = Command::DropIndex(DropIndex { index: IndexId(1) });
    leader.record_heartbeat(heartbeat(20), 4_000);
    assert_eq!(leader.silent_nodes_for(&state, &create, 4_000), [], "a young term");
    assert_eq!(leader.silent_nodes_for(&state, &create, 6_000), [21, 22, 23].map(NodeId));
    assert_eq!(leader.silent_nodes_for(&state, &drop_index, 6_000), []);
}

#[test]
fn force_gives_up_nothing_of_a_node_that_is_alive() {
    let (mut state, mut leader) = (serving(0), leader());
    leader.record_heartbeat(heartbeat(20), 10_000);
    let error = leader.check_forced_removal(&state, NodeId(20), 12_000).unwrap_err();
    assert_eq!(error.code, ErrorCode::WrongState);
    assert!(error.message.contains("node 20 is alive") && error.message.contains("\"i\""));
    let hint = error.hint.unwrap();
    assert!(hint.contains("DRAIN NODE '20'") && hint.contains("stop its process"), "{hint}");
    assert_eq!(leader.check_forced_removal(&state, NodeId(20), 15_000), Ok(()), "it is silent");
    assert_eq!(leader.check_forced_removal(&state, NodeId(22), 12_000), Ok(()), "it has nothing");
    assert_eq!(
        leader.check_forced_removal(&state, NodeId(10), 12_000),
        Ok(()),
        "the state decides"
    );
    let replicas = Command::SetReplicas(SetReplicas { index: IndexId(1), replicas: 1 });
    done(&mut state, replicas);
    assert!(
        leader.check_forced_removal(&state, NodeId(20), 12_000).is_err(),
        "no copy was made yet"
    );
}
