//! Commits over several buckets: prepared in all buckets but one, decided in that one, and finished
//! in the others, even if the session ends in between.

use std::sync::Arc;
use std::time::Duration;

use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::cut::{Cut, EpochMark};
use proto::model::ids::*;
use proto::model::joint::PartlyLostCommit;
use proto::rpc::api::*;
use proto::{ErrorCode, Result};
use tokio::time::timeout;

use crate::common::*;
use crate::transactions::{code, text};

/// The second bucket. The first bucket, [`BUCKET`], has the lower number and decides.
pub const OTHER: BucketId = BucketId(9);
pub const BOTH: [BucketId; 2] = [BUCKET, OTHER];

pub async fn two_buckets() -> World {
    let world = World::new(|_| {}).await;
    say_buckets(&world, 1, &[BUCKET, OTHER]);
    world
}

fn say_buckets(world: &World, cas: u64, buckets: &[BucketId]) {
    let here: Vec<_> = buckets.iter().map(|bucket| (*bucket, PROJECTOR)).collect();
    say_buckets_on(world, cas, &here);
}

/// Sends a catalog of these buckets, each with its projector.
pub fn say_buckets_on(world: &World, cas: u64, buckets: &[(BucketId, NodeId)]) {
    let mut catalog = catalog(cas, &[]);
    let bucket = |(id, projector): &(BucketId, NodeId)| {
        let name = if *id == BUCKET { "b".to_owned() } else { format!("other {id}") };
        (*id, Arc::new(BucketInfo::new(*id, name, VBUCKETS, SourceKind::Embedded, *projector)))
    };
    catalog.buckets = buckets.iter().map(bucket).collect();
    let nodes = buckets.iter().map(|(_, node)| (*node, Arc::new(projector_info(*node))));
    catalog.nodes = nodes.collect();
    world.script.say(proto::rpc::api::WatchMessage::Catalog(catalog.into()));
}

/// The part of a session's transaction in one bucket.
pub struct Part {
    commit: TransactionCommit,
}

impl Part {
    /// Returns the part of a transaction that has made these writes in a bucket.
    pub async fn written(world: &World, n: u64, bucket: BucketId, writes: Vec<Write>) -> Self {
        let (transaction, after) = (TransactionId(n), TransactionPlace(0));
        let owner = "somebody".to_owned();
        let writes = checked(writes);
        let request =
            TransactionWrite { bucket, transaction, after, owner, snapshot: None, writes };
        let written = world.projector().write_for_transaction(request).await.expect("written");
        let (place, behind) = (written.place, written.behind);
        let participants = BOTH.to_vec();
        let commit =
            TransactionCommit { bucket, transaction, place, snapshot: None, behind, participants };
        Self { commit }
    }

    /// Sets the buckets of the transaction.
    pub fn over(mut self, participants: &[BucketId]) -> Self {
        self.commit.participants = participants.to_vec();
        self
    }

    pub async fn prepare(&self, world: &World) -> Result<u64> {
        world.projector().prepare(self.commit.transaction, self.commit.clone()).await
    }

    pub async fn commit(&self, world: &World) -> Result<WriteReply> {
        world.projector().commit(self.commit.clone()).await
    }
}

/// Returns the parts of a transaction that has written a document in both buckets.
pub async fn begun(world: &World, n: u64, id: &str, document: &str) -> (Part, Part) {
    let writes = || vec![upsert(id, document)];
    let one = Part::written(world, n, BUCKET, writes()).await;
    (one, Part::written(world, n, OTHER, writes()).await)
}

pub fn committed() -> Decision {
    Decision::Commit { participants: BOTH.to_vec() }
}

pub async fn decide(world: &World, n: u64, decision: Decision) -> Result<WriteReply> {
    world.projector().end_prepared_transaction(OTHER, TransactionId(n), decision).await
}

pub async fn fate(world: &World, bucket: BucketId, n: u64) -> TransactionState {
    world.projector().transaction_state(bucket, TransactionId(n)).await.expect("a fate")
}

pub async fn document(world: &World, bucket: BucketId, id: &str) -> Option<bytes::Bytes> {
    world.projector().get(bucket, vec![id.to_owned()]).await.expect("read").remove(0)
}

pub async fn write(
    world: &World,
    bucket: BucketId,
    id: &str,
    document: &str,
) -> Result<WriteReply> {
    let writes = checked(vec![upsert(id, document)]);
    world.projector().write(WriteRequest { bucket, writes }).await
}

/// Waits until a document of the second bucket has a text, or is absent for `None`.
async fn becomes(world: &World, id: &str, document_text: Option<bytes::Bytes>) {
    let wait = async {
        while document(world, OTHER, id).await != document_text {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(10), wait).await.expect("it ends by itself");
}

/// Waits until no transaction is prepared in the second bucket; returns the fate of transaction
/// `n`.
async fn ends(world: &World, n: u64) -> TransactionState {
    let wait = async {
        loop {
            match fate(world, OTHER, n).await {
                TransactionState::Prepared => tokio::time::sleep(Duration::from_millis(10)).await,
                fate => return fate,
            }
        }
    };
    timeout(Duration::from_secs(10), wait).await.expect("it ends by itself")
}

/// Returns the other buckets of the only open joint commit in a report.
pub fn others(report: &BucketReport) -> Vec<BucketId> {
    report.joint()[0].others(report.bucket).collect()
}

pub fn report(world: &World, bucket: BucketId) -> BucketReport {
    world.script.synced.lock().unwrap().get(&bucket).cloned().expect("it is reported")
}

/// Waits until SYNC reports this many open joint commits of a bucket; returns the report.
pub async fn has_open(world: &World, bucket: BucketId, count: usize) -> BucketReport {
    let wait = async {
        loop {
            let synced = world.script.synced.lock().unwrap().get(&bucket).cloned();
            match synced.filter(|report| report.joint().len() == count) {
                Some(report) => return report,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    timeout(Duration::from_secs(10), wait).await.expect("it is reported")
}

#[tokio::test]
async fn a_prepared_transaction_is_not_seen_and_holds_its_documents() {
    let world = two_buckets().await;
    write(&world, OTHER, "a", "1").await.expect("written");
    let (_, other) = begun(&world, 1, "a", "2").await;
    assert_eq!(other.prepare(&world).await, Ok(1));
    assert_eq!(other.prepare(&world).await, Ok(1), "it can be asked again");
    assert_eq!(document(&world, OTHER, "a").await, text("1"));
    let second = Part::written(&world, 2, OTHER, vec![upsert("a", "3")]).await;
    assert_eq!(code(second.prepare(&world).await.map(drop)), Err(ErrorCode::Conflict));
    write(&world, OTHER, "b", "1").await.expect("nobody holds it");
    // A plain write waits for the outcome.
    let waits = write(&world, OTHER, "a", "4");
    let ends = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        decide(&world, 1, committed()).await
    };
    let (written, decided) = tokio::join!(waits, ends);
    let (written, decided) = (written.expect("written"), decided.expect("committed"));
    assert!(decided.position.positions[0].1 < written.position.positions[0].1);
    assert_eq!(document(&world, OTHER, "a").await, text("4"));
}

#[tokio::test]
async fn the_end_of_a_bucket_is_told_when_what_was_prepared_before_has_its_outcome() {
    let world = two_buckets().await;
    let (one, other) = begun(&world, 1, "a", "1").await;
    other.prepare(&world).await.expect("prepared");
    one.commit(&world).await.expect("decided");
    // A reader that requires everything acknowledged must get the second part too.
    let place = world.projector().place(OTHER).await.expect("a place");
    assert_eq!(document(&world, OTHER, "a").await, text("1"), "it ended by itself meanwhile");
    assert_eq!(place.durable.iter().map(|(_, at)| at.seqno.0).sum::<u64>(), 1);
}

#[tokio::test]
async fn a_transaction_whose_session_is_gone_ends_as_the_deciding_bucket_says() {
    let mut world = two_buckets().await;
    let (one, other) = begun(&world, 1, "a", "1").await;
    let (gone, left) = begun(&world, 2, "b", "2").await;
    other.prepare(&world).await.expect("prepared");
    left.prepare(&world).await.expect("prepared");
    one.commit(&world).await.expect("decided");
    world.projector().abort(BUCKET, gone.commit.transaction).await.expect("rolled back");
    // This holds even if the projector is restarted before the outcome was reported.
    world.start().await;
    becomes(&world, "a", text("1")).await;
    assert_eq!(ends(&world, 2).await, TransactionState::Unknown);
    assert_eq!(document(&world, OTHER, "b").await, None);
    write(&world, OTHER, "b", "3").await.expect("nobody holds it");
    // An ended transaction stays ended.
    assert_eq!(code(left.prepare(&world).await.map(drop)), Err(ErrorCode::Conflict));
    assert_eq!(code(gone.commit(&world).await), Err(ErrorCode::Conflict));
    let again = decide(&world, 1, committed()).await.expect("the same answer");
    assert_eq!(again.affected, 1);
    assert_eq!(one.commit(&world).await.expect("the same answer").affected, 1);
}

#[tokio::test]
async fn a_reported_abort_is_final() {
    let world = two_buckets().await;
    assert_eq!(fate(&world, BUCKET, 1).await, TransactionState::Unknown);
    let (transaction, after) = (TransactionId(1), TransactionPlace(0));
    let (owner, writes) = (String::new(), checked(vec![upsert("a", "1")]));
    let late =
        TransactionWrite { bucket: BUCKET, transaction, after, owner, snapshot: None, writes };
    let refused = world.projector().write_for_transaction(late).await;
    assert_eq!(code(refused.map(drop)), Err(ErrorCode::Conflict), "a write that comes late");
    assert_eq!(fate(&world, OTHER, 2).await, TransactionState::Unknown);
    let open = Part::written(&world, 3, OTHER, vec![upsert("a", "1")]).await;
    let under_two = world.projector().prepare(TransactionId(2), open.commit.clone()).await;
    assert_eq!(code(under_two.map(drop)), Err(ErrorCode::Conflict), "a prepare that comes late");
}

#[tokio::test]
async fn a_transaction_that_was_decided_is_kept_if_the_deciding_bucket_is_dropped() {
    let world = two_buckets().await;
    let (one, other) = begun(&world, 1, "a", "1").await;
    other.prepare(&world).await.expect("prepared");
    one.commit(&world).await.expect("decided");
    say_buckets(&world, 2, &[OTHER]);
    becomes(&world, "a", text("1")).await;
}

#[tokio::test]
async fn sync_names_joint_commits_until_an_epoch_has_them() {
    let mut world = two_buckets().await;
    write(&world, BUCKET, "x", "1").await.expect("written");
    let (one, other) = begun(&world, 1, "a", "1").await;
    other.prepare(&world).await.expect("prepared");
    one.commit(&world).await.expect("decided");
    let open = has_open(&world, BUCKET, 1).await;
    assert_eq!(others(&open), [OTHER]);
    assert!(
        open.joint()[0].at().is_some_and(|(vbucket, seqno)| open.cut.get(vbucket).seqno == seqno)
    );
    let before: u64 = open.before[0].iter().map(|(_, at)| at.seqno.0).sum();
    assert_eq!(before, 1, "the bucket can end before it");
    decide(&world, 1, committed()).await.expect("finished");
    let other_open = has_open(&world, OTHER, 1).await;
    assert_eq!(others(&other_open), [BUCKET]);
    world.start().await;
    has_open(&world, BUCKET, 1).await;
    let mark = |bucket, cut: &Cut| EpochMark { bucket, ..mark(2, 1, cut) };
    let marks = vec![mark(BUCKET, &open.cut), mark(OTHER, &other_open.cut)];
    world.script.say(WatchMessage::Epochs(marks));
    has_open(&world, BUCKET, 0).await;
    assert_eq!(has_open(&world, OTHER, 0).await.before, Vec::<Cut>::new());
    // The next group takes them out of the record.
    for bucket in BOTH {
        write(&world, bucket, "y", "1").await.expect("written");
        let fate = fate(&world, bucket, 1).await;
        assert!(
            matches!(fate, TransactionState::Committed { participants, .. } if participants.is_empty())
        );
    }
}

#[tokio::test]
async fn a_commit_whose_other_part_is_lost_waits_for_it_no_longer() {
    let world = two_buckets().await;
    let (one, _) = begun(&world, 1, "a", "1").await;
    world.projector().abort(OTHER, TransactionId(1)).await.expect("as if it were lost");
    one.commit(&world).await.expect("decided");
    assert_eq!(others(&has_open(&world, BUCKET, 1).await), [OTHER]);
    let wait = async {
        while !others(&report(&world, BUCKET)).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(10), wait).await.expect("it is halved");
    let wait = async {
        while world.script.halved.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(10), wait).await.expect("it is told");
    let halved = PartlyLostCommit { transaction: TransactionId(1), bucket: BUCKET, lost_in: OTHER };
    assert_eq!(*world.script.halved.lock().unwrap(), [halved]);
}

#[tokio::test]
async fn empty_part_is_prepared_and_locks_nothing() {
    let world = two_buckets().await;
    let mut part = Part::written(&world, 1, OTHER, vec![upsert("a", "1")]).await;
    let back = world.projector().roll_back_to(OTHER, TransactionId(1), TransactionPlace(0)).await;
    part.commit.place = back.expect("back");
    assert_eq!(part.prepare(&world).await, Ok(0));
    assert_eq!(part.prepare(&world).await, Ok(0), "it can be asked again");
    assert_eq!(fate(&world, OTHER, 1).await, TransactionState::Prepared);
    write(&world, OTHER, "a", "2").await.expect("nobody holds it");
    assert_eq!(decide(&world, 1, committed()).await.expect("ended").affected, 0);
    assert!(matches!(
        fate(&world, OTHER, 1).await,
        TransactionState::Committed { is_open: false, .. }
    ));
}

#[tokio::test]
async fn the_list_of_open_commits_is_full_only_of_those_that_no_epoch_has() {
    let world = two_buckets().await;
    let commit = async |n: u64| {
        let part = Part::written(&world, n, BUCKET, vec![upsert("a", "1")]).await;
        part.commit(&world).await
    };
    let mut n = 0;
    let full = loop {
        n += 1;
        if let Err(error) = commit(n).await {
            break error;
        }
    };
    assert_eq!((full.code, n), (ErrorCode::TooBusy, 1_025), "{full}");
    let cut = world.projector().place(BUCKET).await.expect("a place").durable;
    world.script.say(WatchMessage::Epochs(vec![mark(2, 1, &cut)]));
    has_open(&world, BUCKET, 0).await;
    commit(n + 1).await.expect("there is room again");
}

#[tokio::test]
async fn rollback_during_a_prepare_cancels_it() {
    let world = two_buckets().await;
    let (_, other) = begun(&world, 1, "a", "1").await;
    let held = HeldSyncs::of(&world.store);
    let prepare = other.prepare(&world);
    let roll_back = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let told = decide(&world, 1, Decision::RollBack);
        let release = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            drop(held);
        };
        tokio::join!(told, release).0
    };
    let (prepared, rolled_back) = tokio::join!(prepare, roll_back);
    rolled_back.expect("the session is told that nothing is left");
    assert_eq!(prepared, Ok(1), "it came first");
    assert_eq!(fate(&world, OTHER, 1).await, TransactionState::Unknown, "nobody had to ask for it");
    write(&world, OTHER, "a", "2").await.expect("nobody holds it");
}

#[tokio::test]
async fn the_changes_of_a_transaction_count_the_same_when_it_is_prepared() {
    let world = two_buckets().await;
    let writes = vec![upsert("a", "{\"text\":1}"), delete("b")];
    write(&world, OTHER, "b", "1").await.expect("written");
    let part = Part::written(&world, 7, OTHER, writes).await;
    let bytes = async || {
        let all = world.projector().transactions().await.expect("transactions");
        all.into_iter().map(|one| one.bytes).collect::<Vec<_>>()
    };
    let open = bytes().await;
    part.prepare(&world).await.expect("prepared");
    assert_eq!(bytes().await, open);
}
