//! The bootstrap of a term: when a leader is active, and which differences it finds.

use proto::model::assignment::VbucketSet;
use proto::model::history::{FailoverLogs, SourceHistory};
use proto::model::ids::{Epoch, Generation, IndexId, Seqno, Vbuuid};
use proto::rpc::api::{BucketProgress, Heartbeat, IndexerReport};
use proto::rpc::command::{RegisterNode, RemoveNode};

use super::*;
use crate::leader::memory::Leader;
use crate::leader::memory::tests::{indexer_of, slice_progress};
use crate::leader::moves::settings::MoveSettings;
use crate::state::tests::{node, serving};

fn says(leader: &mut Leader, node: u64, slices: &[u16], seqnos: [u64; 2]) {
    let progress = |slice: &u16| {
        let slice =
            SliceId { index: IndexId(1), generation: Generation(1), slice: SliceNo(*slice) };
        slice_progress(slice, Some(Epoch(1)))
    };
    let at = |seqno| Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) };
    let bucket = BucketProgress {
        bucket: BucketId(1),
        high_watermark: Cut::from_positions(seqnos.map(at).to_vec()),
        applied: Epoch(1),
        durable: Epoch(1),
        queue_bytes: 0,
        queue_bytes_max: 1,
    };
    let report = IndexerReport {
        buckets: vec![bucket],
        slices: slices.iter().map(progress).collect(),
        ..IndexerReport::default()
    };
    let heartbeat = Heartbeat::new(NodeId(node), 0, report);
    leader.record_heartbeat(heartbeat, 10);
}

fn history() -> SourceHistory {
    let logs = FailoverLogs::new(vec![vec![(Vbuuid(7), 0)]; 2]);
    SourceHistory { durable: Cut::zero(2), logs: logs.into(), kept: VbucketSet::all(2) }
}

#[test]
fn a_leader_is_active_after_all_reports_or_after_a_timeout() {
    let state = serving(0);
    let new = || Leader::new(1, 0, 20, MoveSettings::default());
    let mut leader = new();
    [20, 21, 22].into_iter().for_each(|node| says(&mut leader, node, &[], [0, 0]));
    let asked = leader.begin_query();
    leader.record_history(&state, BucketId(1), asked, history()).unwrap();
    leader.plan(&state, 15);
    assert!(!leader.is_active(&state, 20), "node 23 has said nothing");
    says(&mut leader, 23, &[], [0, 0]);
    assert!(leader.is_active(&state, 30));

    let mut leader = new();
    [20, 21, 22, 23].into_iter().for_each(|node| says(&mut leader, node, &[], [0, 0]));
    assert!(!leader.is_active(&state, 30), "the source has said nothing");
    assert!(leader.is_active(&state, SILENT_MS_MAX));
}

#[test]
fn only_changes_of_the_membership_wait() {
    let state = serving(0);
    let known = (**state.node(NodeId(20)).unwrap()).clone();
    assert!(!changes_membership(
        &state,
        &Command::RegisterNode(RegisterNode { node: known.clone() })
    ));
    let moved = proto::model::node::NodeInfo { address: "elsewhere:1".into(), ..known };
    assert!(!changes_membership(&state, &Command::RegisterNode(RegisterNode { node: moved })));
    assert!(changes_membership(
        &state,
        &Command::RegisterNode(RegisterNode { node: node(99, Role::Indexer) })
    ));
    assert!(changes_membership(
        &state,
        &Command::RemoveNode(RemoveNode { node: NodeId(20), force: false })
    ));
    assert!(!changes_membership(&state, &crate::state::tests::create_bucket("x")));
}

#[test]
fn differences_are_described_and_the_restart_timestamp_is_the_lowest_high_watermark() {
    let state = serving(0);
    let mut leader = Leader::new(1, 0, 20, MoveSettings::default());
    // Slices 0 and 2 are on node 20, 1 and 3 on node 21.
    says(&mut leader, 20, &[0, 1], [5, 2]);
    says(&mut leader, 21, &[1, 3], [4, 9]);
    let found = leader.differences(&state);
    assert_eq!(
        found,
        [
            "node 20 has slice 1 of \"i\", which is not assigned to it",
            "node 20 lacks slice 2 of \"i\""
        ]
    );
    let mut heartbeat = leader.heartbeats.nodes[&NodeId(21)].heartbeat.clone();
    let slices = &mut indexer_of(&mut heartbeat).slices;
    slices.iter_mut().for_each(|slice| slice.floor = None);
    slices[1].copied_from = Some(NodeId(22));
    leader.record_heartbeat(heartbeat, 20);
    assert_eq!(
        leader.differences(&state)[2..],
        [
            "node 21 rebuilds slice 1 of \"i\" from the source",
            "node 21 rebuilds slice 3 of \"i\" from the copy on node 22"
        ]
    );
    let [(_, cut)] = &restart_timestamps(&state, &leader.heartbeats)[..] else {
        panic!("one bucket")
    };
    assert_eq!(cut.iter().map(|(_, p)| p.seqno.0).collect::<Vec<_>>(), [4, 2]);
}
