//! Streams over a purged log.

#[allow(dead_code, reason = "each test of the service uses a part of it")]
mod common;

use bytes::Bytes;
use common::*;
use projector::testing::DocumentStore;
use proto::ErrorCode;
use proto::model::cut::{Cut, Position};
use proto::model::ids::{Seqno, VbucketId, Vbuuid, vbucket_of};
use proto::model::index::PartitionBy;
use proto::rpc::api::{ProjectorApi, PushMutation, PushRequest, WatchMessage};
use proto::rpc::mutation::MutationKind;

async fn world_with_documents(count: u64, change: impl FnOnce(&mut projector::Config)) -> World {
    let world = World::new(change).await;
    let catalog = catalog(1, &[index(1, PartitionBy::DocumentId)]);
    world.script.say(WatchMessage::Catalog(catalog.into()));
    for n in 0..count {
        world.write(vec![upsert(&format!("d{n}"), "{\"n\":1}")]).await.expect("written");
    }
    world
}

/// Purges each log up to a position.
fn purge(world: &World, to: &Cut) {
    let to: Vec<(VbucketId, Seqno)> = to.iter().map(|(v, position)| (v, position.seqno)).collect();
    world.store.purge(BUCKET, &to).expect("purged");
}

#[tokio::test]
async fn a_stream_from_before_the_purge_point_fails_and_a_later_one_continues() {
    let world = world_with_documents(50, |_| {}).await;
    let middle = world.projector().positions(BUCKET).await.expect("positions");
    for n in 0..50 {
        world.write(vec![upsert(&format!("e{n}"), "{\"n\":1}")]).await.expect("written");
    }
    let end = world.projector().positions(BUCKET).await.expect("positions");
    purge(&world, &middle);
    let begin = Some(Cut::zero(VBUCKETS));
    let mut early = world.subscribe(INDEXERS[0], begin).await.expect("a stream");
    let error = early.step().await.expect_err("the needed mutations were purged");
    assert_eq!(error.code, ErrorCode::HistoryPurged, "{error}");
    assert!(error.is_retry());
    let mut late = world.subscribe(INDEXERS[0], Some(middle)).await.expect("a stream");
    late.reach(&end).await;
    let mut last = world.subscribe(INDEXERS[0], Some(end.clone())).await.expect("a stream");
    purge(&world, &end);
    last.step().await.expect("a complete copy needs no log");
}

#[tokio::test]
async fn a_stream_that_reads_purged_entries_ends_with_an_error() {
    let world = world_with_documents(1_000, |config| {
        (config.head_bytes_max, config.stream_bytes_max) = (2_000, 1);
    })
    .await;
    let end = world.projector().positions(BUCKET).await.expect("positions");
    let begin = Some(Cut::zero(VBUCKETS));
    let mut reader = world.subscribe(INDEXERS[0], begin).await.expect("a stream");
    reader.step().await.expect("it begins");
    purge(&world, &end);
    let error = loop {
        match reader.step().await {
            Ok(()) => assert!(!reader.at.reaches(&end), "it cannot have read everything"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code, ErrorCode::HistoryPurged, "{error}");
}

#[tokio::test]
async fn a_projector_bounds_its_change_logs() {
    let world = world_with_documents(500, |config| config.log_bytes_max = 8_000).await;
    let bounded = async {
        loop {
            let extents = world.store.extents(BUCKET).expect("extents");
            let bytes: u64 = extents.iter().map(|extent| extent.bytes()).sum();
            if bytes <= 8_000 {
                return bytes;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(10), bounded).await;
    assert!(waited.expect("in time") > 3_000, "no more goes than must");
}

#[tokio::test]
async fn a_producer_can_go_back_within_the_log_or_to_the_beginning() {
    let world = world_with_documents(0, |_| {}).await;
    let vbucket = vbucket_of("a", VBUCKETS);
    let pushed = |vbuuid: u64, seqno: u64| PushMutation {
        vbucket,
        position: Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) },
        id: "a".into(),
        kind: MutationKind::Upsert,
        document: Bytes::from_static(b"{}"),
    };
    let push = async |branch: Option<(u64, u64)>, mutations| {
        let at = |(vbuuid, seqno)| Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) };
        let branches = branch.map(|branch| (vbucket, at(branch))).into_iter().collect();
        world.projector().push(PushRequest { bucket: PUSHED, branches, mutations }).await
    };
    push(None, (1..=6).map(|seqno| pushed(5, seqno)).collect()).await.expect("in order");
    world.store.purge(PUSHED, &[(vbucket, Seqno(4))]).expect("purged");
    for to in 1..=4 {
        let error =
            push(Some((7, to)), vec![]).await.expect_err("earlier versions of documents are gone");
        assert_eq!(error.code, ErrorCode::OutOfOrder);
        assert!(error.hint.is_some_and(|hint| hint.contains("seqno 0")));
    }
    push(Some((8, 5)), vec![pushed(8, 6)]).await.expect("the log has it");
    push(Some((9, 0)), vec![pushed(9, 1), pushed(9, 2)]).await.expect("everything again");
    let end = world.projector().positions(PUSHED).await.expect("positions").get(vbucket);
    assert_eq!((end.vbuuid, end.seqno), (Vbuuid(9), Seqno(2)));
    let extents = world.store.extents(PUSHED).expect("extents");
    assert_eq!(extents[usize::from(vbucket.0)].purged, Seqno(0));
}
