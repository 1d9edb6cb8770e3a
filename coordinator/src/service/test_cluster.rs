//! A cluster for tests: coordinators in one process, with a projector and indexers whose answers
//! a test sets.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::model::assignment::VbucketSet;
use proto::model::cut::{Cut, Position};
use proto::model::history::{FailoverLogs, SourceHistory, SourcePlace};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, NodeId, Seqno, SliceId, SliceNo, Vbuuid,
};
use proto::model::moves::MoveProgress;
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::{
    BucketProgress, BucketReport, CoordinatorApi, CopyAnswer, CopyRequest, HandOverPiece,
    HandOverRequest, Heartbeat, IndexerApi, IndexerReport, ProjectorApi, PushReply, PushRequest,
    ResultStream, SliceProgress, SyncReport, WriteReply, WriteRequest,
};
use proto::rpc::command::{Command, Outcome, Proposal, RegisterNode, RequestId};
use proto::rpc::export::{ExportMessage, ExportRequest};
use proto::rpc::mutation::{BackfillMessage, BackfillRequest, StreamMessage, SubscribeRequest};
use proto::rpc::scan::{AppliedReport, ShardBatch, ShardScan};
use tempfile::TempDir;

use super::super::*;
use crate::state::tests::{create_bucket, node};

/// The running members, and the answers of the simulated projectors and indexers.
#[derive(Default)]
pub(super) struct Cluster {
    pub(super) members: Mutex<BTreeMap<NodeId, Arc<Coordinator>>>,
    pub(super) positions: Mutex<u64>,
    /// The seqno that projectors report for all buckets except the first.
    pub(super) elsewhere: Mutex<u64>,
    /// The projector that does not answer calls, if any.
    pub(super) silent: Mutex<Option<NodeId>>,
    /// The indexer whose copies have another checksum, if any.
    pub(super) differs: Mutex<Option<NodeId>>,
}

/// A member's clients of the other processes. The set contains the coordinators whose addresses
/// the member does not know.
pub(super) struct LocalDirectory(pub(super) Arc<Cluster>, pub(super) Mutex<BTreeSet<NodeId>>);

impl Directory for LocalDirectory {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        self.0.members.lock().unwrap().values().next().unwrap().clone()
    }

    fn coordinator_member(&self, node: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        let knows = !self.1.lock().unwrap().contains(&node);
        match self.0.members.lock().unwrap().get(&node).filter(|_| knows) {
            Some(member) => Ok(member.clone()),
            None => Err(Error::unavailable(format!("coordinator {node} is down"))),
        }
    }

    fn learn_coordinators(&self, members: Vec<(NodeId, String)>) {
        self.1.lock().unwrap().retain(|id| !members.iter().any(|(known, _)| known == id));
    }

    fn projector(&self, node: &NodeInfo) -> Arc<dyn ProjectorApi> {
        Arc::new(Projector(self.0.clone(), node.id))
    }

    fn indexer(&self, node: &NodeInfo) -> Arc<dyn IndexerApi> {
        Arc::new(Indexer(self.0.clone(), node.id))
    }
}

/// A simulated projector that only returns positions. Other calls fail.
pub(super) struct Projector(Arc<Cluster>, NodeId);

impl Projector {
    pub(super) async fn check_answers(&self) {
        if *self.0.silent.lock().unwrap() == Some(self.1) {
            std::future::pending::<()>().await;
        }
    }
}

/// Returns the error of a call that the tests do not use.
pub(super) fn unused_call<T>() -> Result<T> {
    Err(Error::internal("not in this test"))
}

#[async_trait]
impl ProjectorApi for Projector {
    async fn write(&self, _: WriteRequest) -> Result<WriteReply> {
        unused_call()
    }

    async fn get(&self, _: BucketId, _: Vec<String>) -> Result<Vec<Option<Bytes>>> {
        unused_call()
    }

    async fn push(&self, _: PushRequest) -> Result<PushReply> {
        unused_call()
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
        unused_call()
    }

    async fn backfill(&self, _: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        unused_call()
    }

    async fn hand_over(&self, _: HandOverRequest) -> Result<HandOverPiece> {
        unused_call()
    }

    async fn copy(&self, _: CopyRequest) -> Result<CopyAnswer> {
        unused_call()
    }
}

/// A simulated indexer that only returns checksums. Other calls fail.
pub(super) struct Indexer(Arc<Cluster>, NodeId);

#[async_trait]
impl IndexerApi for Indexer {
    async fn scan(&self, _: ShardScan) -> Result<ResultStream<ShardBatch>> {
        unused_call()
    }

    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>> {
        unused_call()
    }

    async fn checksum(&self, _: SliceId, _: Epoch) -> Result<(u64, u64)> {
        Ok((7, u64::from(*self.0.differs.lock().unwrap() == Some(self.1))))
    }

    async fn export(&self, _: ExportRequest) -> Result<ResultStream<ExportMessage>> {
        unused_call()
    }
}

/// Returns a cut at this seqno of the first of two vbuckets.
pub(super) fn cut(seqno: u64) -> Cut {
    let position = Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) };
    Cut::from_positions(vec![position, Position::default()])
}

/// A cluster of three coordinators, for a test.
pub(super) struct TestWorld {
    pub(super) cluster: Arc<Cluster>,
    pub(super) dir: TempDir,
    pub(super) requests: u64,
}

impl TestWorld {
    pub(super) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let world = Self { cluster: Arc::default(), dir, requests: 0 };
        for id in 1..=3 {
            world.start(NodeId(id)).await;
        }
        world
    }

    pub(super) async fn start(&self, id: NodeId) {
        self.start_without(id, None).await;
    }

    /// Starts a member. With `unknown`, it does not know the address of that other member.
    pub(super) async fn start_without(&self, id: NodeId, unknown: Option<NodeId>) {
        let members = (1..=3).map(|id| (NodeId(id), format!("member:{id}"))).collect();
        let config = Config::new(id, members, self.dir.path().join(id.to_string()));
        let unknown = Mutex::new(unknown.into_iter().collect());
        let directory = Arc::new(LocalDirectory(self.cluster.clone(), unknown));
        let member = Coordinator::start(config, Env::real(), directory).await.unwrap();
        self.cluster.members.lock().unwrap().insert(id, member);
    }

    pub(super) fn stop(&self, id: NodeId) {
        self.cluster.members.lock().unwrap().remove(&id);
    }

    /// Returns the running members.
    pub(super) fn running_members(&self) -> Vec<Arc<Coordinator>> {
        self.cluster.members.lock().unwrap().values().cloned().collect()
    }

    /// Waits for a leader that is ready to decide, and returns it.
    pub(super) async fn leader(&self) -> (NodeId, Arc<Coordinator>) {
        for _ in 0..1000 {
            let leads = |member: &Arc<Coordinator>| member.member.leader().is_some();
            if let Some(member) = self.running_members().into_iter().find(leads) {
                return (member.member.config.node, member);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no leader within ten seconds");
    }

    pub(super) async fn follower(&self) -> Arc<Coordinator> {
        let (leader, _) = self.leader().await;
        self.running_members()
            .into_iter()
            .find(|member| member.member.config.node != leader)
            .unwrap()
    }

    /// Sends a request until it is answered, as a client does.
    pub(super) async fn propose(&mut self, command: Command) -> Outcome {
        self.requests += 1;
        let request = RequestId { client: 77, sequence: self.requests };
        let request = Proposal::from(command).with_request(request);
        for attempt in 0..1000 {
            let members = self.running_members();
            let applied = members[attempt % members.len()].propose(request.clone()).await;
            match applied.map(|applied| applied.outcome) {
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

    /// Creates a cluster with a projector, two indexers and a bucket.
    pub(super) async fn with_bucket() -> Self {
        let mut world = Self::new().await;
        for info in [node(10, Role::Projector), node(20, Role::Indexer), node(21, Role::Indexer)] {
            world.propose(Command::RegisterNode(RegisterNode { node: info })).await;
        }
        let outcome = world.propose(create_bucket("b")).await;
        assert_eq!(outcome, Outcome::Bucket(BucketId(1)));
        world
    }
}

/// Returns the heartbeat of an indexer that has applied epoch 1 and serves these slices of index
/// 1. `moves` is the progress of the moves to it.
pub(super) fn indexer_heartbeat(
    (id, generation): (u64, Generation),
    slices: impl IntoIterator<Item = u16>,
    moves: Vec<MoveProgress>,
) -> Heartbeat {
    let progress = |slice| SliceProgress {
        slice: SliceId { index: IndexId(1), generation, slice: SliceNo(slice) },
        floor: Some(Epoch(1)),
        entries: 0,
        bytes: 0,
        live_bytes: Some(0),
        built_percent: None,
        seconds_left: None,
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
    let report = IndexerReport { buckets: vec![bucket], slices, moves, ..IndexerReport::default() };
    Heartbeat::new(node, 0, report)
}

/// Returns the generation of index "i", whose number is random.
pub(super) fn generation(member: &Coordinator) -> Generation {
    let view = member.member.replica.view();
    view.catalog.index("i").map_or(Generation(1), |index| index.generation)
}

/// Returns the report by which the projector has reached a seqno of the first bucket.
pub(super) fn report(seqno: u64) -> SyncReport {
    SyncReport {
        projector: NodeId(10),
        buckets: vec![BucketReport::new(BucketId(1), VbucketSet::all(2), cut(seqno))],
        left_out: Vec::new(),
        halved: Vec::new(),
    }
}
