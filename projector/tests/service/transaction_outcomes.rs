//! Tests that a session can query the outcome of a COMMIT whose answer was lost.

use proto::ErrorCode;
use proto::model::copies::CopiesChange;
use proto::model::ids::*;
use proto::rpc::api::WriteReply;

use crate::common::*;
use crate::copies::{SECOND, Trio};
use crate::transactions::{Session, code, present, publish, text};

/// Commits a document. Returns the place and the number of commits that a query of the outcome
/// needs, and the reply.
async fn committed(world: &World, n: u64, id: &str) -> (TransactionPlace, u64, WriteReply) {
    let mut session = Session::new(world, n);
    session.write(vec![upsert(id, "1")]).await.expect("written");
    let reply = session.commit().await.expect("committed");
    (session.place, session.behind, reply)
}

fn again<'w>(world: &'w World, n: u64, place: TransactionPlace, behind: u64) -> Session<'w> {
    Session { place, behind, ..Session::new(world, n) }
}

#[tokio::test]
async fn a_commit_has_the_same_answer_again_also_after_a_restart() {
    let mut world = world_with(&[]).await;
    let (place, behind, reply) = committed(&world, 1, "a").await;
    assert_eq!((behind, reply.affected), (0, 1));
    let (later_place, later_behind, later) = committed(&world, 2, "a").await;
    assert_eq!(later_behind, 1);
    let ask = async |world: &World| {
        assert_eq!(again(world, 1, place, behind).commit().await, Ok(reply.clone()));
        let asked = again(world, 2, later_place, later_behind).commit().await;
        assert_eq!(asked, Ok(later.clone()));
        let never = again(world, 3, place, 0).commit().await;
        assert_eq!(code(never), Err(ErrorCode::Conflict), "it never was committed");
    };
    ask(&world).await;
    world.write(vec![upsert("a", "2")]).await.expect("written");
    ask(&world).await;
    world.start().await;
    world.write(vec![upsert("b", "1")]).await.expect("it leads again");
    ask(&world).await;
    assert_eq!(present(&world, "a").await, text("2"), "nothing was written again");
}

#[tokio::test]
async fn a_commit_that_changes_nothing_or_is_refused_has_its_answer_again() {
    let world = world_with(&[]).await;
    world.write(vec![upsert("a", "1")]).await.expect("written");
    publish(&world, 1).await;
    let mut nothing = Session::new(&world, 1);
    nothing.write(vec![upsert("a", "9")]).await.expect("written");
    nothing.back_to(0).await.expect("back");
    let reply = nothing.commit().await.expect("committed");
    assert_eq!(reply.affected, 0);
    assert_eq!(nothing.commit().await, Ok(reply));

    let mut refused = Session::at(&world, 2, 1);
    refused.write(vec![upsert("a", "2")]).await.expect("written");
    world.write(vec![upsert("a", "3")]).await.expect("written");
    assert_eq!(code(refused.commit().await), Err(ErrorCode::Conflict));
    assert_eq!(code(refused.commit().await), Err(ErrorCode::Conflict));
    assert_eq!(present(&world, "a").await, text("3"));
}

#[tokio::test]
async fn a_bucket_that_has_forgotten_a_commit_says_so() {
    let world = world_with(&[]).await;
    let (place, behind, _) = committed(&world, 1, "a").await;
    // A bucket remembers 1,024 commits.
    for n in 2..=1_025 {
        committed(&world, n, "b").await;
    }
    let forgotten = again(&world, 1, place, behind).commit().await.expect_err("forgotten");
    assert_eq!(forgotten.code, ErrorCode::InDoubt);
    assert_eq!(forgotten.message, "bucket b does not remember if transaction 1 was committed");
}

#[tokio::test]
async fn another_copy_that_leads_knows_the_commits_from_before_and_after_it_joined() {
    let mut trio = Trio::new(2).await;
    trio.write(PROJECTOR, "a", "1").await.expect("written");
    let before = committed(&trio.worlds[0], 1, "t").await;
    trio.join(SECOND).await;
    let after = committed(&trio.worlds[0], 2, "u").await;
    assert_eq!((before.1, after.1), (0, 1));
    trio.world(PROJECTOR).stop();
    trio.change(CopiesChange::Promote(SECOND));
    trio.written(SECOND, "x", "1").await;
    let second = &trio.worlds[1];
    for (n, (place, behind, reply)) in [(1, before), (2, after)] {
        assert_eq!(again(second, n, place, behind).commit().await, Ok(reply), "transaction {n}");
    }
    let never = again(second, 3, TransactionPlace(1), 1).commit().await;
    assert_eq!(code(never), Err(ErrorCode::Conflict));
}
