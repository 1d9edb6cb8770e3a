use proto::model::ids::{BucketId, Epoch, SliceId};
use proto::rpc::api::SliceProgress;
use proto::rpc::command::{CancelBuild, CreateIndex, GrowIndex, SetSliceBytesMax};

use super::*;
use crate::leader::memory::tests::{indexer_of, with_slices};
use crate::state::tests::{done, serving, spec};

/// Delivers the heartbeat of a node whose slices have a given size.
fn report(heartbeats: &mut Heartbeats, info: &IndexInfo, (node, bytes): (u64, u64)) {
    let told = |slice| SliceProgress {
        slice: SliceId { slice: SliceNo(slice), ..info.local_id().slice(SliceNo(0)) },
        floor: Some(Epoch(1)),
        entries: 1,
        bytes: 64 * bytes,
        live_bytes: Some(bytes),
        built_percent: None,
        seconds_left: None,
        copied_from: None,
        trouble: None,
    };
    let slices = (0..info.spec.slices).map(told).collect();
    heartbeats.add(with_slices(node, slices), 1_000);
}

fn planned(growth: &mut Growth, of: (&StateContext, &Heartbeats), now_ms: u64) -> Vec<Command> {
    let mut plan = Plan::default();
    growth.plan(of.0, of.1, now_ms, &mut plan);
    plan.commands
}

#[test]
fn an_index_that_has_outgrown_its_slices_gets_a_generation_with_more_of_them() {
    let mut state = serving(1);
    let info = state.serving(IndexId(1)).unwrap().info.clone();
    let mut heartbeats = Heartbeats::new(0);
    let mut growth = Growth::default();
    (20..24).for_each(|node| report(&mut heartbeats, &info, (node, 100 << 10)));
    assert_eq!(planned(&mut growth, (&state, &heartbeats), 2_000), [], "nobody has asked for it");
    done(&mut state, SetSliceBytesMax { index: IndexId(1), bytes: 100 << 10 });
    assert_eq!(planned(&mut growth, (&state, &heartbeats), 3_000), [], "they are not larger");
    report(&mut heartbeats, &info, (21, (100 << 10) + 1));
    let slices = 4 * info.spec.slices;
    let grow = Command::GrowIndex(GrowIndex { from: info.local_id(), slices });
    let found = planned(&mut growth, (&state, &heartbeats), 4_000);
    assert_eq!(found, vec![grow.clone()], "a slice counts with its larger copy");
    assert_eq!(planned(&mut growth, (&state, &heartbeats), 5_000), [], "it may have been refused");
    done(&mut state, grow);
    let next = state.catalog().next_generation(IndexId(1)).cloned().unwrap();
    assert_eq!(next.spec.slices, slices);
    let later_ms = 5_000 + RETRY_MS;
    assert_eq!(planned(&mut growth, (&state, &heartbeats), later_ms), [], "it is being built");
}

#[test]
fn an_index_does_not_grow_into_the_room_for_administrators() {
    let mut state = serving(1);
    done(&mut state, SetSliceBytesMax { index: IndexId(1), bytes: 100 << 10 });
    let info = state.serving(IndexId(1)).unwrap().info.clone();
    let mut heartbeats = Heartbeats::new(0);
    (20..24).for_each(|node| report(&mut heartbeats, &info, (node, (100 << 10) + 1)));
    let grows = |state: &StateContext| {
        !planned(&mut Growth::default(), (state, &heartbeats), 4_000).is_empty()
    };
    assert!(grows(&state));
    // Other indexes take seven eighths of the copies of slices.
    for n in 0..56 {
        let spec = IndexSpec { slices: SLICES_MAX, replicas: 0, ..spec(&format!("other{n}")) };
        done(
            &mut state,
            CreateIndex { bucket: BucketId(1), spec, defer_build: true, if_not_exists: false },
        );
    }
    assert!(!grows(&state));
}

#[test]
fn the_slices_are_doubled_until_each_has_at_most_half_of_the_limit() {
    assert_eq!(enough_slices(1, 100, 100), None);
    assert_eq!(enough_slices(1, 101, 100), Some(4));
    assert_eq!(enough_slices(3, 330, 100), Some(12));
    assert_eq!(enough_slices(4, 401, 1_000), None);
    assert_eq!(enough_slices(2, 1 << 40, 1 << 20), Some(SLICES_MAX));
    assert_eq!(enough_slices(SLICES_MAX, u64::MAX, 1), None);
}

/// Returns a state with a serving index whose slices are limited to 100 KiB.
fn serving_with_limit() -> StateContext {
    with_limit_and_replicas(0)
}

fn with_limit_and_replicas(replicas: u8) -> StateContext {
    let mut state = serving(replicas);
    done(&mut state, SetSliceBytesMax { index: IndexId(1), bytes: 100 << 10 });
    state
}

/// Returns the commands planned at a time when all nodes report slices of a size in KiB.
fn planned_at(
    growth: &mut Growth,
    state: &StateContext,
    (kib, now_ms): (u64, u64),
) -> Vec<Command> {
    let mut heartbeats = Heartbeats::new(0);
    let info = state.serving(IndexId(1)).unwrap().info.clone();
    (20..24).for_each(|node| report(&mut heartbeats, &info, (node, kib << 10)));
    for last in std::mem::take(&mut heartbeats.nodes).into_values() {
        heartbeats.add(last.heartbeat, now_ms);
    }
    planned(growth, (state, &heartbeats), now_ms)
}

#[test]
fn a_cancelled_growth_is_begun_again_when_the_index_has_grown_by_a_quarter() {
    let (mut state, mut growth) = (serving_with_limit(), Growth::default());
    let first = planned_at(&mut growth, &state, (200, 1_000));
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!(planned_at(&mut growth, &state, (200, RETRY_MS)), []);
    assert_eq!(planned_at(&mut growth, &state, (200, 2_000 + RETRY_MS)), first, "it was refused");
    done(&mut state, first[0].clone());
    assert_eq!(planned_at(&mut growth, &state, (200, 4 * RETRY_MS)), [], "it is being built");
    done(&mut state, CancelBuild { index: IndexId(1) });
    assert_eq!(planned_at(&mut growth, &state, (200, 5 * RETRY_MS)), []);
    assert_eq!(planned_at(&mut growth, &state, (249, 6 * RETRY_MS)), []);
    assert_eq!(planned_at(&mut growth, &state, (250, 7 * RETRY_MS)).len(), 1);
}

#[test]
fn a_cancelled_growth_is_begun_again_when_the_setting_is_given_again_or_the_leader_changes() {
    let (mut state, mut growth) = (serving_with_limit(), Growth::default());
    let cancelled = |state: &mut StateContext, growth: &mut Growth, now_ms| {
        let plan = planned_at(growth, state, (200, now_ms));
        done(state, plan[0].clone());
        done(state, CancelBuild { index: IndexId(1) });
        assert_eq!(planned_at(growth, state, (200, now_ms + RETRY_MS)), []);
    };
    let set = |kib: u64| {
        Command::SetSliceBytesMax(SetSliceBytesMax { index: IndexId(1), bytes: kib << 10 })
    };
    cancelled(&mut state, &mut growth, 1_000);
    done(&mut state, set(101));
    cancelled(&mut state, &mut growth, 3 * RETRY_MS);
    growth.note_statement(&state, &set(100));
    assert_eq!(planned_at(&mut growth, &state, (200, 5 * RETRY_MS)), [], "another one is to come");
    growth.note_statement(&state, &set(101));
    assert_eq!(planned_at(&mut growth, &state, (200, 6 * RETRY_MS)).len(), 1, "the same again");
    assert_eq!(planned_at(&mut Growth::default(), &state, (200, 7 * RETRY_MS)).len(), 1);
}

/// A copy may not have reported since this leader began; a newly created slice reports an estimate.
#[test]
fn an_index_does_not_grow_until_each_live_copy_has_told_its_live_bytes() {
    let state = with_limit_and_replicas(1);
    let info = state.serving(IndexId(1)).unwrap().info.clone();
    let grows = |change: &dyn Fn(&mut Heartbeats)| {
        let mut heartbeats = Heartbeats::new(0);
        (20..24).for_each(|node| report(&mut heartbeats, &info, (node, 200 << 10)));
        change(&mut heartbeats);
        let found = planned(&mut Growth::default(), (&state, &heartbeats), 4_000);
        !found.is_empty()
    };
    let host = info.topology.placement[0][1];
    assert!(grows(&|_| ()));
    assert!(!grows(&|heartbeats| drop(heartbeats.nodes.remove(&host))));
    let told = |heartbeats: &mut Heartbeats, change: fn(&mut SliceProgress)| {
        let last = heartbeats.nodes.get_mut(&host).expect("it has reported");
        indexer_of(&mut last.heartbeat).slices.iter_mut().for_each(change);
    };
    assert!(!grows(&|heartbeats| told(heartbeats, |told| told.live_bytes = None)));
    assert!(!grows(&|heartbeats| told(heartbeats, |told| told.floor = None)));
}
