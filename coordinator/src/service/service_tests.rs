//! Three members in one process over real files, with a projector that reports its positions.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use proto::model::assignment::VbucketSet;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::history::{FailoverLogs, SourceHistory, SourcePlace};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, MoveId, NodeId, Seqno, SliceId, SliceNo,
    TopologyNo, Vbuuid,
};
use proto::model::index::IndexState;
use proto::model::moment::Moment;
use proto::model::moves::{MovePhase, MoveProgress, MoveStage, RebalanceRequest, SliceMove};
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::{
    BucketProgress, BucketReport, CoordinatorApi, CopyAnswer, CopyRequest, FixedMoment,
    HandOverPiece, HandOverRequest, Heartbeat, IndexerApi, MOMENT_HOLD_MS, ProjectorApi, PushReply,
    PushRequest, ResultStream, SliceProgress, SyncReport, WatchMessage, Watched, WriteReply,
    WriteRequest,
};
use proto::rpc::command::{Command, CommandRequest, Outcome, RequestId};
use proto::rpc::export::{ExportMessage, ExportRequest};
use proto::rpc::mutation::{BackfillMessage, BackfillRequest, StreamMessage, SubscribeRequest};
use proto::rpc::scan::{AppliedReport, ShardBatch, ShardScan};
use tempfile::TempDir;

use proto::ErrorCode;

use super::*;
use crate::state::tests::{create_bucket, create_index, node, spec};

/// The running members, and the projector's state.
#[derive(Default)]
struct Cluster {
    members: Mutex<BTreeMap<NodeId, Arc<Coordinator>>>,
    positions: Mutex<u64>,
    /// The position of all buckets but the first.
    elsewhere: Mutex<u64>,
    /// A projector that does not answer.
    silent: Mutex<Option<NodeId>>,
    /// An indexer whose copies have a different checksum.
    differs: Mutex<Option<NodeId>>,
}

struct Local(Arc<Cluster>);

impl Directory for Local {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        self.0.members.lock().unwrap().values().next().unwrap().clone()
    }

    fn coordinator_member(&self, node: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        match self.0.members.lock().unwrap().get(&node) {
            Some(member) => Ok(member.clone()),
            None => Err(Error::unavailable(format!("coordinator {node} is down"))),
        }
    }

    fn projector(&self, node: &NodeInfo) -> Arc<dyn ProjectorApi> {
        Arc::new(Projector(self.0.clone(), node.id))
    }

    fn indexer(&self, node: &NodeInfo) -> Arc<dyn IndexerApi> {
        Arc::new(Indexer(self.0.clone(), node.id))
    }
}

/// A projector that only knows its positions.
struct Projector(Arc<Cluster>, NodeId);

impl Projector {
    async fn check_answers(&self) {
        if *self.0.silent.lock().unwrap() == Some(self.1) {
            std::future::pending::<()>().await;
        }
    }
}

fn no<T>() -> Result<T> {
    Err(Error::internal("not in this test"))
}

#[async_trait]
impl ProjectorApi for Projector {
    async fn write(&self, _: WriteRequest) -> Result<WriteReply> {
        no()
    }

    async fn get(&self, _: BucketId, _: Vec<String>) -> Result<Vec<Option<Bytes>>> {
        no()
    }

    async fn push(&self, _: PushRequest) -> Result<PushReply> {
        no()
    }

    async fn place(&self, bucket: BucketId) -> Result<SourcePlace> {
        let SourceHistory { durable, logs, kept } = self.history(bucket).await?;
        Ok(SourcePlace { durable, history: logs.fingerprint(), kept })
    }

    async fn history(&self, bucket: BucketId) -> Result<SourceHistory> {
        self.check_answers().await;
        let logs = Arc::new(FailoverLogs::new(vec![vec![(Vbuuid(7), 0)]; 2]));
        let at = if bucket == BucketId(1) { &self.0.positions } else { &self.0.elsewhere };
        let durable = cut(*at.lock().unwrap());
        Ok(SourceHistory { durable, logs, kept: VbucketSet::all(2) })
    }

    async fn subscribe(&self, _: SubscribeRequest) -> Result<ResultStream<StreamMessage>> {
        no()
    }

    async fn backfill(&self, _: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        no()
    }

    async fn hand_over(&self, _: HandOverRequest) -> Result<HandOverPiece> {
        no()
    }

    async fn copy(&self, _: CopyRequest) -> Result<CopyAnswer> {
        no()
    }
}

/// An indexer that only knows checksums.
struct Indexer(Arc<Cluster>, NodeId);

#[async_trait]
impl IndexerApi for Indexer {
    async fn scan(&self, _: ShardScan) -> Result<ResultStream<ShardBatch>> {
        no()
    }

    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>> {
        no()
    }

    async fn checksum(&self, _: SliceId, _: Epoch) -> Result<(u64, u64)> {
        Ok((7, u64::from(*self.0.differs.lock().unwrap() == Some(self.1))))
    }

    async fn export(&self, _: ExportRequest) -> Result<ResultStream<ExportMessage>> {
        no()
    }
}

fn cut(seqno: u64) -> Cut {
    let position = Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) };
    Cut::from_positions(vec![position, Position::default()])
}

struct World {
    cluster: Arc<Cluster>,
    dir: TempDir,
    requests: u64,
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let world = Self { cluster: Arc::default(), dir, requests: 0 };
        for id in 1..=3 {
            world.start(NodeId(id)).await;
        }
        world
    }

    async fn start(&self, id: NodeId) {
        let members = (1..=3).map(|id| (NodeId(id), format!("member:{id}"))).collect();
        let config = Config::new(id, members, self.dir.path().join(id.to_string()));
        let directory = Arc::new(Local(self.cluster.clone()));
        let member = Coordinator::start(config, Env::real(), directory).await.unwrap();
        self.cluster.members.lock().unwrap().insert(id, member);
    }

    fn stop(&self, id: NodeId) {
        self.cluster.members.lock().unwrap().remove(&id);
    }

    fn any(&self) -> Vec<Arc<Coordinator>> {
        self.cluster.members.lock().unwrap().values().cloned().collect()
    }

    /// Waits for a leader that is ready to decide, and returns it.
    async fn leader(&self) -> (NodeId, Arc<Coordinator>) {
        for _ in 0..1000 {
            let leads = |member: &Arc<Coordinator>| member.member.leader().is_some();
            if let Some(member) = self.any().into_iter().find(leads) {
                return (member.member.config.node, member);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no leader within ten seconds");
    }

    async fn follower(&self) -> Arc<Coordinator> {
        let (leader, _) = self.leader().await;
        self.any().into_iter().find(|member| member.member.config.node != leader).unwrap()
    }

    /// Sends a request until it is answered, as a client does.
    async fn propose(&mut self, command: Command) -> Outcome {
        self.requests += 1;
        let request = Some(RequestId { client: 77, sequence: self.requests });
        let request = CommandRequest { request, command };
        for attempt in 0..1000 {
            let members = self.any();
            match members[attempt % members.len()].propose(request.clone()).await {
                Ok(Outcome::Refused(error)) => panic!("refused: {error}"),
                Ok(outcome) => return outcome,
                Err(error) if error.is_retry() => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
        panic!("no member answers");
    }

    async fn with_bucket() -> Self {
        let mut world = Self::new().await;
        for info in [node(10, Role::Projector), node(20, Role::Indexer), node(21, Role::Indexer)] {
            world.propose(Command::RegisterNode(info)).await;
        }
        let outcome = world.propose(create_bucket("b")).await;
        assert_eq!(outcome, Outcome::Bucket(BucketId(1)));
        world
    }
}

/// The heartbeat of an indexer that has applied epoch 1, serves these slices of index 1, and is the target of moves.
fn indexer_says(
    (id, generation): (u64, Generation),
    slices: impl IntoIterator<Item = u16>,
    moves: Vec<MoveProgress>,
) -> Heartbeat {
    let progress = |slice| SliceProgress {
        slice: SliceId { index: IndexId(1), generation, slice: SliceNo(slice) },
        floor: Some(Epoch(1)),
        entries: 0,
        bytes: 0,
        built_percent: None,
        copied_from: None,
        trouble: None,
    };
    let bucket = BucketProgress {
        bucket: BucketId(1),
        high_watermark: cut(0),
        applied: Epoch(1),
        durable: Epoch(1),
        queue_bytes: 0,
        queue_bytes_max: 1,
    };
    let (node, slices) = (NodeId(id), slices.into_iter().map(progress).collect());
    Heartbeat {
        node,
        buckets: vec![bucket],
        slices,
        moves,
        leases: vec![],
        moments: Vec::new(),
        scans: None,
        proof: None,
        catalog_cas: 0,
        owned: Vec::new(),
    }
}

/// The generation of index "i", which is random.
fn generation(member: &Coordinator) -> Generation {
    let view = member.member.replica.view();
    view.catalog.index("i").map_or(Generation(1), |index| index.generation)
}

fn report(seqno: u64) -> SyncReport {
    SyncReport {
        projector: NodeId(10),
        buckets: vec![BucketReport::new(BucketId(1), VbucketSet::all(2), cut(seqno))],
        left_out: Vec::new(),
        halved: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ddl_survives_a_change_of_leader_and_is_executed_once() {
    let mut world = World::with_bucket().await;
    let (first, _) = world.leader().await;
    world.stop(first);
    let began = Instant::now();
    let outcome = world.propose(create_index(spec("i"))).await;
    assert_eq!(outcome, Outcome::Index(IndexId(1)));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());

    // The same request at the new leader returns the first answer and creates no second index.
    world.requests -= 1;
    assert_eq!(world.propose(create_index(spec("i"))).await, outcome);
    let (_, leader) = world.leader().await;
    assert_eq!(leader.member.replica.view().catalog.indexes.len(), 1);

    // The old leader restarts and catches up.
    world.start(first).await;
    let cas = leader.member.replica.view().state.cas();
    let behind = || {
        let members = world.any();
        members.iter().any(|member| member.member.replica.view().state.cas() < cas)
    };
    while behind() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let states: Vec<_> =
        world.any().iter().map(|member| member.member.replica.view().catalog.clone()).collect();
    assert!(states.len() == 3 && states.iter().all(|state| *state == states[0]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_reach_every_watcher_and_waiters_are_answered_at_once() {
    let world = World::with_bucket().await;
    let follower = world.follower().await;
    let mut watch = follower.watch(Watched::CatalogAndEpochs).await.unwrap();

    // The follower forwards the call, and the waiter does not wait for the tick.
    let waiting = follower.epoch_covering(BucketId(1), cut(5), None, Epoch(0), 5_000);
    let telling = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        follower.sync(report(5)).await.unwrap();
    };
    let (covering, ()) = futures::join!(waiting, telling);
    let covering = covering.unwrap();
    assert_eq!((covering.oldest, covering.newest), (Epoch(2), Epoch(2)));

    // The watcher learns of the bucket before its epochs, and misses no epoch.
    let mut known = false;
    let mut epochs: Vec<EpochMark> = Vec::new();
    while epochs.last().is_none_or(|mark| mark.epoch < Epoch(2)) {
        match watch.next().await.unwrap().unwrap() {
            WatchMessage::Catalog(catalog) => known = catalog.bucket("b").is_some(),
            WatchMessage::Epochs(marks) => {
                assert!(known);
                epochs.extend(marks);
            }
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
async fn a_new_leader_queries_what_the_old_one_knew() {
    let world = World::with_bucket().await;
    let (first, _) = world.leader().await;
    *world.cluster.positions.lock().unwrap() = 9;
    world.stop(first);
    let (_, leader) = world.leader().await;
    let covering = leader.epoch_covering(BucketId(1), cut(9), None, Epoch(0), 5_000).await.unwrap();
    let cut_of = |epoch| {
        let view = leader.member.replica.view();
        Cut::clone(&view.state.bucket(BucketId(1)).unwrap().epochs.mark(epoch).unwrap().cut)
    };
    assert_eq!(cut_of(covering.oldest), cut(9));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_serves_scans_once_its_slices_do() {
    let mut world = World::with_bucket().await;
    world.propose(create_index(spec("i"))).await;
    let follower = world.follower().await;
    let mut watch = follower.watch(Watched::CatalogAndEpochs).await.unwrap();
    let generation = generation(&world.leader().await.1);
    for id in [20, 21] {
        follower.heartbeat(indexer_says((id, generation), 0..4, vec![])).await.unwrap();
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
    let stranger = Heartbeat {
        node: NodeId(99),
        buckets: vec![],
        slices: vec![],
        moves: vec![],
        leases: vec![],
        moments: Vec::new(),
        scans: None,
        proof: None,
        catalog_cas: 0,
        owned: Vec::new(),
    };
    assert_eq!(follower.heartbeat(stranger).await.unwrap_err().code, ErrorCode::Unknown);
    let catalog = follower.member.replica.view().catalog.clone();
    assert_eq!(catalog.nodes[&NodeId(2)].role, Role::Coordinator, "members are nodes too");
}

/// Sends heartbeats of indexers 20, 21 and 22; indexer 22 reports every slice that moves to it.
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
    let new = indexer_says((22, generation), shows, moves.iter().map(shown).collect());
    let old = [20, 21].map(|id| indexer_says((id, generation), 0..4, vec![]));
    for said in old.into_iter().chain([new]) {
        if let Err(error) = member.heartbeat(said).await {
            assert!(error.is_retry() || error.code == ErrorCode::Unknown, "{error}");
        }
    }
    catalog
}

/// Sends heartbeats until the catalog fulfils `wish`.
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
    let mut world = World::with_bucket().await;
    world.propose(create_index(spec("i"))).await;
    let follower = world.follower().await;
    let serves = |catalog: &Catalog| {
        catalog.index("i").is_some_and(|index| index.state == IndexState::Maintenance)
    };
    beat_until(&follower, serves).await;
    world.propose(Command::RegisterNode(node(22, Role::Indexer))).await;
    beat_until(&follower, |catalog| catalog.nodes.contains_key(&NodeId(22))).await;

    let request = |dry_run| RebalanceRequest { index: Some("i".into()), dry_run };
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
    assert_eq!(follower.topology(IndexId(1), now.number).await.unwrap(), now);
    let first = follower.topology(IndexId(1), TopologyNo(1)).await.unwrap();
    assert!(first.slices_on(NodeId(22)).is_empty(), "scans that began before go by it");
    let unknown = RebalanceRequest { index: Some("none".into()), dry_run: true };
    assert_eq!(follower.rebalance(unknown).await.unwrap_err().code, ErrorCode::Unknown);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_calls_are_refused() {
    let world = World::with_bucket().await;
    let (_, leader) = world.leader().await;
    let (index, id) = (IndexId(1), MoveId(1));
    let leaders_own = [
        Command::PromoteEpochs(Vec::new()),
        Command::AdvanceMove { index, id, stage: MoveStage::Done },
        Command::EndMove { index, id, undone: None },
    ];
    for command in leaders_own {
        let refused = leader.propose(CommandRequest { request: None, command }).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidParameter);
    }
    assert!(leader.raft(vec![Bytes::from_static(b"nonsense")]).await.is_err());
    let buckets = vec![BucketReport::new(BucketId(1), VbucketSet::all(9), Cut::zero(9))];
    let bad = SyncReport { buckets, ..report(1) };
    assert_eq!(leader.sync(bad).await.unwrap_err().code, ErrorCode::InvalidParameter);

    let config = leader.member.config.clone();
    let directory = Arc::new(Local(world.cluster.clone()));
    let second = Coordinator::start(config, Env::real(), directory).await.err().unwrap();
    assert!(second.message.contains("in use"), "{second}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_cut_off_ends_its_watches() {
    let world = World::new().await;
    let (leader, member) = world.leader().await;
    let mut watch = member.watch(Watched::CatalogAndEpochs).await.unwrap();
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
        member.watch(Watched::CatalogAndEpochs).await.err().unwrap().code,
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
    let directory = Arc::new(Local(cluster));
    let member = Coordinator::start(config, env, directory).await.unwrap();
    let request = |id| CommandRequest {
        request: None,
        command: Command::RegisterNode(node(id, Role::Indexer)),
    };
    while member.propose(request(20)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut watch = member.watch(Watched::CatalogAndEpochs).await.unwrap();
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
    let (env, disk, mut ends) = proto::env::sim::process(1);
    let config = Config::new(NodeId(1), vec![(NodeId(1), "member:1".into())], "/data/one".into());
    let directory = Arc::new(Local(Arc::new(Cluster::default())));
    let member = Coordinator::start(config, env, directory).await.unwrap();
    let mut end = None;
    for id in 20..40 {
        // The next operation may be of another task, which tries again after a panic.
        disk.panic_at(disk.operations() + 1);
        let command = Command::RegisterNode(node(id, Role::Indexer));
        let writes = member.propose(CommandRequest { request: None, command });
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

/// The seqno that an epoch of a bucket covers.
fn covered(member: &Coordinator, bucket: BucketId, epoch: Epoch) -> u64 {
    let view = member.member.replica.view();
    let mark = view.state.bucket(bucket).unwrap().epochs.mark(epoch).unwrap();
    mark.cut.get(proto::model::ids::VbucketId(0)).seqno.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moment_covers_all_buckets_and_a_silent_projector_delays_one_round() {
    const ONE: BucketId = BucketId(1);
    const TWO: BucketId = BucketId(2);
    let mut world = World::with_bucket().await;
    world.propose(Command::RegisterNode(node(11, Role::Projector))).await;
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
    let asked = (0..20).map(|_| follower.moment(ONE, Epoch(0), 5_000));
    for moment in futures::future::join_all(asked).await {
        assert_eq!(both(moment.unwrap()).await, (5, 3));
    }

    // It has been heard of, so it is waited for.
    let alive = indexer_says((11, Generation(1)), [], Vec::new());
    leader.heartbeat(Heartbeat { buckets: Vec::new(), ..alive }).await.unwrap();
    *world.cluster.silent.lock().unwrap() = Some(NodeId(11));
    tell(6, 9);
    let began = Instant::now();
    let moment = follower.moment(ONE, Epoch(0), 5_000).await.unwrap();
    assert_eq!(both(moment).await, (6, 3), "the silent one keeps its epoch");
    let (took, hold) = (began.elapsed(), Duration::from_millis(MOMENT_HOLD_MS));
    assert!(took >= hold && took < 4 * hold, "{took:?}");
    tell(7, 9);
    let began = Instant::now();
    let moment = follower.moment(ONE, Epoch(0), 5_000).await.unwrap();
    assert_eq!(both(moment).await, (7, 3));
    assert!(began.elapsed() < hold, "later rounds do not wait for it: {:?}", began.elapsed());
    let refused = follower.moment(TWO, Epoch(0), 700).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unavailable);
    assert!(refused.message.contains("no epoch covers its end"), "{refused}");

    *world.cluster.silent.lock().unwrap() = None;
    let moment = follower.moment(TWO, Epoch(0), 5_000).await.unwrap();
    assert_eq!(covered(&leader, TWO, moment.epoch), 9, "it answers again");
}
