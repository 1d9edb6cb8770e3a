//! Tests that large commits look up their documents before their turn, and still take account of
//! changes that others make between the look-up and the turn.

use std::time::Duration;

use proto::ErrorCode;
use proto::model::cut::{Cut, WritePosition};
use proto::rpc::api::Write;

use crate::common::*;
use crate::transactions::{Session, code, positions, present, publish, text};

/// The number of documents, more than a commit looks up during its turn.
const DOCUMENTS: usize = 1_500;

fn id(n: usize) -> String {
    format!("d{n:05}")
}

/// Returns upserts of all documents except those of `other`.
fn upserts(other: &[Write]) -> Vec<Write> {
    let ids = (0..DOCUMENTS).map(id);
    let rest = ids.filter(|id| other.iter().all(|write| write.id != *id));
    rest.map(|id| upsert(&id, "2")).chain(other.iter().cloned()).collect()
}

/// Starts a world in which every second document exists.
async fn world() -> World {
    let world = world_with(&[]).await;
    let documents = (0..DOCUMENTS).step_by(2).map(|n| upsert(&id(n), "1"));
    world.write(documents.collect()).await.expect("written");
    publish(&world, 1).await;
    world
}

#[tokio::test]
async fn the_first_committer_wins() {
    for other in [upsert(&id(700), "3"), delete(&id(700)), insert(&id(701), "3")] {
        let world = world().await;
        let mut session = Session::at(&world, 1, 1);
        session.write(upserts(&[])).await.expect("written");
        world.write(vec![other]).await.expect("written");
        assert_eq!(code(session.commit().await), Err(ErrorCode::Conflict));
        assert_eq!(present(&world, &id(2)).await, text("1"), "nothing of it is there");
    }
    let world = world().await;
    let mut session = Session::at(&world, 1, 1);
    session.write(upserts(&[])).await.expect("written");
    world.write(vec![upsert("other", "3")]).await.expect("written");
    assert_eq!(session.commit().await.map(|reply| reply.affected), Ok(DOCUMENTS as u64));
    assert_eq!(present(&world, &id(701)).await, text("2"));
}

#[tokio::test]
async fn the_refusal_of_a_commit_names_the_document_also_after_a_look_up() {
    let world = world().await;
    let mut session = Session::new(&world, 1);
    session.write(upserts(&[insert(&id(701), "2")])).await.expect("written");
    world.write(vec![insert(&id(701), "3")]).await.expect("written");
    publish(&world, 2).await;
    let refused = session.commit().await.expect_err("inserted twice");
    assert_eq!(refused.code, ErrorCode::DuplicateId, "{refused}");
    assert!(refused.message.contains(&id(701)), "{refused}");
    assert_eq!(code(session.commit().await), Err(ErrorCode::Conflict), "it was rolled back");
    assert_eq!(present(&world, &id(2)).await, text("1"), "nothing of it is there");
}

/// Commits `own` while the write `other` is logged and not yet visible at the commit's look-ups.
/// Returns the number of changed documents, `None` after a conflict.
async fn beside(other: Write, own: Vec<Write>, snapshot: bool) -> (Option<u64>, World) {
    let world = world().await;
    let mut session = match snapshot {
        true => Session::at(&world, 1, 1),
        false => Session::new(&world, 1),
    };
    session.write(upserts(&own)).await.expect("written");
    let held = HeldSyncs::of(&world.store);
    let release = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(held);
    };
    let commit = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        session.commit().await
    };
    let (written, committed, ()) = tokio::join!(world.write(vec![other]), commit, release);
    written.expect("written");
    let affected = match committed {
        Ok(reply) => Some(reply.affected),
        Err(error) => {
            // A transaction that has read nothing gets the error of the duplicate.
            let expected = if snapshot { ErrorCode::Conflict } else { ErrorCode::DuplicateId };
            assert_eq!(error.code, expected, "{error}");
            None
        }
    };
    (affected, world)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn change_after_the_look_up_is_a_conflict() {
    let of = |n| id(n);
    for other in [upsert(&of(700), "3"), delete(&of(700)), insert(&of(701), "3")] {
        let (affected, world) = beside(other, Vec::new(), true).await;
        assert_eq!(affected, None);
        assert_eq!(present(&world, &of(2)).await, text("1"));
    }
    let (affected, _) = beside(insert(&of(701), "3"), vec![insert(&of(701), "2")], false).await;
    assert_eq!(affected, None, "inserted twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blind_commit_replaces_later_changes() {
    let all = DOCUMENTS as u64;
    let (affected, world) = beside(upsert(&id(700), "3"), Vec::new(), false).await;
    assert_eq!((affected, present(&world, &id(700)).await), (Some(all), text("2")));
    let (affected, _) = beside(delete(&id(700)), vec![delete(&id(700))], false).await;
    assert_eq!(affected, Some(all - 1), "it is gone already");
    let (affected, world) = beside(upsert("other", "3"), vec![delete(&id(700))], false).await;
    assert_eq!((affected, present(&world, &id(700)).await), (Some(all), None));
}

/// Returns the number of seqnos that a world has assigned.
async fn numbers(world: &World) -> u64 {
    positions(world).await.iter().map(|(_, position)| position.seqno.0).sum()
}

#[tokio::test]
async fn each_change_takes_one_number_and_a_deletion_of_nothing_takes_none() {
    for gone in [None, Some(701)] {
        let world = world().await;
        let before = numbers(&world).await;
        let mut session = Session::new(&world, 1);
        let deleted: Vec<Write> = gone.into_iter().chain([700]).map(|n| delete(&id(n))).collect();
        session.write(upserts(&deleted)).await.expect("written");
        let reply = session.commit().await.expect("committed");
        let affected = (DOCUMENTS - usize::from(gone.is_some())) as u64;
        assert_eq!(reply.affected, affected);
        assert_eq!(numbers(&world).await - before, affected);
        assert_eq!(positions_of(&reply.position), positions(&world).await, "each has its place");
        for n in 0..DOCUMENTS {
            let is_deleted = deleted.iter().any(|write| write.id == id(n));
            let wanted = if is_deleted { None } else { text("2") };
            assert_eq!(present(&world, &id(n)).await, wanted, "document {n}");
        }
    }
}

/// Returns the ends of all vbuckets, each of which has a part of the write.
fn positions_of(written: &WritePosition) -> Cut {
    Cut::from_positions(written.positions.iter().map(|(_, position)| *position).collect())
}
