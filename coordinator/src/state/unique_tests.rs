use proto::model::identity::{ClusterId, UniqueId};
use proto::model::ids::{BucketId, Generation, IndexId};
use proto::rpc::command::{Command, Outcome};

use crate::state::StateContext;
use crate::state::limits::DROPPED_BUCKETS_MAX;
use crate::state::tests::{create_bucket, create_index, done, refused, spec, with_bucket};

fn create(unique: u128, command: Command) -> Command {
    Command::Create { unique: UniqueId(unique), command: Box::new(command) }
}

fn drop_bucket(name: &str) -> Command {
    Command::DropBucket { name: name.into(), if_exists: false, restrict: false }
}

#[test]
fn a_new_object_has_the_id_of_its_command_and_an_existing_one_keeps_its_own() {
    let mut state = with_bucket();
    assert_eq!(done(&mut state, create(70, create_bucket("c"))), Outcome::Bucket(BucketId(2)));
    done(&mut state, create(81, create_index(spec("i"))));
    done(&mut state, create_index(spec("of_an_earlier_build")));
    let again = Command::CreateBucket {
        name: "c".into(),
        vbuckets: 2,
        source: proto::model::bucket::SourceKind::Embedded,
        projectors: 1,
        if_not_exists: true,
    };
    assert_eq!(done(&mut state, create(90, again)), Outcome::Bucket(BucketId(2)));
    let catalog = state.catalog();
    assert_eq!(catalog.bucket_ids[&BucketId(2)], UniqueId(70));
    assert_eq!(catalog.indexes[&IndexId(1)].generation, Generation(41));
    assert_eq!(catalog.indexes[&IndexId(2)].generation, Generation(1));
    refused(&mut state, create(1, Command::RemoveNode { node: proto::model::ids::NodeId(9) }));
    assert_eq!(StateContext::from_bytes(&state.to_bytes().unwrap()).unwrap(), state);
}

/// The newest drops stay known.
#[test]
fn dropped_buckets_are_remembered_by_their_ids_and_bounded() {
    let mut state = of_an_earlier_build();
    let earlier = (BucketId(1), state.catalog().bucket_ids[&BucketId(1)]);
    done(&mut state, drop_bucket("b"));
    assert_eq!(state.catalog().dropped_buckets, [earlier]);
    for n in 0..DROPPED_BUCKETS_MAX {
        done(&mut state, create(n as u128, create_bucket("c")));
        assert_eq!(state.catalog().bucket_ids.len(), 1);
        done(&mut state, drop_bucket("c"));
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

/// A state as the build before the ids wrote it, with a bucket.
pub(crate) fn of_an_earlier_build() -> StateContext {
    let state = StateContext { cluster: Some(ClusterId(5)), ..with_bucket() };
    StateContext::from_bytes(&state.to_bytes_before_skips()).unwrap()
}

/// Every restore of a copy from before the upgrade knows the stored buckets by the same ids.
#[test]
fn buckets_of_an_earlier_build_have_the_same_ids_under_every_copy_of_the_state() {
    let (mut first, second) = (of_an_earlier_build(), of_an_earlier_build());
    done(&mut first, create_bucket("of_an_old_log"));
    let (ids, again) = (first.catalog().bucket_ids, second.catalog().bucket_ids);
    assert_eq!((ids.len(), again.len()), (2, 1), "each bucket has one");
    assert_eq!(ids[&BucketId(1)], again[&BucketId(1)]);
    assert_ne!(ids[&BucketId(1)], ids[&BucketId(2)]);
}
