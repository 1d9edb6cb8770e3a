use proto::model::assignment::VbucketSet;
use proto::model::cut::Cut;
use proto::model::cut::Position;
use proto::model::ids::{BucketId, IndexId, NodeId, Seqno, VbucketId, Vbuuid};
use proto::rpc::api::{BucketProgress, Heartbeat};

use super::*;
use crate::leader::memory::Leader;
use crate::leader::memory::tests::heartbeat;
use crate::leader::move_settings::MoveSettings;
use crate::state::tests::{apply, create_index, spec, with_bucket};

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
    Heartbeat { buckets: vec![progress], ..heartbeat(node) }
}

/// The source reaches a seqno.
fn reaches(leader: &mut Leader, state: &StateContext, seqno: u64, now_ms: u64) {
    let cut =
        Cut::zero(2).with(&[(VbucketId(0), Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) })]);
    leader.sync(state, NodeId(10), (BUCKET, VbucketSet::all(2), cut), now_ms).unwrap();
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
        let error = leader.check_newest(&state).unwrap_err();
        assert!(error.message.contains(words), "{error}");
        assert!(error.hint.is_some_and(|hint| hint.contains("--skip-epochs")));
        leader.check_lasting(&state).expect("it may be a moment of a new leader");
        assert!(leader.plan(&state, 1_000 + SILENT_MS_MAX).commands.is_empty());
        assert_eq!(leader.check_lasting(&state).unwrap_err().code, ErrorCode::OlderCopy);
        assert!(leader.differences(&state)[0].contains("older copy"));
    }
    let mut leader = leader();
    reaches(&mut leader, &state, 5, 10);
    leader.record_heartbeat(older, 10);
    leader.check_newest(&state).expect("nothing is newer");
    assert_eq!(leader.plan(&state, 1_000).commands.len(), 1, "the next epoch");
}

#[test]
fn a_lone_coordinator_publishes_nothing_before_the_indexers_have_reported() {
    let mut state = with_bucket();
    apply(&mut state, create_index(spec("i")));
    assert!(state.indexes().any(|record| record.info.id == IndexId(1)));
    let planned = |leader: &mut Leader, now_ms| leader.plan(&state, now_ms).commands.len();
    let mut lone = leader().waiting_for_indexers(true);
    reaches(&mut lone, &state, 5, 10);
    assert_eq!(planned(&mut lone, 10), 0, "nobody has reported");
    lone.record_heartbeat(applied(20, 1), 20);
    assert_eq!(planned(&mut lone, 20), 0, "node 21 may know more");
    lone.record_heartbeat(applied(21, 1), 30);
    assert_eq!(planned(&mut lone, 30), 1);

    let mut lone = leader().waiting_for_indexers(true);
    reaches(&mut lone, &state, 5, SILENT_MS_MAX);
    assert_eq!(planned(&mut lone, SILENT_MS_MAX), 1, "silent nodes are not waited for");
    let mut several = leader();
    reaches(&mut several, &state, 5, 10);
    assert_eq!(planned(&mut several, 10), 1, "a majority has every epoch");
}

#[test]
fn the_newest_numbers_come_from_indexers_routers_and_all_catalogs() {
    let mut leader = leader();
    leader.record_heartbeat(applied(20, 7), 10);
    let leases = vec![(BucketId(9), Epoch(12))];
    leader.record_heartbeat(Heartbeat { leases, catalog_cas: 3, ..heartbeat(30) }, 10);
    leader.record_heartbeat(Heartbeat { catalog_cas: 40, ..heartbeat(10) }, 10);
    assert_eq!(leader.newest_known(), NewestKnown { epoch: Epoch(12), catalog_cas: 40 });
}
