//! Tests that epochs of a pushed bucket wait for a commit with a missing part, and that the wait
//! ends: over two projectors, with losses, branches and full queues.

use std::time::Duration;

use projector::Config;
use proto::ErrorCode;
use proto::model::cut::Position;
use proto::model::ids::*;
use proto::model::pushed_commit::PushedCommit;
use proto::rpc::api::*;
use tokio::time::timeout;

use crate::common::until;
use crate::hand_over::{BRANCH, Pair};
use crate::pushed_transactions::*;
use crate::transactions::code;

/// Returns a commit with a mutation of vbucket 0 and one of vbucket 1, which follows a stored one.
/// The first owner has vbuckets 0 and 2, the other one 1 and 3.
async fn begun(pair: &Pair) -> PushedCommit {
    let of = Producer(pair.source());
    let all = [inside(0, 1..=1, "a"), inside(1, 1..=1, "a")].concat();
    until("both know the bucket", async || of.push_in(7, all.clone()).await.ok()).await;
    of.push(plain(1, 1..=1)).await.expect("pushed");
    let commit = commit_of(7, &[(0, 0, 1), (1, 1, 1)]);
    producer(&pair.first).commit_in(&commit, vbuckets(&[0])).await.expect("committed");
    commit
}

async fn branch(pair: &Pair, vbuuid: u64, after: u64) {
    let begun = Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(after) };
    let branches = vec![(VbucketId(1), begun)];
    let request = PushRequest { bucket: PUSHED_BUCKET, branches, mutations: vec![] };
    pair.source().push(request).await.expect("a branch");
}

#[tokio::test]
async fn documents_of_an_epoch_are_read_at_each_owner() {
    let pair = Pair::new().await;
    let of = Producer(pair.source());
    let first = [plain(0, 1..=1), plain(1, 1..=1)].concat();
    until("both know the bucket", async || of.push(first.clone()).await.ok()).await;
    let at = |seqno| Position { vbuuid: Vbuuid(BRANCH), seqno: Seqno(seqno) };
    for world in [&pair.first, &pair.other] {
        say_epoch_at(world, 1, [at(1), at(1), Position::default(), Position::default()]);
    }
    of.push([plain(0, 2..=2), plain(1, 2..=2)].concat()).await.expect("pushed");
    let ids = [id(0, 1001), id(0, 1002), id(1, 1001), id(1, 1002)].to_vec();
    let request =
        DocumentsRequest { bucket: PUSHED_BUCKET, ids, snapshot: Some(Epoch(1)), own: None };
    let documents = pair.source().get_for_transaction(request).await.expect("both are read");
    let found: Vec<bool> = documents.iter().map(Option::is_some).collect();
    assert_eq!(found, [true, false, true, false]);
}

async fn is_listed(pair: &Pair) -> bool {
    let listed = producer(&pair.first).listed().await;
    listed.iter().any(|one| one.owner.contains("committed"))
}

#[tokio::test]
async fn lost_part_blocks_no_reader() {
    // The branch of the part has ended before it, or nothing is left of it.
    for after in [1, 0] {
        let pair = Pair::new().await;
        begun(&pair).await;
        let of = Producer(pair.source());
        assert!(of.waits(0, 1).await);
        branch(&pair, 99, after).await;
        until("the owner is told", async || (!is_listed(&pair).await).then_some(())).await;
        assert_eq!(of.text(0, 1).await.as_deref(), Some("a"), "branch after {after}");
    }
}

#[tokio::test]
async fn a_part_whose_branch_has_not_begun_is_waited_for_and_an_epoch_on_another_branch_has_it_not()
{
    let pair = Pair::new().await;
    let of = Producer(pair.source());
    let elsewhere = |seqno| mutation((1, 1000 + seqno), seqno, 9, "plain");
    until("both know the bucket", async || of.push((1..=3).map(elsewhere).collect()).await.ok())
        .await;
    of.push_in(7, inside(0, 1..=1, "a")).await.expect("kept");
    let commit = commit_of(7, &[(0, 0, 1), (1, 1, 1)]);
    producer(&pair.first).commit_in(&commit, vbuckets(&[0])).await.expect("committed");
    let at = |vbuuid, seqno| Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) };
    say_epoch_at(&pair.first, 1, [at(BRANCH, 1), at(9, 3), at(0, 0), at(0, 0)]);
    tokio::time::sleep(Duration::from_millis(1_800)).await;
    assert!(is_listed(&pair).await && of.waits(0, 1).await, "the epoch has a part only");
    let refused = producer(&pair.other).commit_in(&commit, vbuckets(&[1])).await;
    assert_eq!(code(refused), Err(ErrorCode::OutOfOrder), "another branch has its seqnos");
    branch(&pair, BRANCH, 1).await;
    of.push_in(7, inside(1, 1..=1, "a")).await.expect("kept");
    of.commit(&commit).await.expect("completed");
    until("the owner is told", async || (!of.waits(0, 1).await).then_some(())).await;
    say_epoch_at(&pair.first, 2, [at(BRANCH, 1), at(BRANCH, 2), at(0, 0), at(0, 0)]);
    until("an epoch has it", async || (!is_listed(&pair).await).then_some(())).await;
}

#[tokio::test]
async fn an_owner_learns_that_the_last_part_is_durable_without_its_producer() {
    let pair = Pair::new().await;
    let commit = begun(&pair).await;
    let of = Producer(pair.source());
    assert!(of.waits(0, 1).await);
    producer(&pair.other).commit_in(&commit, vbuckets(&[1])).await.expect("committed");
    until("the owner is told", async || (!of.waits(0, 1).await).then_some(())).await;
    assert!(is_listed(&pair).await, "no epoch has it");
}

#[tokio::test]
async fn owner_without_a_part_has_no_open_commit() {
    let mut pair = Pair::new().await;
    begun(&pair).await;
    let transfer = pair.hand_over().await;
    assert!(is_listed(&pair).await, "the next owner does not have it yet");
    pair.finish(transfer);
    until("it is gone", async || (!is_listed(&pair).await).then_some(())).await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let known = || vec![KnownPlace { bucket: PUSHED_BUCKET, fingerprint: 0 }];
    let place = producer(&pair.first).0.places(known()).await.expect("places");
    assert_eq!(place.unanswered, []);
    let other = producer(&pair.other).0.places(known()).await.expect("places");
    assert_eq!(other.unanswered, [PUSHED_BUCKET], "it is late at the next owner");
}

/// Returns true if a call waits for room.
async fn is_held_up<T>(call: impl Future<Output = proto::Result<T>>) -> bool {
    timeout(Duration::from_millis(300), call).await.is_err()
}

/// Starts two owners, of which the second has as many mutations without an epoch as it accepts.
async fn full_pair() -> (Pair, PushedCommit) {
    let pair = Pair::with(|config| config.unpublished_bytes_max = 4_000).await;
    let commit = begun(&pair).await;
    let other = producer(&pair.other);
    other.push(plain(3, 1..=40)).await.expect("pushed");
    (pair, commit)
}

#[tokio::test]
async fn only_awaited_mutations_exceed_the_limit() {
    let (pair, commit) = full_pair().await;
    let other = producer(&pair.other);
    assert!(is_held_up(other.push(plain(3, 41..=41))).await);
    assert_eq!(other.commit_in(&commit, vbuckets(&[1])).await, Ok(vec![(1, 2)]));
    assert!(is_held_up(other.push(plain(1, 3..=3))).await, "it is there");
    // Another begun transaction may be completed; a transaction of a single vbucket waits though a commit is open.
    other.push_in(8, inside(3, 1..=1, "a")).await.expect("kept");
    assert!(is_held_up(other.commit(&commit_of(8, &[(3, 40, 1)]))).await);
    assert_eq!(other.commit_in(&commit, vbuckets(&[1])).await, Ok(vec![(1, 2)]), "again");
}

#[tokio::test]
async fn mutations_up_to_an_awaited_part_exceed_the_limit() {
    let (pair, _) = full_pair().await;
    let other = producer(&pair.other);
    assert!(is_held_up(other.push(plain(3, 41..=41))).await);
    other.push(plain(1, 2..=2)).await.expect("the part comes as a plain mutation");
    assert!(is_held_up(other.push(plain(1, 3..=3))).await);
}

#[tokio::test]
async fn new_branch_is_accepted_above_the_limit() {
    let (pair, _) = full_pair().await;
    assert!(is_held_up(producer(&pair.other).push(plain(3, 41..=41))).await);
    branch(&pair, 99, 1).await;
    until("the owner is told", async || (!is_listed(&pair).await).then_some(())).await;
}

#[tokio::test]
async fn commit_begins_only_if_all_owners_have_capacity() {
    let (pair, _) = full_pair().await;
    let of = Producer(pair.source());
    of.push_in(9, [inside(2, 1..=1, "a"), inside(3, 1..=1, "a")].concat()).await.expect("kept");
    let commit = commit_of(9, &[(2, 0, 1), (3, 40, 1)]);
    assert!(is_held_up(of.commit(&commit)).await);
    assert_eq!(of.ends().await, [1, 1, 0, 40]);
    say_epoch(&pair.first, 1, [0, 0, 0, 40]);
    let committed = until("an epoch makes room", async || of.commit(&commit).await.ok()).await;
    assert_eq!(committed, [(2, 1), (3, 41)]);
    assert_eq!(code(of.abort(9).await), Err(ErrorCode::TransactionState));
}

#[tokio::test]
async fn a_commit_that_another_owner_waits_for_finds_room_among_open_commits() {
    let pair = Pair::new().await;
    let commit = begun(&pair).await;
    let other = producer(&pair.other);
    let most = proto::model::pushed_commit::OPEN_MAX as u64;
    let next = async |n: u64| {
        other.push_in(n, inside(3, 1..=1, "a")).await.expect("kept");
        let of = commit_of(n, &[(2, 1_000 + n, 1), (3, n - 10, 1)]);
        other.commit_in(&of, vbuckets(&[3])).await
    };
    for n in 10..10 + most {
        next(n).await.expect("committed");
    }
    assert_eq!(code(next(10 + most).await), Err(ErrorCode::TooBusy));
    let completed = async || other.commit_in(&commit, vbuckets(&[1])).await.ok();
    assert_eq!(until("it is awaited", completed).await, [(1, 2)]);
}

/// The first owner has a stored part and a missing one. The part of the other owner is lost, and is committed again at a position that was
/// not queried.
#[tokio::test]
async fn a_commit_made_anew_finds_room_at_an_owner_whose_part_was_lost() {
    let pair = Pair::with(|config| config.unpublished_bytes_max = 4_000).await;
    let (of, other) = (Producer(pair.source()), producer(&pair.other));
    let all = [inside(0, 1..=1, "a"), inside(1, 1..=1, "a"), inside(2, 1..=1, "a")].concat();
    until("both know the bucket", async || of.push_in(7, all.clone()).await.ok()).await;
    other.push(plain(1, 1..=1)).await.expect("pushed");
    let commit = commit_of(7, &[(0, 0, 1), (1, 1, 1), (2, 0, 1)]);
    producer(&pair.first).commit_in(&commit, vbuckets(&[0])).await.expect("committed");
    branch(&pair, 99, 1).await;
    other.push(vec![mutation((1, 1_002), 2, 99, "plain")]).await.expect("pushed");
    let waits_for_rest = async || {
        let listed = producer(&pair.first).listed().await;
        listed.iter().any(|one| one.owner.contains("vbucket 2")).then_some(())
    };
    until("the first owner knows that the part is lost", waits_for_rest).await;
    other.push(plain(3, 1..=40)).await.expect("pushed");
    assert!(is_held_up(other.push(plain(3, 41..=41))).await);
    let mut anew = commit.clone();
    anew.parts[1].after = Seqno(2);
    anew.parts[1].end = Position { vbuuid: Vbuuid(99), seqno: Seqno(3) };
    assert_eq!(other.commit_in(&anew, vbuckets(&[1])).await, Ok(vec![(1, 3)]));
}

#[tokio::test]
async fn missing_part_exceeds_the_transaction_limit() {
    // Too many transactions, or too large ones.
    for (transactions_max, bytes) in [(3, 1 << 20), (1_000, 2_000)] {
        let limits = |config: &mut Config| {
            config.transactions_max = transactions_max;
            config.set_transactions_bytes(bytes);
        };
        let pair = Pair::with(limits).await;
        let commit = begun(&pair).await;
        let other = producer(&pair.other);
        // As after a restart.
        other.abort(7).await.expect("gone");
        let mut n = 10;
        while other.push_in(n, inside(3, 1..=1, "a")).await.is_ok() {
            n += 1;
        }
        let pushed = async || other.push_in(7, inside(1, 1..=1, "a")).await.ok();
        until("it is awaited", pushed).await;
        assert_eq!(other.commit_in(&commit, vbuckets(&[1])).await, Ok(vec![(1, 2)]));
        assert_eq!(code(other.push_in(8, inside(3, 1..=1, "a")).await), Err(ErrorCode::TooBusy));
    }
}

#[tokio::test]
async fn each_owner_takes_over_the_new_positions_of_a_commit() {
    let pair = Pair::new().await;
    begun(&pair).await;
    let of = Producer(pair.source());
    of.push(plain(1, 2..=2)).await.expect("pushed");
    let anew = commit_of(7, &[(0, 0, 1), (1, 2, 1)]);
    of.commit(&anew).await.expect("committed");
    for owner in [&pair.first, &pair.other] {
        let known = vec![KnownPlace { bucket: PUSHED_BUCKET, fingerprint: 0 }];
        let places = producer(owner).0.places(known).await.expect("places");
        let named: Vec<_> = places.changed.iter().flat_map(|(_, of)| of.pushed()).collect();
        assert_eq!(named, [&anew]);
    }
}
