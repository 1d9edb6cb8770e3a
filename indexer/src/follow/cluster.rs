//! The environment of an indexer in tests with a simulated projector: a coordinator that
//! publishes a catalog, and clients of the indexers that the test has started.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, EpochMark};
use proto::model::history::{SourceHistory, SourcePlace};
use proto::model::ids::{BucketId, Epoch, IndexId, LocalIndexId, NodeId, TopologyNo};
use proto::model::index::IndexInfo;
use proto::model::moment::Moment;
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::node::{NodeInfo, Role};
use proto::model::topology::IndexTopology;
use proto::rpc::api::{
    CoordinatorApi, CoordinatorStatus, CopyAnswer, CopyRequest, CoveringEpochs, Directory,
    FixedMoment, HandOverPiece, HandOverRequest, Heartbeat, HeartbeatReply, IndexerApi,
    ProjectorApi, PushReply, PushRequest, ResultStream, SyncReply, SyncReport, WatchKind,
    WatchMessage, WriteReply, WriteRequest,
};
use proto::rpc::command::{AppliedCommand, Outcome, Proposal};
use proto::rpc::mutation::{BackfillMessage, BackfillRequest, StreamMessage, SubscribeRequest};
use proto::{Error, Result};
use tokio::sync::watch;

/// The bucket, which has two vbuckets.
pub const BUCKET: BucketId = BucketId(1);
/// The node id of the projector.
pub const PROJECTOR: NodeId = NodeId(2);

/// The calls of a simulated projector.
#[async_trait]
pub trait ProjectorCalls: Clone + Send + Sync + 'static {
    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>>;
    async fn backfill(&self, request: BackfillRequest) -> Result<ResultStream<BackfillMessage>>;
}

/// The catalog and the indexers of the cluster.
pub struct ClusterState {
    pub catalog: watch::Sender<Arc<Catalog>>,
    pub indexers: Mutex<BTreeMap<NodeId, Arc<dyn IndexerApi>>>,
    /// The last heartbeat of each node.
    pub heartbeats: Mutex<BTreeMap<NodeId, Heartbeat>>,
}

/// The simulated services that an indexer calls.
#[derive(Clone)]
pub struct Cluster<S> {
    pub state: Arc<ClusterState>,
    pub streams: S,
}

pub fn node(id: NodeId, role: Role) -> Arc<NodeInfo> {
    Arc::new(NodeInfo { id, role, address: String::new(), zone: String::new() })
}

impl ClusterState {
    /// Creates a cluster with one bucket, these indexers and these indexes.
    pub fn new(indexers: &[NodeId], indexes: &[Arc<IndexInfo>]) -> Arc<Self> {
        let bucket = BucketInfo::new(BUCKET, "b", 2, SourceKind::Embedded, PROJECTOR);
        let indexers = indexers.iter().map(|id| node(*id, Role::Indexer));
        let nodes = indexers.chain([node(PROJECTOR, Role::Projector)]);
        let catalog = Catalog {
            cas: 1,
            newest_index: IndexId(indexes.len() as u64),
            buckets: [(BUCKET, Arc::new(bucket))].into(),
            indexes: indexes.iter().map(|index| (index.id, Arc::clone(index))).collect(),
            nodes: nodes.map(|node| (node.id, node)).collect(),
            ..Catalog::default()
        };
        let catalog = watch::Sender::new(Arc::new(catalog));
        Arc::new(Self { catalog, indexers: Mutex::default(), heartbeats: Mutex::default() })
    }

    /// Changes the catalog, and publishes it.
    pub fn change(&self, change: impl FnOnce(&mut Catalog)) {
        self.catalog.send_modify(|catalog| {
            let next = Arc::make_mut(catalog);
            next.cas += 1;
            change(next);
        });
    }
}

/// Returns the error of a call that is not simulated.
fn unused_call<T>() -> Result<T> {
    Err(Error::unavailable("not here"))
}

#[async_trait]
impl<S: ProjectorCalls> CoordinatorApi for Cluster<S> {
    async fn propose(&self, _: Proposal) -> Result<AppliedCommand> {
        Ok(AppliedCommand { outcome: Outcome::Done, catalog_cas: 0 })
    }
    async fn sync(&self, _: SyncReport) -> Result<SyncReply> {
        Ok(SyncReply::default())
    }
    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<HeartbeatReply> {
        self.state.heartbeats.lock().unwrap().insert(heartbeat.node, heartbeat);
        Ok(HeartbeatReply::default())
    }
    async fn epoch_covering(
        &self,
        _: BucketId,
        _: Cut,
        _: Option<u64>,
        _: Epoch,
        _: u64,
    ) -> Result<CoveringEpochs> {
        unused_call()
    }
    async fn watch(&self, _: WatchKind) -> Result<ResultStream<WatchMessage>> {
        let mut catalog = self.state.catalog.subscribe();
        catalog.mark_changed();
        Ok(Box::pin(stream::unfold(catalog, |mut catalog| async {
            catalog.changed().await.ok()?;
            let told = Arc::clone(&catalog.borrow_and_update());
            Some((Ok(WatchMessage::Catalog(told)), catalog))
        })))
    }
    async fn status(&self) -> Result<CoordinatorStatus> {
        unused_call()
    }
    async fn moment(&self, _: BucketId, _: Epoch, _: u64) -> Result<FixedMoment> {
        unused_call()
    }
    async fn epoch_at(&self, _: BucketId, _: Moment) -> Result<Epoch> {
        unused_call()
    }
    async fn epoch_mark(&self, _: BucketId, _: Epoch) -> Result<Option<EpochMark>> {
        Ok(None)
    }
    async fn raft(&self, _: Vec<Bytes>) -> Result<()> {
        Ok(())
    }
    async fn rebalance(&self, _: RebalanceRequest) -> Result<RebalancePlan> {
        unused_call()
    }
    async fn topology(&self, _: LocalIndexId, _: TopologyNo) -> Result<Arc<IndexTopology>> {
        unused_call()
    }
}

#[async_trait]
impl<S: ProjectorCalls> ProjectorApi for Cluster<S> {
    async fn write(&self, _: WriteRequest) -> Result<WriteReply> {
        unused_call()
    }
    async fn get(&self, _: BucketId, _: Vec<String>) -> Result<Vec<Option<Bytes>>> {
        unused_call()
    }
    async fn push(&self, _: PushRequest) -> Result<PushReply> {
        unused_call()
    }
    async fn hand_over(&self, _: HandOverRequest) -> Result<HandOverPiece> {
        unused_call()
    }
    async fn copy(&self, _: CopyRequest) -> Result<CopyAnswer> {
        unused_call()
    }
    async fn place(&self, _: BucketId) -> Result<SourcePlace> {
        unused_call()
    }
    async fn history(&self, _: BucketId) -> Result<SourceHistory> {
        unused_call()
    }
    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>> {
        self.streams.subscribe(request).await
    }
    async fn backfill(&self, request: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        self.streams.backfill(request).await
    }
}

impl<S: ProjectorCalls> Directory for Cluster<S> {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        Arc::new(self.clone())
    }
    fn coordinator_member(&self, _: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        Ok(Arc::new(self.clone()))
    }
    fn projector(&self, _: &NodeInfo) -> Arc<dyn ProjectorApi> {
        Arc::new(self.clone())
    }
    fn indexer(&self, node: &NodeInfo) -> Arc<dyn IndexerApi> {
        Arc::clone(&self.state.indexers.lock().unwrap()[&node.id])
    }
}
