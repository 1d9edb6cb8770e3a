//! Tests moments over several projectors.

use std::time::Duration;

use proto::model::ids::{BucketId, Epoch, NodeId};
use proto::model::moment::Moment;
use proto::model::node::Role;
use proto::rpc::api::{CoordinatorApi, FixedMoment, Heartbeat, MOMENT_HOLD_MS, ProjectorReport};
use proto::rpc::command::{Command, Outcome, RegisterNode};

use proto::ErrorCode;

use super::super::*;
use super::test_cluster::*;
use crate::state::tests::{create_bucket, node};

/// Returns the seqno that an epoch of a bucket covers.
fn covered(member: &Coordinator, bucket: BucketId, epoch: Epoch) -> u64 {
    let view = member.member.replica.view();
    let mark = view.state.bucket(bucket).unwrap().epochs.mark(epoch).unwrap();
    mark.cut.get(proto::model::ids::VbucketId(0)).seqno.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moment_covers_all_buckets_and_a_silent_projector_delays_one_round() {
    const ONE: BucketId = BucketId(1);
    const TWO: BucketId = BucketId(2);
    let mut world = TestWorld::with_bucket().await;
    world.propose(Command::RegisterNode(RegisterNode { node: node(11, Role::Projector) })).await;
    assert_eq!(world.propose(create_bucket("two")).await, Outcome::Bucket(TWO));
    let (_, leader) = world.leader().await;
    let follower = world.follower().await;
    let tell = |one: u64, two: u64| {
        *world.cluster.positions.lock().unwrap() = one;
        *world.cluster.elsewhere.lock().unwrap() = two;
    };
    let both = |moment: FixedMoment| {
        let (leader, follower) = (&leader, &follower);
        async move {
            let two = follower.epoch_at(TWO, Moment::at(moment.at)).await.unwrap();
            (covered(leader, ONE, moment.epoch), covered(leader, TWO, two))
        }
    };

    tell(5, 3);
    // A projector that has never reported is queried, and its answer is not waited for.
    let all = async {
        while both(follower.moment(ONE, Epoch(0), 5_000).await.unwrap()).await != (5, 3) {}
    };
    tokio::time::timeout(Duration::from_secs(10), all).await.expect("both answer");
    let asked = (0..20).map(|_| follower.moment(ONE, Epoch(0), 5_000));
    for moment in futures::future::join_all(asked).await {
        assert_eq!(both(moment.unwrap()).await, (5, 3));
    }

    // It has reported, so its answer is waited for.
    let alive = Heartbeat::new(NodeId(11), 0, ProjectorReport::default());
    leader.heartbeat(alive).await.unwrap();
    *world.cluster.silent.lock().unwrap() = Some(NodeId(11));
    tell(6, 9);
    let began = Instant::now();
    let moment = follower.moment(ONE, Epoch(0), 5_000).await.unwrap();
    assert_eq!(both(moment).await, (6, 3), "the silent one keeps its epoch");
    let (took, hold) = (began.elapsed(), Duration::from_millis(MOMENT_HOLD_MS));
    assert!(took >= hold, "{took:?}");
    tell(7, 9);
    let mut later = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        let moment = follower.moment(ONE, Epoch(0), 5_000).await.unwrap();
        assert_eq!(both(moment).await, (7, 3));
        later = later.min(began.elapsed());
    }
    assert!(later < hold, "later rounds do not wait for it: {later:?}");
    let refused = follower.moment(TWO, Epoch(0), 700).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unavailable);
    let what = "bucket \"two\": no epoch covers its end within the time-out";
    assert_eq!(refused.message, what, "by its name");

    *world.cluster.silent.lock().unwrap() = None;
    let moment = follower.moment(TWO, Epoch(0), 5_000).await.unwrap();
    assert_eq!(covered(&leader, TWO, moment.epoch), 9, "it answers again");
}
