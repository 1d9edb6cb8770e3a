//! Stability timestamps in the streams, and writers that wait for them.

use std::sync::Arc;
use std::time::Duration;

use proto::model::bucket::BucketInfo;
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::*;
use proto::model::index::PartitionBy;
use proto::model::rollback::DeadEpochs;
use proto::rpc::api::{ProjectorApi, WatchMessage};

use crate::common::*;

/// Handles messages until this many timestamps have arrived.
async fn until_epochs(follower: &mut Follower, count: usize) {
    while follower.epochs.len() < count {
        follower.step().await.expect("the stream goes on");
    }
}

/// Handles messages until none arrives for a while.
async fn until_still(follower: &mut Follower) {
    while let Ok(step) = tokio::time::timeout(Duration::from_millis(200), follower.step()).await {
        step.expect("the stream goes on");
    }
}

#[tokio::test]
async fn timestamps_come_in_order_and_bound_the_frames_ahead() {
    let world = World::new(|config| config.frames_ahead_bytes_max = 500).await;
    let indexes = [index(1, PartitionBy::DocumentId)];
    world.script.say(WatchMessage::Catalog(catalog(1, &indexes).into()));
    world.script.epoch(1, &Cut::zero(VBUCKETS));
    let mut follower = world.subscribe(INDEXERS[0], None).await.expect("a stream");
    let mut cuts = Vec::new();
    for half in 0..2 {
        // One statement, so that the stream reads all of it before it checks its bound.
        let ids = (0..100).map(|n| format!("{half}-{n}"));
        let writes = ids.map(|id| upsert(&id, "{\"n\":1}")).collect();
        world.write(writes).await.expect("written");
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
    assert_eq!(late.epochs, [3], "a new stream gets the newest timestamp only");
}

/// All timestamps are sent before the frames that they cover, and none afterwards.
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
    // The projector receives all timestamps before the indexer subscribes.
    let mut now = world.subscribe(INDEXERS[1], None).await.expect("a stream");
    while now.epochs.last() != Some(&3) {
        now.step().await.expect("the stream goes on");
    }
    let from = Some(Cut::zero(VBUCKETS));
    let mut late = world.subscribe(INDEXERS[0], from).await.expect("a stream");
    late.reach(&end).await;
    assert_eq!(late.epochs, [1, 2, 3]);
    // A restarted indexer knows timestamps whose frames it still lacks.
    let from = Some(Cut::zero(VBUCKETS));
    let mut again = world.subscribe_after(INDEXERS[0], from, 3).await.expect("a stream");
    again.reach(&end).await;
    assert!(again.epochs.is_empty());
}

/// The data that an indexer must collect is bounded by the distance between two timestamps, not by
/// its lag.
#[tokio::test]
async fn a_stream_that_catches_up_goes_from_timestamp_to_timestamp() {
    const EPOCHS: u64 = 6;
    /// The number of documents, more than a stride, so that each timestamp is a separate step.
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
        // Below the horizon only a reader like this one needs the timestamp.
        let mark = EpochMark { horizon: Epoch(epoch), ..mark(epoch, epoch - 1, &cut) };
        world.script.say(WatchMessage::Epochs(vec![mark]));
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

/// The projector has started from an older disk, and the producer of the pushed bucket has not
/// reported yet.
#[tokio::test]
async fn a_timestamp_beyond_the_durable_history_waits() {
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
    until_epochs(&mut follower, 1).await;
    let more = until_epochs(&mut follower, 2);
    let more = tokio::time::timeout(Duration::from_millis(100), more).await;
    assert!(more.is_err(), "the second waits for what it covers");
    world.write(vec![upsert(id, "2")]).await.expect("written");
    follower.reach(&cut).await;
    until_epochs(&mut follower, 2).await;
    assert_eq!(follower.epochs, [1, 2]);
}

/// The timestamp after the rollback never arrives here, because it was dropped meanwhile.
#[tokio::test]
async fn timestamps_that_a_rollback_has_undone_block_no_stream() {
    let world = world_with(&[]).await;
    let id = "a";
    let vbucket = vbucket_of(id, VBUCKETS);
    world.write(vec![upsert(id, "1")]).await.expect("written");
    let end = world.projector().positions(BUCKET).await.expect("positions");
    world.script.epoch(1, &end);
    let mut undone = end.clone();
    undone.set(vbucket, Position { seqno: Seqno(9), vbuuid: Vbuuid(77) });
    world.script.epoch(2, &undone);
    world.script.epoch(3, &undone);
    let mut follower =
        world.subscribe(INDEXERS[0], Some(Cut::zero(VBUCKETS))).await.expect("a stream");
    until_epochs(&mut follower, 1).await;
    let mut after = catalog(2, &[]);
    let mut bucket = BucketInfo::clone(&after.buckets[&BUCKET]);
    bucket.dead = Arc::new(vec![DeadEpochs { point: Some(mark(1, 0, &end)), to: Epoch(3) }]);
    after.buckets.insert(BUCKET, Arc::new(bucket));
    world.script.say(WatchMessage::Catalog(after.into()));
    world.script.say(WatchMessage::Epochs(vec![mark(5, 4, &end)]));
    tokio::time::timeout(Duration::from_secs(5), until_epochs(&mut follower, 2))
        .await
        .expect("no undone timestamp is waited for");
    assert_eq!(follower.epochs, [1, 5]);
}

#[tokio::test]
async fn writers_wait_while_too_many_mutations_have_no_timestamp() {
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
