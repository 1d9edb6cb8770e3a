//! The choice of an epoch against a coordinator whose answers are given.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::catalog::Catalog;
use proto::model::cut::EpochMark;
use proto::model::ids::{IndexId, NodeId, SliceId, TopologyNo, Vbuuid};
use proto::model::index::{IndexSpec, IndexState};
use proto::model::moment::Moment;
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::node::NodeInfo;
use proto::model::rollback::DeadEpochs;
use proto::model::topology::IndexTopology;
use proto::rpc::api::*;
use proto::rpc::command::{CommandRequest, Outcome};
use proto::rpc::scan::AppliedReport;

use super::*;
use crate::context::tests::context_of;

const BUCKET: BucketId = BucketId(1);
const INDEXER: NodeId = NodeId(1);

/// A coordinator that gives each of its answers once, and remembers the epochs that the router knew.
struct Script {
    answers: Mutex<VecDeque<CoveringEpochs>>,
    known: Mutex<Vec<u64>>,
}

#[async_trait]
impl CoordinatorApi for Script {
    async fn epoch_covering(
        &self,
        _: BucketId,
        _: Cut,
        _: Option<u64>,
        at_least: Epoch,
        _: u64,
    ) -> Result<CoveringEpochs> {
        self.known.lock().unwrap().push(at_least.0);
        let answer = self.answers.lock().unwrap().pop_front();
        answer.ok_or_else(|| Error::internal("the router asked too often"))
    }
    async fn propose(&self, _: CommandRequest) -> Result<Outcome> {
        Err(Error::unavailable("not here"))
    }
    async fn sync(&self, _: SyncReport) -> Result<SyncReply> {
        Err(Error::unavailable("not here"))
    }
    async fn heartbeat(&self, _: Heartbeat) -> Result<HeartbeatReply> {
        Err(Error::unavailable("not here"))
    }
    async fn watch(&self, _: Watched) -> Result<ResultStream<WatchMessage>> {
        Err(Error::unavailable("not here"))
    }
    async fn status(&self) -> Result<CoordinatorStatus> {
        Err(Error::unavailable("not here"))
    }
    async fn rebalance(&self, _: RebalanceRequest) -> Result<RebalancePlan> {
        Err(Error::unavailable("not here"))
    }
    async fn topology(&self, _: IndexId, _: TopologyNo) -> Result<Arc<IndexTopology>> {
        Err(Error::unavailable("not here"))
    }
    async fn moment(&self, _: BucketId, _: Epoch, _: u64) -> Result<FixedMoment> {
        Err(Error::unavailable("not here"))
    }
    async fn epoch_at(&self, _: BucketId, _: Moment) -> Result<Epoch> {
        Err(Error::unavailable("not here"))
    }
    async fn epoch_mark(&self, _: BucketId, _: Epoch) -> Result<Option<EpochMark>> {
        Err(Error::unavailable("not here"))
    }
    async fn raft(&self, _: Vec<Bytes>) -> Result<()> {
        Err(Error::unavailable("not here"))
    }
}

struct Played(Arc<Script>);

impl Directory for Played {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        Arc::clone(&self.0) as Arc<dyn CoordinatorApi>
    }
    fn coordinator_member(&self, _: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        Err(Error::unavailable("not here"))
    }
    fn projector(&self, _: &NodeInfo) -> Arc<dyn ProjectorApi> {
        unreachable!("given positions need no source")
    }
    fn indexer(&self, _: &NodeInfo) -> Arc<dyn IndexerApi> {
        unreachable!("no shard is scanned")
    }
}

/// A router with an index of one slice.
struct World {
    context: RouterContext,
    index: Arc<IndexInfo>,
    coordinator: Arc<Script>,
}

impl World {
    /// The answers name the oldest and the newest covering epoch.
    fn new(answers: &[(u64, u64)]) -> Self {
        let answer = |(oldest, newest): &(u64, u64)| CoveringEpochs {
            oldest: Epoch(*oldest),
            newest: Epoch(*newest),
        };
        let answers = Mutex::new(answers.iter().map(answer).collect());
        let coordinator = Arc::new(Script { answers, known: Mutex::default() });
        let spec = IndexSpec { slices: 1, ..IndexSpec::new("i", "b") };
        let index = IndexInfo::new(IndexId(1), BUCKET, spec, vec![vec![INDEXER]]);
        let context = context_of(1, Arc::new(Played(Arc::clone(&coordinator))));
        let world = Self {
            context,
            index: Arc::new(IndexInfo { state: IndexState::Maintenance, ..index }),
            coordinator,
        };
        world.rolled_back(None);
        world
    }

    /// The router hears of the catalog, with a range of dead epochs.
    fn rolled_back(&self, dead: Option<DeadEpochs>) {
        let mut bucket = BucketInfo::new(BUCKET, "b", 1, SourceKind::Push, NodeId(100));
        bucket.dead = Arc::new(dead.into_iter().collect());
        let catalog = Catalog::clone(&self.context.catalog.load());
        let buckets = [(BUCKET, Arc::new(bucket))].into_iter().collect();
        self.context.catalog.store(Arc::new(Catalog { buckets, ..catalog }));
        self.context.catalog_changed.send_modify(|count| *count += 1);
    }

    /// The indexer has applied an epoch, and can answer from a floor on.
    fn applied(&self, floor: u64, newest: u64) {
        let slice =
            SliceId { index: self.index.id, generation: self.index.generation, slice: SliceNo(0) };
        self.context.applied.report(AppliedReport {
            node: INDEXER,
            applied: vec![(BUCKET, Epoch(newest))],
            readable: Some(vec![(slice, Epoch(floor))]),
        });
    }

    async fn choose(&self) -> Result<u64> {
        let position = Position { vbuuid: Vbuuid(7), seqno: proto::model::ids::Seqno(42) };
        let at_plus = Consistency::AtPlus(vec![(VbucketId(0), position)]);
        let deadline = Instant::now() + Duration::from_secs(10);
        let chooser = EpochChooser::new(&self.context, &self.index, deadline);
        chooser.choose(&at_plus).await.map(|lease| lease.epoch().0)
    }

    fn known(&self) -> Vec<u64> {
        self.coordinator.known.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_position_is_read_at_the_newest_applied_epoch_that_covers_it() {
    for (floor, applied, chosen) in [(1, 5, 8), (1, 9, 9), (10, 11, 11), (10, 10, 10), (1, 14, 12)]
    {
        let world = World::new(&[(8, 12)]);
        world.applied(floor, applied);
        assert_eq!(world.choose().await.unwrap(), chosen, "{floor}..{applied}");
        assert_eq!(world.known(), [applied], "a member that lacks the applied epoch is behind");
    }
}

#[tokio::test(start_paused = true)]
async fn an_epoch_after_a_rollback_is_not_taken_for_one_that_covers_the_position() {
    // Epochs 97 to 122 covered the position and were undone; 123 lacks it, and 130 has it again.
    let world = World::new(&[(100, 122), (100, 122), (130, 131)]);
    world.rolled_back(Some(DeadEpochs { point: None, to: Epoch(122) }));
    world.applied(1, 123);
    assert_eq!(world.choose().await.unwrap(), 130, "stale answers are asked again");

    // The indexers have heard of the rollback, the router and a member of the coordinator have not.
    let world = World::new(&[(100, 122)]);
    world.applied(1, 123);
    let undone = world.choose().await.unwrap();
    assert!((100..=122).contains(&undone), "it is refused where it is read: {undone}");
}

#[tokio::test(start_paused = true)]
async fn a_slice_that_was_built_later_is_read_once_the_coordinator_knows_its_epoch() {
    let world = World::new(&[(8, 12), (8, 20)]);
    world.applied(15, 16);
    assert_eq!(world.choose().await.unwrap(), 16);
    assert_eq!(world.known(), [16, 16]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_does_not_age_while_the_scan_waits_for_a_copy() {
    let world = World::new(&[(8, 120)]);
    let returns = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(world.known(), [0; 0], "nobody was asked yet");
        world.applied(100, 119);
    };
    let (chosen, ()) = tokio::join!(world.choose(), returns);
    assert_eq!(chosen.unwrap(), 119);
}
