//! Damaged buckets: they are refused by name, the others are served, and a bucket with another copy is recreated from
//! it.

use std::time::Duration;

use projector::testing::DocumentStore;
use proto::ErrorCode;
use proto::model::copies::{CopiesChange, CopyRole};
use proto::model::cut::Cut;
use proto::model::ids::*;
use proto::rpc::api::*;
use proto::rpc::mutation::SubscribeRequest;
use tokio::time::sleep;

use crate::common::*;
use crate::copies::{SECOND, THIRD, Trio, json};

/// A time in which a leader, or the repair of a copy, would have done anything that it could.
const LONG: Duration = Duration::from_millis(2_500);

impl Trio {
    /// Damages the copy of a projector, and restarts the projector.
    async fn damage(&mut self, node: NodeId) {
        let world = self.world(node);
        world.stop();
        world.store.damage(BUCKET);
        world.start().await;
    }

    fn is_damaged(&self, node: NodeId) -> bool {
        let store = &self.worlds[node.0 as usize - 1].store;
        store.damaged().expect("damaged buckets").contains_key(&BUCKET)
    }

    /// Waits until a projector has no role any more, lets it join, and waits until its copy is
    /// repaired.
    async fn healed(&self, node: NodeId) {
        self.has_role(node, CopyRole::None).await;
        self.join(node).await;
        let store = &self.worlds[node.0 as usize - 1].store;
        let is_done = async || store.recreated().expect("replaced").is_empty().then_some(());
        until("the damaged files are removed", is_done).await;
        assert!(!self.is_damaged(node));
    }
}

#[tokio::test]
async fn a_damaged_bucket_is_refused_by_name_and_the_others_are_served() {
    let mut world = world_with(&[]).await;
    world.write(vec![upsert("a", "1")]).await.expect("written");
    world.stop();
    world.store.damage(BUCKET);
    world.script.synced.lock().unwrap().clear();
    world.start().await;
    let from = Some(Cut::zero(VBUCKETS));
    let subscribed =
        SubscribeRequest { node: NodeId(10), bucket: BUCKET, from, last_epoch: Epoch(0) };
    let projector = world.projector();
    let errors = [
        world.write(vec![upsert("b", "1")]).await.err(),
        projector.get(BUCKET, vec!["a".to_owned()]).await.err(),
        projector.subscribe(subscribed).await.err(),
        projector.history(BUCKET).await.err(),
        projector.place(BUCKET).await.err(),
        projector.sample(BUCKET).await.err(),
    ];
    for error in errors {
        let error = error.expect("it is damaged");
        assert_eq!(error.code, ErrorCode::Corrupt, "{error}");
        assert!(error.message.contains("a file of the bucket is damaged"), "{error}");
        assert!(error.hint.is_some_and(|hint| hint.contains("source recover")));
    }
    until("the other bucket is reported", async || {
        world.script.synced.lock().unwrap().contains_key(&PUSHED).then_some(())
    })
    .await;
    assert!(!world.script.synced.lock().unwrap().contains_key(&BUCKET), "its positions are not");
    let push = PushRequest { bucket: PUSHED, branches: vec![], mutations: vec![] };
    projector.push(push).await.expect("it is served");
    // Newer catalogs do not recreate it.
    world.script.say(WatchMessage::Catalog(catalog(2, &[]).into()));
    until("the catalog", async || (world.store.catalog_cas().ok()? == 2).then_some(())).await;
    assert!(world.store.damaged().expect("damaged").contains_key(&BUCKET));
    let stored = world.store.buckets().expect("buckets");
    assert!(stored.iter().all(|(record, _)| record.info.id != BUCKET));
}

#[tokio::test]
async fn a_damaged_copy_is_made_anew_from_its_leader() {
    let mut trio = Trio::in_sync().await;
    for n in 0..20 {
        trio.write(PROJECTOR, &format!("d{n}"), "1").await.expect("written");
    }
    trio.damage(SECOND).await;
    let error = trio.get(SECOND, "d1").await.expect_err("it does not lead");
    assert_eq!(error.code, ErrorCode::NotOwner, "{error}");
    trio.written(PROJECTOR, "b", "1").await;
    trio.healed(SECOND).await;
    trio.are_equal(PROJECTOR, SECOND).await;
    trio.world(PROJECTOR).stop();
    let read = until("served", async || trio.get(SECOND, "b").await.ok()).await;
    assert_eq!(read, json("1"));
}

#[tokio::test]
async fn another_copy_takes_over_from_a_leader_whose_bucket_is_damaged() {
    let mut trio = Trio::in_sync().await;
    trio.write(PROJECTOR, "b", "1").await.expect("written");
    trio.damage(PROJECTOR).await;
    let error = trio.get(PROJECTOR, "b").await.expect_err("it is damaged");
    assert!(error.is_retry() && error.message.contains("is damaged"), "{error}");
    let read = until("served", async || trio.get(SECOND, "b").await.ok()).await;
    assert_eq!((read, trio.copies().leader), (json("1"), SECOND));
    trio.healed(PROJECTOR).await;
    trio.written(SECOND, "c", "1").await;
    trio.are_equal(PROJECTOR, SECOND).await;
}

#[tokio::test]
async fn nothing_is_given_up_without_another_copy_that_leads() {
    // The only copy.
    let mut trio = Trio::new(1).await;
    trio.write(PROJECTOR, "b", "1").await.expect("written");
    trio.damage(PROJECTOR).await;
    sleep(LONG).await;
    assert!(trio.is_damaged(PROJECTOR));
    assert_eq!(trio.copies().leader, PROJECTOR);
    let error = trio.get(PROJECTOR, "b").await.expect_err("it is damaged");
    assert_eq!(error.code, ErrorCode::Corrupt, "{error}");
    // The last copy in sync is damaged, and the other one may lack mutations.
    let mut trio = Trio::in_sync().await;
    trio.world(SECOND).stop();
    trio.written(PROJECTOR, "b", "1").await;
    assert_eq!(trio.copies().in_sync, [PROJECTOR]);
    trio.damage(PROJECTOR).await;
    trio.world(SECOND).start().await;
    trio.change(CopiesChange::Join(SECOND));
    sleep(LONG).await;
    assert!(trio.is_damaged(PROJECTOR));
    assert_eq!((trio.copies().leader, trio.copies().in_sync), (PROJECTOR, vec![PROJECTOR]));
}

#[tokio::test]
async fn nothing_is_given_up_before_coordinators_and_leader_have_answered() {
    for cut in [COORDINATOR, PROJECTOR] {
        let mut trio = Trio::in_sync().await;
        trio.world(SECOND).stop();
        trio.has_role(SECOND, CopyRole::None).await;
        trio.cut(SECOND, cut);
        trio.change(CopiesChange::Join(SECOND));
        trio.damage(SECOND).await;
        sleep(LONG).await;
        assert!(trio.is_damaged(SECOND), "{cut} has not answered");
        trio.heal();
        trio.has_role(SECOND, CopyRole::InSync).await;
        assert!(!trio.is_damaged(SECOND));
    }
}

/// The catalog is older than the term in which this projector was the last copy in sync.
#[tokio::test]
async fn a_copy_that_leads_by_a_newer_configuration_is_not_given_up() {
    let mut trio = Trio::in_sync().await;
    trio.world(SECOND).stop();
    trio.has_role(SECOND, CopyRole::None).await;
    trio.change(CopiesChange::Join(SECOND));
    {
        let mut copies = trio.script().copies.lock().unwrap();
        let copies = copies.as_mut().expect("copies");
        copies.change(copies.revision, CopiesChange::Grow(SECOND)).expect("grown");
        copies.change(copies.revision, CopiesChange::Promote(SECOND)).expect("promoted");
    }
    trio.damage(SECOND).await;
    sleep(LONG).await;
    assert!(trio.is_damaged(SECOND));
}

#[tokio::test]
async fn a_damaged_copy_that_is_not_needed_any_more_is_removed() {
    let mut trio = Trio::new(3).await;
    trio.join(SECOND).await;
    trio.join(THIRD).await;
    trio.write(PROJECTOR, "b", "1").await.expect("written");
    trio.damage(SECOND).await;
    trio.has_role(SECOND, CopyRole::None).await;
    sleep(LONG).await;
    assert!(trio.is_damaged(SECOND), "three copies are wanted");
    trio.script().change_copies(|copies| copies.set_wanted(2));
    let is_gone = async || (!trio.is_damaged(SECOND)).then_some(());
    until("it is removed", is_gone).await;
    // It may join again.
    trio.script().change_copies(|copies| copies.set_wanted(3));
    trio.join(SECOND).await;
    trio.are_equal(PROJECTOR, SECOND).await;
}

#[tokio::test]
async fn the_readers_of_a_copy_that_was_made_anew_have_its_timestamps() {
    let mut trio = Trio::in_sync().await;
    trio.write(PROJECTOR, "b", "1").await.expect("written");
    let cut = trio.worlds[0].projector().place(BUCKET).await.expect("a place").durable;
    trio.script().epoch(7, &cut);
    trio.damage(SECOND).await;
    trio.healed(SECOND).await;
    trio.world(PROJECTOR).stop();
    until("served", async || trio.get(SECOND, "b").await.ok()).await;
    let second = trio.world(SECOND);
    let mut stream =
        second.subscribe(INDEXERS[0], Some(Cut::zero(VBUCKETS))).await.expect("a stream");
    while stream.epochs.is_empty() {
        stream.step().await.expect("the stream goes on");
    }
    assert_eq!(stream.epochs, [7]);
}

/// The damaged copy has a write that was never acknowledged. A coordinator that was restored from
/// an older copy could be the cause as well, so the files are kept.
#[tokio::test]
async fn damaged_files_with_unique_data_are_kept() {
    let mut trio = Trio::in_sync().await;
    trio.written(PROJECTOR, "b", "1").await;
    trio.cut(PROJECTOR, SECOND);
    trio.script().cuts.lock().unwrap().insert((PROJECTOR, COORDINATOR));
    let lost = tokio::time::timeout(LONG, trio.write(PROJECTOR, "lost", "1")).await;
    assert!(!lost.is_ok_and(|reply| reply.is_ok()), "another copy lacks it");
    until("another copy leads", async || (trio.copies().leader == SECOND).then_some(())).await;
    trio.damage(PROJECTOR).await;
    trio.heal();
    trio.healed(PROJECTOR).await;
    trio.has_role(PROJECTOR, CopyRole::InSync).await;
    trio.are_equal(PROJECTOR, SECOND).await;
    assert!(trio.worlds[0].store.kept().contains(&BUCKET));
    assert_eq!(trio.get(SECOND, "lost").await.expect("served"), None);
}
