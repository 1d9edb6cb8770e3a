//! All that an indexer needs around it, for tests that play the projector: a coordinator that tells one catalog.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use proto::api::{
    CoordinatorApi, CoordinatorStatus, Directory, Heartbeat, IndexerApi, ProjectorApi,
    ResultStream, SyncReport, WatchMessage,
};
use proto::command::{CommandRequest, Outcome};
use proto::cut::{Cut, EpochMark};
use proto::ids::{BucketId, IndexId, NodeId, TopologyNo};
use proto::index::{BucketInfo, Catalog, IndexInfo, NodeInfo, Role, SourceKind};
use proto::moves::{RebalancePlan, RebalanceRequest};
use proto::topology::IndexTopology;
use proto::{Error, Result};

/// The bucket.
pub const BUCKET: BucketId = BucketId(1);
/// The indexer.
pub const INDEXER: NodeId = NodeId(7);
const PROJECTOR: NodeId = NodeId(2);

/// The others.
#[derive(Clone)]
pub struct Cluster {
    /// What the test plays.
    pub projector: Arc<dyn ProjectorApi>,
    /// All indexes, numbered from 1 on.
    pub indexes: Vec<Arc<IndexInfo>>,
}

/// A node by its number.
pub fn node(id: NodeId) -> Arc<NodeInfo> {
    let role = if id == INDEXER { Role::Indexer } else { Role::Projector };
    Arc::new(NodeInfo { id, role, address: String::new(), zone: String::new() })
}

#[async_trait]
impl CoordinatorApi for Cluster {
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
        let nodes = [node(INDEXER), node(PROJECTOR)];
        let bucket = BucketInfo::new(BUCKET, "b", 2, SourceKind::Embedded, PROJECTOR);
        let catalog = Catalog {
            cas: 1,
            newest_index: IndexId(self.indexes.len() as u64),
            buckets: [(BUCKET, Arc::new(bucket))].into(),
            indexes: self.indexes.iter().map(|index| (index.id, Arc::clone(index))).collect(),
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

impl Directory for Cluster {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        Arc::new(self.clone())
    }
    fn coordinator_member(&self, _: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        Ok(Arc::new(self.clone()))
    }
    fn projector(&self, _: &NodeInfo) -> Arc<dyn ProjectorApi> {
        Arc::clone(&self.projector)
    }
    fn indexer(&self, _: &NodeInfo) -> Arc<dyn IndexerApi> {
        unreachable!("there is no other")
    }
}
