//! Tests that a command whose result does not fit in a snapshot is refused with an advice, and that
//! dropping objects makes room again.

use proto::expr::Expr;
use proto::model::bucket::SourceKind;
use proto::model::ids::{BucketId, Epoch, IndexId, MoveId, NodeId, SliceNo, TopologyNo};
use proto::model::moves::{EndedMove, MoveStage, SliceMove};
use proto::model::node::{NodeInfo, Role};
use proto::model::topology::IndexTopology;
use proto::rpc::command::{
    CancelVersion, Command, CreateIndex, DropIndex, Outcome, RegisterNode, SetReplicas,
    encoded_bytes,
};
use proto::value::Value;

use super::*;
use crate::state::capacity::limits::{
    DEFINITION_BYTES_IN_ALL_MAX, ENDED_MOVES_MAX, INDEXES_MAX, MOVES_IN_ALL_MAX, NODES_MAX,
    PAST_TOPOLOGY_BYTES_IN_ALL_MAX, PLACES_IN_ALL_MAX, REASON_BYTES_MAX,
};
use crate::state::capacity::table::STATE_BYTES_MAX;
use crate::state::consequence::Consequence;
use crate::state::indexes::record::TopologyRecord;
use crate::state::tests::{apply, create_bucket_of, done, node, spec, with_bucket};

fn create(name: &str, predicate: usize, slices: u16) -> Command {
    create_on("b", name, predicate, slices)
}

fn create_on(bucket: &str, name: &str, predicate: usize, slices: u16) -> Command {
    let text = "x".repeat(predicate);
    let spec = IndexSpec {
        predicate: Some(Expr::Literal(Value::String(text.clone()))),
        bucket: bucket.into(),
        slices,
        replicas: 0,
        sql: text,
        ..spec(name)
    };
    // The buckets in the order of their creation.
    let bucket = BucketId(match bucket {
        "b" => 1,
        "other" => 2,
        _ => bucket[1..].parse::<u64>().expect("a number") + 2,
    });
    Command::CreateIndex(CreateIndex { bucket, spec, defer_build: true, if_not_exists: false })
}

fn refusal(state: &mut StateContext, command: Command) -> Error {
    match apply(state, command) {
        (Outcome::Refused(error), _) => error,
        (outcome, _) => panic!("not refused: {outcome:?}"),
    }
}

#[test]
fn long_definitions_are_refused_before_the_catalog_outgrows_its_message() {
    let mut state = with_bucket();
    (0..8).for_each(|n| {
        done(&mut state, create_bucket_of(&format!("b{n}"), SourceKind::Push));
    });
    let mut made = 0;
    let refused = loop {
        let bucket = format!("b{}", made % 8);
        match apply(&mut state, create_on(&bucket, &format!("i{made}"), 60_000, 1)) {
            (Outcome::Refused(error), _) => break error,
            _ => made += 1,
        }
        assert!(made < 600, "600 long definitions were accepted");
    };
    assert_eq!(refused.code, ErrorCode::OverLimit);
    assert!(refused.hint.unwrap().contains("\"i"), "the longest definitions are named");
    let bytes = encoded_bytes(&state.catalog());
    assert!(bytes < DEFINITION_BYTES_IN_ALL_MAX + (1 << 20), "{bytes}");
    done(&mut state, DropIndex { index: IndexId(1) });
    done(&mut state, create("again", 60_000, 1));
}

#[test]
fn one_bucket_does_not_take_the_room_of_all() {
    let mut state = with_bucket();
    done(&mut state, create_bucket_of("other", SourceKind::Push));
    let mut made = 0;
    let refused = loop {
        match apply(&mut state, create(&format!("i{made}"), 60_000, 1)) {
            (Outcome::Refused(error), _) => break error,
            _ => made += 1,
        }
    };
    assert_eq!(refused.code, ErrorCode::OverLimit);
    assert!(refused.message.contains("bucket \"b\"") && made < 20, "{made}: {refused}");
    done(&mut state, create_on("other", "of_other", 60_000, 1));
    done(&mut state, DropIndex { index: IndexId(1) });
    done(&mut state, create("again", 60_000, 1));
    let mut state = with_bucket();
    done(&mut state, create_bucket_of("other", SourceKind::Push));
    (0..BUCKET_INDEXES_MAX).for_each(|n| drop(done(&mut state, create(&format!("i{n}"), 1, 1))));
    let error = refusal(&mut state, create("more", 1, 1));
    assert!(error.message.contains(&BUCKET_INDEXES_MAX.to_string()), "{error}");
    done(&mut state, create_on("other", "of_other", 1, 1));
}

#[test]
fn more_indexes_than_the_state_has_room_for_are_refused() {
    let mut state = with_bucket();
    (0..INDEXES_MAX).for_each(|n| {
        let record = state.named_indexes().next().cloned();
        match record {
            // One of many equal records. They are not created by commands, because each command checks all of them.
            Some(mut record) => {
                let info = std::sync::Arc::make_mut(&mut record.info);
                info.id = IndexId(n as u64 + 1);
                std::sync::Arc::make_mut(&mut info.spec).name = format!("i{n}");
                state.indexes.named_mut().insert(info.id, record);
            }
            None => drop(done(&mut state, create("i", 1, 1))),
        }
    });
    let error = refusal(&mut state, create("more", 1, 1));
    assert_eq!(error.code, ErrorCode::OverLimit);
    assert!(error.message.contains(&INDEXES_MAX.to_string()), "{error}");
}

#[test]
fn more_copies_of_slices_than_the_state_has_room_for_are_refused() {
    let mut state = with_bucket();
    (0..64).for_each(|n| drop(done(&mut state, create(&format!("i{n}"), 1, 1024))));
    let error = refusal(&mut state, create("more", 1, 1));
    assert_eq!(error.code, ErrorCode::OverLimit);
    let replicas = Command::SetReplicas(SetReplicas { index: IndexId(1), replicas: 1 });
    assert_eq!(refusal(&mut state, replicas).code, ErrorCode::OverLimit);
}

#[test]
fn more_nodes_than_the_state_has_room_for_are_refused() {
    let mut state = with_bucket();
    let first = 1_000;
    let mut register = |n| apply(&mut state, RegisterNode { node: node(n, Role::Router) }).0;
    let refused = (first..).map(&mut register).position(|o| matches!(o, Outcome::Refused(_)));
    assert!(refused.is_some_and(|made| made <= NODES_MAX));
    assert_eq!(register(first), Outcome::Done, "a known node registers again");
}

#[test]
fn a_refusal_that_quotes_a_long_name_is_cut() {
    let mut state = with_bucket();
    let (bucket, version) = (BucketId(1), "ü".repeat(1 << 20));
    let cancel = Command::CancelVersion(CancelVersion { bucket, version });
    assert!(refusal(&mut state, cancel).message.len() <= 1024);
}

#[test]
fn past_topologies_of_all_indexes_are_bounded() {
    let mut state = with_bucket();
    done(&mut state, create("wide", 1, 1024));
    done(&mut state, create("narrow", 1, 1));
    for record in state.indexes.named_mut().values_mut() {
        let newest = record.topologies[0].clone();
        record.topologies = (0..300)
            .map(|n| {
                let mut past = newest.clone();
                past.position = n;
                past
            })
            .collect();
    }
    state.carry_out(&Consequence::CatalogChanged);
    let kept = |record: &IndexRecord| encoded_bytes(&record.topologies);
    let bytes: usize = state.named_indexes().map(kept).sum();
    assert!(bytes <= PAST_TOPOLOGY_BYTES_IN_ALL_MAX, "{bytes}");
    assert!(state.named_indexes().all(|record| record.topologies.len() > 100), "the oldest go");
}

/// The bytes in a snapshot of the kinds of records with these names.
fn bytes_of(kinds: &[&str]) -> usize {
    let named = CAPACITIES.iter().filter(|of| kinds.contains(&of.what));
    let bytes: Vec<usize> = named.map(|of| of.limit * of.bytes).collect();
    assert_eq!(bytes.len(), kinds.len(), "{kinds:?}");
    bytes.iter().sum()
}

#[test]
fn as_many_of_the_largest_records_as_possible_take_the_bytes_of_the_table() {
    let mut state = with_bucket();
    done(&mut state, create("i", 1, 1));
    let (most, node) = (u64::MAX, NodeId(u64::MAX));
    let (nodes, draining) = state.nodes.edit();
    for id in (0..NODES_MAX as u64).map(|n| NodeId(most - n)) {
        let (address, zone) = ("a".repeat(255), "z".repeat(255));
        nodes.insert(id, Arc::new(NodeInfo { id, role: Role::Indexer, address, zone }));
        draining.insert(id);
    }
    let bytes = encoded_bytes(&state.nodes);
    assert!(bytes <= bytes_of(&["nodes", "removed nodes"]), "{bytes} bytes of nodes");
    let moved = SliceMove {
        id: MoveId(most),
        slice: SliceNo(u16::MAX),
        from: Some(node),
        to: Some(node),
        stage: MoveStage::Done,
        epoch: Epoch(most),
    };
    let record = state.indexes.named_mut().pop_first().unwrap().1;
    for id in (0..INDEXES_MAX as u64).map(|n| IndexId(most - n)) {
        let mut record = record.clone();
        let info = Arc::make_mut(&mut record.info);
        let placement = vec![vec![node]; PLACES_IN_ALL_MAX / INDEXES_MAX];
        info.id = id;
        info.topology = Arc::new(IndexTopology { number: TopologyNo(most), placement });
        info.moves = vec![moved.clone(); MOVES_IN_ALL_MAX / INDEXES_MAX];
        let topology = Arc::clone(&info.topology);
        record.topologies = vec![TopologyRecord { topology, position: most, unix_ms: most }];
        state.indexes.named_mut().insert(id, record);
    }
    let definitions: usize = state.indexes.infos().map(|info| encoded_bytes(&*info.spec)).sum();
    let bytes = encoded_bytes(&state.indexes) - definitions;
    let kinds = ["indexes", "copies of slices", "moves in progress"];
    assert!(bytes <= bytes_of(&kinds), "{bytes} bytes of indexes");
    let undone = Some("w".repeat(2 * REASON_BYTES_MAX));
    let ended = vec![EndedMove { index: IndexId(most), was: moved, undone }; ENDED_MOVES_MAX + 1];
    state.carry_out(&Consequence::SliceMovesEnded(ended));
    let bytes = encoded_bytes(&state.moves);
    assert!(bytes <= bytes_of(&["ended moves"]), "{bytes} bytes of moves");
    assert!(state.to_bytes().unwrap().len() < STATE_BYTES_MAX);
}
