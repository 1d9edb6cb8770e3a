//! Tests that an eighth of the room is reserved for administrators.

use std::sync::Arc;

use proto::model::bucket::SourceKind;
use proto::model::ids::{BucketId, IndexId};
use proto::rpc::command::{CreateBucket, CreateIndex, DropIndex, SetReplicas};

use super::*;
use crate::state::capacity::limits::{INDEXES_MAX, PLACES_IN_ALL_MAX, VBUCKETS_IN_ALL_MAX};
use crate::state::tests::{done, spec, with_bucket};
use crate::state::versions::tests::{load, switched, with_data_set};

fn create_index() -> Command {
    Command::CreateIndex(CreateIndex {
        bucket: BucketId(1),
        spec: spec("more"),
        defer_build: true,
        if_not_exists: false,
    })
}

#[test]
fn an_eighth_of_the_room_is_for_administrators() {
    let mut state = with_bucket();
    let index = Command::CreateIndex(CreateIndex {
        bucket: BucketId(1),
        spec: spec("i"),
        defer_build: true,
        if_not_exists: false,
    });
    done(&mut state, index);
    let mut catalog = state.catalog();
    let (&id, index) = catalog.indexes.first_key_value().expect("an index");
    let index = Arc::clone(index);
    let mut next = id;
    while catalog.indexes.len() < INDEXES_MAX / 8 * 7 - 1 {
        next.0 += 1;
        catalog.indexes.insert(next, Arc::clone(&index));
    }
    check_reserve(&catalog, &create_index()).expect("the last one for all");
    next.0 += 1;
    catalog.indexes.insert(next, index);
    let error = check_reserve(&catalog, &create_index()).expect_err("the reserve");
    assert_eq!(error.code, ErrorCode::OverLimit);
    assert!(error.message.contains("1792 are for all"), "{error}");
    let drop = Command::DropIndex(DropIndex { index: IndexId(1) });
    check_reserve(&catalog, &drop).expect("a drop");
    let again = Command::CreateIndex(CreateIndex {
        bucket: BucketId(1),
        spec: spec("i"),
        defer_build: true,
        if_not_exists: true,
    });
    check_reserve(&catalog, &again).expect("it is there");
}

#[test]
fn slices_leave_places_for_administrators() {
    let mut state = with_bucket();
    done(&mut state, create_index());
    let catalog = state.catalog();
    let most = PLACES_IN_ALL_MAX / 8 * 7;
    let own: usize = catalog.indexes.values().map(|index| places_of(index)).sum();
    let of = |slices: usize, replicas| {
        let spec = IndexSpec { slices: slices as u16, replicas, ..spec("other") };
        Command::CreateIndex(CreateIndex {
            bucket: BucketId(1),
            spec,
            defer_build: true,
            if_not_exists: false,
        })
    };
    let slices = (most - own) / 8;
    check_reserve(&catalog, &of(slices, 7)).expect("the last ones for all");
    let refused = check_reserve(&catalog, &of(slices + 1, 7)).expect_err("the reserve");
    assert!(refused.message.contains("copies of slices"), "{refused}");
    let set = |replicas| Command::SetReplicas(SetReplicas { index: IndexId(1), replicas });
    check_reserve(&catalog, &set(0)).expect("it takes nothing");
    check_reserve(&catalog, &set(2)).expect("there is room");
}

#[test]
fn an_index_that_grows_by_itself_leaves_places_for_administrators() {
    let mut state = with_bucket();
    done(&mut state, create_index());
    let own: usize = state.indexes().map(|record| places_of(&record.info)).sum();
    let free = PLACES_IN_ALL_MAX / 8 * 7 - own;
    let of = |slices: usize| IndexSpec { slices: slices as u16, replicas: 7, ..spec("more") };
    assert!(state.fits_without_reserve(&of(free / 8)));
    assert!(!state.fits_without_reserve(&of(free / 8 + 1)));
}

#[test]
fn a_version_leaves_places_for_administrators() {
    let mut state = with_data_set();
    switched(&mut state, "v1");
    let mut catalog = state.catalog();
    let next = load("v2");
    check_reserve(&catalog, &next).expect("there is room");
    // The serving generation of the index has that many copies of slices.
    let index = catalog.indexes.values_mut().next().expect("the index that serves");
    let index = Arc::make_mut(index);
    let slices = (PLACES_IN_ALL_MAX / 16 * 7) as u16;
    index.spec = Arc::new(IndexSpec { slices, replicas: 0, ..(*index.spec).clone() });
    let refused = check_reserve(&catalog, &next).expect_err("the reserve");
    assert!(refused.message.contains("copies of slices"), "{refused}");
}

#[test]
fn buckets_leave_vbuckets_for_administrators() {
    let mut catalog = with_bucket().catalog();
    let create = |vbuckets| {
        Command::CreateBucket(CreateBucket {
            name: "more".into(),
            vbuckets,
            source: SourceKind::Push,
            projectors: 1,
            copies: None,
            if_not_exists: false,
        })
    };
    let bucket = catalog.buckets.values_mut().next().expect("a bucket");
    Arc::make_mut(bucket).vbuckets = (VBUCKETS_IN_ALL_MAX / 8 * 7 - 2) as u16;
    check_reserve(&catalog, &create(2)).expect("the last ones for all");
    let refused = check_reserve(&catalog, &create(3)).expect_err("the reserve");
    assert_eq!(refused.code, ErrorCode::OverLimit);
}
