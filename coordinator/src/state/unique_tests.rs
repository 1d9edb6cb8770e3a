use proto::model::identity::UniqueId;
use proto::model::ids::{BucketId, Generation, IndexId};
use proto::rpc::command::{Command, CreateBucket, DropBucket, Outcome};

use crate::state::capacity::limits::DROPPED_BUCKETS_MAX;
use crate::state::tests::{create_bucket, create_index, done, done_decided, spec, with_bucket};
use crate::state::{Decisions, StateContext};

fn drawn(unique: u128) -> Decisions {
    Decisions { unique: UniqueId(unique), ..Decisions::default() }
}

fn drop_bucket(state: &StateContext, name: &str) -> Command {
    let bucket = state.bucket_named(name).expect("a bucket");
    Command::DropBucket(DropBucket { bucket, restrict: false })
}

#[test]
fn a_new_object_has_the_id_of_its_record_and_an_existing_one_keeps_its_own() {
    let mut state = with_bucket();
    let made = done_decided(&mut state, drawn(70), create_bucket("c"));
    assert_eq!(made, Outcome::Bucket(BucketId(2)));
    done_decided(&mut state, drawn(81), create_index(spec("i")));
    let again = Command::CreateBucket(CreateBucket {
        name: "c".into(),
        vbuckets: 2,
        source: proto::model::bucket::SourceKind::Embedded,
        projectors: 1,
        copies: None,
        if_not_exists: true,
    });
    let found = done_decided(&mut state, drawn(90), again);
    assert_eq!(found, Outcome::Bucket(BucketId(2)));
    let catalog = state.catalog();
    assert_eq!(catalog.bucket_ids[&BucketId(2)], UniqueId(70));
    assert_eq!(catalog.indexes[&IndexId(1)].generation, Generation(41));
    assert_eq!(StateContext::from_bytes(&state.to_bytes().unwrap()).unwrap(), state);
}

/// The newest drops stay in the state.
#[test]
fn dropped_buckets_are_remembered_by_their_ids_and_bounded() {
    let mut state = with_bucket();
    let earlier = (BucketId(1), state.catalog().bucket_ids[&BucketId(1)]);
    let drop = drop_bucket(&state, "b");
    done(&mut state, drop);
    assert_eq!(state.catalog().dropped_buckets, [earlier]);
    for n in 0..DROPPED_BUCKETS_MAX {
        done_decided(&mut state, drawn(n as u128), create_bucket("c"));
        assert_eq!(state.catalog().bucket_ids.len(), 1);
        let drop = drop_bucket(&state, "c");
        done(&mut state, drop);
    }
    let catalog = state.catalog();
    assert_eq!(catalog.dropped_buckets.len(), DROPPED_BUCKETS_MAX);
    assert!(!catalog.has_dropped(earlier.0, earlier.1), "the oldest is forgotten");
    assert!(catalog.has_dropped(BucketId(2), UniqueId(0)));
    assert!(!catalog.has_dropped(BucketId(2), UniqueId(1)), "another bucket of the number");
    assert!(catalog.bucket_ids.is_empty());
    assert_eq!(StateContext::from_bytes(&state.to_bytes().unwrap()).unwrap(), state);
}

#[test]
fn first_generations_leave_room_for_later_ones() {
    assert_eq!(UniqueId(0).first_generation(), Generation(1));
    assert_eq!(UniqueId(u128::MAX).first_generation(), Generation(1 << 31));
}
