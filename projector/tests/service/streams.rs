//! Streams and backfills.

use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use proto::ErrorCode;
use proto::expr::Expr;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, Position};
use proto::model::identity::UniqueId;
use proto::model::ids::*;
use proto::model::index::PartitionBy;
use proto::model::topology::{PartitionKey, TopologyProvider};
use proto::rpc::api::{ProjectorApi, ResultStream, WatchMessage};
use proto::rpc::mutation::*;
use proto::value::Value;
use tokio::time::timeout;

use crate::common::*;

/// The content that both nodes receive equals the documents: older mutations from the log, newer
/// ones from the head, with a restart of the projector in between.
#[tokio::test]
async fn streams_match_the_documents() {
    let by_expr = PartitionBy::Exprs(vec![path("n")]);
    let indexes = [index(1, PartitionBy::DocumentId), index(2, by_expr)];
    let mut world = world_with(&indexes).await;
    let write = async |world: &World, round: u64| {
        for n in 0..50u64 {
            let id = format!("d{n}");
            let what = match (n * 7 + round * 3) % 5 {
                0 => delete(&id),
                1 => upsert(&id, "{}"),
                _ => upsert(&id, &format!("{{\"n\":{}}}", n + round)),
            };
            world.write(vec![what]).await.expect("written");
        }
    };
    write(&world, 0).await;
    let mut followers = Vec::new();
    for node in INDEXERS {
        let from = Some(Cut::zero(VBUCKETS));
        followers.push(world.subscribe(node, from).await.expect("a stream"));
    }
    write(&world, 1).await;
    let end = world.projector().positions(BUCKET).await.expect("positions");
    for follower in &mut followers {
        follower.reach(&end).await;
    }
    world.start().await;
    assert!(world.projector().positions(BUCKET).await.expect("positions") == end, "all is durable");
    write(&world, 2).await;
    let end = world.projector().positions(BUCKET).await.expect("positions");
    let (mut by_id, mut by_key) = (Contents::new(), Contents::new());
    for (node, follower) in INDEXERS.into_iter().zip(&mut followers) {
        let again = world.subscribe(node, Some(follower.at.clone())).await.expect("a stream");
        follower.stream = again.stream;
        follower.begun = false;
        follower.reach(&end).await;
        for (all, id) in [(&mut by_id, 1), (&mut by_key, 2)] {
            for (document, keys) in follower.contents.remove(&local(id)).unwrap_or_default() {
                assert!(all.insert(document, keys).is_none(), "a document has one owner");
            }
        }
    }
    let mut expected = Contents::new();
    for n in 0..50u64 {
        if !matches!((n * 7 + 6) % 5, 0 | 1) {
            expected.insert(format!("d{n}"), vec![Value::int(n as i64 + 2)]);
        }
    }
    assert_eq!(by_id, expected);
    assert_eq!(by_key, expected);
}

/// Returns the id of the first generation of an index.
fn local(index: u64) -> LocalIndexId {
    LocalIndexId { index: IndexId(index), generation: Generation(0) }
}

fn first_index(node: NodeId) -> BackfillRequest {
    BackfillRequest { node, index: local(1), revision: 0, vbuckets: None }
}

/// The content of a backfill of one index.
struct Backfilled {
    cut: Cut,
    contents: Contents,
    message_bytes_max: usize,
}

/// Reads a backfill to its end; returns its content.
async fn read_backfill(mut stream: ResultStream<BackfillMessage>) -> Backfilled {
    let (mut contents, mut cut, mut message_bytes_max, mut ended) =
        (Contents::new(), None, 0, false);
    while let Some(message) = stream.next().await {
        match message.expect("the backfill goes on") {
            BackfillMessage::Begin { cut: at } => cut = Some(at),
            BackfillMessage::Documents(body) => {
                message_bytes_max = message_bytes_max.max(body.len());
                for mutation in KeyVersionsReader::new(&body) {
                    let mutation = mutation.expect("well formed");
                    let state = mutation.indexes().next().expect("one index");
                    apply(&mut contents, &mutation, &state);
                }
            }
            BackfillMessage::Progress { read, of } => assert!(read <= of, "{read} of {of}"),
            BackfillMessage::End => ended = true,
        }
    }
    assert!(ended);
    Backfilled { cut: cut.expect("it begins"), contents, message_bytes_max }
}

#[tokio::test]
async fn a_backfill_and_the_stream_it_joined_make_the_whole_index() {
    let world = world_with(&[]).await;
    let mut followers = Vec::new();
    for node in INDEXERS {
        followers.push(world.subscribe(node, None).await.expect("a stream"));
    }
    for n in 0..300 {
        let doc = format!("{{\"n\":{n}}}");
        world.write(vec![upsert(&format!("d{n}"), &doc)]).await.expect("written");
    }
    let index = index(1, PartitionBy::DocumentId);
    world.script.say(WatchMessage::Catalog(catalog(2, &[index]).into()));
    let mut whole = Contents::new();
    for (node, follower) in INDEXERS.into_iter().zip(&mut followers) {
        while !follower.joined.contains_key(&local(1)) {
            follower.step().await.expect("the stream goes on");
        }
        // Changes between the index's join and the snapshot, and after it.
        world.write(vec![upsert("d0", "{\"n\":-1}"), delete("d1")]).await.expect("written");
        let stream = world.projector().backfill(first_index(node)).await.expect("a backfill");
        world.write(vec![upsert("d2", "{\"n\":-2}"), delete("d3")]).await.expect("written");
        let Backfilled { cut, mut contents, .. } = read_backfill(stream).await;
        assert!(cut.reaches(&follower.joined[&local(1)]));
        assert!(!contents.contains_key("d1"));
        let end = world.projector().positions(BUCKET).await.expect("positions");
        follower.reach(&end).await;
        // The stream's content is newer than the snapshot or the same.
        let heard = follower.contents.remove(&local(1)).unwrap_or_default();
        contents.retain(|id, _| !["d0", "d1", "d2", "d3"].contains(&id.as_str()));
        contents.extend(heard);
        whole.extend(contents);
    }
    assert_eq!(whole.len(), 298);
    assert_eq!((&whole["d0"], &whole["d2"]), (&vec![Value::int(-1)], &vec![Value::int(-2)]));
    assert_eq!(whole["d299"], [Value::int(299)]);
}

/// All backfills that are requested together share one pass over the documents. One of their
/// readers stops, and one accepts nothing for a while.
#[tokio::test]
async fn backfills_share_a_reading_and_a_slow_one_leaves_it() {
    let world = World::new(|config| config.stream_bytes_max = 8 << 10).await;
    let indexes = [1, 2].map(|n| index(n, PartitionBy::DocumentId));
    world.script.say(WatchMessage::Catalog(catalog(1, &indexes).into()));
    let pad = "x".repeat(1000);
    let writes = |from: u32| {
        let upsert = |n| upsert(&format!("d{n:05}"), &format!("{{\"n\":{n},\"pad\":\"{pad}\"}}"));
        (from..from + 500).map(upsert).collect()
    };
    for from in (0..3000).step_by(500) {
        world.write(writes(from)).await.expect("written");
    }
    let ask = async |node: NodeId, n: u64| {
        let request = BackfillRequest { index: local(n), ..first_index(node) };
        world.projector().backfill(request).await.expect("a backfill")
    };
    let slow = ask(INDEXERS[0], 1).await;
    let gone = ask(INDEXERS[0], 1).await;
    // The reading begins a moment after the first request, so this write is in all of them.
    world.write(vec![upsert("last", "{\"n\":7}")]).await.expect("written");
    let end = world.projector().positions(BUCKET).await.expect("positions");
    let others = [ask(INDEXERS[1], 1).await, ask(INDEXERS[0], 2).await, ask(INDEXERS[1], 2).await];
    drop(gone);
    let all = join_all(others.map(read_backfill));
    let read = timeout(Duration::from_secs(20), all).await.expect("the slow one holds nobody up");
    let [of_other_node, first, second] = &read[..] else { panic!("three were asked for") };
    let slow = read_backfill(slow).await;
    for backfilled in [&slow, of_other_node, first, second] {
        assert_eq!(backfilled.cut, end);
    }
    let all = |one: &Backfilled, other: &Backfilled| {
        let mut all = one.contents.clone();
        all.extend(other.contents.clone());
        assert_eq!(all.len(), one.contents.len() + other.contents.len(), "a document has one node");
        all
    };
    let expected = all(first, second);
    assert_eq!((expected.len(), &expected["last"]), (3001, &vec![Value::int(7)]));
    assert_eq!(all(&slow, of_other_node), expected);
}

/// A few short documents have entries that are a hundred times as long, in the log, in the head and
/// in a backfill.
#[tokio::test]
async fn messages_are_bounded_by_their_content_not_by_the_documents() {
    const MESSAGE_BYTES_MAX: usize = 6 << 20;
    let world = World::new(|config| config.frames_ahead_bytes_max = 1 << 30).await;
    let tags = Expr::Unnest(Box::new(path("tags")));
    let index = index_on(1, vec![path("n"), tags], PartitionBy::DocumentId);
    world.script.say(WatchMessage::Catalog(catalog(1, &[index]).into()));
    let tags: Vec<_> = (0..200).collect();
    let doc = format!("{{\"n\":\"{}\",\"tags\":{tags:?}}}", "x".repeat(4000));
    let write = async |prefix: &str| {
        let writes = (0..60).map(|n| upsert(&format!("{prefix}{n}"), &doc)).collect();
        world.write(writes).await.expect("written");
    };
    write("log").await;
    let from = Some(Cut::zero(VBUCKETS));
    let mut follower = world.subscribe(INDEXERS[0], from).await.expect("a stream");
    follower.reach(&world.projector().positions(BUCKET).await.expect("positions")).await;
    write("head").await;
    follower.reach(&world.projector().positions(BUCKET).await.expect("positions")).await;
    let entries: usize = follower.contents[&local(1)].values().map(Vec::len).sum();
    assert!(entries > 30 * 200, "{entries}");
    assert!(follower.message_bytes_max < MESSAGE_BYTES_MAX, "{}", follower.message_bytes_max);

    let stream = world.projector().backfill(first_index(INDEXERS[0])).await.expect("a backfill");
    let Backfilled { contents, message_bytes_max, .. } = read_backfill(stream).await;
    assert!(message_bytes_max < MESSAGE_BYTES_MAX, "{message_bytes_max}");
    assert_eq!(contents, follower.contents[&local(1)], "nothing is lost between two messages");
}

/// The head is tiny, so that the stream has to switch between log and head repeatedly.
#[tokio::test]
async fn a_slow_reader_misses_nothing_and_delays_nobody() {
    let world = World::new(|config| config.head_bytes_max = 2_000).await;
    world
        .script
        .say(WatchMessage::Catalog(catalog(1, &[index(1, PartitionBy::DocumentId)]).into()));
    let mut slow = world.subscribe(INDEXERS[0], None).await.expect("a stream");
    for n in 0..600 {
        world.write(vec![upsert(&format!("d{}", n % 90), "{\"n\":1}")]).await.expect("written");
        if n % 97 == 0 {
            slow.step().await.expect("the stream goes on");
        }
    }
    let end = world.projector().positions(BUCKET).await.expect("positions");
    slow.reach(&end).await;
    assert_eq!(slow.contents[&local(1)].len(), {
        let mine = |n: &u64| {
            let topology = index(1, PartitionBy::DocumentId).topology.clone();
            let key = PartitionKey::Id(&format!("d{n}"));
            let slice = TopologyProvider::partition(&*topology, key);
            topology.hosts(INDEXERS[0], slice)
        };
        (0..90).filter(mine).count()
    });
}

#[tokio::test]
async fn indexes_join_and_leave_between_frames() {
    let (one, two) = (index(1, PartitionBy::DocumentId), index(2, PartitionBy::DocumentId));
    let world = world_with(std::slice::from_ref(&one)).await;
    let mut follower = world.subscribe(INDEXERS[0], None).await.expect("a stream");
    follower.step().await.expect("it begins");
    assert!(follower.joined.contains_key(&local(1)));
    world.script.say(WatchMessage::Catalog(catalog(2, &[one, two.clone()]).into()));
    follower.step().await.expect("it goes on");
    assert!(follower.joined.contains_key(&local(2)));
    world.script.say(WatchMessage::Catalog(catalog(3, &[two]).into()));
    follower.step().await.expect("it goes on");
    assert!(!follower.joined.contains_key(&local(1)));
}

#[tokio::test]
async fn a_dropped_bucket_ends_its_streams_and_an_older_catalog_drops_nothing() {
    let mut world = World::new(|_| {}).await;
    let bucket_ids = [(BUCKET, UniqueId(1)), (PUSHED, UniqueId(2))];
    let first = Catalog { bucket_ids: bucket_ids.into(), ..catalog(1, &[]) };
    world.script.say(WatchMessage::Catalog(first.into()));
    world.write(vec![upsert("a", "1")]).await.expect("written");
    let without_buckets =
        |cas| Catalog { cas, dropped_buckets: bucket_ids.to_vec(), ..Default::default() };
    world.script.say(WatchMessage::Catalog(without_buckets(0).into()));
    world.start().await;
    world.write(vec![upsert("b", "1")]).await.expect("the bucket is there");
    let mut follower = world.subscribe(INDEXERS[0], None).await.expect("a stream");
    follower.step().await.expect("it begins");
    world.script.say(WatchMessage::Catalog(without_buckets(2).into()));
    let error = follower.step().await.expect_err("the bucket is gone");
    assert_eq!(error.code, ErrorCode::Unknown);
    let projector = world.projector();
    assert!(projector.positions(BUCKET).await.is_err());
}

#[tokio::test]
async fn a_stream_from_another_history_is_refused() {
    let world = world_with(&[]).await;
    world.write(vec![upsert("a", "1")]).await.expect("written");
    let vbucket = vbucket_of("a", VBUCKETS);
    let good = world.projector().positions(BUCKET).await.expect("positions").get(vbucket);
    for bad in [
        Position { seqno: Seqno(2), ..good },
        Position { vbuuid: Vbuuid(good.vbuuid.0 ^ 1), ..good },
    ] {
        let mut cut = Cut::zero(VBUCKETS);
        cut.set(vbucket, bad);
        let refused = world.subscribe(INDEXERS[0], Some(cut)).await.map(|_| ());
        assert_eq!(refused.map_err(|error| error.code), Err(ErrorCode::OutOfOrder));
    }
}

/// A timestamp that arrives while few mutations are collected must not leave the rest of a larger group unread.
#[tokio::test]
async fn a_large_group_behind_few_mutations_is_sent_to_its_end() {
    let world = world_with(&[index(1, PartitionBy::DocumentId)]).await;
    let mut follower =
        world.subscribe(INDEXERS[0], Some(Cut::zero(VBUCKETS))).await.expect("a stream");
    let mut epoch = 1;
    for round in 0..8 {
        let pad = "x".repeat(8 << 10);
        let document =
            |n: u64| upsert(&format!("large{n}"), &format!("{{\"n\":{round},\"p\":\"{pad}\"}}"));
        let large = world.write((0..200).map(document).collect());
        let few = async {
            for n in 0..20 {
                world.write(vec![upsert("small", &n.to_string())]).await.expect("written");
                let cut = world.projector().positions(BUCKET).await.expect("positions");
                epoch += 1;
                world.script.epoch(epoch, &cut);
            }
        };
        let (large, ()) = tokio::join!(large, few);
        large.expect("written");
        let end = world.projector().positions(BUCKET).await.expect("positions");
        follower.reach(&end).await;
    }
}
