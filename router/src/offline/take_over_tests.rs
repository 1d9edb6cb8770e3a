//! Tests that the stored catalog is replaced only by a valid catalog of the coordinators.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;
use bytes::Bytes;
use proto::client::CatalogSink;
use proto::env::sim::world;
use proto::model::cut::{Cut, EpochMark};
use proto::model::identity::ClusterId;
use proto::model::ids::{
    BucketId, Epoch, IndexId, LocalIndexId, NodeId, SliceId, SliceNo, TopologyNo,
};
use proto::model::moment::Moment;
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::node::NodeInfo;
use proto::model::topology::IndexTopology;
use proto::rpc::api::*;
use proto::rpc::command::{AppliedCommand, Proposal};
use proto::rpc::scan::AppliedReport;

use super::super::file::tests::{catalog, kept};
use super::*;
use crate::catalog_watch::CatalogWatch;
use crate::context::tests::context_of;

/// A simulated leader of the coordinators, with the number of its newest catalog change.
#[derive(Default)]
struct Leader(AtomicU64);

fn not_here<T>() -> Result<T> {
    Err(Error::unavailable("not here"))
}

#[async_trait]
impl CoordinatorApi for Leader {
    async fn status(&self) -> Result<CoordinatorStatus> {
        Ok(CoordinatorStatus {
            node: NodeId(1),
            leader: Some(NodeId(1)),
            term: 1,
            committed: 1,
            applied: 1,
            catalog_cas: self.0.load(Ordering::Relaxed),
            active: true,
            differences: Vec::new(),
            nodes: Vec::new(),
            left_out: Vec::new(),
            halved: Vec::new(),
            holds: Vec::new(),
            members: Default::default(),
            version_waits: Vec::new(),
            past_slow: Vec::new(),
        })
    }
    async fn epoch_covering(
        &self,
        _: BucketId,
        _: Cut,
        _: Option<u64>,
        _: Epoch,
        _: u64,
    ) -> Result<CoveringEpochs> {
        not_here()
    }
    async fn propose(&self, _: Proposal) -> Result<AppliedCommand> {
        not_here()
    }
    async fn sync(&self, _: SyncReport) -> Result<SyncReply> {
        not_here()
    }
    async fn heartbeat(&self, _: Heartbeat) -> Result<HeartbeatReply> {
        not_here()
    }
    async fn watch(&self, _: WatchKind) -> Result<ResultStream<WatchMessage>> {
        not_here()
    }
    async fn rebalance(&self, _: RebalanceRequest) -> Result<RebalancePlan> {
        not_here()
    }
    async fn topology(&self, _: LocalIndexId, _: TopologyNo) -> Result<Arc<IndexTopology>> {
        not_here()
    }
    async fn moment(&self, _: BucketId, _: Epoch, _: u64) -> Result<FixedMoment> {
        not_here()
    }
    async fn epoch_at(&self, _: BucketId, _: Moment) -> Result<Epoch> {
        not_here()
    }
    async fn epoch_mark(&self, _: BucketId, _: Epoch) -> Result<Option<EpochMark>> {
        not_here()
    }
    async fn raft(&self, _: Vec<Bytes>) -> Result<()> {
        not_here()
    }
}

/// An indexer that sends no reports.
struct Silent;

#[async_trait]
impl IndexerApi for Silent {
    async fn scan(
        &self,
        _: proto::rpc::scan::ShardScan,
    ) -> Result<ResultStream<proto::rpc::scan::ShardBatch>> {
        not_here()
    }
    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>> {
        Ok(Box::pin(futures::stream::pending()))
    }
    async fn checksum(&self, _: SliceId, _: Epoch) -> Result<(u64, u64)> {
        not_here()
    }
    async fn export(
        &self,
        _: proto::rpc::export::ExportRequest,
    ) -> Result<ResultStream<proto::rpc::export::ExportMessage>> {
        not_here()
    }
}

struct Cluster(Arc<Leader>);

impl Directory for Cluster {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        Arc::clone(&self.0) as _
    }
    fn coordinator_member(&self, _: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        Ok(Arc::clone(&self.0) as _)
    }
    fn projector(&self, _: &NodeInfo) -> Arc<dyn ProjectorApi> {
        unreachable!("nothing is written")
    }
    fn indexer(&self, _: &NodeInfo) -> Arc<dyn IndexerApi> {
        Arc::new(Silent)
    }
}

/// A router that has started with the stored catalog 30.
struct World {
    watch: CatalogWatch,
    context: RouterContext,
    leader: Arc<Leader>,
}

impl World {
    fn new() -> Self {
        let (env, _, _) = world(1);
        let leader = Arc::new(Leader::default());
        let mut context = context_of(0, Arc::new(Cluster(Arc::clone(&leader))));
        context.env = env.clone();
        let open = || {
            let node = context.config.node.clone();
            RouterData::open(&env, Path::new("/router"), &node).expect("a directory")
        };
        open().write(&kept(30)).expect("written");
        let mut watch = CatalogWatch::new(context.clone());
        watch.use_stored_catalog(&open());
        Self { watch, context, leader }
    }

    /// Lets a coordinator send a catalog; returns whether the router installs it.
    async fn sends(&mut self, catalog: Catalog) -> bool {
        self.watch.take_catalog(Arc::new(catalog)).await.is_ok()
    }

    fn cas(&self) -> u64 {
        self.context.catalog.load().cas
    }

    /// Returns the epoch that a scan would read.
    fn epoch(&self) -> Option<Epoch> {
        let index = self.context.catalog.load().indexes[&IndexId(3)].clone();
        self.context.view(&index).epoch
    }

    /// Makes both indexers report an applied epoch.
    fn applied(&self, newest: u64) {
        let index = self.context.catalog.load().indexes[&IndexId(3)].local_id();
        for node in [201, 202] {
            let slices = [0, 1].map(|slice| (index.slice(SliceNo(slice)), Epoch(2)));
            self.context.applied.report(AppliedReport {
                node: NodeId(node),
                applied: vec![(BucketId(1), Epoch(newest))],
                readable: Some(slices.into()),
                rebuilt: Vec::new(),
            });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn scans_read_by_the_kept_catalog_and_never_below_the_kept_epochs() {
    let world = World::new();
    assert_eq!(world.cas(), 30);
    assert!(world.context.heard.is_from_disk());
    assert_eq!(world.context.moment.load(Ordering::Relaxed), 17);
    world.applied(11);
    assert_eq!(world.epoch(), None, "an earlier process has shown 12");
    world.applied(12);
    assert_eq!(world.epoch(), Some(Epoch(12)));
}

#[tokio::test(start_paused = true)]
async fn a_newer_catalog_replaces_the_kept_one_and_its_floors() {
    let mut world = World::new();
    world.applied(11);
    assert!(world.sends(catalog(31)).await);
    assert_eq!((world.cas(), world.epoch()), (31, Some(Epoch(11))));
    assert!(!world.context.heard.is_from_disk());
}

#[tokio::test(start_paused = true)]
async fn an_older_catalog_counts_only_if_the_leader_has_no_newer_one_for_long() {
    let mut world = World::new();
    assert!(!world.sends(catalog(29)).await);
    tokio::time::advance(OLDER_FOR * 2).await;
    world.leader.0.store(30, Ordering::Relaxed);
    assert!(!world.sends(catalog(29)).await, "of a member that lags");
    assert_eq!(world.cas(), 30);
    world.leader.0.store(29, Ordering::Relaxed);
    assert!(world.sends(catalog(29)).await, "of coordinators that were restored");
    assert_eq!(world.cas(), 29);
}

#[tokio::test(start_paused = true)]
async fn no_catalog_of_another_cluster_or_of_none_replaces_the_kept_one() {
    let mut world = World::new();
    for cluster in [None, Some(ClusterId(77))] {
        assert!(!world.sends(Catalog { cluster, ..catalog(40) }).await);
    }
    assert_eq!(world.cas(), 30);
    assert!(world.context.heard.is_from_disk());
}
