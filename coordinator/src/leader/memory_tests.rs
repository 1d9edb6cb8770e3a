use proto::model::assignment::VbucketSet;
use proto::model::cut::{Cut, Position};
use proto::model::identity::ClusterId;
use proto::model::ids::{Epoch, Generation, IndexId, Seqno, SliceId, SliceNo, Vbuuid};
use proto::model::moment::Moment;
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::{
    BucketProgress, IndexerReport, ProjectorReport, RoleReport, RouterReport, SliceProgress,
};
use proto::rpc::command::{
    Command, IndexReady, Join, Outcome, PromoteEpochs, Promotion, RegisterNode,
};

use super::*;
use crate::leader::epochs::TICK_MS_MAX;
use crate::leader::epochs::sources::SYNC_SILENCE_MS;
use crate::leader::nodes::heartbeats::SILENT_MS_MAX;
use crate::state::Decisions;
use crate::state::tests::{apply, create_bucket, create_index, one_branch, spec, with_bucket};

const BUCKET: BucketId = BucketId(1);
const TICK_MS: u64 = 20;

fn cut(seqno: u64) -> Cut {
    let at = |seqno| Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) };
    Cut::from_positions(vec![at(seqno), at(0)])
}

fn all(bucket: BucketId, cut: Cut) -> BucketReport {
    BucketReport::new(bucket, VbucketSet::all(2), cut)
}

fn of_term(term: u64) -> Leader {
    Leader::new(term, 0, TICK_MS, MoveSettings::default())
}

/// Returns an empty heartbeat of a node. Ids from 10 are projectors, from 20 indexers, and from 30
/// routers.
pub(in crate::leader) fn heartbeat(node: u64) -> Heartbeat {
    match node / 10 {
        1 => Heartbeat::new(NodeId(node), 0, ProjectorReport::default()),
        2 => Heartbeat::new(NodeId(node), 0, IndexerReport::default()),
        _ => Heartbeat::new(NodeId(node), 0, RouterReport::default()),
    }
}

/// Returns the heartbeat of an indexer with these slices.
pub(in crate::leader) fn with_slices(node: u64, slices: Vec<SliceProgress>) -> Heartbeat {
    Heartbeat::new(NodeId(node), 0, IndexerReport { slices, ..IndexerReport::default() })
}

/// Returns the heartbeat of an indexer with progress in one bucket.
pub(in crate::leader) fn with_bucket_at(node: u64, progress: BucketProgress) -> Heartbeat {
    Heartbeat::new(
        NodeId(node),
        0,
        IndexerReport { buckets: vec![progress], ..IndexerReport::default() },
    )
}

/// Returns the heartbeat of a router with these leases.
pub(in crate::leader) fn with_leases(
    node: u64,
    leases: Vec<(BucketId, Epoch)>,
    reads_since: u64,
) -> Heartbeat {
    Heartbeat::new(NodeId(node), 0, RouterReport { leases, reads_since, ..RouterReport::default() })
}

/// Returns the heartbeat of a router with leases of these moments.
pub(in crate::leader) fn with_moments(node: u64, moments: Vec<Moment>) -> Heartbeat {
    Heartbeat::new(NodeId(node), 0, RouterReport { moments, ..RouterReport::default() })
}

/// Returns the report in the heartbeat of an indexer.
pub(in crate::leader) fn indexer_of(heartbeat: &mut Heartbeat) -> &mut IndexerReport {
    match &mut heartbeat.report {
        RoleReport::Indexer(report) => report,
        report => panic!("{report:?} is of no indexer"),
    }
}

/// Returns the report of an empty slice: readable from epoch `floor` on, or not readable.
pub(in crate::leader) fn slice_progress(slice: SliceId, floor: Option<Epoch>) -> SliceProgress {
    SliceProgress {
        slice,
        floor,
        entries: 0,
        bytes: 0,
        live_bytes: Some(0),
        built_percent: None,
        seconds_left: None,
        copied_from: None,
        trouble: None,
    }
}

/// Returns the heartbeat of a node with slices of index 1, each readable or not.
fn slices(node: u64, slices: &[(u16, bool)]) -> Heartbeat {
    let progress = |(slice, readable): &(u16, bool)| {
        let slice =
            SliceId { index: IndexId(1), generation: Generation(1), slice: SliceNo(*slice) };
        slice_progress(slice, readable.then_some(Epoch(1)))
    };
    with_slices(node, slices.iter().map(progress).collect())
}

fn applied(node: u64, epoch: u64) -> Heartbeat {
    let progress = BucketProgress {
        bucket: BUCKET,
        high_watermark: cut(0),
        applied: Epoch(epoch),
        durable: Epoch(epoch),
        queue_bytes: 0,
        queue_bytes_max: 100,
    };
    with_bucket_at(node, progress)
}

fn promotions(plan: &Plan) -> Vec<Promotion> {
    match &plan.commands[..] {
        [] => Vec::new(),
        [Command::PromoteEpochs(PromoteEpochs { promotions, .. })] => promotions.clone(),
        other => panic!("{other:?}"),
    }
}

/// Plans, and carries the plan out immediately; returns the plan.
fn run(leader: &mut Leader, state: &mut StateContext, now_ms: u64) -> Plan {
    let plan = leader.plan(state, now_ms);
    for command in &plan.commands {
        let request = command.clone().into();
        state.apply(1_000 + now_ms, &Decisions::at(now_ms), &request);
        if matches!(command, Command::PromoteEpochs(_)) {
            leader.record_promotion_end(now_ms, now_ms);
        }
    }
    plan
}

#[test]
fn epochs_are_a_tick_apart_or_immediate_for_a_waiter() {
    let mut state = with_bucket();
    let mut leader = of_term(1);
    assert_eq!(run(&mut leader, &mut state, 0), Plan::default(), "nothing is new");
    leader.record_sync_report(&state, NodeId(10), all(BUCKET, cut(1)), 100).unwrap();
    assert_eq!(promotions(&run(&mut leader, &mut state, 100)).len(), 1, "after a pause at once");
    leader.record_sync_report(&state, NodeId(10), all(BUCKET, cut(2)), 105).unwrap();
    let plan = run(&mut leader, &mut state, 105);
    assert_eq!((promotions(&plan).len(), plan.next_ms), (0, Some(120)));
    let want = leader.stability.add_waiter(BUCKET, cut(2));
    assert_eq!(promotions(&run(&mut leader, &mut state, 106)).len(), 1);
    leader.stability.remove_waiter(want);
    assert_eq!(run(&mut leader, &mut state, 200), Plan::default());
    assert_eq!(state.bucket(BUCKET).unwrap().epochs.last().epoch, Epoch(3));
}

#[test]
fn a_node_that_dies_and_comes_back_is_told_once_each() {
    let state = with_bucket();
    let mut leader = of_term(1);
    let mut told = |now_ms| leader.node_news(&state, now_ms).len();
    assert_eq!(told(4_000), 0, "the term has just begun");
    let silent = told(6_000);
    assert!(silent > 0);
    assert_eq!(told(7_000), 0, "once");
    leader.record_heartbeat(heartbeat(10), 8_000);
    assert_eq!(leader.node_news(&state, 8_000), ["projector 10 is back"]);
    let news = leader.node_news(&state, 14_000);
    assert!(news.len() == 1 && news[0].starts_with("projector 10 has been silent for 6 s"));
}

#[test]
fn the_tick_grows_with_the_latency_of_the_log() {
    let state = with_bucket();
    let mut leader = of_term(1);
    leader.record_promotion_end(100, 150);
    leader.record_sync_report(&state, NodeId(10), all(BUCKET, cut(1)), 150).unwrap();
    assert_eq!(leader.plan(&state, 150).next_ms, Some(200));
    leader.record_promotion_end(200, 9_000);
    assert_eq!(leader.plan(&state, 1_000).next_ms, Some(200 + TICK_MS_MAX));
}

#[test]
fn a_promotion_has_only_the_changed_positions() {
    let mut state = with_bucket();
    let mut leader = of_term(1);
    leader.record_sync_report(&state, NodeId(10), all(BUCKET, cut(5)), 0).unwrap();
    let promotion = promotions(&run(&mut leader, &mut state, 0)).remove(0);
    assert_eq!(promotion.changes.len(), 1, "vbucket 1 has nothing");
    assert_eq!(promotion.changes[0].1.seqno, Seqno(5));
    leader.record_sync_report(&state, NodeId(10), all(BucketId(9), cut(5)), 0).unwrap();
    assert_eq!(run(&mut leader, &mut state, 500), Plan::default(), "a bucket that is gone");
}

#[test]
fn an_index_is_ready_when_each_slice_is_read_and_no_living_copy_is_behind() {
    let mut state = with_bucket();
    apply(&mut state, create_index(spec("i")));
    let mut leader = of_term(1);
    let all = [(0, true), (1, true), (2, true), (3, true)];
    let ready =
        vec![Command::IndexReady(IndexReady { index: IndexId(1), generation: Generation(1) })];

    assert!(leader.record_heartbeat(slices(20, &all), 10));
    assert_eq!(leader.plan(&state, 10).commands, [], "node 21 may be alive");
    leader.record_heartbeat(slices(21, &[(0, true), (1, true), (2, false), (3, true)]), 20);
    assert_eq!(leader.plan(&state, 20).commands, [], "one copy is behind");
    leader.record_heartbeat(slices(21, &all), 30);
    assert_eq!(leader.plan(&state, 30).commands, ready);
    assert_eq!(leader.plan(&state, 31).commands, [], "said once, until there is news");

    let mut later = of_term(2);
    later.record_heartbeat(slices(20, &all), SILENT_MS_MAX);
    assert_eq!(later.plan(&state, SILENT_MS_MAX).commands, ready, "node 21 is dead");
    later.record_heartbeat(slices(20, &all[..3]), SILENT_MS_MAX);
    assert_eq!(later.plan(&state, SILENT_MS_MAX).commands, [], "no scan reads slice 3");
}

#[test]
fn the_horizon_waits_for_leases_and_for_slices_that_are_behind() {
    let mut state = with_bucket();
    apply(&mut state, create_index(spec("i")));
    let ready = Command::IndexReady(IndexReady { index: IndexId(1), generation: Generation(1) });
    apply(&mut state, ready);
    let mut leader = of_term(1);
    let mut promote = |now_ms: u64, heartbeats: &[Heartbeat]| {
        for heartbeat in heartbeats {
            leader.record_heartbeat(heartbeat.clone(), now_ms);
        }
        leader.record_sync_report(&state, NodeId(10), all(BUCKET, cut(now_ms)), now_ms).unwrap();
        promotions(&run(&mut leader, &mut state, now_ms))[0].horizon.0
    };
    // Epochs 2 to 11 at seconds 1 to 10.
    let horizons: Vec<u64> = (1..=10).map(|s| promote(s * 1_000, &[applied(20, s)])).collect();
    assert!(horizons[..9].iter().all(|horizon| *horizon == 1), "a new leader knows no leases");
    // The leader sees each epoch at its next plan, a second later.
    assert_eq!(horizons[9], 5, "five seconds are kept; node 20 serves all slices");
    let lease = with_leases(30, vec![(BUCKET, Epoch(7))], 0);
    assert_eq!(promote(13_000, &[applied(20, 11), lease]), 7);
    assert_eq!(promote(22_000, &[applied(20, 9)]), 7, "the lease holds for ten seconds");
    assert_eq!(promote(24_000, &[]), 9, "then node 20, which is at 9, holds it");
}

#[test]
fn the_lease_of_a_moment_holds_the_horizons_of_all_buckets() {
    let mut state = with_bucket();
    apply(&mut state, create_bucket("two"));
    let buckets = [BUCKET, BucketId(2)];
    one_branch(&mut state, buckets[1], 7);
    let mut leader = of_term(1);
    // The second bucket is promoted with every second promotion of the first.
    let mut promote = |second: u64, moments: &[Moment]| {
        let now_ms = second * 1_000;
        leader.record_heartbeat(with_moments(30, moments.to_vec()), now_ms);
        for bucket in &buckets[..1 + usize::from(second.is_multiple_of(2))] {
            leader
                .record_sync_report(&state, NodeId(10), all(*bucket, cut(second)), now_ms)
                .unwrap();
        }
        run(&mut leader, &mut state, now_ms);
        let horizon = |bucket| state.bucket(bucket).unwrap().epochs.last().horizon.0;
        (state.position(), buckets.map(horizon))
    };
    let positions: Vec<u64> = (1..=11).map(|second| promote(second, &[]).0).collect();
    // Between the tenth and the eleventh promotion, epochs 11 and 6 are in force.
    let moment = Moment::at(positions[10] - 1);
    let horizons: Vec<_> = (12..=30).map(|second| promote(second, &[moment]).1).collect();
    assert_eq!(horizons.last(), Some(&[11, 6]), "{horizons:?}");
    let own = Moment { at: 0, of: Some((buckets[1], Epoch(6))) };
    let horizons: Vec<_> = (31..=60).map(|second| promote(second, &[own]).1).collect();
    assert_eq!(horizons.last(), Some(&[11, 6]), "the moment at which epoch 6 was published");
    let freed: Vec<_> = (61..=80).map(|second| promote(second, &[]).1).collect();
    assert!(freed.last().is_some_and(|[one, two]| *one > 60 && *two > 30), "{freed:?}");
}

#[test]
fn a_bucket_without_reports_is_queried() {
    let state = with_bucket();
    let mut leader = of_term(1);
    let asked = |leader: &mut Leader, now_ms| leader.queries_due(&state, now_ms);
    assert_eq!(asked(&mut leader, 0), [BUCKET], "a new leader knows nothing");
    assert_eq!(asked(&mut leader, 500), []);
    assert_eq!(asked(&mut leader, SYNC_SILENCE_MS), [BUCKET]);
    leader.record_sync_report(&state, NodeId(10), all(BUCKET, cut(1)), 1_500).unwrap();
    assert_eq!(asked(&mut leader, 2_400), []);
    assert_eq!(asked(&mut leader, 2_500), [BUCKET]);
}

#[test]
fn the_status_has_the_last_report_of_each_node() {
    let state = with_bucket();
    let mut leader = of_term(1);
    assert!(!leader.record_heartbeat(applied(20, 3), 100), "no news of slices");
    let silent_ms = |leader: &Leader, node, now_ms| {
        let status = leader.node_status(&state, &BTreeMap::new(), now_ms);
        status.into_iter().find(|status| status.node == NodeId(node)).expect("registered")
    };
    let told = silent_ms(&leader, 20, 350);
    assert_eq!((told.silent_ms, told.buckets[0].applied), (250, Epoch(3)));
    assert_eq!(silent_ms(&leader, 21, 350).silent_ms, 350, "never heard of since the term began");
    assert!(leader.silent_nodes(&state, SILENT_MS_MAX - 1).is_empty());
    let silent = leader.silent_nodes(&state, SILENT_MS_MAX + 99);
    assert!(silent.contains(&NodeId(21)) && !silent.contains(&NodeId(20)), "{silent:?}");
    // The answers of a tenth of a second are the same.
    assert!(leader.silent_nodes(&state, SILENT_MS_MAX + 199).contains(&NodeId(20)));
    leader.record_heartbeat(applied(20, 3), SILENT_MS_MAX + 200);
    assert!(!leader.silent_nodes(&state, SILENT_MS_MAX + 299).contains(&NodeId(20)));
}

#[test]
fn an_epoch_that_this_coordinator_does_not_know_stops_the_promotions_of_its_bucket() {
    let mut state = with_bucket();
    let mut leader = of_term(1);
    leader.record_sync_report(&state, NodeId(10), all(BUCKET, cut(1)), 0).unwrap();
    leader.record_heartbeat(applied(20, 40), 0);
    assert!(promotions(&run(&mut leader, &mut state, 0)).is_empty(), "epoch 2 is in use elsewhere");
    let told = leader.differences(&state);
    assert!(told.iter().any(|line| line.contains("epoch 40")), "{told:?}");
    leader.record_heartbeat(applied(20, 1), 10);
    assert_eq!(promotions(&run(&mut leader, &mut state, 10)).len(), 1, "only a leader that lagged");
}

#[test]
fn only_a_silent_holder_of_a_number_is_replaced() {
    let request = |proof| JoinRequest {
        node: NodeInfo {
            id: NodeId(20),
            role: Role::Indexer,
            address: "a:1".into(),
            zone: String::new(),
        },
        cluster: None,
        fresh: ClusterId(7),
        proof: NodeProof(proof),
    };
    let mut state = StateContext::default();
    let command = Command::Join(Join { request: Box::new(request(1)) });
    let (joined, _) = state.apply(1, &Decisions::at(0), &command.into());
    assert_eq!(joined, Outcome::Joined(ClusterId(7)));
    let mut leader = of_term(1);
    let judge = |leader: &Leader, proof, now_ms| {
        leader.judge_join(&state, &request(proof), now_ms).map_err(|error| error.code)
    };
    assert_eq!(judge(&leader, 1, 0), Ok(None), "it comes back");
    assert_eq!(judge(&leader, 2, 4_999), Err(ErrorCode::NodeTaken), "a new term knows nobody yet");
    leader.record_heartbeat(heartbeat(20), 4_000);
    assert_eq!(judge(&leader, 2, 8_999), Err(ErrorCode::NodeTaken));
    assert_eq!(judge(&leader, 2, 9_000), Ok(Some(NodeProof(1))));
}

#[test]
fn a_process_with_a_mark_keeps_its_number_until_it_is_silent() {
    let router = |address: &str| NodeInfo {
        id: NodeId(30),
        role: Role::Router,
        address: address.into(),
        zone: String::new(),
    };
    let mut state = StateContext::default();
    apply(&mut state, RegisterNode { node: router("a:1") });
    let marked = |mark: Option<u128>| Heartbeat { proof: mark.map(NodeProof), ..heartbeat(30) };
    let mut leader = of_term(1);
    let heard = |leader: &Leader, mark, now_ms| {
        leader.check_same_process(&state, &marked(mark), now_ms).map_err(|error| error.code)
    };
    assert_eq!(heard(&leader, Some(2), 0), Ok(()), "a new term has heard nobody");
    leader.record_heartbeat(marked(Some(1)), 1_000);
    assert_eq!(heard(&leader, Some(1), 2_000), Ok(()));
    assert_eq!(heard(&leader, Some(2), 5_999), Err(ErrorCode::NodeTaken));
    assert_eq!(heard(&leader, None, 5_999), Err(ErrorCode::NodeTaken));
    assert_eq!(heard(&leader, Some(2), 6_000), Ok(()), "it is silent");
    let registers = |address, now_ms| leader.judge_registration(&state, &router(address), now_ms);
    assert!(registers("a:1", 1_500).is_ok(), "nothing changes");
    let refused = registers("b:1", 5_999).unwrap_err();
    assert!(refused.message.contains("node 30 is another process at a:1"), "{refused}");
    assert!(registers("b:1", 6_000).is_ok());
    leader.record_heartbeat(marked(None), 7_000);
    assert_eq!(heard(&leader, Some(2), 7_001), Ok(()), "without a mark nobody is protected");
    assert!(leader.judge_registration(&state, &router("b:1"), 7_001).is_ok());
}
