//! Tests three members in one process over real files, with a projector that reports its positions.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use proto::model::assignment::VbucketSet;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, EpochMark};
use proto::model::ids::{BucketId, Epoch, IndexId, LocalIndexId, MoveId, NodeId, TopologyNo};
use proto::model::index::IndexState;
use proto::model::moves::{MovePhase, MoveProgress, MoveStage, RebalanceRequest, SliceMove};
use proto::model::node::Role;
use proto::rpc::api::{
    BucketReport, CoordinatorApi, Heartbeat, IndexerReport, RouterReport, SyncReport, WatchKind,
    WatchMessage,
};
use proto::rpc::command::{
    AdvanceMove, Command, EndMove, Outcome, PromoteEpochs, Proposal, RegisterNode,
};

use proto::ErrorCode;

use super::*;
use crate::state::tests::{create_index, node, spec};
use test_cluster::*;

#[path = "moments_tests.rs"]
mod moments;
#[path = "test_cluster.rs"]
mod test_cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ddl_survives_a_change_of_leader_and_is_executed_once() {
    let mut world = TestWorld::with_bucket().await;
    let (first, _) = world.leader().await;
    world.stop(first);
    let began = Instant::now();
    let outcome = world.propose(create_index(spec("i"))).await;
    assert_eq!(outcome, Outcome::Index(IndexId(1)));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());

    // The repeated request at the new leader returns the first answer and creates no second index.
    world.requests -= 1;
    assert_eq!(world.propose(create_index(spec("i"))).await, outcome);
    let (_, leader) = world.leader().await;
    assert_eq!(leader.member.replica.view().catalog.indexes.len(), 1);

    // The old leader restarts and catches up.
    world.start(first).await;
    let cas = leader.member.replica.view().state.cas();
    let behind = || {
        let members = world.running_members();
        members.iter().any(|member| member.member.replica.view().state.cas() < cas)
    };
    while behind() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let states: Vec<_> = world
        .running_members()
        .iter()
        .map(|member| member.member.replica.view().catalog.clone())
        .collect();
    assert!(states.len() == 3 && states.iter().all(|state| *state == states[0]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_does_not_know_where_its_leader_is_asks_the_others() {
    let mut world = TestWorld::with_bucket().await;
    let (leader, leading) = world.leader().await;
    let id = world.follower().await.member.config.node;
    world.stop(id);
    world.propose(create_index(spec("i"))).await;
    let cas = leading.member.replica.view().state.cas();
    world.start_without(id, Some(leader)).await;
    let behind = || {
        let members = world.cluster.members.lock().unwrap();
        members[&id].member.replica.view().state.cas() < cas
    };
    let began = Instant::now();
    while behind() {
        assert!(began.elapsed() < Duration::from_secs(20), "it never answers its leader");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_reach_every_watcher_and_waiters_are_answered_at_once() {
    let world = TestWorld::with_bucket().await;
    let follower = world.follower().await;
    let mut watch = follower.watch(WatchKind::CatalogAndEpochs).await.unwrap();

    // The follower forwards the call, and the waiter does not wait for the tick.
    let waiting = follower.epoch_covering(BucketId(1), cut(5), None, Epoch(0), 5_000);
    let telling = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        // As a projector does, because a leader that loses its place forgets the report.
        loop {
            let _lost_with_its_leader = follower.sync(report(5)).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let covering = tokio::select! {
        covering = waiting => covering.unwrap(),
        () = telling => unreachable!("it goes on"),
    };
    assert_eq!((covering.oldest, covering.newest), (Epoch(2), Epoch(2)));

    // The watcher receives the bucket before its epochs, and misses no epoch.
    let mut known = false;
    let mut epochs: Vec<EpochMark> = Vec::new();
    while epochs.last().is_none_or(|mark| mark.epoch < Epoch(2)) {
        match watch.next().await.unwrap().unwrap() {
            WatchMessage::Catalog(catalog) => known = catalog.bucket("b").is_some(),
            WatchMessage::Epochs(marks) => {
                assert!(known);
                epochs.extend(marks);
            }
            WatchMessage::Users { .. } => panic!("nobody has asked for users"),
        }
    }
    assert_eq!(epochs.iter().map(|mark| mark.epoch.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((epochs[1].parent, &*epochs[1].cut), (Epoch(1), &cut(5)));

    // The status has no newer catalog than any watcher receives, so waiting for its catalog ends.
    let status = follower.status().await.unwrap();
    assert_eq!(status.catalog_cas, follower.member.replica.view().catalog.cas);

    let covered =
        follower.epoch_covering(BucketId(1), cut(4), None, Epoch(2), 5_000).await.unwrap();
    assert_eq!(covered, covering, "the oldest that covers it, and no new one");
    let never = follower.epoch_covering(BucketId(1), cut(6), None, Epoch(0), 50).await.unwrap_err();
    assert_eq!(never.code, ErrorCode::Cancelled);
    let behind = follower.epoch_covering(BucketId(1), cut(4), None, Epoch(9), 50).await;
    assert_eq!(behind.unwrap_err().code, ErrorCode::Cancelled, "no member has epoch 9");
    let unknown =
        follower.epoch_covering(BucketId(9), cut(1), None, Epoch(0), 50).await.unwrap_err();
    assert_eq!(unknown.code, ErrorCode::Unknown);
    let shape =
        follower.epoch_covering(BucketId(1), Cut::zero(9), None, Epoch(0), 50).await.unwrap_err();
    assert_eq!(shape.code, ErrorCode::InvalidParameter);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_leader_goes_on_from_the_first_report_that_it_hears() {
    let world = TestWorld::with_bucket().await;
    let (first, _) = world.leader().await;
    *world.cluster.positions.lock().unwrap() = 9;
    world.stop(first);
    let (_, leader) = world.leader().await;
    let waiting = leader.epoch_covering(BucketId(1), cut(9), None, Epoch(0), 5_000);
    // A projector reports all positions twice a second: the new leader knows none of them.
    let reporting = async {
        loop {
            // The first report may reach a leader that has not compared the source yet.
            let _refused = leader.sync(report(9)).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let covering = tokio::select! {
        covering = waiting => covering.unwrap(),
        () = reporting => unreachable!("it reports for ever"),
    };
    let cut_of = |epoch| {
        let view = leader.member.replica.view();
        Cut::clone(&view.state.bucket(BucketId(1)).unwrap().epochs.mark(epoch).unwrap().cut)
    };
    assert_eq!(cut_of(covering.oldest), cut(9));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_serves_scans_once_its_slices_do() {
    let mut world = TestWorld::with_bucket().await;
    world.propose(create_index(spec("i"))).await;
    let follower = world.follower().await;
    let mut watch = follower.watch(WatchKind::CatalogAndEpochs).await.unwrap();
    let generation = generation(&world.leader().await.1);
    for id in [20, 21] {
        follower.heartbeat(indexer_heartbeat((id, generation), 0..4, vec![])).await.unwrap();
    }
    let served = async {
        loop {
            if let WatchMessage::Catalog(catalog) = watch.next().await.unwrap().unwrap()
                && catalog.index("i").is_some_and(|i| i.state == IndexState::Maintenance)
            {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), served).await.unwrap();

    let (_, leader) = world.leader().await;
    let nodes = leader.status().await.unwrap().nodes;
    assert!(nodes.iter().any(|node| node.node == NodeId(20) && node.slices.len() == 4));
    let stranger = Heartbeat::new(NodeId(99), 0, IndexerReport::default());
    assert_eq!(follower.heartbeat(stranger).await.unwrap_err().code, ErrorCode::Unknown);
    let router = Heartbeat::new(NodeId(20), 0, RouterReport::default());
    assert_eq!(follower.heartbeat(router).await.unwrap_err().code, ErrorCode::NodeTaken);
    let catalog = follower.member.replica.view().catalog.clone();
    assert_eq!(catalog.nodes[&NodeId(2)].role, Role::Coordinator, "members are nodes too");
}

/// Sends heartbeats of indexers 20, 21 and 22; indexer 22 reports every slice that moves to it.
/// Returns the catalog.
async fn beat(member: &Coordinator) -> Arc<Catalog> {
    let catalog = member.member.replica.view().catalog.clone();
    let moves = catalog.index("i").map_or(&[][..], |index| &index.moves);
    let generation = generation(member);
    let shown = |m: &SliceMove| MoveProgress {
        index: LocalIndexId { index: IndexId(1), generation },
        id: m.id,
        phase: MovePhase::Installed,
        bytes: 0,
        bytes_total: 0,
        bytes_per_s: 0,
        trouble: None,
    };
    let shows = moves.iter().map(|m| m.slice.0);
    let new = indexer_heartbeat((22, generation), shows, moves.iter().map(shown).collect());
    let old = [20, 21].map(|id| indexer_heartbeat((id, generation), 0..4, vec![]));
    for said in old.into_iter().chain([new]) {
        if let Err(error) = member.heartbeat(said).await {
            assert!(error.is_retry() || error.code == ErrorCode::Unknown, "{error}");
        }
    }
    catalog
}

/// Sends heartbeats until the catalog satisfies `wish`; returns the catalog.
async fn beat_until(member: &Coordinator, wish: impl Fn(&Catalog) -> bool) -> Arc<Catalog> {
    let began = Instant::now();
    loop {
        let catalog = beat(member).await;
        if wish(&catalog) {
            return catalog;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", catalog.index("i"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slices_move_to_a_new_node_when_the_copies_agree() {
    let mut world = TestWorld::with_bucket().await;
    world.propose(create_index(spec("i"))).await;
    let follower = world.follower().await;
    let serves = |catalog: &Catalog| {
        catalog.index("i").is_some_and(|index| index.state == IndexState::Maintenance)
    };
    beat_until(&follower, serves).await;
    world.propose(Command::RegisterNode(RegisterNode { node: node(22, Role::Indexer) })).await;
    beat_until(&follower, |catalog| catalog.nodes.contains_key(&NodeId(22))).await;

    let request = |dry_run| RebalanceRequest { index: Some(IndexId(1)), dry_run };
    let planned = follower.rebalance(request(true)).await.unwrap();
    assert_eq!(planned.moves.len(), 2);
    assert!(follower.member.replica.view().catalog.index("i").unwrap().moves.is_empty());

    *world.cluster.differs.lock().unwrap() = Some(NodeId(22));
    assert_eq!(follower.rebalance(request(false)).await.unwrap(), planned);
    let catalog = beat_until(&follower, |catalog| catalog.ended_moves.len() == 2).await;
    let undone = catalog.ended_moves.iter().map(|ended| ended.undone.as_deref().unwrap());
    assert!(undone.into_iter().all(|why| why.contains("differ at epoch 1")));
    assert_eq!(catalog.index("i").unwrap().topology.number, TopologyNo(1));

    *world.cluster.differs.lock().unwrap() = None;
    follower.rebalance(request(false)).await.unwrap();
    let moved = |catalog: &Catalog| {
        let topology = &catalog.index("i").unwrap().topology;
        topology.slices_on(NodeId(22)).len() == 2
    };
    let catalog = beat_until(&follower, moved).await;
    let now = catalog.index("i").unwrap().topology.clone();
    let id = catalog.index("i").unwrap().local_id();
    assert_eq!(follower.topology(id, now.number).await.unwrap(), now);
    let first = follower.topology(id, TopologyNo(1)).await.unwrap();
    assert!(first.slices_on(NodeId(22)).is_empty(), "scans that began before go by it");
    let unknown = RebalanceRequest { index: Some(IndexId(9)), dry_run: true };
    assert_eq!(follower.rebalance(unknown).await.unwrap_err().code, ErrorCode::Changed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_calls_are_refused() {
    let world = TestWorld::with_bucket().await;
    let (_, leader) = world.leader().await;
    let (index, id) = (IndexId(1), MoveId(1));
    let leaders_own = [
        Command::PromoteEpochs(PromoteEpochs { promotions: Vec::new(), joined: Vec::new() }),
        Command::AdvanceMove(AdvanceMove { index, id, stage: MoveStage::Done }),
        Command::EndMove(EndMove { index, id, undone: None }),
    ];
    for command in leaders_own {
        let refused = leader.propose(Proposal::from(command)).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidParameter);
    }
    assert!(leader.raft(vec![Bytes::from_static(b"nonsense")]).await.is_err());
    let buckets = vec![BucketReport::new(BucketId(1), VbucketSet::all(9), Cut::zero(9))];
    let bad = SyncReport { buckets, ..report(1) };
    assert_eq!(leader.sync(bad).await.unwrap_err().code, ErrorCode::InvalidParameter);

    let config = leader.member.config.clone();
    let directory = Arc::new(LocalDirectory(world.cluster.clone(), Mutex::default()));
    let second = Coordinator::start(config, Env::real(), directory).await.err().unwrap();
    assert!(second.message.contains("in use"), "{second}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_cut_off_ends_its_watches() {
    let world = TestWorld::new().await;
    let (leader, member) = world.leader().await;
    let mut watch = member.watch(WatchKind::CatalogAndEpochs).await.unwrap();
    (1..=3).map(NodeId).filter(|id| *id != leader).for_each(|id| world.stop(id));
    let end = async {
        loop {
            if let Err(error) = watch.next().await.unwrap() {
                return error;
            }
        }
    };
    let error = tokio::time::timeout(Duration::from_secs(10), end).await.unwrap();
    assert_eq!(error.code, ErrorCode::NotLeader);
    assert_eq!(
        member.watch(WatchKind::CatalogAndEpochs).await.err().unwrap().code,
        ErrorCode::NotLeader,
        "new ones are refused too"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_disk_fails_stops_and_says_so() {
    let (mut env, _, disk) = proto::env::sim::world(1);
    env.spawner = Env::real().spawner;
    let config = Config::new(NodeId(1), vec![(NodeId(1), "member:1".into())], "/data/one".into());
    let cluster = Arc::new(Cluster::default());
    let directory = Arc::new(LocalDirectory(cluster, Mutex::default()));
    let member = Coordinator::start(config, env, directory).await.unwrap();
    let request =
        |id| Proposal::from(Command::RegisterNode(RegisterNode { node: node(id, Role::Indexer) }));
    while member.propose(request(20)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut watch = member.watch(WatchKind::CatalogAndEpochs).await.unwrap();
    disk.crash();
    // Either this write or one of the leader's own is the first to fail, and stops the member.
    let error = member.propose(request(21)).await.unwrap_err();
    assert!([ErrorCode::Io, ErrorCode::Unavailable].contains(&error.code), "{error}");
    tokio::time::timeout(Duration::from_secs(5), member.stopped()).await.unwrap();
    let end = async { while watch.next().await.is_some_and(|message| message.is_ok()) {} };
    tokio::time::timeout(Duration::from_secs(5), end).await.unwrap();
    assert_eq!(member.status().await.unwrap().leader, None, "a stopped member does not lead");
    assert!(member.propose(request(22)).await.unwrap_err().is_retry());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_in_the_log_of_a_member_ends_its_process() {
    let (env, disk, mut ends) = proto::env::sim::real_env_with_sim_fs(1);
    let config = Config::new(NodeId(1), vec![(NodeId(1), "member:1".into())], "/data/one".into());
    let directory = Arc::new(LocalDirectory(Arc::new(Cluster::default()), Mutex::default()));
    let member = Coordinator::start(config, env, directory).await.unwrap();
    let mut end = None;
    for id in 20..40 {
        // The next operation may be of another task, which tries again after a panic.
        disk.panic_at(disk.operations() + 1);
        let command = Command::RegisterNode(RegisterNode { node: node(id, Role::Indexer) });
        let writes = member.propose(Proposal::from(command));
        let ended = async {
            drop(writes.await);
            ends.recv().await
        };
        end = tokio::time::timeout(Duration::from_secs(2), ended).await.ok().flatten();
        if end.is_some() {
            break;
        }
    }
    let end = end.expect("the process ends");
    assert!(end.starts_with("task \"coordinator-log-write\" panicked: simulated"), "{end}");
}
