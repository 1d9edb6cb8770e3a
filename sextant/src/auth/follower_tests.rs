#![allow(clippy::disallowed_methods, reason = "tests look at real files")]

use std::sync::Mutex;

use proto::model::ids::NodeId;
use proto::model::node::NodeInfo;
use proto::rpc::api::{CoordinatorApi, IndexerApi, ProjectorApi};

use super::super::users_file::tests::{CLUSTER, users};
use super::*;

/// A directory that is never called, since the tests pass the messages.
struct UncalledDirectory;

impl Directory for UncalledDirectory {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        unreachable!("no coordinator is asked")
    }

    fn coordinator_member(&self, _node: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        Err(Error::unavailable("no coordinator is there"))
    }

    fn projector(&self, _node: &NodeInfo) -> Arc<dyn ProjectorApi> {
        unreachable!("no projector is asked")
    }

    fn indexer(&self, _node: &NodeInfo) -> Arc<dyn IndexerApi> {
        unreachable!("no indexer is asked")
    }
}

/// Returns a follower of a process that may know its cluster, with the users and the cluster that
/// it has learned.
fn follower(
    own: Option<ClusterId>,
) -> (UsersFollower, Arc<NewestUsers>, Arc<Mutex<Option<ClusterId>>>) {
    let (known, own) = (Arc::<NewestUsers>::default(), Arc::new(Mutex::new(own)));
    let cluster = Arc::clone(&own);
    let cluster = move || *proto::lock::lock(&cluster);
    (UsersFollower::new(Arc::new(UncalledDirectory), Arc::clone(&known), cluster), known, own)
}

#[tokio::test]
async fn newer_users_are_taken_over_and_those_of_a_member_that_is_behind_are_not() {
    let (mut follower, known, _own) = follower(Some(CLUSTER));
    assert!(known.current().by_name.is_empty());
    follower.store_users(Some(CLUSTER), users(5)).await.unwrap();
    known.wait_for(5).await;
    follower.store_users(Some(CLUSTER), users(4)).await.unwrap();
    assert_eq!(known.current().cas, 5);
    follower.store_users(Some(CLUSTER), users(6)).await.unwrap();
    known.wait_for(6).await;
    assert_eq!(known.current(), users(6));
}

#[tokio::test]
async fn users_of_another_cluster_are_refused() {
    for own in [Some(CLUSTER), None] {
        let (mut follower, known, _own) = follower(own);
        follower.store_users(Some(CLUSTER), users(5)).await.unwrap();
        let refused = follower.store_users(Some(ClusterId(8)), users(9)).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::OtherCluster);
        assert_eq!(known.current().cas, 5);
    }
}

#[tokio::test]
async fn each_change_is_on_disk_and_the_next_process_begins_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = || UsersFile::new(&Env::real(), dir.path());
    let (begun, _, own) = follower(None);
    let mut begun = begun.with_file(file()).await;
    begun.store_users(None, users(4)).await.unwrap();
    assert_eq!(file().read(Some(CLUSTER)).await, None, "the cluster is not founded");
    *proto::lock::lock(&own) = Some(CLUSTER);
    begun.store_users(Some(CLUSTER), users(5)).await.unwrap();
    assert_eq!(file().read(Some(CLUSTER)).await, Some(users(5)));
    begun.store_users(Some(CLUSTER), users(3)).await.unwrap();
    assert_eq!(file().read(Some(CLUSTER)).await, Some(users(5)), "an older one is not written");
    let (next, known, _) = follower(Some(CLUSTER));
    let _next = next.with_file(file()).await;
    assert_eq!(known.current(), users(5));
    let (other, known, _) = follower(Some(ClusterId(8)));
    let _other = other.with_file(file()).await;
    assert!(known.current().by_name.is_empty(), "of another cluster");
}

/// If the file cannot be written, the watch ends, the next watch writes the file, and the users
/// count meanwhile.
#[tokio::test]
async fn a_failed_write_ends_the_watch() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    let (begun, known, _own) = follower(Some(CLUSTER));
    let mut begun = begun.with_file(UsersFile::new(&Env::real(), &gone)).await;
    begun.store_users(Some(CLUSTER), users(5)).await.unwrap_err();
    assert_eq!(known.current().cas, 5);
    std::fs::create_dir(&gone).unwrap();
    begun.store_users(Some(CLUSTER), users(5)).await.unwrap();
    assert!(gone.join("USERS").exists());
}
