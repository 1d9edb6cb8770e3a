//! The kept topologies of an index.

use proto::ErrorCode;
use proto::model::ids::{Generation, IndexId, LocalIndexId, NodeId, SliceNo};

use super::*;
use crate::state::indexes::placement::{change_copies, change_placement};
use crate::state::tests::{apply, create_index, spec, with_bucket};

fn record() -> IndexRecord {
    let mut state = with_bucket();
    apply(&mut state, create_index(spec("i")));
    state.indexes.named_mut().remove(&IndexId(1)).unwrap()
}

/// Moves slice 0 back and forth.
fn turn(record: &mut IndexRecord, unix_ms: u64) {
    record.change(0, unix_ms, |info| {
        let from = info.topology.placement[0][0];
        let to = NodeId(if from.0 == 20 { 40 } else { 20 });
        change_copies(info, SliceNo(0), Some(from), Some(to));
    });
}

#[test]
fn topologies_are_remembered_while_a_scan_may_name_them() {
    let mut record = record();
    (0..1000).for_each(|n| turn(&mut record, n * 500));
    assert_eq!(record.topologies.len(), 1001, "all of eight minutes");
    let first = record.topology(TopologyNo(1)).unwrap();
    assert_eq!(first.placement[0][0], NodeId(20));
    turn(&mut record, 500 * 500 + KEPT_MS);
    let oldest = &record.topologies[0].topology;
    assert_eq!(oldest.number, TopologyNo(501), "it held until the time that is kept began");
    turn(&mut record, 100 * KEPT_MS);
    assert_eq!(record.topologies.len(), TOPOLOGIES_MIN);
    assert!(record.topology(TopologyNo(900)).is_none());
}

#[test]
fn the_history_of_a_large_index_is_bounded() {
    let mut record = record();
    record.change(0, 0, |info| change_placement(info, vec![vec![NodeId(20); 2]; 512]));
    (0..200).for_each(|n| turn(&mut record, n));
    assert_eq!(record.topologies.len(), PLACES_MAX / 1024);
    let numbers: Vec<u64> = record.topologies.iter().map(|r| r.topology.number.0).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b));
}

#[test]
fn a_topology_is_found_by_its_number_or_the_error_says_why_not() {
    let mut state = with_bucket();
    apply(&mut state, create_index(spec("i")));
    let id = |index, generation| LocalIndexId {
        index: IndexId(index),
        generation: Generation(generation),
    };
    let code = |id, number| state.topology(id, TopologyNo(number)).unwrap_err().code;
    assert_eq!(state.topology(id(1, 1), TopologyNo(1)).unwrap().placement.len(), 4);
    assert_eq!(code(id(1, 1), 0), ErrorCode::SnapshotTooOld);
    assert_eq!(code(id(1, 1), 2), ErrorCode::Unavailable, "this member may be behind");
    assert_eq!(code(id(2, 1), 1), ErrorCode::Unavailable);
    assert_eq!(code(id(1, 2), 1), ErrorCode::Unavailable, "of a generation too");
    assert_eq!(code(id(0, 1), 1), ErrorCode::Unknown);
    assert_eq!(code(id(1, 0), 1), ErrorCode::Unknown);
}
