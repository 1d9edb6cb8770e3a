//! Buckets whose producer numbers the mutations.

use bytes::Bytes;
use proto::ErrorCode;
use proto::model::cut::Position;
use proto::model::ids::*;
use proto::rpc::api::{ProjectorApi, PushMutation, PushRequest, WriteRequest};
use proto::rpc::mutation::MutationKind;

use crate::common::*;

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
        (pushed("a", 5, 2), "the next is 3"),
        (pushed("a", 5, 4), "leaves a gap, the next is 3"),
        (pushed("a", 6, 3), "the current branch is 5"),
    ] {
        let error = push(&world, vec![bad]).await.expect_err("out of order");
        assert_eq!(error.code, ErrorCode::OutOfOrder);
        assert!(error.message.contains(says), "{error}");
    }
    let error = push(&world, vec![pushed("a", 5, 3), pushed("a", 5, 5)]).await;
    assert_eq!(error.map_err(|error| error.code), Err(ErrorCode::OutOfOrder));
    let kept = world.projector().positions(PUSHED).await.expect("positions").get(vbucket);
    assert_eq!(kept.seqno, Seqno(3), "the mutations before the bad one are stored");
    let mut wrong = pushed("a", 5, 4);
    wrong.vbucket = VbucketId((vbucket.0 + 1) % VBUCKETS);
    let error = push(&world, vec![wrong]).await.expect_err("a wrong vbucket");
    assert_eq!(error.code, ErrorCode::InvalidParameter);
    let logs = world.projector().history(PUSHED).await.expect("branches").logs;
    assert_eq!(logs.get(vbucket), Some(&vec![(Vbuuid(5), 0)]));
}

#[tokio::test]
async fn a_repeated_begin_of_a_branch_removes_nothing() {
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
    // Branch 6 has no mutations and is dropped with branch 7, which in turn is dropped with branch 8.
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
    let writes = checked(vec![upsert("a", "1")]);
    let request = WriteRequest { bucket: PUSHED, writes };
    let error = world.projector().write(request).await.expect_err("a pushed bucket");
    assert_eq!(error.code, ErrorCode::Unsupported);
}
