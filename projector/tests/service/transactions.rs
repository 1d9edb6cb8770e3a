//! Tests transactions: the documents that they see, the writes of their commits, and their
//! refusals.

use std::time::Duration;

use bytes::Bytes;
use projector::Config;
use projector::testing::DocumentStore;
use proto::model::copies::CopiesChange;
use proto::model::cut::{Cut, Position};
use proto::model::ids::*;
use proto::rpc::api::CheckedWrites;
use proto::rpc::api::*;
use proto::rpc::scan::UncommittedView;
use proto::value::DOCUMENT_BYTES_MAX;
use proto::{ErrorCode, Result};

use crate::common::*;
use crate::copies::{SECOND, Trio};

/// A session with one transaction.
pub struct Session<'w> {
    pub world: &'w World,
    pub transaction: TransactionId,
    pub place: TransactionPlace,
    pub snapshot: Option<Epoch>,
    pub behind: u64,
}

impl<'w> Session<'w> {
    pub fn new(world: &'w World, n: u64) -> Self {
        let (transaction, place) = (TransactionId(n), TransactionPlace(0));
        Self { world, transaction, place, snapshot: None, behind: 0 }
    }

    /// Creates a session whose transaction reads an epoch.
    pub fn at(world: &'w World, n: u64, epoch: u64) -> Self {
        Self { snapshot: Some(Epoch(epoch)), ..Self::new(world, n) }
    }

    pub async fn write(&mut self, writes: Vec<Write>) -> Result<u64> {
        let request = TransactionWrite {
            bucket: BUCKET,
            transaction: self.transaction,
            after: self.place,
            owner: "somebody".into(),
            snapshot: self.snapshot,
            writes: CheckedWrites::new(writes, DOCUMENT_BYTES_MAX)?,
        };
        let written = self.world.projector().write_for_transaction(request).await?;
        (self.place, self.behind) = (written.place, written.behind);
        Ok(written.affected)
    }

    pub async fn back_to(&mut self, place: u64) -> Result<()> {
        let (transaction, to) = (self.transaction, TransactionPlace(place));
        self.place = self.world.projector().roll_back_to(BUCKET, transaction, to).await?;
        Ok(())
    }

    pub async fn commit(&self) -> Result<WriteReply> {
        let request = TransactionCommit {
            bucket: BUCKET,
            transaction: self.transaction,
            place: self.place,
            snapshot: self.snapshot,
            behind: self.behind,
            participants: Vec::new(),
        };
        self.world.projector().commit(request).await
    }

    pub async fn abort(&self) -> Result<()> {
        self.world.projector().abort(BUCKET, self.transaction).await
    }

    /// Reads a document as the session sees it at a place of its transaction.
    async fn get_at(&self, id: &str, place: u64) -> Result<Option<Bytes>> {
        let own = UncommittedView { transaction: self.transaction, place: TransactionPlace(place) };
        let (ids, own) = (vec![id.to_owned()], Some(own));
        let request = DocumentsRequest { bucket: BUCKET, ids, snapshot: self.snapshot, own };
        Ok(self.world.projector().get_for_transaction(request).await?.remove(0))
    }

    async fn get(&self, id: &str) -> Option<Bytes> {
        self.get_at(id, self.place.0).await.expect("an answer")
    }
}

pub fn text(json: &str) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(json.as_bytes()))
}

/// Returns the committed document that any reader sees.
pub async fn present(world: &World, id: &str) -> Option<Bytes> {
    world.projector().get(BUCKET, vec![id.into()]).await.expect("an answer").remove(0)
}

pub async fn positions(world: &World) -> Cut {
    world.projector().positions(BUCKET).await.expect("positions")
}

/// Publishes an epoch that covers all mutations.
pub async fn publish(world: &World, epoch: u64) {
    world.script.epoch(epoch, &positions(world).await);
}

async fn small_world(change: impl FnOnce(&mut Config)) -> World {
    let world = World::new(change).await;
    world.script.say(WatchMessage::Catalog(catalog(1, &[]).into()));
    world
}

pub fn code<T>(result: Result<T>) -> std::result::Result<T, ErrorCode> {
    result.map_err(|error| error.code)
}

#[tokio::test]
async fn a_transaction_sees_its_own_changes_and_nobody_else_does_before_the_commit() {
    let world = world_with(&[]).await;
    world.write(vec![upsert("a", "1"), upsert("b", "1")]).await.expect("written");
    let before = positions(&world).await;
    let mut session = Session::new(&world, 7);
    let writes = vec![upsert("a", "2"), insert("c", "3"), delete("b"), delete("b"), delete("x")];
    assert_eq!(session.write(writes).await, Ok(3), "what was absent is not deleted");
    assert_eq!(session.place, TransactionPlace(3));
    assert_eq!(session.write(vec![upsert("a", "4")]).await, Ok(1));
    assert_eq!(session.get("a").await, text("4"));
    assert_eq!(session.get_at("a", 3).await, Ok(text("2")), "an earlier place");
    assert_eq!(session.get_at("a", 0).await, Ok(text("1")), "before all changes");
    assert_eq!((session.get("b").await, session.get("c").await), (None, text("3")));
    assert_eq!((present(&world, "a").await, present(&world, "c").await), (text("1"), None));
    assert_eq!(positions(&world).await, before);

    let reply = session.commit().await.expect("committed");
    assert_eq!(reply.affected, 3, "one mutation for each changed document");
    let after = positions(&world).await;
    assert_eq!(after.distance_from(&before), 3);
    let told = &reply.position.positions;
    assert!(!told.is_empty() && told.iter().all(|(v, at)| after.get(*v) == *at), "{told:?}");
    let found = [present(&world, "a").await, present(&world, "b").await];
    assert_eq!((found, present(&world, "c").await), ([text("4"), None], text("3")));
    assert_eq!(session.commit().await, Ok(reply), "asked again");
    let again = session.write(vec![upsert("a", "5")]).await.expect_err("it is gone");
    assert_eq!(again.code, ErrorCode::Conflict);
    let said =
        "transaction 7 is not open at place 4 here: its projector was restarted or gave it up";
    assert_eq!(
        (&*again.message, again.hint.as_deref()),
        (said, Some("begin the transaction again"))
    );
}

#[tokio::test]
async fn inserts_are_checked_in_what_the_transaction_sees() {
    let world = world_with(&[]).await;
    world.write(vec![insert("a", "1")]).await.expect("written");
    let mut session = Session::new(&world, 1);
    let refused = session.write(vec![insert("b", "1"), insert("a", "2")]).await;
    let refused = refused.expect_err("a is there");
    assert_eq!((refused.code, session.place.0), (ErrorCode::DuplicateId, 0));
    assert_eq!(refused.message, "bucket b already has a document \"a\"");
    assert_eq!(session.write(vec![insert("b", "1")]).await, Ok(1), "nothing of it was done");
    assert_eq!(code(session.write(vec![insert("b", "2")]).await), Err(ErrorCode::DuplicateId));
    assert_eq!(code(session.write(vec![upsert("c", "{")]).await), Err(ErrorCode::InvalidText));
    assert_eq!(session.write(vec![delete("b"), insert("b", "3"), delete("a")]).await, Ok(3));
    assert_eq!(session.write(vec![insert("a", "4"), delete("b")]).await, Ok(2));
    session.commit().await.expect("committed");
    assert_eq!((present(&world, "a").await, present(&world, "b").await), (text("4"), None));
}

#[tokio::test]
async fn call_with_a_wrong_place_is_refused() {
    let world = world_with(&[]).await;
    let mut session = Session::new(&world, 1);
    session.write(vec![upsert("a", "1")]).await.expect("written");
    session.place = TransactionPlace(0);
    assert_eq!(code(session.write(vec![upsert("a", "2")]).await), Err(ErrorCode::Conflict));
    session.place = TransactionPlace(2);
    assert_eq!(code(session.write(vec![upsert("a", "2")]).await), Err(ErrorCode::Conflict));
    assert_eq!(code(session.commit().await), Err(ErrorCode::Conflict));
    assert_eq!(code(session.get_at("a", 2).await), Err(ErrorCode::Conflict));
    assert_eq!(code(session.back_to(2).await), Err(ErrorCode::Conflict));
    session.place = TransactionPlace(1);
    session.commit().await.expect("committed");
    let nothing = Session::new(&world, 2);
    assert_eq!(nothing.commit().await.map(|reply| reply.affected), Ok(0), "no changes");
    assert_eq!(nothing.abort().await, Ok(()));
    let mut unknown = Session::new(&world, 3);
    unknown.place = TransactionPlace(1);
    assert_eq!(code(unknown.write(vec![upsert("a", "2")]).await), Err(ErrorCode::Conflict));
    let pushed = world.projector().keep_open(PUSHED, vec![TransactionId(1)]).await;
    assert_eq!(code(pushed), Err(ErrorCode::Unsupported));
}

#[tokio::test]
async fn a_savepoint_takes_back_the_changes_behind_it() {
    let world = world_with(&[]).await;
    let mut session = Session::new(&world, 1);
    session.write(vec![insert("a", "1"), insert("b", "1")]).await.expect("written");
    session.write(vec![upsert("a", "2"), delete("b"), insert("c", "1")]).await.expect("written");
    session.back_to(2).await.expect("back");
    assert_eq!(session.place, TransactionPlace(6), "a rollback takes a place");
    let seen = [session.get("a").await, session.get("b").await, session.get("c").await];
    assert_eq!(seen, [text("1"), text("1"), None]);
    assert_eq!(session.write(vec![insert("c", "2")]).await, Ok(1), "it was taken back");
    assert_eq!(session.place, TransactionPlace(7));
    session.back_to(2).await.expect("back again");
    session.write(vec![upsert("d", "1")]).await.expect("written");
    assert_eq!(session.commit().await.map(|reply| reply.affected), Ok(3));
    assert_eq!((present(&world, "a").await, present(&world, "c").await), (text("1"), None));

    let mut other = Session::new(&world, 2);
    other.write(vec![upsert("a", "9")]).await.expect("written");
    other.back_to(0).await.expect("back");
    assert_eq!(other.commit().await.map(|reply| reply.affected), Ok(0));
    assert_eq!(present(&world, "a").await, text("1"));
    let unknown = Session::new(&world, 3).back_to(0).await;
    assert_eq!(code(unknown), Err(ErrorCode::Conflict), "it has not begun here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_being_committed_refuses_calls() {
    let world = world_with(&[]).await;
    let mut session = Session::new(&world, 1);
    session.write(vec![upsert("a", "1")]).await.expect("written");
    let held = HeldSyncs::of(&world.store);
    let mut commit = std::pin::pin!(session.commit());
    let waited = tokio::time::timeout(Duration::from_millis(100), commit.as_mut()).await;
    assert!(waited.is_err(), "an answer before the sync");
    let mut again = Session { place: session.place, ..Session::new(&world, 1) };
    let second = tokio::time::timeout(Duration::from_secs(5), again.commit()).await;
    assert_eq!(code(second.expect("refused at once")), Err(ErrorCode::Unavailable));
    assert_eq!(code(again.abort().await), Err(ErrorCode::Conflict));
    assert_eq!(code(again.back_to(0).await), Err(ErrorCode::Conflict));
    assert_eq!(code(again.write(vec![upsert("b", "1")]).await), Err(ErrorCode::Conflict));
    drop(held);
    assert_eq!(commit.await.map(|reply| reply.affected), Ok(1));
    assert_eq!(again.abort().await, Ok(()), "it has ended");
}

#[tokio::test]
async fn documents_by_id_stay_at_the_snapshot() {
    let world = world_with(&[]).await;
    world.write(vec![upsert("a", "1"), upsert("b", "1")]).await.expect("written");
    publish(&world, 1).await;
    world.write(vec![upsert("a", "2"), delete("b"), insert("c", "2")]).await.expect("written");
    publish(&world, 2).await;
    let get = async |snapshot: Option<u64>| {
        let (ids, snapshot) = (["a", "b", "c"].map(String::from).to_vec(), snapshot.map(Epoch));
        let request = DocumentsRequest { bucket: BUCKET, ids, snapshot, own: None };
        world.projector().get_for_transaction(request).await.expect("documents")
    };
    assert_eq!(get(Some(1)).await, [text("1"), text("1"), None]);
    assert_eq!(get(Some(2)).await, [text("2"), None, text("2")]);
    assert_eq!(get(None).await, get(Some(2)).await);
    let mut session = Session::at(&world, 1, 1);
    assert_eq!(code(session.write(vec![insert("b", "3")]).await), Err(ErrorCode::DuplicateId));
    assert_eq!(
        session.write(vec![insert("c", "3"), delete("b")]).await,
        Ok(2),
        "as of its snapshot"
    );
    let seen = [session.get("a").await, session.get("b").await, session.get("c").await];
    assert_eq!(seen, [text("1"), None, text("3")]);
}

#[tokio::test]
async fn an_epoch_that_is_on_its_way_is_waited_for_and_one_that_is_gone_is_not() {
    let world = world_with(&[]).await;
    world.write(vec![upsert("a", "1")]).await.expect("written");
    publish(&world, 3).await;
    let mut session = Session::at(&world, 1, 4);
    let later = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.script.say(WatchMessage::Epochs(vec![mark(4, 3, &positions(&world).await)]));
    };
    let (written, ()) = tokio::join!(session.write(vec![upsert("a", "2")]), later);
    assert_eq!(written, Ok(1));
    session.commit().await.expect("committed");
    let gone = Session::at(&world, 2, 2).write(vec![upsert("a", "2")]).await;
    let gone = gone.expect_err("it never came");
    assert_eq!(gone.code, ErrorCode::SnapshotTooOld);
    assert_eq!(gone.hint.as_deref(), Some("begin the transaction again"));
}

#[tokio::test]
async fn an_epoch_that_only_the_coordinators_know_is_asked_for() {
    let world = world_with(&[]).await;
    world.write(vec![upsert("a", "1")]).await.expect("written");
    let retained = mark(2, 1, &positions(&world).await);
    world.write(vec![upsert("a", "2")]).await.expect("written");
    publish(&world, 3).await;
    world.script.retained.lock().unwrap().push(retained);
    let mut session = Session::at(&world, 1, 2);
    assert_eq!(session.get_at("a", 0).await, Ok(text("1")), "as of the epoch");
    session.write(vec![upsert("a", "3")]).await.expect("written");
    assert_eq!(code(session.commit().await), Err(ErrorCode::Conflict), "changed behind it");
    let mut other = Cut::zero(VBUCKETS);
    other.set(VbucketId(0), Position { vbuuid: Vbuuid(99), seqno: Seqno(1) });
    world.script.retained.lock().unwrap()[0] = mark(2, 1, &other);
    let lost = Session::at(&world, 2, 2).get_at("a", 0).await;
    assert_eq!(code(lost), Err(ErrorCode::SnapshotTooOld), "of another history");
}

/// At or below the purge point a deletion may be forgotten, so a conflict cannot be detected.
#[tokio::test]
async fn a_snapshot_before_the_purge_point_is_too_old() {
    let world = world_with(&[]).await;
    world.write(vec![upsert("a", "1"), upsert("b", "1")]).await.expect("written");
    publish(&world, 1).await;
    let mut session = Session::at(&world, 1, 1);
    session.write(vec![upsert("a", "2")]).await.expect("written");
    world.write(vec![upsert("a", "3"), delete("a")]).await.expect("written");
    let vbucket = vbucket_of("a", VBUCKETS);
    let end = positions(&world).await.get(vbucket).seqno;
    world.store.purge(BUCKET, &[(vbucket, end)]).expect("purged");
    assert_eq!(code(session.get_at("a", 0).await), Err(ErrorCode::SnapshotTooOld));
    assert_eq!(code(session.write(vec![upsert("a", "4")]).await), Ok(1), "it reads nothing");
    assert_eq!(code(session.write(vec![delete("a")]).await), Ok(1), "it reads its own");
    assert_eq!(code(session.commit().await), Err(ErrorCode::SnapshotTooOld));
    assert_eq!(code(session.commit().await), Err(ErrorCode::Conflict), "it is rolled back");
    let mut other = Session::at(&world, 2, 1);
    assert_eq!(code(other.write(vec![insert("a", "4")]).await), Err(ErrorCode::SnapshotTooOld));
}

#[tokio::test]
async fn limits_are_named() {
    let world = small_world(|config| {
        config.transaction_bytes_max = 4 << 10;
        config.transactions_bytes_max = 6 << 10;
        config.transactions_max = 3;
    })
    .await;
    let large = format!("\"{}\"", "x".repeat(3 << 10));
    let mut one = Session::new(&world, 1);
    one.write(vec![upsert("a", &large)]).await.expect("written");
    let error = one.write(vec![upsert("b", &large)]).await.expect_err("too much for one");
    assert_eq!(error.code, ErrorCode::OverLimit);
    assert!(error.message.contains("limit is 4 KiB"), "{error}");
    one.write(vec![upsert("b", "1")]).await.expect("it goes on");
    let mut two = Session::new(&world, 2);
    let error = two.write(vec![upsert("b", &large)]).await.expect_err("too much for all");
    assert_eq!(error.code, ErrorCode::TooBusy);
    assert!(error.message.contains("limit is 6 KiB"), "{error}");
    one.back_to(0).await.expect("back");
    two.write(vec![upsert("b", &large)]).await.expect("there is room again");
    two.commit().await.expect("committed");
    let mut more = [3, 4].map(|n| Session::new(&world, n));
    for session in &mut more {
        session.write(vec![upsert("c", "1")]).await.expect("written");
    }
    let mut last = Session::new(&world, 5);
    let error = last.write(vec![upsert("c", "1")]).await.expect_err("too many");
    assert_eq!(error.code, ErrorCode::TooBusy);
    assert!(error.message.contains("3 open transactions"), "{error}");
    more[0].abort().await.expect("rolled back");
    last.write(vec![upsert("c", "1")]).await.expect("there is room again");
}

/// The transactions of a leader are lost when it stops leading, and those of a projector when it
/// restarts.
#[tokio::test]
async fn a_transaction_is_lost_with_its_leader() {
    let mut world = world_with(&[]).await;
    let mut session = Session::new(&world, 1);
    session.write(vec![upsert("a", "1")]).await.expect("written");
    let place = session.place;
    world.start().await;
    world.write(vec![upsert("b", "1")]).await.expect("it leads again");
    let gone = world.projector().keep_open(BUCKET, vec![TransactionId(1)]).await;
    assert_eq!(gone, Ok(vec![TransactionId(1)]));
    let lost = Session { place, ..Session::new(&world, 1) };
    assert_eq!(code(lost.commit().await), Err(ErrorCode::Conflict));
    assert_eq!(code(lost.get_at("a", 1).await), Err(ErrorCode::Conflict));
    assert_eq!(present(&world, "a").await, None);

    let mut trio = Trio::in_sync().await;
    let mut session = Session::new(&trio.worlds[0], 1);
    session.write(vec![upsert("t", "1")]).await.expect("written");
    let place = session.place;
    trio.world(PROJECTOR).stop();
    trio.change(CopiesChange::Promote(SECOND));
    trio.written(SECOND, "x", "1").await;
    let lost = Session { place, ..Session::new(&trio.worlds[1], 1) };
    assert_eq!(code(lost.commit().await), Err(ErrorCode::Conflict));
}

#[tokio::test]
async fn transaction_without_calls_is_rolled_back() {
    let world = small_world(|config| config.transaction_kept = Duration::from_millis(500)).await;
    let [mut kept, mut forgotten] = [1, 2].map(|n| Session::new(&world, n));
    for session in [&mut kept, &mut forgotten] {
        session.write(vec![upsert("a", "1")]).await.expect("written");
    }
    let both = || vec![TransactionId(1), TransactionId(2)];
    assert_eq!(world.projector().keep_open(BUCKET, both()).await, Ok(Vec::new()));
    // The task looks once a second.
    for _ in 0..25 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let gone = world.projector().keep_open(BUCKET, vec![TransactionId(1)]).await;
        assert_eq!(gone, Ok(Vec::new()));
    }
    let gone = world.projector().keep_open(BUCKET, both()).await;
    assert_eq!(gone, Ok(vec![TransactionId(2)]));
    assert_eq!(code(forgotten.commit().await), Err(ErrorCode::Conflict));
    kept.commit().await.expect("committed");
}
