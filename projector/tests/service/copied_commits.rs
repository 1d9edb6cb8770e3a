//! Commits that are larger than a message between the copies of a bucket.

use std::sync::atomic::Ordering;
use std::time::Duration;

use projector::testing::DocumentStore;
use proto::ErrorCode;
use proto::model::copies::CopyRole;
use proto::model::ids::{BucketId, NodeId, TransactionId, VbucketId};
use proto::rpc::api::{Decision, ProjectorApi, TransactionCommit};
use tokio::time::sleep;

use crate::common::*;
use crate::copies::{SECOND, THIRD, Trio, json};
use crate::transactions::Session;

/// The number of documents of a transaction, which fill nineteen messages.
const DOCUMENTS: usize = 300;
/// The size limit of a message, in bytes: sixteen documents fit.
const MESSAGE_BYTES: usize = 600;

/// Starts two copies in sync whose messages are small.
async fn small_messages() -> Trio {
    let mut trio = Trio::in_sync().await;
    let leader = trio.world(PROJECTOR);
    leader.config.copy_message_bytes = MESSAGE_BYTES;
    leader.start().await;
    trio.written(PROJECTOR, "b", "1").await;
    if trio.copies().role(SECOND) == CopyRole::None {
        trio.join(SECOND).await;
    }
    trio.has_role(SECOND, CopyRole::InSync).await;
    trio
}

fn id(n: usize) -> String {
    format!("d{n:03}")
}

/// Returns a session whose transaction has written all documents.
async fn written(world: &World, n: u64) -> Session<'_> {
    let mut session = Session::new(world, n);
    let writes = (0..DOCUMENTS).map(|n| upsert(&id(n), "1")).collect();
    session.write(writes).await.expect("written");
    session
}

/// Prepares a transaction with documents of a size, for which bucket 1 decides.
async fn prepared(trio: &Trio, n: u64, documents: usize, bytes: usize) {
    let world = &trio.worlds[0];
    let mut session = Session::new(world, n);
    let text = format!("\"{}\"", "x".repeat(bytes - 2));
    for at in 0..documents {
        session.write(vec![upsert(&format!("p{n}-{at:03}"), &text)]).await.expect("written");
    }
    let commit = TransactionCommit {
        bucket: BUCKET,
        transaction: session.transaction,
        place: session.place,
        snapshot: None,
        behind: session.behind,
        participants: vec![BucketId(1), BUCKET],
    };
    let prepared = world.projector().prepare(session.transaction, commit).await;
    assert_eq!(prepared.expect("prepared"), documents as u64);
}

#[tokio::test]
async fn a_large_commit_reaches_the_other_copies_in_pieces_and_is_whole_there() {
    let trio = small_messages().await;
    trio.join(THIRD).await;
    let session = written(&trio.worlds[0], 1).await;
    assert_eq!(session.commit().await.expect("committed").affected, DOCUMENTS as u64);
    let sent = trio.script().pieces.sent.load(Ordering::Relaxed);
    assert!(sent >= 2 * 15, "{sent} pieces");
    trio.write(PROJECTOR, "after", "1").await.expect("written");
    for node in [SECOND, THIRD] {
        trio.are_equal(PROJECTOR, node).await;
        assert_eq!(trio.copies().role(node), CopyRole::InSync, "nobody was given up");
    }
}

#[tokio::test]
async fn pieces_of_a_session_that_broke_are_thrown_away_and_the_commit_succeeds() {
    let trio = small_messages().await;
    trio.script().pieces.lost.store(7, Ordering::Relaxed);
    let session = written(&trio.worlds[0], 1).await;
    assert_eq!(session.commit().await.expect("committed").affected, DOCUMENTS as u64);
    assert_eq!(trio.copies().role(SECOND), CopyRole::InSync, "it went on in another session");
    trio.are_equal(PROJECTOR, SECOND).await;
}

#[tokio::test]
async fn take_over_during_a_large_commit_drops_it() {
    let mut trio = small_messages().await;
    let pieces = &trio.script().pieces;
    pieces.lost.store(7, Ordering::Relaxed);
    pieces.then_cut.store(true, Ordering::Relaxed);
    // The old leader does not learn that its term has ended.
    trio.script().cuts.lock().unwrap().insert((PROJECTOR, COORDINATOR));
    {
        let session = written(&trio.worlds[0], 1).await;
        let commit = tokio::time::timeout(Duration::from_millis(500), session.commit()).await;
        assert!(commit.is_err(), "it waits for the other copy: {commit:?}");
    }
    trio.world(PROJECTOR).stop();
    let read = until("served", async || trio.get(SECOND, "b").await.ok()).await;
    assert_eq!(read, json("1"));
    let (documents, _) = trio.stored(SECOND);
    assert!(documents.iter().all(|(id, _)| !id.starts_with('d')), "{documents:?}");
    trio.written(SECOND, "c", "1").await;
    trio.heal();
    trio.world(PROJECTOR).start().await;
    sleep(Duration::from_millis(100)).await;
    if trio.copies().role(PROJECTOR) == CopyRole::None {
        trio.join(PROJECTOR).await;
    }
    trio.has_role(PROJECTOR, CopyRole::InSync).await;
    trio.are_equal(PROJECTOR, SECOND).await;
}

/// The leader sends a group that the follower cannot accept in one step. That copy is given up, and
/// joins again from the log.
#[tokio::test]
async fn a_copy_for_which_a_commit_is_too_large_is_given_up_and_joins_again() {
    let mut trio = small_messages().await;
    let second = trio.world(SECOND);
    second.config.copy_step_bytes_max = 4_000;
    second.start().await;
    trio.written(PROJECTOR, "b", "2").await;
    let session = written(&trio.worlds[0], 1).await;
    assert_eq!(session.commit().await.expect("committed").affected, DOCUMENTS as u64);
    if trio.copies().role(SECOND) == CopyRole::None {
        trio.join(SECOND).await;
    }
    trio.has_role(SECOND, CopyRole::InSync).await;
    trio.are_equal(PROJECTOR, SECOND).await;
    let error = trio.get(SECOND, "b").await.expect_err("it does not lead");
    assert_eq!(error.code, ErrorCode::NotOwner);
}

/// The transaction is decided in another bucket, which these projectors do not know.
#[tokio::test]
async fn prepared_changes_are_copied_in_pieces() {
    let mut trio = small_messages().await;
    let participants = vec![BucketId(1), BUCKET];
    let number = TransactionId(7);
    {
        let session = written(&trio.worlds[0], 7).await;
        let commit = TransactionCommit {
            bucket: BUCKET,
            transaction: number,
            place: session.place,
            snapshot: None,
            behind: session.behind,
            participants: participants.clone(),
        };
        let prepared = trio.worlds[0].projector().prepare(number, commit).await;
        assert_eq!(prepared.expect("prepared"), DOCUMENTS as u64);
    }
    // One copy receives it as a group, and the other one at the beginning of its session.
    let sent = trio.script().pieces.sent.load(Ordering::Relaxed);
    assert!(sent >= 15, "{sent} pieces");
    trio.join(THIRD).await;
    for node in [SECOND, THIRD] {
        let store = &trio.worlds[node.0 as usize - 1].store;
        let (record, _) = store.buckets().expect("buckets").remove(0);
        let found = record.commits.find_prepared(number).expect("it is prepared").clone();
        assert_eq!((found.changes.len(), &found.participants), (DOCUMENTS, &participants));
    }
    trio.world(PROJECTOR).stop();
    let leader = async || {
        let leader = trio.copies().leader;
        (leader != PROJECTOR && trio.get(leader, "b").await.is_ok()).then_some(leader)
    };
    let leader = until("taken over", leader).await;
    let decision = Decision::Commit { participants };
    let projector = trio.worlds[leader.0 as usize - 1].projector();
    let decided =
        projector.end_prepared_transaction(BUCKET, number, decision).await.expect("finished");
    assert_eq!(decided.affected, DOCUMENTS as u64);
    assert_eq!(trio.get(leader, &id(0)).await.expect("read"), json("1"));
    let other = if leader == SECOND { THIRD } else { SECOND };
    trio.has_role(other, CopyRole::InSync).await;
    trio.are_equal(leader, other).await;
}

/// The log of the leader begins after all changes. So the joining copy receives the documents
/// themselves, and the steps of transactions as a part of the record.
#[tokio::test]
async fn a_copy_that_joins_by_documents_has_what_is_prepared_and_what_is_open() {
    let mut trio = Trio::new(2).await;
    for n in 0..60 {
        trio.write(PROJECTOR, &format!("d{n}"), "1").await.expect("written");
    }
    prepared(&trio, 7, 20, 100).await;
    prepared(&trio, 8, 20, 100).await;
    let decision = Decision::Commit { participants: vec![BucketId(1), BUCKET] };
    let decide = async |trio: &Trio, node: NodeId, n: u64| {
        let projector = trio.worlds[node.0 as usize - 1].projector();
        projector
            .end_prepared_transaction(BUCKET, TransactionId(n), decision.clone())
            .await
            .expect("finished")
    };
    let eight = decide(&trio, PROJECTOR, 8).await;
    let store = trio.worlds[0].store.clone();
    let extents = store.extents(BUCKET).expect("extents");
    let purged: Vec<_> = (0..).map(VbucketId).zip(extents.iter().map(|one| one.end)).collect();
    store.purge(BUCKET, &purged).expect("purged");
    trio.join(SECOND).await;
    assert_eq!(trio.stored(SECOND).0, trio.stored(PROJECTOR).0);
    let commits = trio.worlds[1].store.buckets().expect("buckets").remove(0).0.commits;
    let found = commits.find_prepared(TransactionId(7)).expect("it is prepared");
    assert_eq!(found.changes.len(), 20);
    assert!(commits.find_joint(TransactionId(8)).is_some(), "no epoch has it");
    trio.world(PROJECTOR).stop();
    until("served", async || trio.get(SECOND, "d1").await.ok()).await;
    assert_eq!(decide(&trio, SECOND, 8).await, eight, "it has ended once");
    assert_eq!(decide(&trio, SECOND, 7).await.affected, 20);
    for id in ["p7-019", "p8-019"] {
        assert!(trio.get(SECOND, id).await.expect("read").is_some(), "{id}");
    }
}

/// The copy has prepared the transaction together with the leader.
#[tokio::test]
async fn restarted_copy_fetches_no_known_prepared_changes() {
    let trio = small_messages().await;
    prepared(&trio, 7, 100, 100).await;
    prepared(&trio, 8, 10, 100).await;
    let pieces = &trio.script().pieces;
    let before = pieces.prepared.load(Ordering::Relaxed);
    trio.cut(PROJECTOR, SECOND);
    // Longer than the leader keeps a question without an answer.
    sleep(Duration::from_millis(350)).await;
    trio.heal();
    trio.write(PROJECTOR, "b", "2").await.expect("written");
    assert_eq!(trio.copies().role(SECOND), CopyRole::InSync);
    let sent = pieces.prepared.load(Ordering::Relaxed) - before;
    assert!((1..5).contains(&sent), "{sent} pieces");
    trio.are_equal(PROJECTOR, SECOND).await;
    let commits = |n: usize| trio.worlds[n].store.buckets().expect("buckets").remove(0).0.commits;
    assert_eq!(commits(0), commits(1), "the changes are there");
}

/// The log of a follower may have to write prepared changes again with any group, which takes long
/// if they are many.
#[tokio::test]
async fn a_copy_that_is_slow_while_much_is_prepared_is_not_given_up_and_a_lost_question_breaks_nothing()
 {
    let trio = Trio::in_sync().await;
    prepared(&trio, 7, 40, 1 << 20).await;
    let cut = [(SECOND, PROJECTOR), (PROJECTOR, SECOND)];
    let held = HeldSyncs::of(&trio.worlds[1].store);
    let write = trio.write(PROJECTOR, "b", "1");
    tokio::pin!(write);
    let late = tokio::time::timeout(Duration::from_millis(1_700), &mut write).await;
    assert!(late.is_err(), "it waits for the other copy: {late:?}");
    assert_eq!(trio.copies().role(SECOND), CopyRole::InSync, "it is busy");
    // One of the follower's requests is lost.
    trio.script().cuts.lock().unwrap().extend(cut);
    sleep(Duration::from_millis(150)).await;
    trio.heal();
    drop(held);
    write.await.expect("acknowledged");
    assert_eq!(trio.copies().role(SECOND), CopyRole::InSync);
    trio.are_equal(PROJECTOR, SECOND).await;
}
