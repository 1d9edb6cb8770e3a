//! Copies of an embedded bucket: acknowledged writes stay, whichever copy leads.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use projector::testing::{DocumentStore, LogRange};
use proto::env::Env;
use proto::model::copies::{Copies, CopiesChange, CopyRole};
use proto::model::ids::*;
use proto::rpc::api::*;
use proto::{ErrorCode, Result};
use tokio::time::{Instant, sleep, timeout};

use crate::common::*;

pub const SECOND: NodeId = NodeId(2);
pub const THIRD: NodeId = NodeId(3);

/// The stored documents, and the vbucket, seqno and id of each log entry.
pub type Stored = (Vec<(String, Bytes)>, Vec<(u16, u64, String)>);

/// Three projectors. The first leads the bucket.
pub struct Trio {
    pub worlds: Vec<World>,
}

impl Trio {
    pub async fn new(wanted: u8) -> Self {
        let first = World::new(|_| ()).await;
        let second = World::beside(&first, SECOND).await;
        let third = World::beside(&first, THIRD).await;
        let copies = Copies { wanted, ..Copies::single(PROJECTOR) };
        *first.script.copies.lock().unwrap() = Some(copies);
        first.script.say_copies();
        Self { worlds: vec![first, second, third] }
    }

    /// Starts two copies in sync.
    pub async fn in_sync() -> Self {
        let trio = Self::new(2).await;
        trio.write(PROJECTOR, "a", "1").await.expect("written");
        trio.join(SECOND).await;
        trio
    }

    pub fn script(&self) -> &Script {
        &self.worlds[0].script
    }

    pub fn world(&mut self, node: NodeId) -> &mut World {
        &mut self.worlds[node.0 as usize - 1]
    }

    pub fn copies(&self) -> Copies {
        self.script().copies.lock().unwrap().clone().expect("copies")
    }

    pub fn change(&self, change: CopiesChange) {
        self.script().change_copies(|copies| {
            copies.change(copies.revision, change).expect("a change");
        });
    }

    /// Makes a projector a copy, and waits until it is in sync.
    pub async fn join(&self, node: NodeId) {
        self.change(CopiesChange::Join(node));
        self.has_role(node, CopyRole::InSync).await;
    }

    pub async fn has_role(&self, node: NodeId, role: CopyRole) {
        until(role.name(), async || (self.copies().role(node) == role).then_some(())).await;
    }

    pub fn cut(&self, one: NodeId, other: NodeId) {
        self.script().cuts.lock().unwrap().extend([(one, other), (other, one)]);
    }

    pub fn heal(&self) {
        self.script().cuts.lock().unwrap().clear();
    }

    pub async fn write(&self, node: NodeId, id: &str, json: &str) -> Result<WriteReply> {
        self.worlds[node.0 as usize - 1].write(vec![upsert(id, json)]).await
    }

    pub async fn get(&self, node: NodeId, id: &str) -> Result<Option<Bytes>> {
        let projector = self.worlds[node.0 as usize - 1].projector();
        Ok(projector.get(BUCKET, vec![id.to_owned()]).await?.remove(0))
    }

    pub async fn written(&self, node: NodeId, id: &str, json: &str) {
        until("written", async || self.write(node, id, json).await.ok()).await;
    }

    /// Returns the documents and log entries in the store of a projector.
    pub fn stored(&self, node: NodeId) -> Stored {
        let store = &self.worlds[node.0 as usize - 1].store;
        let mut snapshot = store.snapshot(BUCKET).expect("a snapshot");
        let documents = snapshot.next_chunk(1 << 30).expect("documents");
        let documents = documents.into_iter().map(|stored| (stored.id, stored.document)).collect();
        let mut log = Vec::new();
        for (n, extent) in (0..).zip(store.extents(BUCKET).expect("extents")) {
            let vbucket = VbucketId(n);
            let range = LogRange { bucket: BUCKET, vbucket, after: extent.purged, to: extent.end };
            let read = store.read_log(range, 1 << 30).expect("a log");
            log.extend(read.iter().map(|m| (n, m.seqno.0, m.id.to_string())));
        }
        (documents, log)
    }

    pub async fn are_equal(&self, one: NodeId, other: NodeId) {
        let equal = async || {
            let stored = (self.stored(one), self.stored(other));
            (stored.0 == stored.1).then_some(())
        };
        until("both copies are equal", equal).await;
    }
}

pub fn json(text: &str) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(text.as_bytes()))
}

#[tokio::test]
async fn a_copy_that_joins_has_everything_and_then_every_write() {
    let trio = Trio::new(2).await;
    for n in 0..50 {
        trio.write(PROJECTOR, &format!("d{n}"), "1").await.expect("written");
    }
    trio.join(SECOND).await;
    trio.are_equal(PROJECTOR, SECOND).await;
    for n in 0..50 {
        trio.write(PROJECTOR, &format!("d{n}"), "2").await.expect("written");
        // The other copy has it before the answer.
        let ends = |node: NodeId| {
            trio.worlds[node.0 as usize - 1].store.durable_ends(BUCKET).expect("ends")
        };
        assert_eq!(ends(PROJECTOR), ends(SECOND));
    }
    trio.are_equal(PROJECTOR, SECOND).await;
    let error = trio.get(SECOND, "d1").await.expect_err("it does not lead");
    assert_eq!(error.code, ErrorCode::NotOwner);
    let error = trio.write(SECOND, "d1", "3").await.expect_err("it does not lead");
    assert_eq!(error.code, ErrorCode::NotOwner);
}

#[tokio::test]
async fn nothing_is_acknowledged_before_the_coordinators_have_given_a_silent_copy_up() {
    let trio = Trio::in_sync().await;
    trio.cut(PROJECTOR, SECOND);
    // The first projector reaches no coordinator either, so it cannot shrink the set.
    trio.script().cuts.lock().unwrap().insert((PROJECTOR, COORDINATOR));
    trio.script().cuts.lock().unwrap().insert((SECOND, COORDINATOR));
    let write = trio.write(PROJECTOR, "b", "1");
    tokio::pin!(write);
    assert!(timeout(Duration::from_millis(2_500), &mut write).await.is_err(), "it waits");
    let late = timeout(Duration::from_millis(100), trio.get(PROJECTOR, "a")).await;
    assert!(!matches!(late, Ok(Ok(_))), "the lease has ended: {late:?}");
    let began = Instant::now();
    trio.heal();
    trio.cut(PROJECTOR, SECOND);
    trio.script().cuts.lock().unwrap().insert((SECOND, COORDINATOR));
    write.await.expect("acknowledged by the only copy that is left");
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(trio.copies().in_sync, [PROJECTOR]);
    assert_eq!(trio.get(PROJECTOR, "b").await.expect("read"), json("1"));
}

#[tokio::test]
async fn a_copy_takes_over_from_a_leader_that_is_gone() {
    let mut trio = Trio::in_sync().await;
    for n in 0..20 {
        trio.write(PROJECTOR, &format!("d{n}"), "1").await.expect("written");
    }
    let began = Instant::now();
    trio.world(PROJECTOR).stop();
    let read = until("served", async || trio.get(SECOND, "d19").await.ok()).await;
    assert_eq!(read, json("1"));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    // The old leader is in sync in name, and is given up.
    trio.written(SECOND, "d0", "2").await;
    assert_eq!((trio.copies().leader, trio.copies().term), (SECOND, 2));
    trio.world(PROJECTOR).start().await;
    trio.has_role(PROJECTOR, CopyRole::None).await;
    trio.join(PROJECTOR).await;
    trio.are_equal(PROJECTOR, SECOND).await;
}

/// The leader has logged a write that the follower never received and that was not acknowledged.
#[tokio::test]
async fn a_returning_leader_loses_what_was_never_acknowledged() {
    let mut trio = Trio::in_sync().await;
    trio.cut(PROJECTOR, SECOND);
    trio.script().cuts.lock().unwrap().insert((PROJECTOR, COORDINATOR));
    let mut lost = Box::pin(trio.write(PROJECTOR, "lost", "1"));
    assert!(timeout(Duration::from_millis(100), &mut lost).await.is_err());
    until("taken over", async || (trio.copies().leader == SECOND).then_some(())).await;
    trio.written(SECOND, "kept", "1").await;
    assert!(trio.stored(PROJECTOR).0.iter().all(|(id, _)| id != "kept"));
    trio.heal();
    let error = lost.as_mut().await.expect_err("another copy leads");
    drop(lost);
    assert_eq!(error.code, ErrorCode::Interrupted, "{error}");
    if trio.copies().role(PROJECTOR) == CopyRole::None {
        trio.join(PROJECTOR).await;
    }
    trio.has_role(PROJECTOR, CopyRole::InSync).await;
    trio.are_equal(PROJECTOR, SECOND).await;
    let documents = trio.stored(PROJECTOR).0;
    assert!(documents.iter().all(|(id, _)| id != "lost"), "{documents:?}");
    trio.world(SECOND).stop();
    let read = until("served", async || trio.get(PROJECTOR, "kept").await.ok()).await;
    assert_eq!(read, json("1"));
}

#[tokio::test]
async fn a_leader_that_is_cut_off_answers_nothing_after_another_copy_leads() {
    let trio = Trio::in_sync().await;
    trio.cut(PROJECTOR, SECOND);
    trio.script().cuts.lock().unwrap().insert((PROJECTOR, COORDINATOR));
    let mut reads = 0;
    while trio.copies().leader == PROJECTOR {
        reads += u32::from(
            timeout(Duration::from_millis(20), trio.get(PROJECTOR, "a"))
                .await
                .is_ok_and(|r| r.is_ok()),
        );
    }
    assert!(reads > 0, "it answered while the lease lasted");
    for _ in 0..20 {
        let read = timeout(Duration::from_millis(20), trio.get(PROJECTOR, "a")).await;
        assert!(!matches!(read, Ok(Ok(_))), "{read:?}");
    }
    trio.written(SECOND, "a", "2").await;
}

#[tokio::test]
async fn a_copy_whose_log_was_purged_away_is_filled_with_documents() {
    let trio = Trio::new(2).await;
    for n in 0..200 {
        trio.write(PROJECTOR, &format!("d{}", n % 60), &n.to_string()).await.expect("written");
    }
    let store = trio.worlds[0].store.clone();
    let extents = store.extents(BUCKET).expect("extents");
    let purged: Vec<_> = (0..).map(VbucketId).zip(extents.iter().map(|e| e.end)).take(3).collect();
    store.purge(BUCKET, &purged).expect("purged");
    trio.join(SECOND).await;
    let equal = async || (trio.stored(PROJECTOR).0 == trio.stored(SECOND).0).then_some(());
    until("the documents are equal", equal).await;
    trio.write(PROJECTOR, "d1", "3").await.expect("written");
    trio.are_equal(PROJECTOR, SECOND).await;
}

#[tokio::test]
async fn a_bucket_moves_while_it_is_written() {
    let trio = Arc::new(Trio::new(1).await);
    let writer = {
        let trio = Arc::clone(&trio);
        let (sender, done) = tokio::sync::oneshot::channel();
        let write = async move {
            let (mut pause, mut acknowledged) = (Duration::ZERO, 0);
            while trio.copies().leader != THIRD || acknowledged < 100 {
                let began = Instant::now();
                // Retries like a session: a copy that does not lead has done nothing.
                loop {
                    let leader = trio.copies().leader;
                    match trio.write(leader, &format!("d{acknowledged}"), "1").await {
                        Ok(_) => break,
                        Err(error) => assert_eq!(error.code, ErrorCode::NotOwner, "{error}"),
                    }
                    sleep(Duration::from_millis(5)).await;
                }
                pause = pause.max(began.elapsed());
                acknowledged += 1;
            }
            sender.send((pause, acknowledged)).expect("somebody waits");
        };
        (Env::real().spawn_request("writer", write), done)
    };
    for node in [SECOND, THIRD] {
        trio.script().change_copies(|copies| {
            copies.set_move_to(Some(node));
            copies.change(copies.revision, CopiesChange::Join(node)).expect("joins");
        });
        until("moved", async || (trio.copies().leader == node).then_some(())).await;
        assert_eq!(trio.copies().in_sync, [node], "one copy is wanted");
    }
    let (pause, acknowledged) = writer.1.await.expect("no error");
    assert!(pause < Duration::from_secs(1), "{pause:?}");
    for n in 0..acknowledged {
        assert_eq!(trio.get(THIRD, &format!("d{n}")).await.expect("read"), json("1"), "d{n}");
    }
    let gone = async || {
        let stored = trio.worlds[0].store.buckets().expect("buckets");
        stored.iter().all(|(record, _)| record.info.id != BUCKET).then_some(())
    };
    until("the old projector has removed its copy", gone).await;
}

/// The leader restarts on an empty disk in the same term, before its absence was detected.
#[tokio::test]
async fn leader_with_a_lost_disk_removes_no_data() {
    let mut trio = Trio::in_sync().await;
    trio.write(PROJECTOR, "b", "1").await.expect("written");
    let world = trio.world(PROJECTOR);
    world.stop();
    world.store = Default::default();
    world.start().await;
    let taken_over = async || (trio.copies().leader == SECOND).then_some(());
    until("the other copy leads", taken_over).await;
    let read = until("served", async || trio.get(SECOND, "b").await.ok()).await;
    assert_eq!(read, json("1"));
    if trio.copies().role(PROJECTOR) == CopyRole::None {
        trio.join(PROJECTOR).await;
    }
    trio.are_equal(PROJECTOR, SECOND).await;
}

/// Both processes restart, and the leader's disk was replaced.
#[tokio::test]
async fn leader_that_lacks_mutations_gets_no_follower() {
    let mut trio = Trio::in_sync().await;
    trio.write(PROJECTOR, "b", "1").await.expect("written");
    // The follower's documents take a write after the answer; its log has it before.
    trio.are_equal(PROJECTOR, SECOND).await;
    let before = trio.stored(SECOND);
    [PROJECTOR, SECOND].into_iter().for_each(|node| trio.world(node).stop());
    *trio.script().lacks.lock().unwrap() = Some(Epoch(9));
    trio.world(PROJECTOR).store = Default::default();
    for node in [PROJECTOR, SECOND] {
        trio.world(node).start().await;
    }
    sleep(Duration::from_millis(2_500)).await;
    assert_eq!(trio.stored(SECOND), before, "the only copy that has it");
    assert_eq!(trio.copies().in_sync, [PROJECTOR, SECOND], "nobody is given up");
    let error = trio.get(PROJECTOR, "b").await.expect_err("it lacks something");
    assert_eq!(error.code, ErrorCode::Corrupt);
}

#[tokio::test]
async fn three_copies_survive_two_take_overs() {
    let mut trio = Trio::in_sync().await;
    trio.join(THIRD).await;
    trio.write(PROJECTOR, "b", "1").await.expect("written");
    trio.world(PROJECTOR).stop();
    let led = async || {
        let leader = trio.copies().leader;
        (leader != PROJECTOR && trio.get(leader, "b").await.is_ok()).then_some(leader)
    };
    let second = until("taken over", led).await;
    trio.written(second, "c", "1").await;
    let last = if second == SECOND { THIRD } else { SECOND };
    trio.world(second).stop();
    let read = until("taken over again", async || trio.get(last, "c").await.ok()).await;
    assert_eq!(read, json("1"));
}

#[tokio::test]
async fn a_copy_that_was_promoted_only_for_a_moment_follows_again() {
    let trio = Trio::in_sync().await;
    trio.join(THIRD).await;
    // The second one waits until the lease that it has granted is over, and the third one becomes the leader before
    // that.
    trio.change(CopiesChange::Promote(SECOND));
    sleep(Duration::from_millis(300)).await;
    trio.change(CopiesChange::Promote(THIRD));
    trio.written(THIRD, "b", "1").await;
    if trio.copies().role(SECOND) == CopyRole::None {
        trio.change(CopiesChange::Join(SECOND));
    }
    trio.has_role(SECOND, CopyRole::InSync).await;
    trio.are_equal(SECOND, THIRD).await;
}

#[tokio::test]
async fn a_copy_of_few_large_documents_joins_piece_by_piece() {
    let mut trio = Trio::new(2).await;
    for n in 0..40 {
        let text = format!("\"{}\"", "x".repeat(1000));
        trio.write(PROJECTOR, &format!("d{n}"), &text).await.expect("written");
    }
    let second = trio.world(SECOND);
    second.config.copy_step_bytes_max = 10_000;
    second.start().await;
    trio.join(SECOND).await;
    trio.are_equal(PROJECTOR, SECOND).await;
}
