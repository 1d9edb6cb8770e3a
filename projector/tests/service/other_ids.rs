//! Buckets with numbers that a coordinator assigned a second time, because it was restored from an
//! older copy.

use std::time::Duration;

use projector::testing::DocumentStore;
use proto::ErrorCode;
use proto::model::catalog::Catalog;
use proto::model::identity::{ClusterId, UniqueId};
use proto::rpc::api::{ProjectorApi, WatchMessage};

use crate::common::*;

const CLUSTER: ClusterId = ClusterId(7);
const MINE: UniqueId = UniqueId(71);
const OTHER: UniqueId = UniqueId(72);

/// Returns a catalog in which the first bucket has this random id.
fn with_id(cas: u64, id: UniqueId) -> Catalog {
    let bucket_ids = [(BUCKET, id), (PUSHED, UniqueId(70))].into();
    Catalog { cluster: Some(CLUSTER), bucket_ids, ..catalog(cas, &[]) }
}

/// Returns a catalog without the first bucket, in which buckets with its number and these random
/// ids were dropped.
fn dropped(cas: u64, ids: &[UniqueId]) -> Catalog {
    let mut catalog = with_id(cas, OTHER);
    catalog.buckets.remove(&BUCKET);
    catalog.bucket_ids.remove(&BUCKET);
    catalog.dropped_buckets = ids.iter().map(|id| (BUCKET, *id)).collect();
    catalog
}

impl World {
    /// Restarts the projector with a coordinator that has only this catalog.
    async fn restart_with(&mut self, catalog: Option<Catalog>) {
        self.stop();
        self.script.forget();
        self.tell(catalog);
        self.start().await;
    }

    fn tell(&self, catalog: Option<Catalog>) {
        catalog.into_iter().for_each(|catalog| {
            self.script.say(WatchMessage::Catalog(catalog.into()));
        });
    }

    /// Returns true if a read finds the document, or the code of its error.
    async fn got(&self) -> Result<bool, ErrorCode> {
        let got = self.projector().get(BUCKET, vec!["a".into()]).await;
        got.map(|documents| documents[0].is_some()).map_err(|error| error.code)
    }

    /// Returns true if the document is stored, whether or not a read finds it.
    fn keeps(&self) -> bool {
        let stored = self.store.get(BUCKET, &["a".into()], 1 << 10);
        stored.is_ok_and(|documents| documents[0].is_some())
    }

    async fn until_got(&self, wanted: Result<bool, ErrorCode>) {
        let got = async {
            while self.got().await != wanted {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(8), got).await;
        assert!(in_time.is_ok(), "{:?} and not {wanted:?}", self.got().await);
    }
}

/// Starts a projector with a document in a bucket of this random id.
async fn filled(id: UniqueId) -> World {
    let world = World::new(|_| {}).await;
    world.tell(Some(with_id(1, id)));
    world.write(vec![upsert("a", "1")]).await.expect("written");
    world
}

#[tokio::test]
async fn a_bucket_without_an_id_is_not_taken_for_one_that_was_made_under_its_number() {
    let mut world = world_with(&[]).await;
    world.write(vec![upsert("a", "1")]).await.expect("written");
    world.restart_with(Some(with_id(2, OTHER))).await;
    world.until_got(Err(ErrorCode::Corrupt)).await;
    assert!(world.keeps());
}

/// While the projector was down, the number was assigned to another bucket, and that bucket was
/// dropped.
#[tokio::test]
async fn documents_go_only_when_their_own_bucket_was_dropped() {
    let mut world = filled(MINE).await;
    world.restart_with(Some(dropped(5, &[OTHER]))).await;
    world.until_got(Err(ErrorCode::Corrupt)).await;
    assert!(world.keeps(), "another bucket was dropped");
    world.restart_with(Some(dropped(6, &[]))).await;
    world.until_got(Err(ErrorCode::Corrupt)).await;
    assert!(world.keeps(), "the coordinator does not know the bucket");
    world.tell(Some(with_id(7, MINE)));
    world.until_got(Ok(true)).await;
    world.restart_with(Some(dropped(8, &[]))).await;
    world.until_got(Err(ErrorCode::Corrupt)).await;
    world.tell(Some(dropped(9, &[OTHER, MINE])));
    world.until_got(Err(ErrorCode::Unknown)).await;
    assert!(!world.keeps(), "also what was not shown is removed");
}

/// Before a process of a projector has compared its first catalog, it does not know which bucket a
/// number refers to.
#[tokio::test]
async fn a_projector_answers_and_reports_nothing_before_its_first_catalog() {
    let mut world = filled(MINE).await;
    world.restart_with(None).await;
    world.script.synced.lock().unwrap().clear();
    assert_eq!(world.got().await, Err(ErrorCode::Unavailable));
    let refused = world.write(vec![upsert("b", "1")]).await.expect_err("refused");
    assert!(refused.message.contains("catalog"), "{refused}");
    assert_eq!(world.projector().history(BUCKET).await.map(|_| ()), Err(refused));
    assert!(world.script.synced.lock().unwrap().is_empty(), "no position is reported");
    world.tell(Some(with_id(2, OTHER)));
    world.until_got(Err(ErrorCode::Corrupt)).await;
    assert!(world.keeps());
    assert!(!world.script.synced.lock().unwrap().contains_key(&BUCKET), "of another bucket");
}

/// A temporary read error of a store must not make a stored bucket count as a new one.
#[tokio::test]
async fn a_bucket_that_cannot_be_shown_again_at_once_is_shown_later() {
    let mut world = filled(MINE).await;
    world.restart_with(Some(with_id(2, OTHER))).await;
    world.until_got(Err(ErrorCode::Corrupt)).await;
    world.store.fail_next_listing();
    world.tell(Some(with_id(3, MINE)));
    world.until_got(Ok(true)).await;
    assert!(world.keeps());
}
