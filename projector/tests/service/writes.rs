//! Writes and reads of documents.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proto::ErrorCode;
use proto::model::cut::Cut;
use proto::model::index::PartitionBy;
use proto::rpc::api::{ProjectorApi, WatchMessage, WriteRequest};

use crate::common::*;

#[tokio::test]
async fn a_statement_is_executed_completely_or_not_at_all() {
    let world = world_with(&[]).await;
    let reply = world.write(vec![insert("a", "1"), insert("b", "2"), upsert("a", "3")]).await;
    assert_eq!(reply.expect("new documents").affected, 3);
    let error =
        world.write(vec![insert("c", "1"), insert("b", "2")]).await.expect_err("b is there");
    assert_eq!(error.code, ErrorCode::DuplicateId);
    assert!(error.message.contains("\"b\""), "{error}");
    let error = world.write(vec![insert("d", "1"), insert("d", "2")]).await.expect_err("twice d");
    assert_eq!(error.code, ErrorCode::DuplicateId);
    let error = world.write(vec![upsert("e", "1"), upsert("f", "{")]).await.expect_err("bad JSON");
    assert_eq!(error.code, ErrorCode::InvalidText);
    assert!(error.message.contains("\"f\""), "{error}");
    let ids = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
    let found = world.projector().get(BUCKET, ids).await.expect("documents");
    let texts: Vec<_> = found.iter().map(Option::as_deref).collect();
    assert_eq!(texts, [Some(&b"3"[..]), Some(&b"2"[..]), None, None, None]);

    let before = world.projector().positions(BUCKET).await.expect("positions");
    let deletes = vec![delete("a"), delete("a"), delete("x")];
    let reply = world.write(deletes).await.expect("deleted");
    assert_eq!((reply.affected, reply.position.positions.len()), (1, 1));
    let after = world.projector().positions(BUCKET).await.expect("positions");
    assert_eq!(after.distance_from(&before), 1, "deletions of absent documents leave no mutation");
    let again = world.write(vec![delete("a"), insert("a", "9")]).await.expect("it was gone");
    assert_eq!(again.affected, 1);
}

/// One call reads the documents of one statement in one state while further statements write them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_of_many_ids_never_sees_half_of_a_statement() {
    let world = world_with(&[]).await;
    let ids: Vec<_> = (0..300).map(|n| format!("d{n}")).collect();
    let projector = world.projector();
    let (all, stop) = (ids.clone(), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let writer = async move {
        for round in 0u64.. {
            if stopped.load(Ordering::Relaxed) {
                return;
            }
            let writes = all.iter().map(|id| upsert(id, &round.to_string()));
            let writes = checked(writes.collect());
            let request = WriteRequest { bucket: BUCKET, writes };
            projector.write(request).await.expect("written");
        }
    };
    let reader = async {
        for _ in 0..300 {
            let found = world.projector().get(BUCKET, ids.clone()).await.expect("documents");
            assert!(found.iter().all(|document| *document == found[0]), "{found:?}");
        }
        stop.store(true, Ordering::Relaxed);
    };
    tokio::join!(writer, reader);
}

#[tokio::test]
async fn limits_are_named() {
    let world = World::new(|config| config.document_bytes_max = 10).await;
    world.script.say(WatchMessage::Catalog(catalog(1, &[]).into()));
    let error = world.write(vec![upsert("a", "\"0123456789\"")]).await.expect_err("too long");
    assert_eq!(error.code, ErrorCode::OverLimit);
    let error = world.write(vec![upsert(&"i".repeat(251), "1")]).await.expect_err("too long");
    assert_eq!(error.code, ErrorCode::OverLimit);
    let nested = format!("{}{}", "[".repeat(33), "]".repeat(33));
    let world = world_with(&[]).await;
    let error = world.write(vec![upsert("a", &nested)]).await.expect_err("too deep");
    assert_eq!(error.code, ErrorCode::OverLimit);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_share_syncs_and_leave_no_gap() {
    let world = world_with(&[index(1, PartitionBy::DocumentId)]).await;
    let mut follower = world.subscribe(INDEXERS[0], None).await.expect("a stream");
    let mut writers = Vec::new();
    for writer in 0..20 {
        let projector = world.projector();
        writers.push(async move {
            for n in 0..20 {
                let id = format!("{writer}-{n}");
                let writes = checked(vec![insert(&id, &format!("{{\"n\":{n}}}"))]);
                let request = WriteRequest { bucket: BUCKET, writes };
                projector.write(request).await.expect("written");
            }
        });
    }
    futures::future::join_all(writers).await;
    let end = world.projector().positions(BUCKET).await.expect("positions");
    assert_eq!(end.distance_from(&Cut::zero(VBUCKETS)), 400);
    follower.reach(&end).await;
    let synced = || {
        world
            .script
            .synced
            .lock()
            .expect("not poisoned")
            .get(&BUCKET)
            .map(|report| report.cut.clone())
    };
    while synced().as_ref() != Some(&end) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_failed_sync_acknowledges_and_streams_nothing() {
    for reached_disk in [false, true] {
        let mut world = world_with(&[]).await;
        world.write(vec![upsert("a", "1")]).await.expect("written");
        let before = world.projector().positions(BUCKET).await.expect("positions");
        world.store.fail_next_sync();
        let error = world.write(vec![upsert("b", "1")]).await.expect_err("the disk failed");
        assert_eq!(error.code, ErrorCode::Io);
        assert!(world.projector().positions(BUCKET).await.expect("positions") == before);
        assert!(world.write(vec![upsert("c", "1")]).await.is_err(), "no write after a failed one");
        world.store.lose_unsynced(reached_disk);
        world.start().await;
        let after = world.projector().positions(BUCKET).await.expect("positions");
        assert_eq!(after.distance_from(&before), u64::from(reached_disk));
        world.write(vec![insert("c", "1")]).await.expect("written");
    }
}

/// Until the sync of a write has ended, the write is in no answer, no stream, no read and no
/// report.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write_is_not_streamed_before_its_sync() {
    let index = index(1, PartitionBy::DocumentId);
    let world = world_with(std::slice::from_ref(&index)).await;
    world.write(vec![insert("a", "{\"n\": 1}")]).await.expect("written");
    let before = world.projector().positions(BUCKET).await.expect("positions");
    let mut follower = world.subscribe(INDEXERS[0], None).await.expect("a stream");
    follower.reach(&before).await;
    let reported =
        || world.script.synced.lock().unwrap().get(&BUCKET).map(|report| report.cut.clone());
    while reported().as_ref() != Some(&before) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }

    let held = HeldSyncs::of(&world.store);
    let mut writing = std::pin::pin!(world.write(vec![insert("b", "{\"n\": 2}")]));
    let waited = tokio::time::timeout(Duration::from_millis(200), writing.as_mut()).await;
    assert!(waited.is_err(), "an answer before the sync: {waited:?}");
    let found = world.projector().get(BUCKET, vec!["b".into()]).await.expect("an answer");
    assert_eq!(found, [None]);
    assert_eq!(world.projector().positions(BUCKET).await, Ok(before.clone()));
    assert_eq!(reported(), Some(before.clone()));
    let streamed = tokio::time::timeout(Duration::from_millis(100), follower.step()).await;
    assert!(streamed.is_err() && follower.at == before, "a frame before the sync");

    drop(held);
    let reply = writing.await.expect("written");
    assert_eq!(reply.affected, 1);
    let after = world.projector().positions(BUCKET).await.expect("positions");
    assert_eq!(after.distance_from(&before), 1);
    follower.reach(&after).await;
    while reported().as_ref() != Some(&after) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
