use proto::model::assignment::VbucketSet;
use proto::model::cut::Cut;
use proto::model::cut::Position;
use proto::model::ids::{BucketId, NodeId, Seqno, VbucketId, Vbuuid};
use proto::rpc::api::{BucketProgress, BucketReport, Heartbeat, ProjectorReport};
use proto::rpc::command::SkipEpochs;

use super::*;
use crate::leader::memory::Leader;
use crate::leader::memory::tests::{heartbeat, with_bucket_at, with_leases};
use crate::leader::moves::settings::MoveSettings;
use crate::state::Decisions;
use crate::state::tests::{done_decided, with_bucket};

const BUCKET: BucketId = BucketId(1);

fn leader() -> Leader {
    Leader::new(1, 0, 20, MoveSettings::default())
}

fn applied(node: u64, epoch: u64) -> Heartbeat {
    let progress = BucketProgress {
        bucket: BUCKET,
        high_watermark: Cut::zero(2),
        applied: Epoch(epoch),
        durable: Epoch(epoch),
        queue_bytes: 0,
        queue_bytes_max: 1,
    };
    with_bucket_at(node, progress)
}

/// Delivers SYNC of the source up to a seqno.
fn reaches(leader: &mut Leader, state: &StateContext, seqno: u64, now_ms: u64) {
    let cut =
        Cut::zero(2).with(&[(VbucketId(0), Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) })]);
    let report = BucketReport::new(BUCKET, VbucketSet::all(2), cut);
    leader.record_sync_report(state, NodeId(10), report, now_ms).unwrap();
}

#[test]
fn an_epoch_or_a_catalog_from_elsewhere_stops_epochs_and_definitions() {
    let state = with_bucket();
    let older = Heartbeat { catalog_cas: state.catalog_cas(), ..applied(20, 1) };
    for (newer, words) in [
        (applied(20, 2), "epoch 2"),
        (Heartbeat { catalog_cas: state.catalog_cas() + 1, ..heartbeat(30) }, "catalog"),
    ] {
        let mut leader = leader();
        reaches(&mut leader, &state, 5, 10);
        leader.record_heartbeat(newer, 10);
        assert!(leader.plan(&state, 1_000).commands.is_empty());
        let error = leader.check_not_older_copy(&state).unwrap_err();
        assert!(error.message.contains(words), "{error}");
        assert!(error.hint.is_some_and(|hint| hint.contains("--skip-epochs")));
        leader.check_no_lasting_evidence(&state).expect("it may be a moment of a new leader");
        assert!(leader.plan(&state, 1_000 + SILENT_MS_MAX).commands.is_empty());
        assert_eq!(
            leader.check_no_lasting_evidence(&state).unwrap_err().code,
            ErrorCode::OlderCopy
        );
        assert!(leader.differences(&state)[0].contains("older copy"));
    }
    let mut leader = leader();
    reaches(&mut leader, &state, 5, 10);
    leader.record_heartbeat(older, 10);
    leader.check_not_older_copy(&state).expect("nothing is newer");
    assert_eq!(leader.plan(&state, 1_000).commands.len(), 1, "the next epoch");
}

#[test]
fn nothing_is_published_before_all_nodes_have_reported() {
    // Indexes and moves after the copy are not in its state, so it cannot know which nodes have slices.
    let state = with_bucket();
    assert!(state.indexes().next().is_none());
    let planned = |leader: &mut Leader, now_ms| leader.plan(&state, now_ms).commands.len();
    let mut held = leader().waiting_for_reports(true);
    reaches(&mut held, &state, 5, 10);
    assert_eq!(planned(&mut held, 10), 0, "nobody has reported");
    assert!(held.may_be_older_copy(&state, 10), "no answer either");
    let nodes: Vec<u64> = state.nodes().map(|node| node.id.0).collect();
    let (last, others) = nodes.split_last().expect("nodes");
    for node in others {
        held.record_heartbeat(applied(*node, 1), 20);
        assert_eq!(planned(&mut held, 20), 0, "node {last} may know more");
    }
    held.record_heartbeat(applied(*last, 1), 30);
    assert!(!held.may_be_older_copy(&state, 30));
    assert_eq!(planned(&mut held, 30), 1);

    let mut held = leader().waiting_for_reports(true);
    reaches(&mut held, &state, 5, SILENT_MS_MAX);
    assert_eq!(planned(&mut held, SILENT_MS_MAX), 1, "silent nodes are not waited for");
    let mut complete = leader();
    reaches(&mut complete, &state, 5, 10);
    assert_eq!(planned(&mut complete, 10), 1, "it has followed an earlier term");
}

/// The process joined after the copy was made, and never registers again.
#[test]
fn a_process_that_the_copy_does_not_know_is_evidence() {
    let state = with_bucket();
    let mut leader = leader();
    leader.record_stranger(&Heartbeat { catalog_cas: state.catalog_cas(), ..heartbeat(77) });
    leader.check_not_older_copy(&state).expect("it was removed");
    let catalog_cas = state.catalog_cas() + 4;
    leader.record_stranger(&Heartbeat { catalog_cas, ..heartbeat(77) });
    let error = leader.check_not_older_copy(&state).unwrap_err();
    assert!(error.message.contains("node 77"), "{error}");
    assert_eq!(leader.newest_reported_numbers().catalog_cas, catalog_cas);
}

/// The bucket's projector may be lost; the other buckets continue.
#[test]
fn a_bucket_whose_rollback_by_skip_epochs_has_not_ended_is_no_evidence() {
    let mut state = with_bucket();
    let mut leader = leader();
    leader.record_heartbeat(applied(20, 1_000), 10);
    leader.check_not_older_copy(&state).expect_err("epoch 1000 is not known");
    let newest = leader.newest_reported_numbers();
    done_decided(&mut state, Decisions { newest, ..Decisions::default() }, SkipEpochs);
    assert!(state.bucket(BUCKET).is_some_and(|bucket| bucket.epochs.last().epoch < Epoch(1_000)));
    leader.check_not_older_copy(&state).expect("it goes on above");
}

#[test]
fn the_newest_numbers_come_from_indexers_routers_and_all_catalogs() {
    let mut leader = leader();
    leader.record_heartbeat(applied(20, 7), 10);
    let leases = vec![(BucketId(9), Epoch(12))];
    leader.record_heartbeat(Heartbeat { catalog_cas: 3, ..with_leases(30, leases, 0) }, 10);
    leader.record_heartbeat(Heartbeat { catalog_cas: 40, ..heartbeat(10) }, 10);
    assert_eq!(
        leader.newest_reported_numbers(),
        NewestNumbers { epoch: Epoch(12), catalog_cas: 40 }
    );
}

/// The vbucket was handed over after the copy was made, so the owner of the copy has removed its documents.
#[test]
fn a_hand_over_that_the_copy_does_not_know_refuses_skip_epochs() {
    let state = with_bucket();
    let owner = state.bucket(BUCKET).and_then(|bucket| bucket.info.assignment.owner(VbucketId(0)));
    let owner = owner.expect("an owner").0;
    let owning = |node, owned| {
        let report = ProjectorReport { owned, ..ProjectorReport::default() };
        Heartbeat::new(NodeId(node), 0, report)
    };
    let owns = |node| owning(node, vec![(BUCKET, [VbucketId(0)].into_iter().collect())]);
    let mut leader = leader();
    leader.record_heartbeat(owns(owner), 10);
    leader.check_owners(&state).expect("as in the copy");
    leader.record_stranger(&owns(77));
    let error = leader.check_owners(&state).unwrap_err();
    assert!(error.message.contains("projector 77 owns vbucket 0"), "{error}");
    leader.record_heartbeat(owning(77, vec![]), 20);
    leader.check_owners(&state).expect("it has handed it back");
    leader.record_heartbeat(owns(owner + 1), 30);
    assert_eq!(leader.check_owners(&state).unwrap_err().code, ErrorCode::OlderCopy);
}
