//! Tests of the choice of an epoch, and of pins at a moment, with a coordinator whose answers are
//! given.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::catalog::Catalog;
use proto::model::cut::EpochMark;
use proto::model::ids::{IndexId, LocalIndexId, NodeId, SliceId, TopologyNo, Vbuuid};
use proto::model::index::{IndexSpec, IndexState};
use proto::model::moment::Moment;
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::node::NodeInfo;
use proto::model::rollback::DeadEpochs;
use proto::model::topology::IndexTopology;
use proto::rpc::api::*;
use proto::rpc::command::{AppliedCommand, Proposal};
use proto::rpc::scan::AppliedReport;

use super::*;
use crate::context::tests::context_of;
use crate::epochs::pinned::PinnedEpoch;

const BUCKET: BucketId = BucketId(1);
const INDEXER: NodeId = NodeId(1);

/// A coordinator that gives each of its answers once, and records the epochs in the router's
/// requests.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<CoveringEpochs>>,
    known: Mutex<Vec<u64>>,
    fixed: Mutex<VecDeque<Result<FixedMoment>>>,
    in_force: Mutex<VecDeque<Result<Epoch>>>,
    /// The moments in the router's requests.
    asked: Mutex<Vec<Moment>>,
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
    async fn propose(&self, _: Proposal) -> Result<AppliedCommand> {
        Err(Error::unavailable("not here"))
    }
    async fn sync(&self, _: SyncReport) -> Result<SyncReply> {
        Err(Error::unavailable("not here"))
    }
    async fn heartbeat(&self, _: Heartbeat) -> Result<HeartbeatReply> {
        Err(Error::unavailable("not here"))
    }
    async fn watch(&self, _: WatchKind) -> Result<ResultStream<WatchMessage>> {
        Err(Error::unavailable("not here"))
    }
    async fn status(&self) -> Result<CoordinatorStatus> {
        Err(Error::unavailable("not here"))
    }
    async fn rebalance(&self, _: RebalanceRequest) -> Result<RebalancePlan> {
        Err(Error::unavailable("not here"))
    }
    async fn topology(&self, _: LocalIndexId, _: TopologyNo) -> Result<Arc<IndexTopology>> {
        Err(Error::unavailable("not here"))
    }
    async fn moment(&self, _: BucketId, at_least: Epoch, _: u64) -> Result<FixedMoment> {
        self.known.lock().unwrap().push(at_least.0);
        let answer = self.fixed.lock().unwrap().pop_front();
        answer.unwrap_or_else(|| Err(Error::internal("the router asked too often")))
    }
    async fn epoch_at(&self, _: BucketId, moment: Moment) -> Result<Epoch> {
        self.asked.lock().unwrap().push(moment);
        let answer = self.in_force.lock().unwrap().pop_front();
        answer.unwrap_or_else(|| Err(Error::internal("the router asked too often")))
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
    /// Creates a router. Each answer of the coordinator has the oldest and the newest covering
    /// epoch.
    fn new(answers: &[(u64, u64)]) -> Self {
        let answer = |(oldest, newest): &(u64, u64)| CoveringEpochs {
            oldest: Epoch(*oldest),
            newest: Epoch(*newest),
        };
        let answers = Mutex::new(answers.iter().map(answer).collect());
        let coordinator = Arc::new(Script { answers, ..Script::default() });
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

    /// Sends the router a catalog with a range of dead epochs.
    fn rolled_back(&self, dead: Option<DeadEpochs>) {
        let mut bucket = BucketInfo::new(BUCKET, "b", 1, SourceKind::Push, NodeId(100));
        bucket.dead = Arc::new(dead.into_iter().collect());
        let catalog = Catalog::clone(&self.context.catalog.load());
        let buckets = [(BUCKET, Arc::new(bucket))].into_iter().collect();
        self.context.catalog.store(Arc::new(Catalog { buckets, ..catalog }));
        self.context.catalog_changed.send_modify(|count| *count += 1);
    }

    /// Reports that the indexer has applied the epoch `newest`, and can read from `floor` on.
    fn applied(&self, floor: u64, newest: u64) {
        let slice =
            SliceId { index: self.index.id, generation: self.index.generation, slice: SliceNo(0) };
        self.context.applied.report(AppliedReport {
            node: INDEXER,
            applied: vec![(BUCKET, Epoch(newest))],
            readable: Some(vec![(slice, Epoch(floor))]),
            rebuilt: Vec::new(),
        });
    }

    async fn choose(&self) -> Result<u64> {
        let position = Position { vbuuid: Vbuuid(7), seqno: proto::model::ids::Seqno(42) };
        self.choose_for(&Consistency::AtPlus(vec![(VbucketId(0), position)])).await
    }

    async fn choose_for(&self, consistency: &Consistency) -> Result<u64> {
        let deadline = Instant::now() + Duration::from_secs(10);
        let catalog = self.context.catalog.load_full();
        let chooser = EpochChooser::new(&self.context, &self.index, &catalog, deadline);
        chooser.choose(consistency).await.map(|lease| lease.epoch().0)
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

    // The indexers know of the rollback; the router and a member of the coordinator do not.
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
async fn coordinator_is_asked_after_the_wait() {
    let world = World::new(&[(8, 120)]);
    let returns = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(world.known(), [0; 0], "nobody was asked yet");
        world.applied(100, 119);
    };
    let (chosen, ()) = tokio::join!(world.choose(), returns);
    assert_eq!(chosen.unwrap(), 119);
}

const OTHER: BucketId = BucketId(2);

#[tokio::test(start_paused = true)]
async fn a_moment_is_asked_for_again_while_nobody_leads_and_is_leased_with_the_pin() {
    let world = World::new(&[]);
    world.applied(1, 6);
    let fixed = |at, epoch| Ok(FixedMoment { at, epoch: Epoch(epoch) });
    let unavailable = || Error::unavailable("nobody leads");
    world.coordinator.fixed.lock().unwrap().extend([Err(unavailable()), fixed(40, 7)]);
    let context = Arc::new(world.context.clone());
    let deadline = Instant::now() + Duration::from_secs(10);
    let pin = PinnedEpoch::at_present(&context, BUCKET, deadline).await.unwrap();
    assert_eq!((pin.epoch(), world.known()), (Epoch(7), vec![6, 6]), "it knows epoch 6");

    let gone = Error::new(ErrorCode::SnapshotTooOld, "gone");
    let answers = [Err(unavailable()), Ok(Epoch(3)), Err(gone)];
    world.coordinator.in_force.lock().unwrap().extend(answers);
    let other = pin.pin_at(OTHER, 10_000).await.unwrap();
    assert_eq!(other.epoch(), Epoch(3));
    assert_eq!(*world.coordinator.asked.lock().unwrap(), [Moment::at(40); 2]);
    let error = pin.pin_at(OTHER, 10_000).await.err().unwrap();
    assert_eq!(error.code, ErrorCode::SnapshotTooOld, "no later answer is another one");
    let told = || {
        let (leases, now) = (&world.context.leases, Instant::now());
        (leases.for_heartbeat(now), leases.moments_for_heartbeat(now))
    };
    let both = vec![(BUCKET, Epoch(7)), (OTHER, Epoch(3))];
    assert_eq!(told(), (both, vec![Moment::at(40)]));
    drop(pin);
    assert_eq!(told(), (vec![(OTHER, Epoch(3))], vec![Moment::at(40)]));
    drop(other);
    assert_eq!(told(), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn an_epoch_that_the_router_has_chosen_names_its_moment_without_the_coordinator() {
    let world = World::new(&[]);
    world.context.moment.store(30, std::sync::atomic::Ordering::Relaxed);
    let lease = world.context.leases.lease_epoch(BUCKET, Epoch(7), 1);
    let pin = PinnedEpoch::from_lease(&Arc::new(world.context.clone()), lease, Arc::default());
    let moment = Moment { at: 30, of: Some((BUCKET, Epoch(7))) };
    assert_eq!(world.context.leases.moments_for_heartbeat(Instant::now()), [moment]);
    world.coordinator.in_force.lock().unwrap().push_back(Ok(Epoch(3)));
    assert_eq!(pin.pin_at(OTHER, 10_000).await.unwrap().epoch(), Epoch(3));
    assert_eq!(*world.coordinator.asked.lock().unwrap(), [moment]);
}

#[tokio::test(start_paused = true)]
async fn an_epoch_from_before_a_rollback_is_not_pinned() {
    let world = World::new(&[]);
    world.rolled_back(Some(DeadEpochs { point: None, to: Epoch(9) }));
    let fixed = |epoch| Ok(FixedMoment { at: epoch, epoch: Epoch(epoch) });
    world.coordinator.fixed.lock().unwrap().extend([fixed(8), fixed(10)]);
    let context = Arc::new(world.context.clone());
    let deadline = Instant::now() + Duration::from_secs(10);
    let pin = PinnedEpoch::at_present(&context, BUCKET, deadline).await.unwrap();
    assert_eq!(pin.epoch(), Epoch(10), "the coordinator that was asked first is behind");
    world.coordinator.in_force.lock().unwrap().push_back(Ok(Epoch(8)));
    let error = pin.pin_at(BUCKET, 10_000).await.err().unwrap();
    assert_eq!(error.code, ErrorCode::SnapshotTooOld);
    assert!(error.message.contains("rolled back after the moment"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_has_seen_an_epoch_gets_none_before_it() {
    let world = World::new(&[]);
    let at_least = |floor: u64| Consistency::AtLeast(Epoch(floor));
    world.applied(1, 9);
    assert_eq!(world.choose_for(&at_least(7)).await.unwrap(), 9, "the newest");
    // The copy that had epoch 9 is lost, and another one lags.
    world.context.applied.remove_report(INDEXER);
    world.applied(1, 6);
    let began = Instant::now();
    let refused = world.choose_for(&at_least(9)).await.unwrap_err();
    assert_eq!((refused.code, began.elapsed()), (ErrorCode::Unavailable, FLOOR_WAIT));
    assert!(refused.hint.unwrap().contains("stale"));
    assert_eq!(world.choose_for(&Consistency::Any).await.unwrap(), 6);
    let catches_up = async {
        tokio::time::sleep(FLOOR_WAIT / 2).await;
        world.applied(1, 10);
    };
    let floor = at_least(9);
    let (chosen, ()) = tokio::join!(world.choose_for(&floor), catches_up);
    assert_eq!(chosen.unwrap(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_removed_floor_is_replaced() {
    let world = World::new(&[]);
    world.applied(1, 122);
    world.rolled_back(Some(DeadEpochs { point: None, to: Epoch(130) }));
    let floor = Consistency::AtLeast(Epoch(122));
    assert!(world.choose_for(&floor).await.is_err(), "the survivors alone are older");
    world.applied(1, 131);
    assert_eq!(world.choose_for(&floor).await.unwrap(), 131);
}

#[tokio::test(start_paused = true)]
async fn a_scan_waits_for_a_rebuild() {
    for consistency in
        [Consistency::Any, Consistency::AtLeast(Epoch(3)), Consistency::AtPlus(Vec::new())]
    {
        let world = World::new(&[(8, 12)]);
        let rebuilt = vec![world.index.local_id().slice(SliceNo(0))];
        let report = |rebuilt| AppliedReport {
            node: INDEXER,
            applied: vec![(BUCKET, Epoch(9))],
            readable: Some(Vec::new()),
            rebuilt,
        };
        world.context.applied.report(report(rebuilt.clone()));
        let began = Instant::now();
        let error = world.choose_for(&consistency).await.expect_err("nobody can read the slice");
        assert_eq!((error.code, began.elapsed()), (ErrorCode::Unavailable, REBUILD_WAIT));
        let text = "index \"i\": slice 0 cannot be read: node 1";
        assert!(error.message.starts_with(text) && error.message.contains("rebuilds"), "{error}");
    }
    let world = World::new(&[]);
    let rebuilt = vec![world.index.local_id().slice(SliceNo(0))];
    let (node, applied) = (INDEXER, vec![(BUCKET, Epoch(9))]);
    let readable = Some(Vec::new());
    world.context.applied.report(AppliedReport { node, applied, readable, rebuilt });
    let scan = world.choose_for(&Consistency::Any);
    let built = async {
        tokio::time::sleep(REBUILD_WAIT / 2).await;
        world.applied(9, 9);
    };
    assert_eq!(tokio::join!(scan, built).0, Ok(9), "a small slice is there in time");
}
