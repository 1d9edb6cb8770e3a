//! Commits of transactions that change the same documents.

use std::time::Duration;

use proto::ErrorCode;
use proto::model::cut::Cut;
use proto::model::ids::*;

use crate::common::*;
use crate::transactions::{Session, code, positions, present, publish, text};

#[tokio::test]
async fn the_first_committer_wins() {
    let world = world_with(&[]).await;
    world.write(["a", "b"].map(|id| upsert(id, "1")).to_vec()).await.expect("written");
    publish(&world, 1).await;
    // Documents that another writer has changed, inserted and deleted since the snapshot.
    let (mut one, mut two) = (Session::at(&world, 1, 1), Session::at(&world, 2, 1));
    let (mut three, mut four) = (Session::at(&world, 3, 1), Session::at(&world, 4, 1));
    one.write(vec![upsert("a", "2")]).await.expect("written");
    two.write(vec![upsert("c", "2")]).await.expect("written");
    three.write(vec![upsert("b", "2")]).await.expect("written");
    four.write(vec![upsert("d", "2")]).await.expect("written");
    let others =
        vec![upsert("a", "3"), insert("c", "3"), delete("b"), insert("x", "3"), delete("x")];
    world.write(others).await.expect("written");
    for (session, id) in [(&one, "a"), (&two, "c"), (&three, "b")] {
        let error = session.commit().await.expect_err("somebody else was first");
        let said = format!(
            "document \"{id}\" of bucket b was changed by another transaction since this one began to read"
        );
        assert_eq!((error.code, error.message), (ErrorCode::Conflict, said));
        assert_eq!(error.hint.as_deref(), Some("begin the transaction again"));
        assert!(session.commit().await.is_err(), "it is rolled back");
    }
    four.commit().await.expect("nobody else has changed it");
    let seen = [present(&world, "a").await, present(&world, "b").await, present(&world, "d").await];
    assert_eq!(seen, [text("3"), None, text("2")]);
    let mut five = Session::at(&world, 5, 1);
    five.write(vec![upsert("x", "2")]).await.expect("written");
    assert_eq!(code(five.commit().await), Err(ErrorCode::Conflict), "made and deleted meanwhile");
}

#[tokio::test]
async fn a_transaction_that_has_only_written_replaces_what_is_there_but_inserts_nothing_twice() {
    let world = world_with(&[]).await;
    world.write(vec![upsert("a", "1"), upsert("b", "1")]).await.expect("written");
    let mut blind = Session::new(&world, 1);
    blind.write(vec![upsert("a", "2"), delete("b")]).await.expect("written");
    let mut inserting = Session::new(&world, 2);
    inserting.write(vec![insert("c", "2"), upsert("c", "3")]).await.expect("written");
    let mut read_later = Session::new(&world, 3);
    read_later.write(vec![insert("d", "2")]).await.expect("written");
    let others = vec![upsert("a", "3"), delete("b"), insert("c", "4"), insert("d", "4")];
    world.write(others).await.expect("written");
    assert_eq!(blind.commit().await.map(|reply| reply.affected), Ok(1), "b is gone already");
    assert_eq!(present(&world, "a").await, text("2"));
    assert_eq!(code(inserting.commit().await), Err(ErrorCode::DuplicateId));
    publish(&world, 1).await;
    read_later.snapshot = Some(Epoch(1));
    let refused = read_later.commit().await;
    assert_eq!(code(refused), Err(ErrorCode::Conflict), "the snapshot is newer than its insert");
    assert_eq!((present(&world, "c").await, present(&world, "d").await), (text("4"), text("4")));
}

/// Two concurrent commits change one document: in one group, or the second one after a group that
/// is not visible yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_commits_at_once_exactly_one_wins() {
    let world = world_with(&[]).await;
    for (round, sync_is_held) in (1..=40).map(|round| (round, round % 2 == 0)) {
        publish(&world, round).await;
        let mut sessions =
            [1, 2].map(|n| Session { place: TransactionPlace(0), ..Session::at(&world, n, round) });
        for session in &mut sessions {
            session.write(vec![upsert("a", &round.to_string())]).await.expect("written");
        }
        let held = sync_is_held.then(|| HeldSyncs::of(&world.store));
        let [one, two] = &sessions;
        let release = async {
            if held.is_some() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            drop(held);
        };
        let second = async {
            if sync_is_held {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            two.commit().await
        };
        let (one, two, ()) = tokio::join!(one.commit(), second, release);
        let won = [one, two].map(code);
        let conflicts = won.iter().filter(|won| **won == Err(ErrorCode::Conflict)).count();
        let wins = won.iter().filter(|won| won.is_ok()).count();
        assert_eq!((wins, conflicts), (1, 1), "round {round}: {won:?}");
    }
    assert_eq!(positions(&world).await.distance_from(&Cut::zero(VBUCKETS)), 40);
}
