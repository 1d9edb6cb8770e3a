//! Buckets whose only copy is on the projector: they are served once the coordinators have compared
//! them.

use projector::testing::{DocumentStore, KnownLoss};
use proto::model::cut::Cut;
use proto::model::ids::{Epoch, NodeId};
use proto::rpc::api::*;
use proto::rpc::mutation::SubscribeRequest;
use proto::{Error, ErrorCode};

use crate::common::*;

async fn code_of(world: &World) -> Option<ErrorCode> {
    let read = world.projector().get(BUCKET, vec!["a".to_owned()]).await;
    read.err().map(|error| error.code)
}

/// Starts a projector with a document, and restarts it so that it lacks a part of `epoch`.
async fn restarted(epoch: u64) -> World {
    let mut world = world_with(&[]).await;
    world.write(vec![upsert("a", "1")]).await.expect("written");
    world.stop();
    *world.script.lacks.lock().unwrap() = Some(Epoch(epoch));
    world.script.synced.lock().unwrap().clear();
    world.start().await;
    world
}

#[tokio::test]
async fn incomplete_bucket_is_refused_and_reports_nothing() {
    let world = restarted(9).await;
    assert_eq!(code_of(&world).await, Some(ErrorCode::Corrupt));
    let write = world.write(vec![upsert("b", "1")]).await.expect_err("closed");
    assert!(write.message.contains("lacks a part"), "{write}");
    let from = SubscribeRequest {
        node: NodeId(10),
        bucket: BUCKET,
        from: Some(Cut::zero(VBUCKETS)),
        last_epoch: Epoch(0),
    };
    let projector = world.projector();
    let codes = [
        projector.subscribe(from).await.err().map(|error| error.code),
        projector.history(BUCKET).await.err().map(|error| error.code),
        projector.place(BUCKET).await.err().map(|error| error.code),
        projector.sample(BUCKET).await.err().map(|error| error.code),
    ];
    assert_eq!(codes, [Some(ErrorCode::Corrupt); 4]);
    until("the other bucket is reported", async || {
        world.script.synced.lock().unwrap().contains_key(&PUSHED).then_some(())
    })
    .await;
    assert!(!world.script.synced.lock().unwrap().contains_key(&BUCKET), "its positions are not");
    let loss = KnownLoss { epoch: Epoch(9), is_accepted: false };
    assert_eq!(world.store.losses().expect("losses"), [(BUCKET, loss)].into());
}

#[tokio::test]
async fn only_the_reported_loss_is_accepted() {
    let mut world = restarted(9).await;
    assert_eq!(code_of(&world).await, Some(ErrorCode::Corrupt));
    // Of a copy that was made when another loss had been accepted.
    let other = KnownLoss { epoch: Epoch(8), is_accepted: true };
    world.store.put_loss(BUCKET, Some(other)).expect("noted");
    world.start().await;
    assert_eq!(code_of(&world).await, Some(ErrorCode::Corrupt));
    let told = KnownLoss { epoch: Epoch(9), is_accepted: false };
    assert_eq!(world.store.losses().expect("losses"), [(BUCKET, told)].into());

    let accepted = KnownLoss { is_accepted: true, ..told };
    world.store.put_loss(BUCKET, Some(accepted)).expect("noted");
    world.start().await;
    assert_eq!(code_of(&world).await, None, "it is served");
    assert_eq!(world.store.losses().expect("losses"), [].into(), "the acceptance is used up");
}

/// The member stops, and the next member that the projector calls opens the bucket.
#[tokio::test]
async fn a_coordinator_whose_disk_fails_is_no_error_of_the_bucket() {
    let mut world = world_with(&[]).await;
    world.stop();
    let failed = Error::new(ErrorCode::Io, "write the raft log: no space left");
    *world.script.fails.lock().unwrap() = Some(failed);
    world.start().await;
    let until_asked = tokio::time::timeout(std::time::Duration::from_secs(1), async {
        while code_of(&world).await != Some(ErrorCode::Io) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
    until_asked.await.expect_err("callers try again");
    assert_eq!(code_of(&world).await, Some(ErrorCode::Unavailable));
    *world.script.fails.lock().unwrap() = None;
    until("it is served", async || code_of(&world).await.is_none().then_some(())).await;
}

/// A bucket that stays closed does not delay the others.
#[tokio::test]
async fn a_bucket_that_is_complete_again_is_served_with_the_next_catalog() {
    let world = restarted(9).await;
    assert_eq!(code_of(&world).await, Some(ErrorCode::Corrupt));
    *world.script.lacks.lock().unwrap() = None;
    world.script.say(WatchMessage::Catalog(catalog(2, &[]).into()));
    until("it is served", async || code_of(&world).await.is_none().then_some(())).await;
}
