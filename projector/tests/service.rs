//! The projector as its callers see it.

mod common;
#[path = "service/hand_over.rs"]
mod hand_over;
#[path = "service/purged_hand_over.rs"]
mod purged_hand_over;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use common::*;
use futures::StreamExt;
use proto::ErrorCode;
use proto::api::{ProjectorApi, PushMutation, PushRequest, WatchMessage};
use proto::cut::{Cut, EpochMark, Position};
use proto::ids::*;
use proto::index::PartitionBy;
use proto::mutation::*;
use proto::value::Value;

async fn world_with(indexes: &[std::sync::Arc<proto::index::IndexInfo>]) -> World {
    let world = World::new(|_| {}).await;
    world.script.say(WatchMessage::Catalog(catalog(1, indexes).into()));
    world
}

#[tokio::test]
async fn a_statement_is_done_as_a_whole_or_not_at_all() {
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
    assert_eq!(after.distance_from(&before), 1, "what is not there leaves no trace");
    let again = world.write(vec![delete("a"), insert("a", "9")]).await.expect("it was gone");
    assert_eq!(again.affected, 1);
}

/// Documents that one statement writes are read by one call in one state, while more of them are written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_of_many_ids_never_sees_half_of_a_statement() {
    let world = world_with(&[]).await;
    let ids: Vec<_> = (0..300).map(|n| format!("d{n}")).collect();
    let projector = world.projector();
    let (all, stop) = (ids.clone(), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let stopped = std::sync::Arc::clone(&stop);
    let writer = async move {
        for round in 0u64.. {
            if stopped.load(std::sync::atomic::Ordering::Relaxed) {
                return;
            }
            let writes = all.iter().map(|id| upsert(id, &round.to_string())).collect();
            let request = proto::api::WriteRequest { bucket: BUCKET, writes };
            projector.write(request).await.expect("written");
        }
    };
    let reader = async {
        for _ in 0..300 {
            let found = world.projector().get(BUCKET, ids.clone()).await.expect("documents");
            assert!(found.iter().all(|document| *document == found[0]), "{found:?}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
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
                let writes = vec![insert(&id, &format!("{{\"n\":{n}}}"))];
                let request = proto::api::WriteRequest { bucket: BUCKET, writes };
                projector.write(request).await.expect("written");
            }
        });
    }
    futures::future::join_all(writers).await;
    let end = world.projector().positions(BUCKET).await.expect("positions");
    assert_eq!(end.distance_from(&Cut::zero(VBUCKETS)), 400);
    follower.reach(&end).await;
    let synced = || world.script.synced.lock().expect("not poisoned").get(&BUCKET).cloned();
    while synced().as_ref() != Some(&end) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Everything that both nodes hear, put together, is what the documents say: with the past from the
/// log, the present from the head, and a restart of the projector in between.
#[tokio::test]
async fn streams_say_what_the_documents_say() {
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
            for (document, keys) in follower.contents.remove(&IndexId(id)).unwrap_or_default() {
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
        while !follower.joined.contains_key(&IndexId(1)) {
            follower.step().await.expect("the stream goes on");
        }
        // Between the index's joining and the snapshot, and after it.
        world.write(vec![upsert("d0", "{\"n\":-1}"), delete("d1")]).await.expect("written");
        let request = BackfillRequest {
            node,
            index: IndexId(1),
            generation: Generation(0),
            revision: 0,
            vbuckets: None,
        };
        let mut stream = world.projector().backfill(request).await.expect("a backfill");
        world.write(vec![upsert("d2", "{\"n\":-2}"), delete("d3")]).await.expect("written");
        let (mut contents, mut cut, mut ended) = (Contents::new(), None, false);
        while let Some(message) = stream.next().await {
            match message.expect("the backfill goes on") {
                BackfillMessage::Begin { cut: at } => cut = Some(at),
                BackfillMessage::Documents(body) => {
                    for mutation in KeyVersionsReader::new(&body) {
                        let mutation = mutation.expect("well formed");
                        let state = mutation.indexes().next().expect("one index");
                        apply(&mut contents, &mutation, &state);
                    }
                }
                BackfillMessage::End => ended = true,
            }
        }
        assert!(ended);
        assert!(cut.expect("it begins").reaches(&follower.joined[&IndexId(1)]));
        assert!(!contents.contains_key("d1"));
        let end = world.projector().positions(BUCKET).await.expect("positions");
        follower.reach(&end).await;
        // What the stream has heard is newer than the snapshot, or the same.
        let heard = follower.contents.remove(&IndexId(1)).unwrap_or_default();
        contents.retain(|id, _| !["d0", "d1", "d2", "d3"].contains(&id.as_str()));
        contents.extend(heard);
        whole.extend(contents);
    }
    assert_eq!(whole.len(), 298);
    assert_eq!((&whole["d0"], &whole["d2"]), (&vec![Value::int(-1)], &vec![Value::int(-2)]));
    assert_eq!(whole["d299"], [Value::int(299)]);
}

/// Takes messages until none comes for a while.
async fn until_still(follower: &mut Follower) {
    while let Ok(step) = tokio::time::timeout(Duration::from_millis(200), follower.step()).await {
        step.expect("the stream goes on");
    }
}

#[tokio::test]
async fn timestamps_come_in_order_and_hold_the_stream_near() {
    let world = World::new(|config| config.frames_ahead_bytes_max = 500).await;
    let indexes = [index(1, PartitionBy::DocumentId)];
    world.script.say(WatchMessage::Catalog(catalog(1, &indexes).into()));
    world.script.epoch(1, &Cut::zero(VBUCKETS));
    let mut follower = world.subscribe(INDEXERS[0], None).await.expect("a stream");
    let mut cuts = Vec::new();
    for half in 0..2 {
        for n in 0..100 {
            let id = format!("{half}-{n}");
            world.write(vec![upsert(&id, "{\"n\":1}")]).await.expect("written");
        }
        cuts.push(world.projector().positions(BUCKET).await.expect("positions"));
        until_still(&mut follower).await;
    }
    assert!(follower.at.reaches(&cuts[0]));
    assert!(!follower.at.reaches(&cuts[1]), "it waits for a timestamp");
    world.script.epoch(2, &cuts[0]);
    follower.reach(&cuts[1]).await;
    world.script.epoch(3, &cuts[1]);
    until_still(&mut follower).await;
    assert_eq!(follower.epochs, [1, 2, 3]);
    let mut late = world.subscribe(INDEXERS[1], None).await.expect("a stream");
    until_still(&mut late).await;
    assert_eq!(late.epochs, [3], "who begins now hears of the present only");
}

/// All timestamps come before the frames that they cover, and none comes after them.
#[tokio::test]
async fn a_stream_that_catches_up_needs_no_further_timestamp() {
    let world = World::new(|config| config.frames_ahead_bytes_max = 500).await;
    let indexes = [index(1, PartitionBy::DocumentId)];
    world.script.say(WatchMessage::Catalog(catalog(1, &indexes).into()));
    let mut end = Cut::default();
    for epoch in 1..=3 {
        for n in 0..100 {
            let id = format!("{epoch}-{n}");
            world.write(vec![upsert(&id, "{\"n\":1}")]).await.expect("written");
        }
        end = world.projector().positions(BUCKET).await.expect("positions");
        world.script.epoch(epoch, &end);
    }
    // The projector knows of all of them before the indexer comes.
    let mut now = world.subscribe(INDEXERS[1], None).await.expect("a stream");
    while now.epochs.last() != Some(&3) {
        now.step().await.expect("the stream goes on");
    }
    let from = Some(Cut::zero(VBUCKETS));
    let mut late = world.subscribe(INDEXERS[0], from).await.expect("a stream");
    late.reach(&end).await;
    assert_eq!(late.epochs, [1, 2, 3]);
    // An indexer that comes back has heard of timestamps whose frames it still lacks.
    let from = Some(Cut::zero(VBUCKETS));
    let mut again = world.subscribe_after(INDEXERS[0], from, 3).await.expect("a stream");
    again.reach(&end).await;
    assert!(again.epochs.is_empty());
}

/// A few short documents that are a hundred times as long in an index, from the log, from the head and
/// in a backfill.
#[tokio::test]
async fn messages_are_bounded_by_what_they_hold_and_not_by_the_documents() {
    const MESSAGE_BYTES_MAX: usize = 6 << 20;
    let world = World::new(|config| config.frames_ahead_bytes_max = 1 << 30).await;
    let tags = proto::expr::Expr::Unnest(Box::new(path("tags")));
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
    let entries: usize = follower.contents[&IndexId(1)].values().map(Vec::len).sum();
    assert!(entries > 30 * 200, "{entries}");
    assert!(follower.message_bytes_max < MESSAGE_BYTES_MAX, "{}", follower.message_bytes_max);

    let request = BackfillRequest {
        node: INDEXERS[0],
        index: IndexId(1),
        generation: Generation(0),
        revision: 0,
        vbuckets: None,
    };
    let mut stream = world.projector().backfill(request).await.expect("a backfill");
    let (mut contents, mut ended) = (Contents::new(), false);
    while let Some(message) = stream.next().await {
        match message.expect("the backfill goes on") {
            BackfillMessage::Begin { .. } => {}
            BackfillMessage::Documents(body) => {
                assert!(body.len() < MESSAGE_BYTES_MAX, "{}", body.len());
                for mutation in KeyVersionsReader::new(&body) {
                    let mutation = mutation.expect("well formed");
                    let state = mutation.indexes().next().expect("one index");
                    apply(&mut contents, &mutation, &state);
                }
            }
            BackfillMessage::End => ended = true,
        }
    }
    assert!(ended);
    assert_eq!(contents, follower.contents[&IndexId(1)], "nothing is lost between two messages");
}

/// The head is tiny, so that the stream must go to the log and back again and again.
#[tokio::test]
async fn a_slow_reader_misses_nothing_and_holds_up_nobody() {
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
    assert_eq!(slow.contents[&IndexId(1)].len(), {
        let mine = |n: &u64| {
            let topology = index(1, PartitionBy::DocumentId).topology.clone();
            let key = proto::topology::PartitionKey::Id(&format!("d{n}"));
            let slice = proto::topology::TopologyProvider::partition(&*topology, key);
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
    assert!(follower.joined.contains_key(&IndexId(1)));
    world.script.say(WatchMessage::Catalog(catalog(2, &[one, two.clone()]).into()));
    follower.step().await.expect("it goes on");
    assert!(follower.joined.contains_key(&IndexId(2)));
    world.script.say(WatchMessage::Catalog(catalog(3, &[two]).into()));
    follower.step().await.expect("it goes on");
    assert!(!follower.joined.contains_key(&IndexId(1)));
}

/// As after a start from an older disk, where the producer of a pushed bucket has told nothing of it yet.
#[tokio::test]
async fn a_timestamp_beyond_what_is_here_waits_until_it_is_here() {
    let world = world_with(&[]).await;
    let id = "a";
    let vbucket = vbucket_of(id, VBUCKETS);
    world.write(vec![upsert(id, "1")]).await.expect("written");
    let mut cut = Cut::zero(VBUCKETS);
    let mut follower = world.subscribe(INDEXERS[0], Some(cut.clone())).await.expect("a stream");
    let end = world.projector().positions(BUCKET).await.expect("positions");
    let at = |seqno| Position { seqno: Seqno(seqno), ..end.get(vbucket) };
    world.script.epoch(1, &end);
    cut.set(vbucket, at(2));
    world.script.epoch(2, &cut);
    while follower.epochs.is_empty() {
        follower.step().await.expect("the stream goes on");
    }
    let more = async {
        while follower.epochs == [1] {
            follower.step().await.expect("the stream goes on");
        }
    };
    let more = tokio::time::timeout(Duration::from_millis(100), more).await;
    assert!(more.is_err(), "the second waits for what it covers");
    world.write(vec![upsert(id, "2")]).await.expect("written");
    follower.reach(&cut).await;
    while follower.epochs == [1] {
        follower.step().await.expect("the stream goes on");
    }
    assert_eq!(follower.epochs, [1, 2]);
}

#[tokio::test]
async fn a_dropped_bucket_ends_its_streams_and_an_older_catalog_drops_nothing() {
    let mut world = world_with(&[]).await;
    world.write(vec![upsert("a", "1")]).await.expect("written");
    world
        .script
        .say(WatchMessage::Catalog(proto::index::Catalog { cas: 0, ..Default::default() }.into()));
    world.start().await;
    world.write(vec![upsert("b", "1")]).await.expect("the bucket is there");
    let mut follower = world.subscribe(INDEXERS[0], None).await.expect("a stream");
    follower.step().await.expect("it begins");
    world
        .script
        .say(WatchMessage::Catalog(proto::index::Catalog { cas: 2, ..Default::default() }.into()));
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

fn pushed(id: &str, vbuuid: u64, seqno: u64) -> PushMutation {
    PushMutation {
        vbucket: vbucket_of(id, VBUCKETS),
        position: Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) },
        id: id.into(),
        kind: MutationKind::Upsert,
        document: Bytes::from_static(b"{}"),
    }
}

#[tokio::test]
async fn pushed_mutations_keep_the_producers_positions() {
    let mut world = world_with(&[]).await;
    let push = async |world: &World, mutations| {
        world.projector().push(PushRequest { bucket: PUSHED, branches: vec![], mutations }).await
    };
    let vbucket = vbucket_of("a", VBUCKETS);
    let reply = push(&world, vec![pushed("a", 5, 1), pushed("a", 5, 2)]).await.expect("in order");
    let durable = Position { vbuuid: Vbuuid(5), seqno: Seqno(2) };
    assert_eq!(reply.durable, [(vbucket, durable)]);
    world.start().await;
    for (bad, says) in [
        (pushed("a", 5, 2), "3 is the next"),
        (pushed("a", 5, 4), "leaves a gap, 3 is the next"),
        (pushed("a", 6, 3), "its branch is 5"),
    ] {
        let error = push(&world, vec![bad]).await.expect_err("out of order");
        assert_eq!(error.code, ErrorCode::OutOfOrder);
        assert!(error.message.contains(says), "{error}");
    }
    let error = push(&world, vec![pushed("a", 5, 3), pushed("a", 5, 5)]).await;
    assert_eq!(error.map_err(|error| error.code), Err(ErrorCode::OutOfOrder));
    let kept = world.projector().positions(PUSHED).await.expect("positions").get(vbucket);
    assert_eq!(kept.seqno, Seqno(3), "what came before the bad one is kept");
    let mut wrong = pushed("a", 5, 4);
    wrong.vbucket = VbucketId((vbucket.0 + 1) % VBUCKETS);
    let error = push(&world, vec![wrong]).await.expect_err("a wrong vbucket");
    assert_eq!(error.code, ErrorCode::InvalidParameter);
    let logs = world.projector().history(PUSHED).await.expect("branches").logs;
    assert_eq!(logs.get(vbucket), Some(&vec![(Vbuuid(5), 0)]));
}

#[tokio::test]
async fn a_branch_that_is_begun_a_second_time_takes_nothing_back() {
    let mut world = world_with(&[]).await;
    let vbucket = vbucket_of("a", VBUCKETS);
    let begin = async |world: &World, vbuuid, seqno| {
        let at = Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) };
        let branches = vec![(vbucket, at)];
        let request = PushRequest { bucket: PUSHED, branches, mutations: vec![] };
        world.projector().push(request).await.map(|_| ()).map_err(|error| error.code)
    };
    let push = async |world: &World, vbuuid, seqnos: std::ops::RangeInclusive<u64>| {
        let mutations = seqnos.map(|seqno| pushed("a", vbuuid, seqno)).collect();
        let request = PushRequest { bucket: PUSHED, branches: vec![], mutations };
        world.projector().push(request).await.expect("in order");
    };
    push(&world, 5, 1..=4).await;
    assert_eq!(begin(&world, 6, 3).await, Ok(()));
    // Branch 6 has no mutations and is forgotten with branch 7, and that with branch 8.
    assert_eq!(begin(&world, 7, 3).await, Ok(()));
    assert_eq!(begin(&world, 8, 2).await, Ok(()));
    push(&world, 8, 3..=6).await;
    assert_eq!(begin(&world, 9, 6).await, Ok(()));
    push(&world, 9, 7..=7).await;
    for restart in [false, true] {
        if restart {
            world.start().await;
        }
        let before = world.projector().history(PUSHED).await.expect("a history");
        for (vbuuid, seqno) in [(9, 6), (8, 2), (7, 3), (6, 3), (5, 0)] {
            assert_eq!(begin(&world, vbuuid, seqno).await, Ok(()), "{vbuuid}: said again, late");
            let elsewhere = begin(&world, vbuuid, seqno + 1).await;
            assert_eq!(elsewhere, Err(ErrorCode::InvalidParameter), "{vbuuid} began at {seqno}");
        }
        let at = |vbuuid| (vbucket, Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(7) });
        let branches = vec![at(20), at(21)];
        let twice = PushRequest { bucket: PUSHED, branches, mutations: vec![] };
        let twice = world.projector().push(twice).await.map(|_| ()).map_err(|error| error.code);
        assert_eq!(twice, Err(ErrorCode::InvalidParameter), "a vbucket has one branch at a time");
        let after = world.projector().history(PUSHED).await.expect("a history");
        assert_eq!(after, before, "after a restart: {restart}");
        assert_eq!(after.durable.get(vbucket).seqno, Seqno(7));
    }
}

#[tokio::test]
async fn a_bucket_has_one_kind_of_writer() {
    let world = world_with(&[]).await;
    let request =
        PushRequest { bucket: BUCKET, branches: vec![], mutations: vec![pushed("a", 5, 1)] };
    let error = world.projector().push(request).await.expect_err("an embedded bucket");
    assert_eq!(error.code, ErrorCode::Unsupported);
    let writes = vec![upsert("a", "1")];
    let request = proto::api::WriteRequest { bucket: PUSHED, writes };
    let error = world.projector().write(request).await.expect_err("a pushed bucket");
    assert_eq!(error.code, ErrorCode::Unsupported);
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

/// What an indexer must gather is bounded by the distance of two timestamps, not by how far it is behind.
#[tokio::test]
async fn a_stream_that_catches_up_goes_from_timestamp_to_timestamp() {
    const EPOCHS: u64 = 6;
    /// More than a stride: each is a step of its own.
    const DOCUMENTS: u64 = 20_000;
    let world = World::new(|_| {}).await;
    let indexes = [index(1, PartitionBy::DocumentId)];
    world.script.say(WatchMessage::Catalog(catalog(1, &indexes).into()));
    let mut cuts = Vec::new();
    for epoch in 1..=EPOCHS {
        for batch in 0..DOCUMENTS / 1000 {
            let id = |n| format!("{epoch}-{batch}-{n}");
            let writes = (0..1000).map(|n| upsert(&id(n), "{\"n\":1}")).collect();
            world.write(writes).await.expect("written");
        }
        let cut = world.projector().positions(BUCKET).await.expect("positions");
        // Below the horizon nobody but a reader like this one wants it.
        let (parent, horizon) = (Epoch(epoch - 1), Epoch(epoch));
        let mark = Arc::new(cut.clone());
        world.script.say(WatchMessage::Epochs(vec![EpochMark {
            bucket: BUCKET,
            epoch: Epoch(epoch),
            parent,
            cut: mark,
            horizon,
            points: Arc::default(),
        }]));
        cuts.push(cut);
    }
    let mut now = world.subscribe(INDEXERS[1], None).await.expect("a stream");
    while now.epochs.last() != Some(&EPOCHS) {
        now.step().await.expect("the stream goes on");
    }
    let from = Some(Cut::zero(VBUCKETS));
    let mut late = world.subscribe(INDEXERS[0], from).await.expect("a stream");
    let (end, mut most) = (cuts.last().expect("some"), 0);
    let count = |cut: &Cut| cut.iter().map(|(_, position)| position.seqno.0).sum::<u64>();
    while !late.at.reaches(end) || !late.begun {
        late.step().await.expect("the stream goes on");
        let applied = cuts.iter().take_while(|cut| late.at.reaches(cut)).last();
        most = most.max(count(&late.at) - applied.map_or(0, count));
    }
    assert_eq!(late.epochs, (1..=EPOCHS).collect::<Vec<_>>());
    assert!(most <= DOCUMENTS, "{most} mutations were gathered at once");
}

#[tokio::test]
async fn writers_wait_while_too_much_has_no_timestamp() {
    let world = World::new(|config| config.unpublished_bytes_max = 4 << 10).await;
    world.script.say(WatchMessage::Catalog(catalog(1, &[]).into()));
    let mut written = 0;
    let second = Duration::from_secs(1);
    let blocked = loop {
        let id = format!("d{written}");
        let write = tokio::time::timeout(second, world.write(vec![upsert(&id, "{\"n\":1}")]));
        match write.await {
            Ok(done) => done.map(|_| written += 1).expect("written"),
            Err(_) => break id,
        }
    };
    assert!((10..400).contains(&written), "{written} were written");
    let cut = world.projector().positions(BUCKET).await.expect("positions");
    let write = world.write(vec![delete(&blocked)]);
    let publish = async {
        tokio::time::sleep(second / 10).await;
        world.script.epoch(1, &cut);
    };
    let (write, ()) = tokio::join!(write, publish);
    write.expect("it waits for the timestamp and goes on");
}
