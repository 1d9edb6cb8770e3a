//! Versions of data sets, from their loading to their end.

use proto::model::data_set::{
    DataSet, Files, FilesRead, PartitionContent, Version, branch_of_partition,
};
use proto::model::ids::{BucketId, Epoch, Generation, IndexId, NodeId, VbucketId};
use proto::model::node::Role;
use proto::rpc::command::{
    BuildVersion, CancelVersion, ChangePartitionOwners, Command, CreateDataSet, CreateIndex,
    DropBucket, DropVersion, IndexReady, LoadVersion, Outcome, PartitionsLoaded, PartitionsLost,
    RegisterNode, RemoveNode, SetVersionIdle, SwitchVersion, VersionFailed,
};
use proto::{Error, ErrorCode};

use crate::state::capacity::limits::DATA_SETS_MAX;
use crate::state::tests::{
    apply, avoiding, create_bucket, create_index, done, done_decided, node, refused, spec,
};
use crate::state::{Effect, StateContext};

pub(super) const SET: BucketId = BucketId(1);
const PARTITIONS: u16 = 4;

fn create(name: &str) -> Command {
    Command::CreateDataSet(CreateDataSet {
        name: name.into(),
        partitions: PARTITIONS,
        replication: 2,
        idle_ms: 60_000,
        if_not_exists: false,
    })
}

pub(crate) fn load(version: &str) -> Command {
    let files = Files { pattern: "people/*.csv".into(), id: "id".into() };
    Command::LoadVersion(LoadVersion {
        bucket: SET,
        version: version.into(),
        files,
        allow_empty: false,
    })
}

/// Returns a state with projectors 10 to 12, indexers 20 and 21, and the data set 1, called "b",
/// with the indexes "i", which serves, and "j", which is not built.
pub(crate) fn with_data_set() -> StateContext {
    let mut state = StateContext::default();
    let projectors = (10..=12).map(|id| node(id, Role::Projector));
    for info in projectors.chain((20..=21).map(|id| node(id, Role::Indexer))) {
        done(&mut state, RegisterNode { node: info });
    }
    assert_eq!(done(&mut state, create("b")), Outcome::Bucket(SET));
    done(&mut state, create_index(spec("i")));
    done(&mut state, IndexReady { index: IndexId(1), generation: Generation(1) });
    let spec = spec("j");
    done(
        &mut state,
        CreateIndex { bucket: BucketId(1), spec, defer_build: true, if_not_exists: false },
    );
    state
}

/// Returns the bucket of the loading version.
pub(crate) fn loading(state: &StateContext) -> BucketId {
    set(state).loading().unwrap().1.bucket
}

pub(super) fn set(state: &StateContext) -> &DataSet {
    &state.versions.sets()[&SET]
}

fn version<'s>(state: &'s StateContext, name: &str) -> &'s Version {
    set(state).versions.values().find(|version| version.name == name).unwrap()
}

fn content(partition: u16) -> PartitionContent {
    let rows = 10 * u64::from(partition);
    PartitionContent { rows, documents: rows, bytes: 100 * rows, digest: rows }
}

/// Returns the command by which a projector advertises its partitions, with a summary equal to that
/// of all others.
pub(crate) fn advertise(state: &StateContext, bucket: BucketId, node: u64) -> Command {
    let (_, version) = set(state).version_of(bucket).unwrap();
    let mine = version.partitions_of(NodeId(node), 2);
    let partitions = mine.into_iter().map(|p| (p, content(p.0))).collect();
    Command::PartitionsLoaded(PartitionsLoaded {
        bucket,
        node: NodeId(node),
        partitions,
        read: Some(read(60)),
    })
}

fn read(rows: u64) -> FilesRead {
    FilesRead { files: 2, rows, digest: 7 }
}

/// Begins a version and lets the projectors advertise all of it.
pub(crate) fn complete(state: &mut StateContext, name: &str) -> BucketId {
    done(state, load(name));
    let bucket = loading(state);
    for node in 10..=12 {
        let command = advertise(state, bucket, node);
        done(state, command);
    }
    bucket
}

/// Makes a version current.
pub(crate) fn switched(state: &mut StateContext, name: &str) -> BucketId {
    let bucket = complete(state, name);
    let from = state.indexes.named()[&IndexId(1)].info.local_id();
    done(state, BuildVersion { from, bucket });
    let version = set(state).newest;
    done(state, SwitchVersion { data_set: SET, version });
    assert_eq!(state.current_bucket(SET), bucket);
    bucket
}

#[test]
fn a_version_gets_a_bucket_whose_partitions_are_given_to_the_projectors_in_turn() {
    let mut state = with_data_set();
    assert_eq!(done(&mut state, load("v1")), Outcome::Version(SET, 1));
    let catalog = state.catalog();
    assert_eq!(catalog.bucket("b").unwrap().id, SET);
    assert_eq!(catalog.read_bucket("b").unwrap().id, SET, "nothing is complete yet");
    let bucket = &catalog.buckets[&loading(&state)];
    assert_eq!((bucket.name.as_str(), bucket.vbuckets), ("b@v1", PARTITIONS));
    assert!(catalog.bucket("b@v1").is_none(), "nobody names the bucket of a version");
    let owners = (0..PARTITIONS).map(|p| bucket.assignment.owner(VbucketId(p)).unwrap().0);
    assert_eq!(owners.collect::<Vec<_>>(), [10, 12, 11, 10]);
    assert_eq!(version(&state, "v1").nodes, [10, 11, 12].map(NodeId));
    assert_eq!(refused(&mut state, create_bucket("b@v1")), ErrorCode::Exists);
}

#[test]
fn silent_projectors_get_no_partitions_unless_all_are_silent() {
    let mut state = with_data_set();
    done_decided(&mut state, avoiding(&[11]), load("v1"));
    assert_eq!(version(&state, "v1").nodes, [10, 12].map(NodeId));
    let mut state = with_data_set();
    done_decided(&mut state, avoiding(&[10, 11, 12]), load("v1"));
    assert_eq!(version(&state, "v1").nodes.len(), 3);
}

#[test]
fn the_last_advertisement_publishes_the_only_epoch_which_covers_every_partition() {
    let mut state = with_data_set();
    done(&mut state, load("v1"));
    let bucket = loading(&state);
    let published =
        |effects: &[Effect]| effects.iter().any(|e| matches!(e, Effect::EpochPublished(_)));
    let first = advertise(&state, bucket, 10);
    let (_, effects) = apply(&mut state, first.clone());
    assert!(!published(&effects) && !version(&state, "v1").is_complete());
    let second = advertise(&state, bucket, 12);
    let (_, effects) = apply(&mut state, second);
    assert!(published(&effects), "each partition has a holder, although projector 11 has none yet");
    let mark = state.bucket(bucket).unwrap().epochs.last();
    assert_eq!(mark.epoch, Epoch(2));
    for partition in (0..PARTITIONS).map(VbucketId) {
        let (at, rows) = (mark.cut.get(partition), content(partition.0).rows);
        assert_eq!(at.seqno.0, rows);
        assert!(rows == 0 || at.vbuuid == branch_of_partition(bucket, partition));
    }
    assert!(state.is_published(version(&state, "v1")));
    let (_, effects) = apply(&mut state, first);
    assert!(effects.is_empty(), "a repetition says nothing new");
}

#[test]
fn a_partition_is_owned_by_a_projector_that_has_it() {
    let mut state = with_data_set();
    done(&mut state, load("v1"));
    let bucket = loading(&state);
    let owner = |state: &StateContext, p| {
        state.bucket(bucket).unwrap().info.assignment.owner(VbucketId(p)).unwrap().0
    };
    let command = advertise(&state, bucket, 11);
    done(&mut state, command);
    let holders = |state: &StateContext, p| version(state, "v1").holders(VbucketId(p)).to_vec();
    let mine = version(&state, "v1").partitions_of(NodeId(11), 2);
    assert!(mine.iter().all(|p| owner(&state, p.0) == 11), "its other holder has it not yet");
    let command = advertise(&state, bucket, 10);
    done(&mut state, command);
    let both = mine.iter().find(|p| holders(&state, p.0) == [10, 11].map(NodeId)).unwrap().0;
    assert_eq!(owner(&state, both), 11, "it stays where it is");
    let give = |node| {
        Command::ChangePartitionOwners(ChangePartitionOwners {
            bucket,
            owners: vec![(VbucketId(both), NodeId(node))],
        })
    };
    done(&mut state, give(12));
    assert_eq!(owner(&state, both), 11, "projector 12 does not have it");
    done(&mut state, give(10));
    assert_eq!(owner(&state, both), 10);
    let partitions = vec![VbucketId(both)];
    done(&mut state, PartitionsLost { bucket, node: NodeId(10), partitions });
    assert_eq!((owner(&state, both), holders(&state, both)), (11, vec![NodeId(11)]));
}

#[test]
fn a_version_whose_holders_have_other_documents_fails_and_says_where() {
    let mut state = with_data_set();
    done(&mut state, load("v1"));
    let bucket = loading(&state);
    for node in [10, 11] {
        let mut command = advertise(&state, bucket, node);
        if let Command::PartitionsLoaded(PartitionsLoaded {
            partitions, node: NodeId(11), ..
        }) = &mut command
        {
            partitions.iter_mut().for_each(|(_, content)| content.digest += 1);
        }
        done(&mut state, command);
    }
    let failed = set(&state).failed.clone().unwrap();
    assert_eq!((failed.number, failed.name.as_str()), (1, "v1"));
    assert!(
        failed.why.contains("projector 11") && failed.why.contains("projector 10"),
        "{failed:?}"
    );
    assert!(set(&state).versions.is_empty() && state.bucket(bucket).is_none());
    done(&mut state, load("v1"));
    assert!(set(&state).failed.is_none());
}

#[test]
fn a_version_whose_projectors_have_read_other_rows_fails_although_they_have_no_partition_in_common()
{
    let mut state = with_data_set();
    done(&mut state, load("v1"));
    let bucket = loading(&state);
    let nodes = [10, 11].map(NodeId);
    let told = |node, partition: u16, rows| {
        Command::PartitionsLoaded(PartitionsLoaded {
            bucket,
            node,
            partitions: vec![(VbucketId(partition), content(partition))],
            read: Some(read(rows)),
        })
    };
    let of = |node| version(&state, "v1").partitions_of(node, 2);
    let [first, second] = nodes.map(|node| {
        let other = if node == nodes[0] { nodes[1] } else { nodes[0] };
        let alone = of(node).into_iter().find(|p| !of(other).contains(p));
        alone.expect("a partition that the other one does not load").0
    });
    done(&mut state, told(nodes[0], first, 60));
    assert!(state.versions.files_read(bucket).is_some());
    let copy = StateContext::from_bytes(&state.to_bytes().unwrap()).unwrap();
    assert_eq!(copy, state);
    done(&mut state, told(nodes[1], second, 61));
    let failed = set(&state).failed.clone().expect("the version has failed");
    for part in ["projector 11", "projector 10", "61 rows of 2 files", "60 rows of 2 files"] {
        assert!(failed.why.contains(part), "{failed:?}");
    }
    assert!(state.versions.files_read(bucket).is_none(), "nothing is left of the version");
    let mut state = copy;
    done(&mut state, told(nodes[1], second, 60));
    assert!(set(&state).failed.is_none());
}

#[test]
fn a_late_holder_that_cannot_load_its_partitions_does_not_end_a_complete_version() {
    let mut state = with_data_set();
    done(&mut state, load("v1"));
    let bucket = loading(&state);
    for node in [10, 12] {
        let command = advertise(&state, bucket, node);
        done(&mut state, command);
    }
    assert!(version(&state, "v1").is_complete());
    let error = Error::new(ErrorCode::InvalidParameter, "no file of people/*.csv");
    done(&mut state, VersionFailed { bucket, node: NodeId(11), error });
    assert!(version(&state, "v1").is_complete() && set(&state).failed.is_none());
}

#[test]
fn each_data_set_can_load_a_version_beside_its_current_one() {
    let mut state = with_data_set();
    done(&mut state, DropBucket { bucket: BucketId(1), restrict: false });
    let names: Vec<String> = (0..DATA_SETS_MAX).map(|n| format!("s{n}")).collect();
    let load = |set: BucketId, version: &str| {
        let files = Files { pattern: "people/*.csv".into(), id: "id".into() };
        Command::LoadVersion(LoadVersion {
            bucket: set,
            version: version.into(),
            files,
            allow_empty: false,
        })
    };
    for name in &names {
        let Outcome::Bucket(id) = done(
            &mut state,
            CreateDataSet {
                name: name.clone(),
                partitions: 1,
                replication: 1,
                idle_ms: 60_000,
                if_not_exists: false,
            },
        ) else {
            panic!("no bucket")
        };
        done(&mut state, load(id, "v1"));
        let version = state.versions.sets()[&id].loading().unwrap().1;
        let (bucket, node) = (version.bucket, version.nodes[0]);
        let partitions = vec![(VbucketId(0), content(1))];
        done(&mut state, PartitionsLoaded { bucket, node, partitions, read: None });
        done(&mut state, SwitchVersion { data_set: id, version: 1 });
        assert_eq!(state.current_bucket(id), bucket);
    }
    assert_eq!(refused(&mut state, create("one more")), ErrorCode::OverLimit);
    let ids: Vec<_> = state.versions.sets().keys().copied().collect();
    ids.into_iter().for_each(|id| drop(done(&mut state, load(id, "v2"))));
}

#[test]
fn only_a_projector_of_a_version_advertises_its_partitions_and_lets_it_fail() {
    let mut state = with_data_set();
    done(&mut state, load("v1"));
    let bucket = loading(&state);
    let partitions = (0..PARTITIONS).map(|p| (VbucketId(p), content(p))).collect();
    let all = Command::PartitionsLoaded(PartitionsLoaded {
        bucket,
        node: NodeId(10),
        partitions,
        read: None,
    });
    assert_eq!(refused(&mut state, all), ErrorCode::InvalidParameter);
    let error = Error::new(ErrorCode::Io, "people/1.csv line 7: an open quote");
    let failed = |node| {
        Command::VersionFailed(VersionFailed { bucket, node: NodeId(node), error: error.clone() })
    };
    done(&mut state, failed(99));
    assert!(set(&state).failed.is_none());
    done(&mut state, failed(11));
    let why = &set(&state).failed.as_ref().unwrap().why;
    assert_eq!(why, "projector 11: people/1.csv line 7: an open quote");
    done(&mut state, failed(12));
    assert_eq!(set(&state).versions.len(), 0, "of a version that is gone");
}

#[test]
fn a_data_set_loads_one_version_at_a_time_and_has_a_bounded_number() {
    let mut state = with_data_set();
    done(&mut state, load("v1"));
    assert_eq!(refused(&mut state, load("v2")), ErrorCode::WrongState);
    let cancel = |version: &str| {
        Command::CancelVersion(CancelVersion { bucket: BucketId(1), version: version.into() })
    };
    assert_eq!(refused(&mut state, cancel("v2")), ErrorCode::Unknown);
    done(&mut state, cancel("v1"));
    assert!(set(&state).versions.is_empty() && set(&state).failed.is_none());
    for name in ["v1", "v2", "v3", "v4"] {
        switched(&mut state, name);
    }
    assert_eq!(refused(&mut state, cancel("v4")), ErrorCode::WrongState);
    assert_eq!(refused(&mut state, load("v5")), ErrorCode::WrongState);
    done(&mut state, DropVersion { data_set: SET, version: 2 });
    done(&mut state, load("v5"));
}

#[test]
fn dropping_a_data_set_drops_its_versions_and_its_indexes() {
    let mut state = with_data_set();
    switched(&mut state, "v1");
    switched(&mut state, "v2");
    done(&mut state, load("v3"));
    let restrict = Command::DropBucket(DropBucket { bucket: BucketId(1), restrict: true });
    assert_eq!(refused(&mut state, restrict), ErrorCode::HasDependents);
    let drop = Command::DropBucket(DropBucket { bucket: BucketId(1), restrict: false });
    let (_, effects) = apply(&mut state, drop);
    let gone = effects.iter().filter(|effect| matches!(effect, Effect::BucketDropped(_))).count();
    assert_eq!(gone, 4);
    assert!(state.buckets.all().is_empty() && state.versions.sets().is_empty());
    assert_eq!(state.indexes().count(), 0);
}

#[test]
fn a_projector_is_removed_unless_a_version_needs_it() {
    let mut state = with_data_set();
    done(&mut state, load("v1"));
    let remove = |node| Command::RemoveNode(RemoveNode { node: NodeId(node), force: false });
    assert_eq!(refused(&mut state, remove(10)), ErrorCode::InvalidParameter, "it is loading");
    let cancel =
        Command::CancelVersion(CancelVersion { bucket: BucketId(1), version: "v1".into() });
    done(&mut state, cancel);
    let bucket = switched(&mut state, "v1");
    let mine = version(&state, "v1").partitions_of(NodeId(11), 2);
    done(&mut state, remove(10));
    let version = version(&state, "v1");
    assert_eq!(version.partitions_of(NodeId(11), 2), mine, "nobody is to load other partitions");
    assert!(version.partitions.iter().all(|partition| !partition.holders.is_empty()));
    let owners =
        [SET, bucket].map(|bucket| state.bucket(bucket).unwrap().info.assignment.projectors());
    assert!(owners.iter().flatten().all(|owner| *owner != NodeId(10)), "{owners:?}");
    assert_eq!(
        refused(&mut state, remove(11)),
        ErrorCode::InvalidParameter,
        "it is the only holder"
    );
}

#[test]
fn a_bucket_of_another_kind_has_no_versions() {
    let mut state = with_data_set();
    done(&mut state, create_bucket("e"));
    let files = Files { pattern: "x.csv".into(), id: "id".into() };
    let load = Command::LoadVersion(LoadVersion {
        bucket: BucketId(2),
        version: "v".into(),
        files,
        allow_empty: false,
    });
    assert_eq!(refused(&mut state, load), ErrorCode::Unsupported);
    let idle = |idle_ms| Command::SetVersionIdle(SetVersionIdle { bucket: BucketId(1), idle_ms });
    done(&mut state, idle(5));
    assert_eq!(set(&state).idle_ms, 5);
    assert_eq!(refused(&mut state, idle(u64::MAX)), ErrorCode::InvalidParameter);
}

#[test]
fn a_snapshot_has_the_data_sets() {
    let mut state = with_data_set();
    switched(&mut state, "v1");
    done(&mut state, load("v2"));
    let read = StateContext::from_bytes(&state.to_bytes().unwrap()).unwrap();
    assert_eq!(read, state);
}

#[test]
fn a_version_without_rows_takes_the_place_of_another_one_only_if_that_is_allowed() {
    let told = |state: &StateContext| {
        let (bucket, node) = (loading(state), NodeId(10));
        let mine = set(state).loading().unwrap().1.partitions_of(node, 2);
        let partitions = mine.into_iter().map(|p| (p, PartitionContent::default())).collect();
        Command::PartitionsLoaded(PartitionsLoaded {
            bucket,
            node,
            partitions,
            read: Some(read(0)),
        })
    };
    let mut state = with_data_set();
    done(&mut state, load("v0"));
    let first = told(&state);
    done(&mut state, first);
    assert!(set(&state).failed.is_none(), "nothing serves that it could replace");
    done(&mut state, CancelVersion { bucket: BucketId(1), version: "v0".into() });
    let serves = switched(&mut state, "v1");
    done(&mut state, load("v2"));
    let empty = told(&state);
    done(&mut state, empty);
    let failed = set(&state).failed.clone().expect("it has failed");
    for part in ["no rows", "'v1' serves on", "allow_empty"] {
        assert!(failed.why.contains(part), "{failed:?}");
    }
    assert_eq!((set(&state).loading(), state.current_bucket(SET)), (None, serves));
    let Command::LoadVersion(LoadVersion { bucket, version, files, .. }) = load("v3") else {
        unreachable!()
    };
    done(&mut state, LoadVersion { bucket, version, files, allow_empty: true });
    let state_read = StateContext::from_bytes(&state.to_bytes().unwrap()).unwrap();
    assert_eq!(state_read, state);
    let empty = told(&state);
    done(&mut state, empty);
    assert!(set(&state).loading().is_some(), "it goes on: {:?}", set(&state).failed);
    let bucket = set(&state).loading().unwrap().1.bucket;
    assert!(state.versions.may_be_empty(bucket));
    done(&mut state, CancelVersion { bucket: BucketId(1), version: "v3".into() });
    assert!(!state.versions.may_be_empty(bucket));
}
