//! Tests the switch to a version, the builds for it, and what is kept of the previous version.

use proto::ErrorCode;
use proto::model::data_set::VersionStage;
use proto::model::ids::{BucketId, Generation, IndexId, LocalIndexId, NodeId, VbucketId};
use proto::model::index::{IndexSpec, IndexState};
use proto::rpc::command::{
    BuildGeneration, BuildVersion, CancelBuild, CancelVersion, Command, DropVersion, IndexReady,
    Outcome, PartitionsLost, SwitchVersion,
};

use super::tests::{SET, complete, load, set, switched, with_data_set};
use crate::state::tests::{apply, create_index, done, refused, spec};
use crate::state::{Effect, StateContext};

#[test]
fn one_command_switches_all_indexes_of_a_data_set_or_none() {
    let mut state = with_data_set();
    done(&mut state, create_index(IndexSpec { replicas: 0, ..spec("k") }));
    done(&mut state, IndexReady { index: IndexId(3), generation: Generation(1) });
    let bucket = complete(&mut state, "v1");
    let switch = Command::SwitchVersion(SwitchVersion { data_set: SET, version: 1 });
    let of = |state: &StateContext, index| state.indexes.named()[&IndexId(index)].info.bucket;
    for (index, built) in [(1, 0), (3, 1)] {
        done(&mut state, switch.clone());
        assert_eq!(of(&state, 1), SET, "{built} of two generations are there");
        let from = state.indexes.named()[&IndexId(index)].info.local_id();
        let Outcome::Generation(next) = done(&mut state, BuildVersion { from, bucket }) else {
            panic!("no generation of index {index}")
        };
        done(&mut state, IndexReady { index: next.index, generation: next.generation });
        assert_eq!(of(&state, index), SET, "a generation of a version is not switched alone");
    }
    done(&mut state, switch);
    assert_eq!([1, 2, 3].map(|index| of(&state, index)), [bucket; 3]);
    let states = [1, 2, 3].map(|index| state.indexes.named()[&IndexId(index)].info.state);
    assert_eq!(states, [IndexState::Maintenance, IndexState::Pending, IndexState::Maintenance]);
    let catalog = state.catalog();
    assert_eq!(catalog.read_bucket("b").unwrap().id, bucket);
    let old = LocalIndexId { index: IndexId(1), generation: Generation(1) };
    assert_eq!(catalog.local_index(old).unwrap().state, IndexState::Retired);
    done(&mut state, create_index(spec("l")));
    assert_eq!(of(&state, 4), bucket, "a further index is over the current version");
}

#[test]
fn an_old_version_is_kept_with_its_generations_until_it_is_dropped() {
    let mut state = with_data_set();
    let first = switched(&mut state, "v1");
    let second = switched(&mut state, "v2");
    let stages =
        |state: &StateContext| set(state).versions.values().map(|v| v.stage).collect::<Vec<_>>();
    assert_eq!(stages(&state), [VersionStage::Kept, VersionStage::Current]);
    let over = |state: &StateContext, bucket| {
        state.indexes().filter(|record| record.info.bucket == bucket).count()
    };
    assert_eq!((over(&state, first), over(&state, second)), (1, 2));
    let drop = |version| Command::DropVersion(DropVersion { data_set: SET, version });
    done(&mut state, drop(2));
    assert_eq!(stages(&state).len(), 2, "the current version is not dropped");
    let (_, effects) = apply(&mut state, drop(1));
    assert!(effects.contains(&Effect::BucketDropped(first)));
    assert_eq!((stages(&state), over(&state, first)), (vec![VersionStage::Current], 0));
    assert_eq!(refused(&mut state, load("v2")), ErrorCode::Exists);
    assert_eq!(done(&mut state, load("v1")), Outcome::Version(SET, 3), "numbers only grow");
}

#[test]
fn a_build_for_a_version_is_cancelled_with_the_version_and_never_alone() {
    let mut state = with_data_set();
    let bucket = complete(&mut state, "v1");
    let from = state.indexes.named()[&IndexId(1)].info.local_id();
    done(&mut state, BuildVersion { from, bucket });
    let build = Command::CancelBuild(CancelBuild { index: IndexId(1) });
    assert_eq!(refused(&mut state, build), ErrorCode::WrongState);
    done(&mut state, CancelVersion { bucket: BucketId(1), version: "v1".into() });
    let left: Vec<_> = state.indexes().map(|record| record.info.bucket).collect();
    assert_eq!(left, [SET, SET]);
    done(&mut state, SwitchVersion { data_set: SET, version: 1 });
    assert_eq!(state.current_bucket(SET), SET);
}

fn generations(state: &StateContext, index: u64) -> Vec<LocalIndexId> {
    state.indexes.generations_of(IndexId(index)).map(|info| info.local_id()).collect()
}

/// Makes the last version lose one of its partitions.
fn lose_partition(state: &mut StateContext, bucket: BucketId) {
    for node in [10, 11, 12].map(NodeId) {
        let partitions = vec![VbucketId(0)];
        done(state, PartitionsLost { bucket, node, partitions });
    }
}

/// Begins the generation of an index over a version.
fn build(state: &mut StateContext, index: u64, bucket: BucketId) -> Outcome {
    let from = state.indexes.named()[&IndexId(index)].info.local_id();
    done(state, BuildVersion { from, bucket })
}

/// Returns a state with a current version that has lost a partition, the first build of index 3
/// over it, and a newer version with generations of both indexes.
fn with_stuck_build() -> (StateContext, BucketId, LocalIndexId) {
    let mut state = with_data_set();
    let lost = switched(&mut state, "v1");
    done(&mut state, create_index(spec("k")));
    let first = state.indexes.named()[&IndexId(3)].info.local_id();
    lose_partition(&mut state, lost);
    let bucket = complete(&mut state, "v2");
    assert!(matches!(build(&mut state, 1, bucket), Outcome::Generation(_)));
    assert!(
        matches!(build(&mut state, 3, bucket), Outcome::Generation(_)),
        "beside its first build"
    );
    assert_eq!(build(&mut state, 3, bucket), Outcome::Done, "it has one");
    assert_eq!(
        state.indexes.named()[&IndexId(3)].info.local_id(),
        first,
        "its first build goes on"
    );
    (state, bucket, first)
}

#[test]
fn a_first_build_is_given_up_when_the_next_version_is_switched_to() {
    let (mut state, bucket, first) = with_stuck_build();
    let next = state.catalog().next_generation(IndexId(3)).unwrap().local_id();
    done(&mut state, IndexReady { index: next.index, generation: next.generation });
    assert_eq!(
        state.indexes.named()[&IndexId(3)].info.local_id(),
        first,
        "the switch makes it serve"
    );
    done(&mut state, SwitchVersion { data_set: SET, version: 2 });
    let shown = state.catalog().indexes[&IndexId(3)].clone();
    assert_eq!((shown.local_id(), shown.bucket), (next, bucket));
    assert_eq!(shown.state, IndexState::Maintenance);
    assert_eq!(generations(&state, 3), [next], "nothing could read the first build");
    assert!(state.catalog().is_generation_dropped(first));
}

#[test]
fn a_first_build_goes_on_when_the_next_version_is_cancelled_and_may_end_before_the_switch() {
    let (mut state, bucket, first) = with_stuck_build();
    let mut cancelled = state.clone();
    done(&mut cancelled, CancelVersion { bucket: BucketId(1), version: "v2".into() });
    assert_eq!(generations(&cancelled, 3), [first]);
    assert_eq!(cancelled.indexes.named()[&IndexId(3)].info.state, IndexState::Backfill);
    done(&mut state, IndexReady { index: first.index, generation: first.generation });
    assert_eq!(state.indexes.named()[&IndexId(3)].info.state, IndexState::Maintenance);
    done(&mut state, SwitchVersion { data_set: SET, version: 2 });
    let states = state.indexes.generations_of(IndexId(3));
    let states: Vec<_> = states.map(|info| info.state).collect();
    assert_eq!(states, [IndexState::Maintenance, IndexState::Retired]);
    assert_eq!(state.indexes.named()[&IndexId(3)].info.bucket, bucket);
}

#[test]
fn the_cancellation_of_a_first_build_ends_that_over_the_next_version_too() {
    let (mut state, ..) = with_stuck_build();
    done(&mut state, CancelBuild { index: IndexId(3) });
    assert_eq!(generations(&state, 3), []);
    done(&mut state, SwitchVersion { data_set: SET, version: 2 });
    assert_eq!(set(&state).current().unwrap().0, 2);
}

#[test]
fn a_changed_index_is_built_over_the_next_version_if_its_own_has_lost_a_partition() {
    let mut state = with_data_set();
    let old = switched(&mut state, "v1");
    let serving = state.indexes.named()[&IndexId(1)].info.clone();
    let spec = Box::new(IndexSpec { slices: 5, ..(*serving.spec).clone() });
    let change = Command::BuildGeneration(BuildGeneration { index: serving.id, spec });
    let Outcome::Generation(changed) = done(&mut state, change) else { panic!("no generation") };
    let bucket = complete(&mut state, "v2");
    assert_eq!(build(&mut state, 1, bucket), Outcome::Done, "the other build has an end");
    lose_partition(&mut state, old);
    let Outcome::Generation(next) = build(&mut state, 1, bucket) else { panic!("no generation") };
    let info = state.indexes.record(next).unwrap().info.clone();
    assert_eq!((info.bucket, info.spec.slices), (bucket, 5));
    assert!(state.catalog().is_generation_dropped(changed));
    lose_partition(&mut state, bucket);
    assert_eq!(build(&mut state, 1, bucket), Outcome::Done, "no build is begun twice");
    assert_eq!(generations(&state, 1).len(), 3, "the empty one is retired");
}
