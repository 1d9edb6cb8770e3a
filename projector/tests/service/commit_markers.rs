//! Large commits in the streams: markers where a stream has sent all bodies, and mutations where it has not.

use std::collections::BTreeMap;

use proto::ErrorCode;
use proto::model::cut::Cut;
use proto::model::ids::*;
use proto::model::index::PartitionBy;
use proto::rpc::api::{WatchMessage, Write};
use proto::value::Value;

use crate::common::*;
use crate::transaction_streams::{doc, follow, ids_here, keys, until_still};
use crate::transactions::{Session, code, positions};

const ONE: TransactionId = TransactionId(1);
/// The number of documents from which a commit is large in these tests.
const LARGE: u64 = 20;

type Expected = BTreeMap<String, Vec<Value>>;

/// Starts a world with an index, where commits of [`LARGE`] documents are large.
async fn world() -> World {
    world_where(|_| ()).await
}

async fn world_where(change: impl FnOnce(&mut projector::Config)) -> World {
    let world = World::new(|config| {
        config.large_commit_changes = LARGE;
        change(config);
    });
    let world = world.await;
    let indexes = [index(1, PartitionBy::DocumentId)];
    world.script.say(WatchMessage::Catalog(catalog(1, &indexes).into()));
    world.write(vec![upsert("first", &doc(0))]).await.expect("written");
    world
}

fn upserts(ids: &[String], n: i64) -> Vec<Write> {
    ids.iter().map(|id| upsert(id, &doc(n))).collect()
}

/// Reads the stream to its end; returns the documents that the node then has, among `ids`.
async fn contents(world: &World, follower: &mut Follower, ids: &[String]) -> Expected {
    follower.reach(&positions(world).await).await;
    until_still(follower).await;
    let contents = follower.contents.values().next().cloned().unwrap_or_default();
    contents.into_iter().filter(|(id, _)| ids.contains(id)).collect()
}

fn expected(ids: &[String], n: i64) -> Expected {
    ids.iter().map(|id| (id.clone(), keys(n))).collect()
}

#[tokio::test]
async fn a_stream_that_has_sent_the_bodies_sends_a_marker_among_the_mutations_of_others() {
    let world = world().await;
    let ids = ids_here(40);
    world.write(upserts(&ids[..10], 1)).await.expect("written");
    let mut follower = follow(&world).await;
    let mut session = Session::new(&world, 1);
    session.write(upserts(&ids[..30], 2)).await.expect("written");
    session.write(upserts(&ids[30..], 3)).await.expect("written");
    follower.reach_in(ONE, 40).await;
    session.back_to(30).await.expect("back");
    session.write(vec![delete(&ids[0])]).await.expect("written");
    // Mutations before and after the commit, of its own documents too.
    world.write(upserts(&ids[..5], 4)).await.expect("written");
    session.commit().await.expect("committed");
    world.write(upserts(&ids[28..32], 5)).await.expect("written");
    let found = contents(&world, &mut follower, &ids).await;
    let mut wanted = expected(&ids[1..28], 2);
    wanted.extend(expected(&ids[28..32], 5));
    assert_eq!(found, wanted);
    assert_eq!((follower.marked.len(), &*follower.ended), (1, &[ONE][..]));
    assert_eq!(follower.committing, [ONE], "the node could prepare it");
    assert!(follower.open.is_empty());
}

#[tokio::test]
async fn a_small_commit_and_a_refused_one_have_no_marker() {
    let world = world().await;
    let ids = ids_here(30);
    let mut follower = follow(&world).await;
    let mut session = Session::new(&world, 1);
    session.write(upserts(&ids[..LARGE as usize - 1], 1)).await.expect("written");
    follower.reach_in(session.transaction, LARGE - 1).await;
    session.commit().await.expect("committed");
    let mut refused = Session::new(&world, 2);
    let inserts = ids.iter().map(|id| insert(id, &doc(2))).skip(LARGE as usize - 1);
    let written = refused.write(inserts.chain(upserts(&ids, 3)).collect()).await.expect("written");
    follower.reach_in(refused.transaction, written).await;
    world.write(upserts(&ids[29..], 4)).await.expect("written");
    assert_eq!(code(refused.commit().await), Err(ErrorCode::DuplicateId));
    follower.reach_ends(2).await;
    let found = contents(&world, &mut follower, &ids).await;
    let mut wanted = expected(&ids[..LARGE as usize - 1], 1);
    wanted.extend(expected(&ids[29..], 4));
    assert_eq!((found, follower.marked.len()), (wanted, 0));
    assert_eq!((follower.ended.len(), follower.open.len()), (2, 0), "both have ended");
    // A stream that checks late never sees the beginning of a commit that is refused at once.
    let is_large = |begun: &TransactionId| *begun == refused.transaction;
    assert!(follower.committing.iter().all(is_large), "only a large one is told to begin");
}

/// A document is counted once, whether a marker or its mutation is sent, and not at all after a
/// rollback.
#[tokio::test]
async fn documents_that_an_index_leaves_out_of_a_large_commit_are_counted() {
    let world = world().await;
    let ids = ids_here(40);
    let too_long = format!("{{\"n\":\"{}\"}}", "x".repeat(5 << 10));
    let left_out = |ids: &[String]| ids.iter().map(|id| upsert(id, &too_long)).collect();
    let mut follower = follow(&world).await;
    let mut rolled_back = Session::new(&world, 1);
    rolled_back.write(left_out(&ids)).await.expect("written");
    follower.reach_in(ONE, 40).await;
    rolled_back.abort().await.expect("rolled back");
    let mut session = Session::new(&world, 2);
    session.write(upserts(&ids[..30], 1)).await.expect("written");
    session.write(left_out(&ids[30..])).await.expect("written");
    follower.reach_in(session.transaction, 40).await;
    session.commit().await.expect("committed");
    assert_eq!(contents(&world, &mut follower, &ids).await, expected(&ids[..30], 1));
    assert_eq!(follower.marked.len(), 1);
    let counted = || {
        let counts = world.script.left_out.lock().unwrap();
        counts.iter().map(|(_, of_index)| of_index.key_too_long).sum::<u64>()
    };
    until("they are counted", async || (counted() == 10).then_some(())).await;
}

#[tokio::test]
async fn stream_that_begins_late_sends_mutations() {
    let world = world().await;
    let ids = ids_here(30);
    let before = positions(&world).await;
    let mut session = Session::new(&world, 1);
    session.write(upserts(&ids, 1)).await.expect("written");
    session.commit().await.expect("committed");
    for from in [Some(before), Some(Cut::zero(positions(&world).await.vbuckets()))] {
        let mut follower = world.subscribe(INDEXERS[0], from).await.expect("a stream");
        let found = contents(&world, &mut follower, &ids).await;
        assert_eq!((found, follower.marked.len()), (expected(&ids, 1), 0));
    }
}

#[tokio::test]
async fn a_slow_stream_gets_the_rest_of_the_bodies_or_mutations() {
    // With so little room nothing is sent before it is read.
    let world = world_where(|config| config.stream_bytes_max = 1).await;
    let ids = ids_here(2_000);
    let mut markers = 0;
    // A stream that has everything may still come too late to the commit; not each time.
    let whole = (3..20).map(|n| (n, 2_000));
    for (n, read) in [(1, 0), (2, 500)].into_iter().chain(whole) {
        let mut follower = follow(&world).await;
        let mut session = Session::new(&world, n as u64);
        for some in ids.chunks(500) {
            session.write(upserts(some, n)).await.expect("written");
        }
        if read > 0 {
            follower.reach_in(session.transaction, read).await;
        }
        session.commit().await.expect("committed");
        let found = contents(&world, &mut follower, &ids).await;
        assert_eq!(found, expected(&ids, n));
        assert!(follower.open.is_empty(), "it has ended");
        markers += follower.marked.len();
        if markers > 0 {
            return;
        }
    }
    panic!("none of those that had everything got a marker");
}

#[tokio::test]
async fn a_further_index_joins_before_a_commit_or_behind_it() {
    let one = index(1, PartitionBy::DocumentId);
    let two = index(2, PartitionBy::DocumentId);
    let world = world().await;
    let ids = ids_here(400);
    let mut follower = follow(&world).await;
    let mut session = Session::new(&world, 1);
    session.write(upserts(&ids, 1)).await.expect("written");
    follower.reach_in(ONE, 400).await;
    world.script.say(WatchMessage::Catalog(catalog(2, &[one, two]).into()));
    session.commit().await.expect("committed");
    let found = contents(&world, &mut follower, &ids).await;
    assert_eq!(found, expected(&ids, 1));
    assert_eq!(follower.joined.len(), 2);
    // An index that joins after the commit gets it from its backfill; one that joins before it gets the transaction
    // again.
    let end = positions(&world).await;
    let is_behind = follower.joined.values().any(|at| at.reaches(&end));
    let begun = follower.marked.iter().map(|(_, open)| open.begun).max();
    assert!(is_behind || begun.is_none_or(|begun| begun == 2), "{begun:?}");
}
