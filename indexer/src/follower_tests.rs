//! A whole indexer against a projector and a coordinator that a test plays.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream;
use proto::api::{
    CoordinatorApi, CoordinatorStatus, HandOverPiece, HandOverRequest, Heartbeat, IndexerApi,
    PushReply, PushRequest, ResultStream, SyncReport, WatchMessage, WriteReply, WriteRequest,
};
use proto::command::{CommandRequest, Outcome};
use proto::cut::Position;
use proto::history::{SourceHistory, SourcePlace};
use proto::ids::{Epoch, NodeId, Seqno, TopologyNo, VbucketId, Vbuuid};
use proto::index::{IndexSpec, IndexState, Role, SourceKind};
use proto::moves::{RebalancePlan, RebalanceRequest};
use proto::mutation::{Frame, KeyVersionsWriter, MutationKind};
use proto::topology::IndexTopology;

use super::*;
use crate::Indexer;
use proto::homes::VbucketSet;
use proto::index::{BucketInfo, NodeInfo};

const BUCKET: BucketId = BucketId(1);
const INDEX: IndexId = IndexId(1);
const SLICE: SliceId = SliceId { index: INDEX, generation: Generation(0), slice: SliceNo(0) };
const INDEXER: NodeId = NodeId(7);
const PROJECTOR: NodeId = NodeId(2);
const BRANCH: Vbuuid = Vbuuid(9);

/// Plays both, and remembers where streams began.
#[derive(Clone, Default)]
struct Script {
    subscriptions: Arc<Mutex<Vec<SubscribeRequest>>>,
}

fn cut(seqnos: [u64; 2]) -> Cut {
    let position = |seqno| match seqno {
        0 => Position { vbuuid: Vbuuid(0), seqno: Seqno(0) },
        _ => Position { vbuuid: BRANCH, seqno: Seqno(seqno) },
    };
    Cut::from_positions(seqnos.map(position).to_vec())
}

fn epoch(epoch: u64, seqnos: [u64; 2]) -> StreamMessage {
    let cut = Arc::new(cut(seqnos));
    let parent = Epoch(epoch - 1);
    let (epoch, horizon) = (Epoch(epoch), Epoch(0));
    StreamMessage::Epoch(EpochMark {
        bucket: BUCKET,
        epoch,
        parent,
        cut,
        horizon,
        points: Arc::default(),
    })
}

/// All of both vbuckets is on one branch.
fn history() -> StreamMessage {
    StreamMessage::History(Arc::new(FailoverLogs::new(vec![vec![(BRANCH, 0)]; 2])))
}

/// Documents of vbucket 0 from a seqno on, a thousand bytes each.
fn documents(from: u64, count: u64) -> Bytes {
    let mut writer = KeyVersionsWriter::default();
    for n in 1..=count {
        writer.mutation(n, MutationKind::Upsert, &format!("d{:06}", from + n), 1);
        writer.index(INDEX, Generation(0), 1);
        let mut key = Vec::new();
        proto::key::encode_part(&proto::value::Value::int((from + n) as i64), false, &mut key);
        writer.entry(SliceNo(0), &key, &[0; 1000]);
    }
    writer.finish()
}

fn node(id: NodeId, role: Role) -> Arc<NodeInfo> {
    Arc::new(NodeInfo { id, role, address: String::new(), zone: String::new() })
}

fn index() -> Arc<IndexInfo> {
    let info = IndexInfo::new(INDEX, BUCKET, IndexSpec::new("i", "b"), vec![vec![INDEXER]]);
    Arc::new(IndexInfo { state: IndexState::Maintenance, ..info })
}

#[async_trait]
impl CoordinatorApi for Script {
    async fn propose(&self, _: CommandRequest) -> Result<Outcome> {
        Ok(Outcome::Done)
    }
    async fn sync(&self, _: SyncReport) -> Result<()> {
        Ok(())
    }
    async fn heartbeat(&self, _: Heartbeat) -> Result<()> {
        Ok(())
    }
    async fn epoch_covering(
        &self,
        _: BucketId,
        _: Cut,
        _: Option<u64>,
        _: u64,
    ) -> Result<EpochMark> {
        Err(Error::unavailable("not here"))
    }
    async fn watch(&self) -> Result<ResultStream<WatchMessage>> {
        let nodes = [node(INDEXER, Role::Indexer), node(PROJECTOR, Role::Projector)];
        let bucket = BucketInfo::new(BUCKET, "b", 2, SourceKind::Embedded, PROJECTOR);
        let catalog = Catalog {
            cas: 1,
            newest_index: INDEX,
            buckets: [(BUCKET, Arc::new(bucket))].into(),
            indexes: [(INDEX, index())].into(),
            nodes: nodes.into_iter().map(|node| (node.id, node)).collect(),
            ..Catalog::default()
        };
        let told = stream::iter([Ok(WatchMessage::Catalog(Arc::new(catalog)))]);
        Ok(Box::pin(told.chain(stream::pending())))
    }
    async fn status(&self) -> Result<CoordinatorStatus> {
        Err(Error::unavailable("not here"))
    }
    async fn raft(&self, _: Vec<Bytes>) -> Result<()> {
        Ok(())
    }
    async fn rebalance(&self, _: RebalanceRequest) -> Result<RebalancePlan> {
        Err(Error::unavailable("not here"))
    }
    async fn topology(&self, _: IndexId, _: TopologyNo) -> Result<Arc<IndexTopology>> {
        Err(Error::unavailable("not here"))
    }
}

#[async_trait]
impl ProjectorApi for Script {
    async fn write(&self, _: WriteRequest) -> Result<WriteReply> {
        Err(Error::unavailable("not here"))
    }
    async fn get(&self, _: BucketId, _: Vec<String>) -> Result<Vec<Option<Bytes>>> {
        Err(Error::unavailable("not here"))
    }
    async fn push(&self, _: PushRequest) -> Result<PushReply> {
        Err(Error::unavailable("not here"))
    }
    async fn hand_over(&self, _: HandOverRequest) -> Result<HandOverPiece> {
        Err(Error::unavailable("not here"))
    }
    async fn place(&self, _: BucketId) -> Result<SourcePlace> {
        Err(Error::unavailable("not here"))
    }
    async fn history(&self, _: BucketId) -> Result<SourceHistory> {
        Err(Error::unavailable("not here"))
    }
    /// At first the node gets far more of vbucket 0 than it can gather, and never what its epoch needs of vbucket 1;
    /// then its stream begins at the present.
    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>> {
        let begins = self.subscriptions.lock().unwrap().len();
        self.subscriptions.lock().unwrap().push(request);
        let indexes = vec![index()];
        let messages = match begins {
            0 => {
                let frames = (0..1_000).map(|n| {
                    let (from, to) = (Seqno(n * 10), Seqno(n * 10 + 10));
                    let body = documents(n * 10, 10);
                    let vbucket = VbucketId(0);
                    StreamMessage::Frames(vec![Frame { vbucket, vbuuid: BRANCH, from, to, body }])
                });
                let begin =
                    StreamMessage::Begin { at: cut([0, 0]), indexes, vbuckets: VbucketSet::all(2) };
                let first = [begin, history(), epoch(1, [0, 0]), epoch(9, [10_000, 1])];
                first.into_iter().chain(frames).collect::<Vec<_>>()
            }
            _ => {
                let begin = StreamMessage::Begin {
                    at: cut([10_000, 1]),
                    indexes,
                    vbuckets: VbucketSet::all(2),
                };
                vec![begin, history(), epoch(10, [10_000, 1])]
            }
        };
        Ok(Box::pin(stream::iter(messages.into_iter().map(Ok)).chain(stream::pending())))
    }
    async fn backfill(&self, _: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        let count = self.subscriptions.lock().unwrap().len() as u64;
        let at = if count == 1 { cut([0, 0]) } else { cut([10_000, 1]) };
        let messages = [
            BackfillMessage::Begin { cut: at },
            BackfillMessage::Documents(documents(0, count * 100)),
            BackfillMessage::End,
        ];
        Ok(Box::pin(stream::iter(messages.map(Ok)).chain(stream::pending())))
    }
}

impl Directory for Script {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        Arc::new(self.clone())
    }
    fn coordinator_member(&self, _: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        Ok(Arc::new(self.clone()))
    }
    fn projector(&self, _: &NodeInfo) -> Arc<dyn ProjectorApi> {
        Arc::new(self.clone())
    }
    fn indexer(&self, _: &NodeInfo) -> Arc<dyn IndexerApi> {
        unreachable!("there is no other")
    }
}

#[tokio::test]
async fn a_node_that_cannot_gather_what_it_lacks_builds_its_slices_anew() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::default();
    let mut config = Config::new((*node(INDEXER, Role::Indexer)).clone(), dir.path());
    // The stream has ten times what four of these hold.
    config.queue_bytes_max = Some(256 << 10);
    let indexer = Indexer::start(config, Env::real(), Arc::new(script.clone())).unwrap();
    let whole = async {
        loop {
            match indexer.checksum(SLICE, Epoch(10)).await {
                Ok((_, entries)) => return entries,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let entries = tokio::time::timeout(Duration::from_secs(60), whole).await.expect("in time");
    let begins = script.subscriptions.lock().unwrap().clone();
    assert_eq!(begins.len(), 2, "{begins:?}");
    assert_eq!(begins[1].from, None, "from the present, as a node that has nothing");
    assert_eq!(entries, 200, "what the second snapshot has");
}
