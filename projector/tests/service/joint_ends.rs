//! Ends of joint commits in buckets whose partners are dropped, silent, late or ahead.

use std::time::Duration;

use proto::Result;
use proto::model::cut::EpochMark;
use proto::model::ids::*;
use proto::rpc::api::*;
use tokio::time::{Instant, sleep, timeout};

use crate::common::*;
use crate::joint_commits::*;
use crate::transactions::text;

const THIRD: BucketId = BucketId(12);
const FOURTH: BucketId = BucketId(15);
const AWAY: NodeId = NodeId(2);

/// Returns the part of a transaction that has written document `a` in a bucket.
async fn part(world: &World, n: u64, bucket: BucketId, participants: &[BucketId]) -> Part {
    Part::written(world, n, bucket, vec![upsert("a", "1")]).await.over(participants)
}

async fn decide_in(
    world: &World,
    bucket: BucketId,
    n: u64,
    participants: &[BucketId],
) -> Result<WriteReply> {
    let decision = Decision::Commit { participants: participants.to_vec() };
    world.projector().end_prepared_transaction(bucket, TransactionId(n), decision).await
}

/// Waits until a transaction is no longer prepared in a bucket; returns its fate.
async fn ends_in(world: &World, bucket: BucketId, n: u64) -> TransactionState {
    let wait = async {
        loop {
            match fate(world, bucket, n).await {
                TransactionState::Prepared => sleep(Duration::from_millis(10)).await,
                fate => return fate,
            }
        }
    };
    timeout(Duration::from_secs(15), wait).await.expect("it ends by itself")
}

#[tokio::test]
async fn if_the_deciding_bucket_was_dropped_a_commit_in_any_other_one_counts() {
    let world = World::new(|_| {}).await;
    let all = [BUCKET, OTHER, THIRD, FOURTH];
    say_buckets_on(&world, 1, &all.map(|bucket| (bucket, PROJECTOR)));
    for bucket in [THIRD, FOURTH] {
        part(&world, 1, bucket, &all).await.prepare(&world).await.expect("prepared");
    }
    // The session has informed one bucket before it ended. Another one does not know the transaction any more.
    decide_in(&world, FOURTH, 1, &all).await.expect("finished");
    say_buckets_on(&world, 2, &[OTHER, THIRD, FOURTH].map(|bucket| (bucket, PROJECTOR)));
    let ended = ends_in(&world, THIRD, 1).await;
    assert!(matches!(ended, TransactionState::Committed { .. }), "{ended:?}");
    assert_eq!(document(&world, THIRD, "a").await, text("1"));
}

#[tokio::test]
async fn if_the_deciding_bucket_was_dropped_and_one_has_not_prepared_nothing_is_committed() {
    let world = World::new(|_| {}).await;
    let all = [BUCKET, OTHER, THIRD];
    say_buckets_on(&world, 1, &all.map(|bucket| (bucket, PROJECTOR)));
    part(&world, 1, OTHER, &all).await.prepare(&world).await.expect("prepared");
    say_buckets_on(&world, 2, &[OTHER, THIRD].map(|bucket| (bucket, PROJECTOR)));
    assert_eq!(ends_in(&world, OTHER, 1).await, TransactionState::Unknown);
    assert_eq!(document(&world, OTHER, "a").await, None);
}

#[tokio::test]
async fn a_bucket_that_the_catalog_does_not_have_yet_counts_as_silent_and_not_as_dropped() {
    let world = World::new(|_| {}).await;
    let all = [BUCKET, OTHER, THIRD];
    say_buckets_on(&world, 1, &[BUCKET, OTHER].map(|bucket| (bucket, PROJECTOR)));
    // The session has a newer catalog, and the third bucket decides.
    let decider_is_young = [THIRD, OTHER];
    part(&world, 1, OTHER, &decider_is_young).await.prepare(&world).await.expect("prepared");
    sleep(Duration::from_millis(2_000)).await;
    assert_eq!(fate(&world, OTHER, 1).await, TransactionState::Prepared, "nobody knows its end");
    say_buckets_on(&world, 2, &all.map(|bucket| (bucket, PROJECTOR)));
    assert_eq!(ends_in(&world, OTHER, 1).await, TransactionState::Unknown, "the third one says no");
}

#[tokio::test]
async fn the_places_of_all_buckets_do_not_wait_for_one_with_a_late_prepared_transaction() {
    let world = World::new(|_| {}).await;
    say_buckets_on(&world, 1, &[(BUCKET, AWAY), (OTHER, PROJECTOR), (THIRD, PROJECTOR)]);
    world.script.cuts.lock().unwrap().insert((PROJECTOR, AWAY));
    part(&world, 1, OTHER, &BOTH).await.prepare(&world).await.expect("prepared");
    write(&world, THIRD, "a", "1").await.expect("written");
    sleep(Duration::from_millis(1_100)).await;
    let known = [OTHER, THIRD].map(|bucket| KnownPlace { bucket, fingerprint: 0 });
    let began = Instant::now();
    for _ in 0..20 {
        let places = world.projector().places(known.to_vec()).await.expect("an answer");
        assert_eq!(places.unanswered, [OTHER]);
        assert!(places.changed.iter().any(|(_, report)| report.bucket == THIRD));
    }
    // Each answer that waits for the prepared transaction takes a quarter of a second.
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_commit_that_an_epoch_of_the_other_bucket_has_waits_for_that_bucket_no_longer() {
    let world = two_buckets().await;
    let (one, other) = begun(&world, 1, "a", "1").await;
    other.prepare(&world).await.expect("prepared");
    one.commit(&world).await.expect("decided");
    decide(&world, 1, committed()).await.expect("finished");
    let cut = has_open(&world, OTHER, 1).await.cut;
    let mark = EpochMark { bucket: OTHER, ..mark(2, 1, &cut) };
    world.script.say(WatchMessage::Epochs(vec![mark]));
    has_open(&world, OTHER, 0).await;
    assert_eq!(others(&has_open(&world, BUCKET, 1).await), [OTHER]);
    let wait = async {
        while !others(&report(&world, BUCKET)).is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(10), wait).await.expect("it is not named any more");
    sleep(Duration::from_millis(600)).await;
    assert!(world.script.halved.lock().unwrap().is_empty(), "nothing is lost");
}

#[tokio::test]
async fn buckets_that_never_answer_do_not_hold_up_the_end_of_other_transactions() {
    let world = World::new(|_| {}).await;
    let silent: Vec<_> = (20..30).map(BucketId).collect();
    let here = [(OTHER, PROJECTOR), (FOURTH, PROJECTOR)];
    let away = silent.iter().map(|bucket| (*bucket, AWAY));
    say_buckets_on(&world, 1, &here.into_iter().chain(away).collect::<Vec<_>>());
    let beside = World::beside(&world, AWAY).await;
    world.script.hung.lock().unwrap().insert(AWAY);
    for n in 0..96 {
        let decider = silent[n as usize % silent.len()];
        let writes = vec![upsert(&format!("d{n}"), "1")];
        let part = Part::written(&world, n + 1, OTHER, writes).await.over(&[decider, OTHER]);
        part.prepare(&world).await.expect("prepared");
    }
    // The last one has a deciding bucket that answers.
    let both = [FOURTH, OTHER];
    let decides = part(&world, 99, FOURTH, &both).await;
    part(&world, 99, OTHER, &both).await.prepare(&world).await.expect("prepared");
    decides.commit(&world).await.expect("decided");
    let began = Instant::now();
    let ended = ends_in(&world, OTHER, 99).await;
    assert!(matches!(ended, TransactionState::Committed { .. }), "{ended:?}");
    // One second until it is checked, and two rounds of two seconds for the silent ones, which are queried in parallel and once in each.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(fate(&world, OTHER, 1).await, TransactionState::Prepared);
    drop(beside);
}

#[tokio::test]
async fn new_joint_commits_pause_while_an_old_one_waits_for_its_epoch() {
    let world = two_buckets().await;
    let open = async |n: u64| {
        let id = format!("d{n}");
        let part = Part::written(&world, n, OTHER, vec![upsert(&id, "1")]).await;
        let began = Instant::now();
        part.prepare(&world).await.expect("prepared");
        let paused = began.elapsed();
        decide(&world, n, committed()).await.expect("finished");
        paused
    };
    assert!(open(1).await < Duration::from_millis(200), "nothing is open");
    sleep(Duration::from_millis(300)).await;
    let paused = open(2).await;
    assert!(paused > Duration::from_millis(900), "no epoch came for {paused:?}");
    assert!(paused < Duration::from_secs(3), "nor is it waited for in vain: {paused:?}");
    // An epoch ends the pause.
    sleep(Duration::from_millis(300)).await;
    let cut = has_open(&world, OTHER, 2).await.cut;
    let epoch = async {
        sleep(Duration::from_millis(100)).await;
        world
            .script
            .say(WatchMessage::Epochs(vec![EpochMark { bucket: OTHER, ..mark(2, 1, &cut) }]));
    };
    let (paused, ()) = tokio::join!(open(3), epoch);
    assert!(paused < Duration::from_millis(700), "{paused:?}");
    assert!(paused > Duration::from_millis(50), "{paused:?}");
}

#[tokio::test]
async fn prepared_and_open_commits_are_counted_with_the_age_of_the_oldest() {
    let world = two_buckets().await;
    let figures = |world: &World| {
        let figures = world.projector().status().transactions;
        (figures.prepared, figures.joint_open, figures.joint_oldest_age_ms)
    };
    let (one, other) = begun(&world, 1, "a", "1").await;
    assert_eq!(figures(&world), (0, 0, 0));
    other.prepare(&world).await.expect("prepared");
    sleep(Duration::from_millis(60)).await;
    let (prepared, open, age_ms) = figures(&world);
    assert_eq!((prepared, open), (1, 0));
    assert!((50..5_000).contains(&age_ms), "{age_ms} ms");
    one.commit(&world).await.expect("decided");
    decide(&world, 1, committed()).await.expect("finished");
    let (prepared, open, _) = figures(&world);
    assert_eq!((prepared, open), (0, 2), "once in each bucket");
    let mut marks = Vec::new();
    for bucket in BOTH {
        let cut = has_open(&world, bucket, 1).await.cut;
        marks.push(EpochMark { bucket, ..mark(2, 1, &cut) });
    }
    world.script.say(WatchMessage::Epochs(marks));
    for bucket in BOTH {
        has_open(&world, bucket, 0).await;
    }
    assert_eq!(figures(&world), (0, 0, 0));
}

#[tokio::test]
async fn committed_bucket_informs_a_prepared_one() {
    let world = World::new(|_| {}).await;
    say_buckets_on(&world, 1, &[(BUCKET, PROJECTOR), (OTHER, AWAY)]);
    let beside = World::beside(&world, AWAY).await;
    // The other projector cannot call, but can be called.
    world.script.cuts.lock().unwrap().insert((AWAY, PROJECTOR));
    part(&beside, 1, OTHER, &BOTH).await.prepare(&beside).await.expect("prepared");
    part(&world, 1, BUCKET, &BOTH).await.commit(&world).await.expect("decided");
    let ended = ends_in(&beside, OTHER, 1).await;
    assert!(matches!(ended, TransactionState::Committed { .. }), "{ended:?}");
}
