//! Tests versions of data sets: interrupted loads, and lost partitions.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use projector::testing::{DocumentStore, StoredDocument};
use proto::ErrorCode;
use proto::model::data_set::VersionStage;
use proto::model::identity::UniqueId;
use proto::model::ids::{Seqno, VbucketId};
use proto::rpc::api::{ProjectorApi, WatchMessage};

use crate::common::*;
use crate::versions::*;

#[tokio::test]
async fn interrupted_load_starts_again() {
    let mut versions = Versions::new(2).await;
    // The first process has stored rows that the files have no more, and no partition is whole.
    versions.put("people/a.jsonl", &lines(500..600, 0));
    versions.put("people/b.jsonl", "{\"id\":1");
    versions.say();
    let error = versions.failure().await;
    assert!(error.message.starts_with("people/b.jsonl line 1: "), "{error}");
    versions.first.stop();
    versions.other.stop();
    let left = |n: u32| StoredDocument {
        id: format!("p{n}"),
        seqno: Seqno(u64::from(n)),
        document: Bytes::from_static(b"{\"n\":7}"),
    };
    let left: Vec<_> = (200..300).map(left).collect();
    versions.first.store.put_documents(VERSION, &left).expect("put");
    assert!(!stored(&versions.first).is_empty());
    put_people(&versions);
    versions.first.start().await;
    versions.other.start().await;
    versions.loaded().await;
    assert_eq!(numbers(&versions.first), people());
    assert_eq!(stored(&versions.first), stored(&versions.other));
}

#[tokio::test]
async fn lost_partitions_are_reported_and_loaded_again() {
    let mut versions = Versions::new(2).await;
    put_people(&versions);
    versions.say();
    versions.loaded().await;
    versions.version().stage = VersionStage::Current;
    versions.say();
    versions.other.stop();
    versions.first.script.proposed.lock().unwrap().clear();
    // The disk was emptied. The first catalog that arrives is the newest one.
    versions.first.script.forget();
    versions.say();
    versions.other = World::beside_with(&versions.first, OTHER, |config| {
        config.files_dir = Some(versions.dir.path().to_path_buf());
    })
    .await;
    let all: Vec<_> = (0..PARTITIONS).map(VbucketId).collect();
    assert_eq!(versions.lost_by(OTHER).await, all);
    let error = versions.other.projector().get(VERSION, vec!["p1".into()]).await;
    assert_eq!(error.expect_err("it has nothing").code, ErrorCode::NotOwner);
    for partition in &mut versions.version().partitions {
        partition.holders.retain(|holder| *holder != OTHER);
    }
    versions.say();
    versions.told_by(OTHER, 4).await;
    assert_eq!(numbers(&versions.other), people());
}

#[tokio::test]
async fn a_current_version_does_not_end_because_a_late_holder_cannot_load_it() {
    let mut versions = Versions::new(2).await;
    put_people(&versions);
    versions.other.stop();
    versions.say();
    for (partition, content) in versions.told_by(PROJECTOR, 4).await {
        let of = &mut versions.version().partitions[usize::from(partition.0)];
        (of.content, of.holders) = (Some(content), vec![PROJECTOR]);
    }
    versions.version().stage = VersionStage::Current;
    versions.say();
    versions.put("people/b.jsonl", &lines(0..10, 0));
    versions.first.script.proposed.lock().unwrap().clear();
    versions.other.start().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(versions.proposed(), [], "it gives up, and nobody hears of it");
    let error = versions.other.projector().get(VERSION, vec!["p1".into()]).await;
    assert_eq!(error.expect_err("it shows nothing of it").code, ErrorCode::NotOwner);
}

#[tokio::test]
async fn a_damaged_version_is_loaded_again() {
    let mut versions = Versions::new(2).await;
    put_people(&versions);
    versions.say();
    versions.loaded().await;
    versions.other.stop();
    versions.first.script.proposed.lock().unwrap().clear();
    versions.other.store.damage(VERSION);
    versions.other.start().await;
    // The version is still loading, so the partitions are reported again once they are loaded.
    versions.told_by(OTHER, 4).await;
    assert_eq!(numbers(&versions.other), people());
    let projector = versions.other.projector();
    until("it owns its part again", async || {
        let history = projector.history(VERSION).await.expect("a history");
        (!history.kept.is_empty() || versions.owners.owned_by(OTHER).is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_version_that_is_cancelled_leaves_nothing() {
    let mut versions = Versions::new(2).await;
    for n in 0..8 {
        versions.put(&format!("people/{n}.jsonl"), &lines(n * 20_000..(n + 1) * 20_000, 0));
    }
    versions.say();
    let other = Arc::clone(&versions.other.projector());
    until("the load begins", async || {
        (!versions.first.store.buckets().unwrap().iter().all(|(r, _)| r.info.id != VERSION))
            .then_some(())
    })
    .await;
    let version = versions.set.versions.remove(&1);
    let mut catalog = versions.catalog();
    catalog.cas = 2;
    catalog.dropped_buckets.push((VERSION, UniqueId(21)));
    (versions.cas, versions.set.failed) = (2, None);
    versions.first.script.say(WatchMessage::Catalog(Arc::new(catalog)));
    until("the bucket is gone", async || {
        versions.first.store.snapshot(VERSION).is_err().then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(versions.proposed(), []);
    drop((other, version));
}
