//! The changes of open transactions in the streams.

use std::time::Duration;

use proto::model::cut::Cut;
use proto::model::ids::*;
use proto::model::index::PartitionBy;
use proto::model::topology::{PartitionKey, TopologyProvider};
use proto::rpc::api::{ProjectorApi, WatchMessage};
use proto::value::Value;
use tokio::time::timeout;

use crate::common::*;
use crate::transactions::Session;

const ONE: TransactionId = TransactionId(1);

/// Returns ids whose entries are on the first node.
pub fn ids_here(count: usize) -> Vec<String> {
    let topology = index(1, PartitionBy::DocumentId).topology.clone();
    let is_here = |id: &String| {
        let slice = TopologyProvider::partition(&*topology, PartitionKey::Id(id));
        topology.hosts(INDEXERS[0], slice)
    };
    (0..).map(|n| format!("d{n}")).filter(is_here).take(count).collect()
}

async fn world_with_index() -> World {
    world_with(&[index(1, PartitionBy::DocumentId)]).await
}

pub async fn follow(world: &World) -> Follower {
    let mut follower = world.subscribe(INDEXERS[0], None).await.expect("a stream");
    follower.step().await.expect("it begins");
    follower
}

/// Handles messages until none arrives for a while.
pub async fn until_still(follower: &mut Follower) {
    while let Ok(step) = timeout(Duration::from_millis(200), follower.step()).await {
        step.expect("the stream goes on");
    }
}

pub fn keys(n: i64) -> Vec<Value> {
    vec![Value::int(n)]
}

pub fn doc(n: i64) -> String {
    format!("{{\"n\":{n}}}")
}

#[tokio::test]
async fn bodies_come_before_the_commit_and_frames_with_it() {
    let world = world_with_index().await;
    let ids = ids_here(3);
    world.write(vec![upsert(&ids[2], &doc(9))]).await.expect("written");
    let mut follower = follow(&world).await;
    let begin = follower.at.clone();
    let mut session = Session::new(&world, 1);
    session.write(vec![upsert(&ids[0], &doc(1))]).await.expect("written");
    follower.reach_in(ONE, 1).await;
    session.write(vec![upsert(&ids[1], &doc(2)), delete(&ids[2])]).await.expect("written");
    session.write(vec![upsert(&ids[0], &doc(3))]).await.expect("written");
    follower.reach_in(ONE, 4).await;
    let change = |n: usize, keys: Vec<Value>| (ids[n].clone(), keys);
    let expected = [(1, change(0, keys(1))), (2, change(1, keys(2))), (3, change(2, vec![]))];
    let expected = expected.into_iter().chain([(4, change(0, keys(3)))]).collect();
    assert_eq!(follower.open[&ONE].changes, expected);
    assert_eq!((follower.open[&ONE].begun, follower.frames), (1, 0), "nothing is committed");
    assert!(follower.at == begin);

    session.commit().await.expect("committed");
    let end = world.projector().positions(BUCKET).await.expect("positions");
    follower.reach(&end).await;
    follower.reach_ends(1).await;
    until_still(&mut follower).await;
    assert_eq!((&*follower.ended, follower.open.len()), (&[ONE][..], 0));
    let contents = follower.contents.into_values().next().expect("an index");
    assert_eq!((contents.len(), &contents[&ids[0]], &contents[&ids[1]]), (2, &keys(3), &keys(2)));
}

/// A commit is one group, so one report of positions covers all of it.
#[tokio::test]
async fn a_node_learns_the_place_also_of_changes_that_do_not_concern_it() {
    let world = world_with(&[]).await;
    let mut follower = follow(&world).await;
    let mut session = Session::new(&world, 1);
    session.write(vec![upsert("a", "1"), upsert("b", "1")]).await.expect("written");
    follower.reach_in(ONE, 2).await;
    assert!(follower.open[&ONE].changes.is_empty());
    session.back_to(1).await.expect("back");
    session.write(vec![upsert("c", "1")]).await.expect("written");
    follower.reach_in(ONE, 4).await;
    assert_eq!(follower.backs, [(ONE, 1)]);
    session.abort().await.expect("rolled back");
    follower.reach_ends(1).await;
    until_still(&mut follower).await;
    assert_eq!((&*follower.ended, follower.frames), (&[ONE][..], 0));
}

#[tokio::test]
async fn a_stream_that_begins_gets_the_open_transactions_as_they_are() {
    let world = world_with_index().await;
    let ids = ids_here(4);
    let mut session = Session::new(&world, 1);
    let writes = ids.iter().zip(1..).map(|(id, n)| upsert(id, &doc(n))).collect();
    session.write(writes).await.expect("written");
    session.back_to(2).await.expect("back");
    let mut ended = Session::new(&world, 2);
    ended.write(vec![upsert(&ids[0], &doc(7))]).await.expect("written");
    ended.abort().await.expect("rolled back");
    let mut follower = follow(&world).await;
    follower.reach_in(ONE, 5).await;
    let places: Vec<_> = follower.open[&ONE].changes.keys().copied().collect();
    assert_eq!(places, [1, 2]);
    until_still(&mut follower).await;
    assert_eq!((follower.open.len(), follower.backs.len(), follower.ended.len()), (1, 0, 0));
}

#[tokio::test]
async fn rollbacks_and_ends_are_told_in_order() {
    let world = world_with_index().await;
    let ids = ids_here(4);
    let mut follower = follow(&world).await;
    let mut session = Session::new(&world, 1);
    for id in &ids {
        session.write(vec![upsert(id, &doc(1))]).await.expect("written");
    }
    follower.reach_in(ONE, 4).await;
    session.back_to(3).await.expect("back");
    session.back_to(1).await.expect("back");
    session.write(vec![upsert(&ids[3], &doc(5))]).await.expect("written");
    follower.reach_in(ONE, 7).await;
    let places: Vec<_> = follower.open[&ONE].changes.keys().copied().collect();
    assert_eq!(places, [1, 7]);
    assert_eq!(follower.backs.last(), Some(&(ONE, 1)));
    session.abort().await.expect("rolled back");
    // The id is used again before the stream looks.
    session.place = TransactionPlace(0);
    session.write(vec![upsert(&ids[0], &doc(8))]).await.expect("written");
    while follower.open.get(&ONE).is_none_or(|open| open.place != 1) {
        follower.step().await.expect("the stream goes on");
    }
    assert_eq!(follower.open[&ONE].changes[&1], (ids[0].clone(), keys(8)));
    assert_eq!(follower.ended, [ONE]);
}

#[tokio::test]
async fn an_index_that_joins_gets_the_open_transactions_anew() {
    let one = index(1, PartitionBy::DocumentId);
    let world = world_with(std::slice::from_ref(&one)).await;
    let ids = ids_here(2);
    let mut follower = follow(&world).await;
    let mut session = Session::new(&world, 1);
    session.write(vec![upsert(&ids[0], &doc(1))]).await.expect("written");
    follower.reach_in(ONE, 1).await;
    let two = index(2, PartitionBy::DocumentId);
    world.script.say(WatchMessage::Catalog(catalog(2, &[one.clone(), two.clone()]).into()));
    while follower.open[&ONE].begun < 2 {
        follower.step().await.expect("the stream goes on");
    }
    assert!(follower.joined.contains_key(&two.local_id()), "the index comes first");
    assert_eq!(follower.open[&ONE].place, 1);
    // A catalog that changes no index causes no repeated messages.
    world.script.say(WatchMessage::Catalog(catalog(3, &[one.clone(), two]).into()));
    session.write(vec![upsert(&ids[1], &doc(2))]).await.expect("written");
    follower.reach_in(ONE, 2).await;
    world.script.say(WatchMessage::Catalog(catalog(4, &[one]).into()));
    until_still(&mut follower).await;
    assert_eq!((follower.joined.len(), follower.open[&ONE].begun), (1, 2));
}

/// Bodies are sent separately: the limit of frames beyond the newest timestamp does not delay them.
#[tokio::test]
async fn bodies_are_bounded_by_messages_and_not_held_back_by_frames() {
    let world = World::new(|config| config.frames_ahead_bytes_max = 500).await;
    let indexes = [index(1, PartitionBy::DocumentId)];
    world.script.say(WatchMessage::Catalog(catalog(1, &indexes).into()));
    world.script.epoch(1, &Cut::zero(VBUCKETS));
    let mut follower = follow(&world).await;
    for half in 0..2 {
        let writes = (0..100).map(|n| upsert(&format!("{half}-{n}"), &doc(1))).collect();
        world.write(writes).await.expect("written");
        until_still(&mut follower).await;
    }
    let end = world.projector().positions(BUCKET).await.expect("positions");
    assert!(!follower.at.reaches(&end), "the frames wait for a timestamp");
    let mut session = Session::new(&world, 1);
    for piece in 0..10 {
        let pad = "x".repeat(100);
        let json = format!("{{\"n\":\"{pad}\"}}");
        let writes = (0..2000).map(|n| upsert(&format!("{piece}-{n}"), &json)).collect();
        session.write(writes).await.expect("written");
    }
    follower.reach_in(ONE, 20_000).await;
    assert!(follower.open[&ONE].changes.len() > 5_000);
    assert!(!follower.at.reaches(&end));
}
