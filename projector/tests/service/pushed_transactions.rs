//! Tests transactions of the producer of a pushed bucket: stored separately, committed at the
//! positions that the producer names, and visible to readers as a whole.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::model::assignment::VbucketSet;
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::*;
use proto::model::index::{IndexInfo, PartitionBy};
use proto::model::pushed_commit::{OPEN_MAX, PushedCommit, PushedPart};
use proto::rpc::api::*;
use proto::rpc::mutation::{MutationKind, SubscribeRequest};
use proto::{ErrorCode, Result};
use tokio::time::timeout;

use crate::common::*;
use crate::hand_over::{BRANCH, OTHER, Pair};
use crate::transactions::code;

/// The id of the pushed bucket.
pub const PUSHED_BUCKET: BucketId = PUSHED;

/// Returns a mutation of a vbucket that sets its n-th document to a text.
pub fn mutation((vbucket, n): (u16, u64), seqno: u64, vbuuid: u64, text: &str) -> PushMutation {
    let is_in = |id: &String| vbucket_of(id, VBUCKETS) == VbucketId(vbucket);
    let id = (0..).map(|k| format!("{n}-{k}")).find(is_in).expect("one of them");
    PushMutation {
        vbucket: VbucketId(vbucket),
        position: Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) },
        id,
        kind: MutationKind::Upsert,
        document: Bytes::from(format!("{{\"n\":\"{text}\"}}")),
    }
}

/// Returns the id of the n-th document of a vbucket.
pub fn id(vbucket: u16, n: u64) -> String {
    mutation((vbucket, n), 1, 0, "").id
}

/// Returns mutations of a vbucket outside of transactions, each of a different document.
pub fn plain(vbucket: u16, seqnos: RangeInclusive<u64>) -> Vec<PushMutation> {
    seqnos.map(|seqno| mutation((vbucket, 1000 + seqno), seqno, BRANCH, "plain")).collect()
}

/// Returns mutations of a transaction in a vbucket, at these positions in the transaction.
pub fn inside(vbucket: u16, positions: RangeInclusive<u64>, text: &str) -> Vec<PushMutation> {
    positions.map(|position| mutation((vbucket, position), position, 0, text)).collect()
}

/// Returns the commit of a transaction. A part is the vbucket, the seqno before it, and the number
/// of its mutations.
pub fn commit_of(transaction: u64, parts: &[(u16, u64, u64)]) -> PushedCommit {
    let part = |(vbucket, after, mutations): &(u16, u64, u64)| PushedPart {
        vbucket: VbucketId(*vbucket),
        after: Seqno(*after),
        end: Position { vbuuid: Vbuuid(BRANCH), seqno: Seqno(after + mutations) },
    };
    let parts = parts.iter().map(part).collect();
    PushedCommit::new(ProducerTransactionId(transaction), parts).expect("a commit")
}

/// A producer of the pushed bucket.
pub struct Producer(pub Arc<dyn ProjectorApi>);

impl Producer {
    pub async fn push(&self, mutations: Vec<PushMutation>) -> Result<PushReply> {
        self.0.push(PushRequest { bucket: PUSHED, branches: vec![], mutations }).await
    }

    pub async fn push_in(
        &self,
        transaction: u64,
        mutations: Vec<PushMutation>,
    ) -> Result<Vec<(u16, u64)>> {
        let (transaction, owner) = (ProducerTransactionId(transaction), "a test".to_owned());
        let request = TransactionPush { bucket: PUSHED, transaction, owner, mutations };
        let kept = self.0.push_for_transaction(request).await?.kept.into_iter();
        Ok(kept.map(|(vbucket, count)| (vbucket.0, count)).collect())
    }

    /// Commits the parts in all vbuckets; returns the seqno of the end of each vbucket.
    pub async fn commit(&self, commit: &PushedCommit) -> Result<Vec<(u16, u64)>> {
        self.commit_in(commit, commit.parts.iter().map(|part| part.vbucket).collect()).await
    }

    /// Commits the parts in some vbuckets; returns the seqno of the end of each vbucket.
    pub async fn commit_in(
        &self,
        commit: &PushedCommit,
        wanted: VbucketSet,
    ) -> Result<Vec<(u16, u64)>> {
        let (commit, step) = (commit.clone(), PushedStep::Commit);
        let request = PushedCommitRequest { bucket: PUSHED, commit, wanted, step };
        let durable = self.0.commit_pushed(request).await?.durable.into_iter();
        Ok(durable.map(|(vbucket, end)| (vbucket.0, end.seqno.0)).collect())
    }

    pub async fn abort(&self, transaction: u64) -> Result<()> {
        self.0.abort_pushed(PUSHED, ProducerTransactionId(transaction)).await
    }

    /// Returns the text of a document; `None` if the document is absent.
    pub async fn text(&self, vbucket: u16, n: u64) -> Option<String> {
        let found = self.0.get(PUSHED, vec![id(vbucket, n)]).await.expect("it is read").remove(0);
        found.map(|document| String::from_utf8_lossy(&document[6..document.len() - 2]).into_owned())
    }

    /// Returns true if a reader of a document waits.
    pub async fn waits(&self, vbucket: u16, n: u64) -> bool {
        timeout(Duration::from_millis(200), self.text(vbucket, n)).await.is_err()
    }

    /// Informs all owners that a commit is complete.
    async fn complete(&self, commit: &PushedCommit) {
        let (wanted, step) = (VbucketSet::all(VBUCKETS), PushedStep::Complete);
        let request = PushedCommitRequest { bucket: PUSHED, commit: commit.clone(), wanted, step };
        self.0.commit_pushed(request).await.expect("told");
    }

    pub async fn ends(&self) -> Vec<u64> {
        let place = until("a place", async || self.0.place(PUSHED).await.ok()).await;
        place.durable.iter().map(|(_, position)| position.seqno.0).collect()
    }

    /// Returns the transactions that SHOW TRANSACTIONS lists.
    pub async fn listed(&self) -> Vec<TransactionStatus> {
        self.0.transactions().await.expect("a list")
    }
}

pub fn producer(world: &World) -> Producer {
    Producer(world.projector())
}

pub fn vbuckets(numbers: &[u16]) -> VbucketSet {
    numbers.iter().copied().map(VbucketId).collect()
}

/// Waits until SYNC reports exactly these open commits; returns the report.
async fn named(world: &World, commits: &[&PushedCommit]) -> BucketReport {
    until("SYNC names the commits", async || {
        let report = world.script.synced.lock().unwrap().get(&PUSHED).cloned()?;
        (report.pushed() == commits).then_some(report)
    })
    .await
}

pub fn say_epoch(world: &World, epoch: u64, seqnos: [u64; 4]) {
    let at = |seqno| Position {
        vbuuid: Vbuuid(if seqno == 0 { 0 } else { BRANCH }),
        seqno: Seqno(seqno),
    };
    say_epoch_at(world, epoch, seqnos.map(at));
}

pub fn say_epoch_at(world: &World, epoch: u64, positions: [Position; 4]) {
    world.script.say(WatchMessage::Epochs(vec![EpochMark {
        bucket: PUSHED,
        epoch: Epoch(epoch),
        parent: Epoch(epoch - 1),
        cut: Arc::new(Cut::from_positions(positions.to_vec())),
        horizon: Epoch(0),
        points: Arc::default(),
    }]));
}

#[tokio::test]
async fn a_transaction_is_there_with_its_commit_at_the_positions_that_the_producer_names() {
    let mut world = world_with(&[]).await;
    let of = producer(&world);
    of.push(plain(0, 1..=2)).await.expect("pushed");
    let mut changes = inside(0, 1..=3, "first");
    changes.push(mutation((0, 2), 4, 0, "second"));
    changes.extend(inside(1, 1..=1, "first"));
    changes.push(PushMutation {
        kind: MutationKind::Deletion,
        document: Bytes::new(),
        ..mutation((0, 3), 5, 0, "")
    });
    assert_eq!(of.push_in(7, changes).await, Ok(vec![(0, 5), (1, 1)]));
    of.push(plain(0, 3..=3)).await.expect("others go on");
    assert_eq!(
        (of.text(0, 2).await, of.ends().await),
        (None, vec![3, 0, 0, 0]),
        "it is kept aside"
    );
    let listed = of.listed().await;
    assert_eq!((listed.len(), &*listed[0].owner, listed[0].changes), (1, "a test", 6));
    let commit = commit_of(7, &[(0, 3, 5), (1, 0, 1)]);
    let durable = Ok(vec![(0, 8), (1, 1)]);
    assert_eq!(of.commit(&commit).await, durable);
    assert_eq!(of.text(0, 2).await.as_deref(), Some("second"), "the last change counts");
    assert_eq!(of.text(0, 3).await, None);
    assert_eq!(of.ends().await, [8, 1, 0, 0]);
    assert_eq!(of.commit(&commit).await, durable, "an answer that was lost is given again");
    named(&world, &[&commit]).await;
    world.start().await;
    let of = producer(&world);
    assert_eq!(of.commit(&commit).await, durable, "also behind a restart");
    assert_eq!(of.ends().await, [8, 1, 0, 0]);
    named(&world, &[&commit]).await;
    say_epoch(&world, 1, [8, 1, 0, 0]);
    named(&world, &[]).await;
    of.push(plain(0, 9..=9)).await.expect("pushed");
    assert_eq!(of.listed().await, []);
    world.start().await;
    say_epoch(&world, 1, [0; 4]);
    assert_eq!(producer(&world).listed().await, [], "the record has it no longer");
}

#[tokio::test]
async fn mutations_are_kept_once_and_none_is_missing_before_another() {
    let world = world_with(&[]).await;
    let of = producer(&world);
    assert_eq!(of.push_in(7, inside(0, 1..=3, "a")).await, Ok(vec![(0, 3)]));
    assert_eq!(of.push_in(7, inside(0, 2..=4, "a")).await, Ok(vec![(0, 4)]), "again");
    assert_eq!(of.listed().await[0].changes, 4);
    let gap = [inside(1, 1..=1, "a"), inside(0, 6..=6, "a")].concat();
    let error = of.push_in(7, gap).await.expect_err("a gap");
    assert!(
        error.code == ErrorCode::OutOfOrder && error.message.contains("has 4 mutations"),
        "{error}"
    );
    assert_eq!(of.listed().await[0].changes, 4, "nothing of a refused request is kept");
    let zero = inside(1, 0..=1, "a");
    assert_eq!(code(of.push_in(7, zero).await), Err(ErrorCode::InvalidParameter));
    assert_eq!(code(of.push_in(0, inside(0, 1..=1, "a")).await), Err(ErrorCode::InvalidParameter));
    let mut wrong = inside(1, 1..=1, "a");
    wrong[0].vbucket = VbucketId(2);
    assert_eq!(code(of.push_in(7, wrong).await), Err(ErrorCode::InvalidParameter));
    of.abort(7).await.expect("rolled back");
    of.abort(7).await.expect("again");
    assert_eq!((of.listed().await, of.ends().await), (vec![], vec![0; 4]));
}

#[tokio::test]
async fn a_commit_that_is_refused_changes_nothing_and_can_be_made_again() {
    let world = world_with(&[]).await;
    let of = producer(&world);
    of.push(plain(0, 1..=2)).await.expect("pushed");
    let both = [inside(0, 1..=2, "a"), inside(1, 1..=2, "a")].concat();
    of.push_in(7, both).await.expect("kept");
    for (parts, expected, says) in [
        (
            &[(0, 2, 2), (1, 0, 3)][..],
            ErrorCode::NoTransaction,
            "has 2 mutations of vbucket 1 here",
        ),
        (&[(0, 2, 2), (1, 0, 1)], ErrorCode::InvalidParameter, "its commit names 1"),
        (&[(0, 2, 2)], ErrorCode::InvalidParameter, "vbucket 1, which its commit does not name"),
        (&[(0, 3, 2), (1, 0, 2)], ErrorCode::OutOfOrder, "seqno 4 leaves a gap, the next is 3"),
        (&[(0, 1, 2), (1, 0, 2)], ErrorCode::OutOfOrder, "seqno 2 is stored already"),
        (&[(0, 2, 2), (1, 0, 2), (2, 0, 1)], ErrorCode::NoTransaction, "0 mutations of vbucket 2"),
    ] {
        let error = of.commit(&commit_of(7, parts)).await.expect_err(says);
        assert!(error.code == expected && error.message.contains(says), "{error}");
        assert_eq!(of.ends().await, [2, 0, 0, 0]);
    }
    let mut elsewhere = commit_of(7, &[(0, 2, 2), (1, 0, 2)]);
    elsewhere.parts[0].end.vbuuid = Vbuuid(99);
    let error = of.commit(&elsewhere).await.expect_err("another branch");
    assert!(error.message.contains("branch 63 is unknown"), "{error}");
    of.push(plain(0, 3..=3)).await.expect("pushed");
    of.push_in(7, inside(1, 3..=3, "a")).await.expect("it is open still");
    let commit = commit_of(7, &[(0, 3, 2), (1, 0, 3)]);
    assert_eq!(of.commit(&commit).await, Ok(vec![(0, 5), (1, 3)]));
}

#[tokio::test]
async fn a_transaction_that_the_projector_lost_is_refused_by_name_and_pushed_again() {
    let mut world = world_with(&[]).await;
    producer(&world).push_in(7, inside(0, 1..=2, "a")).await.expect("kept");
    world.start().await;
    let of = producer(&world);
    let commit = commit_of(7, &[(0, 0, 2)]);
    let error = of.commit(&commit).await.expect_err("it is gone");
    assert_eq!(error.code, ErrorCode::NoTransaction);
    assert!(
        error.message.contains("transaction 7")
            && error.hint.is_some_and(|hint| hint.contains("push"))
    );
    assert_eq!(code(of.push_in(7, inside(0, 3..=3, "a")).await), Err(ErrorCode::OutOfOrder));
    of.push_in(7, inside(0, 1..=2, "a")).await.expect("kept");
    assert_eq!(of.commit(&commit).await, Ok(vec![(0, 2)]));
    assert_eq!(of.listed().await, [], "a commit of one vbucket is whole in any cut");
}

#[tokio::test]
async fn a_silent_producer_loses_its_transaction_and_people_may_cancel_it() {
    let world = World::new(|config| config.producer_kept = Duration::from_millis(300)).await;
    world.script.say(WatchMessage::Catalog(catalog(1, &[]).into()));
    let of = producer(&world);
    of.push_in(7, inside(0, 1..=2, "a")).await.expect("kept");
    until("it is rolled back", async || of.listed().await.is_empty().then_some(())).await;
    of.push_in(8, inside(0, 1..=2, "a")).await.expect("kept");
    let number = of.listed().await[0].transaction;
    of.0.abort(PUSHED, number).await.expect("cancelled");
    assert_eq!(code(of.commit(&commit_of(8, &[(0, 0, 2)])).await), Err(ErrorCode::NoTransaction));
    assert_eq!(code(of.commit(&commit_of(7, &[(0, 0, 2)])).await), Err(ErrorCode::NoTransaction));
}

#[tokio::test]
async fn open_transactions_and_open_commits_are_bounded() {
    let world = World::new(|config| {
        config.transaction_bytes_max = 2_000;
        config.transactions_max = 2;
    });
    let world = world.await;
    world.script.say(WatchMessage::Catalog(catalog(1, &[]).into()));
    let of = producer(&world);
    of.push_in(7, inside(0, 1..=3, "a")).await.expect("kept");
    let error = of.push_in(7, inside(0, 4..=20, "a")).await.expect_err("too much");
    assert!(
        error.code == ErrorCode::OverLimit && error.message.contains("transaction 7"),
        "{error}"
    );
    of.push_in(8, inside(0, 1..=1, "a")).await.expect("kept");
    assert_eq!(code(of.push_in(9, inside(0, 1..=1, "a")).await), Err(ErrorCode::TooBusy));
    of.abort(7).await.expect("rolled back");
    of.abort(8).await.expect("rolled back");
    let commit = async |n: u64| {
        of.push_in(n, [inside(0, 1..=1, "a"), inside(1, 1..=1, "a")].concat()).await.expect("kept");
        of.commit(&commit_of(n, &[(0, n - 1, 1), (1, n - 1, 1)])).await
    };
    let most = OPEN_MAX as u64;
    for n in 1..=most {
        commit(n).await.expect("committed");
    }
    let error = commit(most + 1).await.expect_err("too many");
    assert!(error.code == ErrorCode::TooBusy && error.message.contains("no epoch has"), "{error}");
    say_epoch(&world, 1, [10, 10, 0, 0]);
    until("an epoch makes room", async || commit(most + 1).await.ok()).await;
}

#[tokio::test]
async fn partial_commit_is_invisible_and_can_be_repeated() {
    let mut pair = Pair::new().await;
    let of = Producer(pair.source());
    let all = [inside(0, 1..=1, "a"), inside(1, 1..=2, "a"), inside(2, 1..=1, "a")].concat();
    let commit = commit_of(7, &[(0, 0, 1), (1, 0, 2), (2, 0, 1)]);
    until("both know the bucket", async || of.push_in(7, all.clone()).await.ok()).await;
    // A projector without its part is queried before any part is committed.
    pair.other.start().await;
    let refused = until("it runs", async || match code(of.commit(&commit).await) {
        Err(ErrorCode::Unavailable) => None,
        refused => Some(refused),
    });
    assert_eq!(refused.await, Err(ErrorCode::NoTransaction));
    assert_eq!(of.ends().await, [0; 4]);
    // The producer's call reached only one of them.
    let first = producer(&pair.first);
    let here = first.commit_in(&commit, vbuckets(&[0, 2])).await;
    assert_eq!(here, Ok(vec![(0, 1), (2, 1)]));
    assert!(of.waits(0, 1).await, "a part is not shown");
    first.push(plain(0, 2..=2)).await.expect("pushed");
    assert_eq!(of.text(0, 1002).await.as_deref(), Some("plain"), "others are");
    assert_eq!(code(of.abort(7).await), Err(ErrorCode::TransactionState));
    let listed = first.listed().await;
    assert!(listed[0].owner.contains("wait for vbucket 1 at seqno 2"), "{listed:?}");
    pair.first.start().await;
    let of = Producer(pair.source());
    until("it runs", async || of.0.place(PUSHED).await.ok()).await;
    assert!(of.waits(0, 1).await, "nor behind a restart");
    until("the rest is pushed again", async || of.push_in(7, all.clone()).await.ok()).await;
    assert_eq!(of.commit(&commit).await, Ok(vec![(0, 2), (1, 2), (2, 1)]));
    assert!(of.waits(0, 1).await, "this owner does not know of the other");
    let (waiting, told) = tokio::join!(of.text(0, 1), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        of.complete(&commit).await;
    });
    assert_eq!((waiting.as_deref(), told), (Some("a"), ()));
    assert_eq!(of.text(1, 2).await.as_deref(), Some("a"));
}

#[tokio::test]
async fn an_open_commit_goes_along_with_a_vbucket_that_is_handed_over() {
    let mut pair = Pair::new().await;
    let of = Producer(pair.source());
    let all = [inside(0, 1..=2, "a"), inside(3, 1..=1, "a")].concat();
    let commit = commit_of(7, &[(0, 0, 2), (3, 0, 1)]);
    until("both know the bucket", async || of.push_in(7, all.clone()).await.ok()).await;
    producer(&pair.first).commit_in(&commit, vbuckets(&[0])).await.expect("committed");
    let transfer = pair.hand_over().await;
    pair.finish(transfer);
    // The new owner has the old owner's committed part, and still its own open part.
    let of = Producer(pair.source());
    let other = producer(&pair.other);
    let open = |listed: Vec<TransactionStatus>| {
        listed.into_iter().filter(|one| one.owner.contains("committed in part")).count()
    };
    until("it is the owner", async || (of.ends().await == [2, 0, 0, 0]).then_some(())).await;
    assert_eq!(open(other.listed().await), 1);
    let report = other.0.places(vec![KnownPlace { bucket: PUSHED, fingerprint: 0 }]).await;
    for (_, report) in report.expect("places").changed {
        assert!(report.pushed().into_iter().all(|one| *one == commit));
    }
    pair.other.start().await;
    let other = producer(&pair.other);
    until("it is there behind a restart", async || (open(other.listed().await) == 1).then_some(()))
        .await;
    let of = Producer(pair.source());
    assert!(of.waits(0, 1).await);
    until("pushed again", async || of.push_in(7, inside(3, 1..=1, "a")).await.ok()).await;
    assert_eq!(of.commit(&commit).await, Ok(vec![(0, 2), (3, 1)]));
    assert_eq!(of.text(0, 1).await.as_deref(), Some("a"), "one projector has all of it");
}

#[tokio::test]
async fn hand_over_does_not_move_open_transactions() {
    let mut pair = Pair::new().await;
    let of = Producer(pair.source());
    let all = [inside(0, 1..=2, "a"), inside(2, 1..=1, "a")].concat();
    until("both know the bucket", async || of.push_in(7, all.clone()).await.ok()).await;
    let transfer = pair.hand_over().await;
    pair.finish(transfer);
    let of = Producer(pair.source());
    let commit = commit_of(7, &[(0, 0, 2), (2, 0, 1)]);
    let refused = until("the owners know", async || match code(of.commit(&commit).await) {
        Err(ErrorCode::NotOwner) => None,
        refused => Some(refused),
    });
    assert_eq!(refused.await, Err(ErrorCode::NoTransaction));
    of.push_in(7, all).await.expect("pushed again");
    assert_eq!(of.commit(&commit).await, Ok(vec![(0, 2), (2, 1)]));
    assert_eq!(OTHER, pair.assignment.owner(VbucketId(0)).expect("an owner"));
}

#[tokio::test]
async fn a_producer_that_begins_a_branch_commits_the_rest_at_other_positions() {
    let pair = Pair::new().await;
    let of = Producer(pair.source());
    let all = [inside(0, 1..=1, "a"), inside(1, 1..=1, "a")].concat();
    until("both know the bucket", async || of.push_in(7, all.clone()).await.ok()).await;
    let commit = commit_of(7, &[(0, 0, 1), (1, 0, 1)]);
    producer(&pair.first).commit_in(&commit, vbuckets(&[0])).await.expect("committed");
    of.push(plain(1, 1..=1)).await.expect("pushed");
    let mut again = commit_of(7, &[(0, 0, 1), (1, 1, 1)]);
    assert_eq!(of.commit(&again).await, Ok(vec![(0, 1), (1, 2)]));
    until("the new positions count", async || {
        let report = pair.first.script.synced.lock().unwrap().get(&PUSHED).cloned()?;
        (report.pushed() == [&again]).then_some(())
    })
    .await;
    // An operator may give up parts that never arrive.
    again.transaction = ProducerTransactionId(8);
    of.push_in(8, inside(2, 1..=1, "a")).await.expect("kept");
    let half = commit_of(8, &[(2, 0, 1), (3, 0, 1)]);
    producer(&pair.first).commit_in(&half, vbuckets(&[2])).await.expect("committed");
    assert!(of.waits(2, 1).await);
    of.0.abort(PUSHED, TransactionId(8)).await.expect("given up");
    assert_eq!(of.text(2, 1).await.as_deref(), Some("a"));
}

/// Returns an index of the pushed bucket.
fn pushed_index() -> Arc<IndexInfo> {
    let index = IndexInfo::clone(&index(1, PartitionBy::DocumentId));
    Arc::new(IndexInfo { bucket: PUSHED, ..index })
}

#[tokio::test]
async fn mutations_are_at_the_indexers_before_the_commit_and_a_large_one_has_a_marker() {
    let world = World::new(|config| config.large_commit_changes = 20).await;
    world.script.say(WatchMessage::Catalog(catalog(1, &[pushed_index()]).into()));
    let of = producer(&world);
    of.push(plain(0, 1..=1)).await.expect("pushed");
    let (node, from, last_epoch) = (INDEXERS[0], Some(Cut::zero(VBUCKETS)), Epoch(0));
    let request = SubscribeRequest { node, bucket: PUSHED, from, last_epoch };
    let stream = of.0.subscribe(request).await.expect("a stream");
    let mut follower = Follower { stream, at: Cut::zero(VBUCKETS), ..Follower::default() };
    of.push_in(7, inside(0, 1..=20, "a")).await.expect("kept");
    let number = of.listed().await[0].transaction;
    follower.reach_in(number, 20).await;
    // A commit that was refused has been about to be large, with fewer mutations.
    assert!(of.commit(&commit_of(7, &[(0, 5, 20)])).await.is_err());
    of.push_in(7, inside(1, 1..=10, "a")).await.expect("kept");
    of.commit(&commit_of(7, &[(0, 1, 20), (1, 0, 10)])).await.expect("committed");
    of.push(plain(0, 22..=22)).await.expect("pushed");
    let end = of.0.positions(PUSHED).await.expect("positions");
    follower.reach(&end).await;
    let [(marker, open)] = &follower.marked[..] else { panic!("{:?}", follower.marked.len()) };
    assert_eq!((marker.transaction, marker.place.0), (number, 30));
    assert!(!open.changes.is_empty());
    let ranges: Vec<_> = marker.ranges.iter().map(|r| (r.vbucket.0, r.after.0, r.to.0)).collect();
    assert_eq!(ranges, [(0, 1, 21), (1, 0, 10)]);
}
