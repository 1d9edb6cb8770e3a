use proto::model::identity::UniqueId;
use proto::model::ids::{BucketId, Generation, IndexId};
use proto::rpc::command::{Command, Outcome};

use crate::state::StateContext;
use crate::state::tests::{create_bucket, create_index, done, refused, spec, with_bucket};

fn create(unique: u128, command: Command) -> Command {
    Command::Create { unique: UniqueId(unique), command: Box::new(command) }
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
    assert_eq!(Vec::from_iter(&catalog.bucket_ids), [(&BucketId(2), &UniqueId(70))]);
    assert_eq!(catalog.indexes[&IndexId(1)].generation, Generation(41));
    assert_eq!(catalog.indexes[&IndexId(2)].generation, Generation(1));
    refused(&mut state, create(1, Command::RemoveNode { node: proto::model::ids::NodeId(9) }));
    assert_eq!(StateContext::from_bytes(&state.to_bytes().unwrap()).unwrap(), state);

    assert!(!state.all_identified());
    done(&mut state, Command::IdentifyBuckets(UniqueId(u128::MAX)));
    assert!(state.all_identified());
    let ids = Vec::from_iter(state.catalog().bucket_ids);
    assert_eq!(ids, [(BucketId(1), UniqueId(0)), (BucketId(2), UniqueId(70))]);
    let drop = Command::DropBucket { name: "c".into(), if_exists: false, restrict: false };
    done(&mut state, drop);
    assert_eq!(state.catalog().bucket_ids.len(), 1);
}

#[test]
fn first_generations_leave_room_for_later_ones() {
    assert_eq!(UniqueId(0).first_generation(), Generation(1));
    assert_eq!(UniqueId(u128::MAX).first_generation(), Generation(1 << 31));
}
