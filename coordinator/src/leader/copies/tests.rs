use proto::model::bucket::SourceKind;
use proto::model::copies::CopiesChange::{Give, Grow, Join, Leave, Promote, Shrink};
use proto::model::ids::BucketId;
use proto::rpc::command::{
    CancelHandOver, ChangeCopies, MoveBucket, Outcome, RegisterNode, SetCopies,
};

use super::*;
use crate::leader::memory::tests::heartbeat;
use crate::state::tests::{apply, create_bucket_of, done, node};

const SECOND: u64 = 1_000;

/// Returns a state with projectors 10 to 12 and bucket 1 on projector 10.
fn cluster() -> StateContext {
    let mut state = StateContext::default();
    for id in 10..13 {
        done(&mut state, RegisterNode { node: node(id, Role::Projector) });
    }
    create(&mut state, "b");
    state
}

fn create(state: &mut StateContext, name: &str) {
    done(state, create_bucket_of(name, SourceKind::Embedded));
}

fn set(state: &mut StateContext, name: &str, copies: u8) {
    let bucket = state.bucket_named(name).expect("a bucket");
    done(state, SetCopies { bucket, copies });
}

fn move_to(state: &mut StateContext, node: u64) {
    done(state, MoveBucket { bucket: BucketId(1), to: NodeId(node) });
}

fn change(state: &mut StateContext, bucket: u64, change: CopiesChange) {
    let bucket = BucketId(bucket);
    let before = state.copies(bucket).expect("embedded").clone();
    let command = Command::ChangeCopies(ChangeCopies { bucket, revision: before.revision, change });
    let (outcome, _) = apply(state, command);
    assert!(matches!(outcome, Outcome::Copies(now) if now != before), "{change:?} of {before:?}");
}

/// Delivers heartbeats of the nodes in `alive`, plans, and carries the plan out; returns the
/// changes.
fn planned(
    state: &mut StateContext,
    heartbeats: &mut Heartbeats,
    alive: &[u64],
    now_ms: u64,
) -> Vec<(u64, CopiesChange)> {
    alive.iter().for_each(|node| heartbeats.add(heartbeat(*node), now_ms));
    let mut plan = Plan::default();
    CopyPlans::default().plan(state, heartbeats, now_ms, &mut plan);
    let mut changes = Vec::new();
    for command in plan.commands {
        let Command::ChangeCopies(ChangeCopies { bucket, change: planned, .. }) = &command else {
            panic!("{command:?}")
        };
        changes.push((bucket.0, *planned));
        change(state, bucket.0, *planned);
    }
    changes
}

/// Plans with the memory of earlier plans; returns the changes.
fn planned_with(
    plans: &mut CopyPlans,
    state: &mut StateContext,
    alive: &[u64],
    now_ms: u64,
) -> Vec<CopiesChange> {
    let mut heartbeats = Heartbeats::new(0);
    alive.iter().for_each(|node| heartbeats.add(heartbeat(*node), now_ms));
    let mut plan = Plan::default();
    plans.plan(state, &heartbeats, now_ms, &mut plan);
    let changes = plan.commands.iter().filter_map(|command| match command {
        Command::ChangeCopies(ChangeCopies { change, .. }) => Some(*change),
        _ => None,
    });
    changes.collect()
}

#[test]
fn a_copy_that_was_given_up_has_half_a_minute_to_come_back() {
    let mut state = cluster();
    set(&mut state, "b", 2);
    assert_eq!(all_alive(&mut state), [(1, Join(NodeId(11)))]);
    change(&mut state, 1, Grow(NodeId(11)));
    // Projector 10 is killed.
    change(&mut state, 1, Promote(NodeId(11)));
    let mut plans = CopyPlans::default();
    assert_eq!(planned_with(&mut plans, &mut state, &[11, 12], 10 * SECOND), []);
    assert_eq!(planned_with(&mut plans, &mut state, &[11, 12], 39 * SECOND), []);
    let back = planned_with(&mut plans, &mut state, &[10, 11, 12], 39 * SECOND + 600);
    assert_eq!(back, [Join(NodeId(10))], "it has most of the bucket");
    let new = planned_with(&mut plans, &mut state, &[11, 12], 41 * SECOND);
    assert_eq!(new, [Join(NodeId(12))], "it did not come back");
}

/// Plans for a leader whose nodes 10 to 12 are alive; returns the changes.
fn all_alive(state: &mut StateContext) -> Vec<(u64, CopiesChange)> {
    planned(state, &mut Heartbeats::new(0), &[10, 11, 12], 0)
}

#[test]
fn a_missing_copy_joins_at_the_live_projector_with_the_fewest_copies() {
    let mut state = cluster();
    create(&mut state, "c");
    assert_eq!(all_alive(&mut state), [], "one copy of each is wanted");
    set(&mut state, "b", 2);
    assert_eq!(all_alive(&mut state), [(1, Join(NodeId(12)))], "projector 11 has bucket 2");
    assert_eq!(all_alive(&mut state), [], "it is joining");
    set(&mut state, "b", 3);
    assert_eq!(all_alive(&mut state), [(1, Join(NodeId(11)))]);
}

#[test]
fn a_projector_in_another_zone_is_preferred() {
    let mut state = cluster();
    for (id, zone) in [(10, "east"), (11, "east"), (12, "west")] {
        let info = NodeInfo { zone: zone.into(), ..node(id, Role::Projector) };
        done(&mut state, RegisterNode { node: info });
    }
    set(&mut state, "b", 2);
    assert_eq!(all_alive(&mut state), [(1, Join(NodeId(12)))]);
}

#[test]
fn nobody_joins_before_it_is_known_which_projectors_are_alive() {
    let mut state = cluster();
    set(&mut state, "b", 2);
    let mut heartbeats = Heartbeats::new(0);
    assert_eq!(planned(&mut state, &mut heartbeats, &[10, 12], SECOND), []);
    let joins = planned(&mut state, &mut heartbeats, &[10, 12], 5 * SECOND);
    assert_eq!(joins, [(1, Join(NodeId(12)))], "projector 11 is silent");
}

#[test]
fn a_bucket_moves_once_its_target_is_alive_and_the_old_copy_leaves_with_the_promotion() {
    let mut state = cluster();
    move_to(&mut state, 12);
    let mut heartbeats = Heartbeats::new(0);
    assert_eq!(planned(&mut state, &mut heartbeats, &[10, 11], 0), []);
    let joins = planned(&mut state, &mut heartbeats, &[10, 11, 12], SECOND);
    assert_eq!(joins, [(1, Join(NodeId(12)))]);
    change(&mut state, 1, Grow(NodeId(12)));
    assert_eq!(all_alive(&mut state), [], "one copy more belongs to the move");
    change(&mut state, 1, Give(NodeId(12)));
    assert_eq!(all_alive(&mut state), []);
    assert_eq!(state.copies(BucketId(1)).expect("embedded"), &{
        let mut moved = Copies::single(NodeId(12));
        (moved.term, moved.revision) = (2, 5);
        moved
    });
}

#[test]
fn the_joining_copy_of_a_cancelled_move_leaves() {
    let mut state = cluster();
    move_to(&mut state, 12);
    assert_eq!(all_alive(&mut state), [(1, Join(NodeId(12)))]);
    done(&mut state, CancelHandOver { bucket: BucketId(1) });
    assert_eq!(all_alive(&mut state), [(1, Leave(NodeId(12)))]);
}

/// If it stayed, the next target could not join: the copies of both moves would exceed the limit.
#[test]
fn the_target_of_an_earlier_move_leaves_before_the_next_one_joins() {
    let mut state = cluster();
    move_to(&mut state, 12);
    assert_eq!(all_alive(&mut state), [(1, Join(NodeId(12)))]);
    move_to(&mut state, 11);
    assert_eq!(all_alive(&mut state), [(1, Leave(NodeId(12)))]);
    assert_eq!(all_alive(&mut state), [(1, Join(NodeId(11)))]);
}

#[test]
fn of_the_joining_copies_the_one_with_most_neighbours_leaves_if_there_are_too_many() {
    let mut state = cluster();
    done(&mut state, RegisterNode { node: node(13, Role::Projector) });
    let alive = [10, 11, 12, 13];
    let mut heartbeats = Heartbeats::new(0);
    set(&mut state, "b", 3);
    for joins in [11, 12] {
        let planned = planned(&mut state, &mut heartbeats, &alive, 0);
        assert_eq!(planned, [(1, Join(NodeId(joins)))]);
    }
    // Buckets 2, 3 and 4 are on projectors 13, 10 and 11.
    ["c", "d", "e"].iter().for_each(|name| create(&mut state, name));
    set(&mut state, "b", 2);
    assert_eq!(planned(&mut state, &mut heartbeats, &alive, 0), [(1, Leave(NodeId(11)))]);
    set(&mut state, "b", 1);
    assert_eq!(planned(&mut state, &mut heartbeats, &alive, 0), [(1, Leave(NodeId(12)))]);
    assert_eq!(planned(&mut state, &mut heartbeats, &alive, 0), [], "the leader stays");
}

#[test]
fn a_joining_copy_that_is_gone_gives_its_place_to_a_projector_that_is_there() {
    let mut state = cluster();
    set(&mut state, "b", 2);
    assert_eq!(all_alive(&mut state), [(1, Join(NodeId(11)))]);
    let mut heartbeats = Heartbeats::new(0);
    assert_eq!(planned(&mut state, &mut heartbeats, &[10, 12], 9 * SECOND), [], "not for long");
    assert_eq!(planned(&mut state, &mut heartbeats, &[10], 15 * SECOND), [], "nobody is free");
    let leaves = planned(&mut state, &mut heartbeats, &[10, 12], 16 * SECOND);
    assert_eq!(leaves, [(1, Leave(NodeId(11)))]);
    let joins = planned(&mut state, &mut heartbeats, &[10, 12], 17 * SECOND);
    assert_eq!(joins, [(1, Join(NodeId(12)))]);
}

/// Only the leader of a bucket knows if writes waited for a silent copy.
#[test]
fn a_silent_copy_in_sync_stays_until_its_leader_has_shrunk_the_copies() {
    let mut state = cluster();
    set(&mut state, "b", 2);
    all_alive(&mut state);
    change(&mut state, 1, Grow(NodeId(11)));
    let mut heartbeats = Heartbeats::new(0);
    assert_eq!(planned(&mut state, &mut heartbeats, &[10, 12], 60 * SECOND), []);
    change(&mut state, 1, Shrink(NodeId(11)));
    let joins = planned(&mut state, &mut heartbeats, &[10, 11, 12], 61 * SECOND);
    assert_eq!(joins, [(1, Join(NodeId(11)))], "it is back");
}

/// Only the leader removes a surplus copy: if the leader has just failed, the copy may be needed.
#[test]
fn a_surplus_copy_in_sync_stays_until_its_leader_lets_it_go() {
    let mut state = cluster();
    set(&mut state, "b", 2);
    all_alive(&mut state);
    change(&mut state, 1, Grow(NodeId(11)));
    set(&mut state, "b", 1);
    assert_eq!(all_alive(&mut state), []);
    change(&mut state, 1, Leave(NodeId(11)));
    assert_eq!(all_alive(&mut state), []);
}

#[test]
fn the_buckets_that_are_copied_at_once_are_bounded() {
    let mut state = cluster();
    for n in 2..=20 {
        create(&mut state, &format!("b{n}"));
        set(&mut state, &format!("b{n}"), 3);
    }
    let joins = |state: &mut StateContext| all_alive(state).len();
    let begun = joins(&mut state);
    assert_eq!(begun + joins(&mut state) + joins(&mut state), JOINING_IN_ALL_MAX);
    let of_node = |node: u64| {
        let joining = |copies: &Copies| copies.joining.contains(&NodeId(node));
        state.all_copies().filter(|(_, copies)| joining(copies)).count()
    };
    assert!((10..13).all(|node| of_node(node) <= JOINING_MAX));
}

#[test]
fn a_plan_that_came_to_nothing_is_made_again_after_a_while() {
    let mut state = cluster();
    set(&mut state, "b", 2);
    let mut heartbeats = Heartbeats::new(0);
    (10..13).for_each(|node| heartbeats.add(heartbeat(node), 0));
    let mut plans = CopyPlans::default();
    let mut commands = |now_ms| {
        let mut plan = Plan::default();
        plans.plan(&state, &heartbeats, now_ms, &mut plan);
        plan.commands.len()
    };
    assert_eq!([commands(0), commands(20), commands(LOOK_EVERY_MS)], [1, 0, 1]);
}
