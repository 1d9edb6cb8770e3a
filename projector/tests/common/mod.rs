//! A projector in a scripted environment: a scripted coordinator, and a store in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use projector::testing::DocumentStore;
use projector::testing::MemoryStore;
use projector::{Config, Projector, Service};
use proto::env::Env;
use proto::expr::{ColumnType, Expr};
use proto::model::bucket::*;
use proto::model::catalog::*;
use proto::model::copies::Copies;
use proto::model::cut::{Cut, EpochMark};
use proto::model::history::{SourceHistory, SourcePlace};
use proto::model::ids::*;
use proto::model::index::*;
use proto::model::joint::HalvedCommit;
use proto::model::left_out::LeftOut;
use proto::model::moment::Moment;
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::node::*;
use proto::model::topology::*;
use proto::rpc::api::*;
use proto::rpc::command::{Command, CommandRequest, Outcome};
use proto::rpc::mutation::*;
use proto::rpc::routing::*;
use proto::value::path::Step;
use proto::{Error, ErrorCode, Result};
use tokio::sync::watch;

mod follower;
mod until;

pub use follower::*;
// Each test target has a copy of this module, and uses a part of it.
#[allow(unused_imports)]
pub use until::until;

pub const BUCKET: BucketId = BucketId(3);
pub const PUSHED: BucketId = BucketId(4);
pub const PROJECTOR: NodeId = NodeId(1);
/// Two indexers. Even slices are on the first.
pub const INDEXERS: [NodeId; 2] = [NodeId(10), NodeId(11)];
pub const VBUCKETS: u16 = 4;
pub const SLICES: u16 = 4;

/// A coordinator that sends what the test tells it, and records what it receives.
#[derive(Clone)]
pub struct Script {
    messages: watch::Sender<Vec<WatchMessage>>,
    pub synced: Arc<Mutex<BTreeMap<BucketId, BucketReport>>>,
    /// All proposals except registrations.
    pub proposed: Arc<Mutex<Vec<Command>>>,
    projectors: Arc<Mutex<BTreeMap<NodeId, Arc<Projector>>>>,
    /// The last epoch of the embedded bucket, of which a projector that asks lacks a part.
    pub lacks: Arc<Mutex<Option<Epoch>>>,
    /// The timestamps that the coordinators retain.
    pub retained: Arc<Mutex<Vec<EpochMark>>>,
    /// The copies of the embedded bucket, if the test has several.
    pub copies: Arc<Mutex<Option<Copies>>>,
    /// Projectors that do not reach each other, or the coordinator (node 0).
    pub cuts: Arc<Mutex<BTreeSet<(NodeId, NodeId)>>>,
    /// Projectors that never answer what becomes of a transaction.
    pub hung: Arc<Mutex<BTreeSet<NodeId>>>,
    /// The halved commits of the last SYNC.
    pub halved: Arc<Mutex<Vec<HalvedCommit>>>,
    /// The documents that indexes have left out, as the newest report says.
    pub left_out: Arc<Mutex<Vec<(LocalIndexId, LeftOut)>>>,
    /// The pieces of large groups on their way to other copies.
    pub pieces: Arc<Pieces>,
    /// The projector that has this clone.
    me: NodeId,
}

/// The pieces of large groups that the leading copy has sent.
#[derive(Default)]
pub struct Pieces {
    /// Their number.
    pub sent: AtomicU64,
    /// The number of the answers with what was prepared at the beginning of a session.
    pub prepared: AtomicU64,
    /// The number of the one that is lost; zero for none.
    pub lost: AtomicU64,
    /// True if the two copies do not reach each other after that.
    pub then_cut: AtomicBool,
}

/// The number of the coordinator in [`Script::cuts`].
pub const COORDINATOR: NodeId = NodeId(0);

impl Script {
    pub fn say(&self, message: WatchMessage) {
        self.messages.send_modify(|messages| messages.push(message));
    }

    /// Takes back what was said, for later watches.
    pub fn forget(&self) {
        self.messages.send_modify(Vec::clear);
    }

    fn check_reached(&self, to: NodeId) -> Result<()> {
        match self.cuts.lock().unwrap().contains(&(self.me, to)) {
            true => Err(Error::unavailable(format!("{to} is cut off"))),
            false => Ok(()),
        }
    }

    /// Counts a piece of a projector; an error if it is lost.
    fn note_piece(&self, from: NodeId) -> Result<()> {
        let sent = self.pieces.sent.fetch_add(1, Ordering::Relaxed) + 1;
        if sent != self.pieces.lost.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.pieces.then_cut.load(Ordering::Relaxed) {
            self.cuts.lock().unwrap().extend([(self.me, from), (from, self.me)]);
        }
        Err(Error::unavailable("a piece is lost"))
    }

    /// Says the catalog with the copies as they are now.
    pub fn say_copies(&self) {
        let copies = self.copies.lock().unwrap().clone().expect("copies");
        let mut next = catalog(copies.revision, &[]);
        let bucket = BucketInfo::new(BUCKET, "b", VBUCKETS, SourceKind::Embedded, copies.leader);
        next.buckets = [(BUCKET, Arc::new(bucket))].into();
        next.nodes = (1..=3).map(|n| (NodeId(n), Arc::new(projector_info(NodeId(n))))).collect();
        next.copies = [(BUCKET, copies)].into();
        self.say(WatchMessage::Catalog(next.into()));
    }

    /// Changes the copies as the coordinators do.
    pub fn change_copies(&self, change: impl FnOnce(&mut Copies)) {
        change(self.copies.lock().unwrap().as_mut().expect("copies"));
        self.say_copies();
    }

    /// Answers a command about copies.
    fn of_copies(&self, command: &Command) -> Option<Outcome> {
        let mut copies = self.copies.lock().unwrap();
        let known = copies.as_mut()?;
        match command {
            Command::OpenSource { projector, .. } if *projector == known.leader => {
                let error = || Error::new(ErrorCode::Corrupt, "bucket \"b\" lacks a part");
                let lacks = *self.lacks.lock().unwrap();
                Some(match lacks {
                    Some(epoch) => Outcome::Lacks { epoch, error: error() },
                    None => {
                        known.open();
                        Outcome::Opened(known.clone())
                    }
                })
            }
            Command::OpenSource { .. } => {
                Some(Outcome::Refused(Error::new(ErrorCode::NotOwner, "it does not lead")))
            }
            Command::ChangeCopies { revision, change, .. } => {
                let is_changed = known.change(*revision, *change).is_ok();
                let now = known.clone();
                drop(copies);
                if is_changed {
                    self.say_copies();
                }
                Some(Outcome::Copies(now))
            }
            _ => None,
        }
    }

    /// Publishes a stability timestamp at a cut.
    pub fn epoch(&self, epoch: u64, cut: &Cut) {
        self.say(WatchMessage::Epochs(vec![mark(epoch, epoch - 1, cut)]));
    }
}

/// A stability timestamp of the bucket.
pub fn mark(epoch: u64, parent: u64, cut: &Cut) -> EpochMark {
    EpochMark {
        bucket: BUCKET,
        epoch: Epoch(epoch),
        parent: Epoch(parent),
        cut: Arc::new(cut.clone()),
        horizon: Epoch(0),
        points: Arc::default(),
    }
}

#[async_trait]
impl CoordinatorApi for Script {
    async fn propose(&self, request: CommandRequest) -> Result<Outcome> {
        self.check_reached(COORDINATOR)?;
        if let Some(outcome) = self.of_copies(&request.command) {
            return Ok(outcome);
        }
        if let Command::OpenSource { accepted, .. } = request.command {
            let lacks = *self.lacks.lock().unwrap();
            let refused = lacks.filter(|epoch| accepted != Some(*epoch));
            let error = || Error::new(ErrorCode::Corrupt, "bucket \"b\" lacks a part");
            return Ok(
                refused.map_or(Outcome::Done, |epoch| Outcome::Lacks { epoch, error: error() })
            );
        }
        if !matches!(request.command, Command::RegisterNode(_)) {
            self.proposed.lock().unwrap().push(request.command);
        }
        Ok(Outcome::Done)
    }
    async fn sync(&self, report: SyncReport) -> Result<SyncReply> {
        let told = report.buckets.into_iter().map(|report| (report.bucket, report));
        self.synced.lock().unwrap().extend(told);
        *self.halved.lock().unwrap() = report.halved;
        *self.left_out.lock().unwrap() = report.left_out;
        Ok(SyncReply::default())
    }
    async fn heartbeat(&self, _: Heartbeat) -> Result<HeartbeatReply> {
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
        Err(Error::unavailable("not here"))
    }
    async fn watch(&self, _: Watched) -> Result<ResultStream<WatchMessage>> {
        let state = (self.messages.subscribe(), 0);
        Ok(Box::pin(futures::stream::unfold(state, |(mut all, sent)| async move {
            all.wait_for(|messages| messages.len() > sent).await.ok()?;
            let next = all.borrow()[sent].clone();
            Some((Ok(next), (all, sent + 1)))
        })))
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
    async fn moment(&self, _: BucketId, _: Epoch, _: u64) -> Result<FixedMoment> {
        Err(Error::unavailable("not here"))
    }
    async fn epoch_at(&self, _: BucketId, _: Moment) -> Result<Epoch> {
        Err(Error::unavailable("not here"))
    }
    async fn epoch_mark(&self, _: BucketId, epoch: Epoch) -> Result<Option<EpochMark>> {
        let marks = self.retained.lock().unwrap();
        Ok(marks.iter().find(|mark| mark.epoch == epoch).cloned())
    }
}

impl Directory for Script {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        Arc::new(self.clone())
    }
    fn coordinator_member(&self, _: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        Ok(Arc::new(self.clone()))
    }
    fn projector(&self, node: &NodeInfo) -> Arc<dyn ProjectorApi> {
        Arc::new(Reached { script: self.clone(), node: node.id })
    }
    fn indexer(&self, _: &NodeInfo) -> Arc<dyn IndexerApi> {
        unreachable!("a projector calls no indexer")
    }
}

/// A projector as another one reaches it.
struct Reached {
    script: Script,
    node: NodeId,
}

impl Reached {
    /// The projector, if it runs.
    fn target(&self) -> Result<Arc<Projector>> {
        let running = self.script.projectors.lock().unwrap();
        running.get(&self.node).cloned().ok_or_else(|| Error::unavailable("it does not run"))
    }
}

#[async_trait]
impl ProjectorApi for Reached {
    async fn write(&self, request: WriteRequest) -> Result<WriteReply> {
        self.target()?.write(request).await
    }
    async fn get(&self, bucket: BucketId, ids: Vec<String>) -> Result<Vec<Option<Bytes>>> {
        self.target()?.get(bucket, ids).await
    }
    async fn push(&self, request: PushRequest) -> Result<PushReply> {
        self.target()?.push(request).await
    }
    async fn push_in(&self, request: TransactionPush) -> Result<TransactionPushed> {
        self.script.check_reached(self.node)?;
        self.target()?.push_in(request).await
    }
    async fn commit_pushed(&self, request: PushedCommitRequest) -> Result<PushReply> {
        self.script.check_reached(self.node)?;
        self.target()?.commit_pushed(request).await
    }
    async fn look_at_pushed(&self, look: PushedLook) -> Result<Vec<(VbucketId, PartState)>> {
        self.script.check_reached(self.node)?;
        self.target()?.look_at_pushed(look).await
    }
    async fn abort(&self, bucket: BucketId, transaction: TransactionId) -> Result<()> {
        self.target()?.abort(bucket, transaction).await
    }
    async fn abort_pushed(
        &self,
        bucket: BucketId,
        transaction: ProducerTransactionId,
    ) -> Result<()> {
        self.target()?.abort_pushed(bucket, transaction).await
    }
    async fn place(&self, bucket: BucketId) -> Result<SourcePlace> {
        self.target()?.place(bucket).await
    }
    async fn history(&self, bucket: BucketId) -> Result<SourceHistory> {
        self.target()?.history(bucket).await
    }
    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>> {
        self.target()?.subscribe(request).await
    }
    async fn backfill(&self, request: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        self.target()?.backfill(request).await
    }
    async fn hand_over(&self, request: HandOverRequest) -> Result<HandOverPiece> {
        self.target()?.hand_over(request).await
    }
    async fn decide(
        &self,
        bucket: BucketId,
        transaction: TransactionId,
        decision: Decision,
    ) -> Result<WriteReply> {
        self.script.check_reached(self.node)?;
        self.target()?.decide(bucket, transaction, decision).await
    }
    async fn fate(&self, bucket: BucketId, transaction: TransactionId) -> Result<TransactionFate> {
        self.script.check_reached(self.node)?;
        if self.script.hung.lock().unwrap().contains(&self.node) {
            std::future::pending::<()>().await;
        }
        self.target()?.fate(bucket, transaction).await
    }
    async fn copy(&self, request: CopyRequest) -> Result<CopyAnswer> {
        self.script.check_reached(self.node)?;
        let answer = self.target()?.copy(request).await;
        self.script.check_reached(self.node)?;
        if let Ok(CopyAnswer::Prepared(_)) = &answer {
            self.script.pieces.prepared.fetch_add(1, Ordering::Relaxed);
        }
        if let Ok(CopyAnswer::Piece { .. }) = &answer {
            self.script.note_piece(self.node)?;
        }
        answer
    }
}

/// The simplest router.
struct Router;

impl MutationRouter for Router {
    fn route(&self, node: NodeId, index: &IndexInfo, key: Option<PartitionKey<'_>>) -> Route {
        let owned = key.map(|key| index.topology.partition(key));
        match (owned, &index.spec.partition) {
            (Some(slice), _) if index.topology.hosts(node, slice) => Route::Owner(slice),
            (_, PartitionBy::DocumentId) => Route::Elsewhere,
            (_, PartitionBy::Exprs(_)) if self.concerns(node, index) => Route::EmptyState,
            _ => Route::Elsewhere,
        }
    }
    fn concerns(&self, node: NodeId, index: &IndexInfo) -> bool {
        !index.topology.slices_on(node).is_empty()
    }
}

pub fn path(name: &str) -> Expr {
    Expr::Path(vec![Step::Field(name.into())])
}

/// An index on `n` over all slices of both indexers.
pub fn index(id: u64, partition: PartitionBy) -> Arc<IndexInfo> {
    index_on(id, vec![path("n")], partition)
}

/// An index on other keys.
pub fn index_on(id: u64, keys: Vec<Expr>, partition: PartitionBy) -> Arc<IndexInfo> {
    let part = |expr| KeyPart {
        expr,
        name: String::new(),
        column_type: ColumnType::Text,
        descending: false,
        include_missing: false,
    };
    let spec = IndexSpec {
        primary: false,
        keys: keys.into_iter().map(part).collect(),
        partition,
        slices: SLICES,
        ..IndexSpec::new(format!("i{id}"), "b")
    };
    let placement = (0..SLICES).map(|slice| vec![INDEXERS[usize::from(slice % 2)]]).collect();
    Arc::new(IndexInfo::new(IndexId(id), BUCKET, spec, placement))
}

pub fn catalog(cas: u64, indexes: &[Arc<IndexInfo>]) -> Catalog {
    let bucket = |id, name: &str, source| {
        let name = name.to_owned();
        (id, Arc::new(BucketInfo::new(id, name, VBUCKETS, source, PROJECTOR)))
    };
    Catalog {
        cas,
        newest_index: indexes.last().map_or(IndexId(0), |index| index.id),
        buckets: [bucket(BUCKET, "b", SourceKind::Embedded), bucket(PUSHED, "p", SourceKind::Push)]
            .into(),
        indexes: indexes.iter().map(|index| (index.id, Arc::clone(index))).collect(),
        nodes: BTreeMap::new(),
        ..Catalog::default()
    }
}

pub fn projector_info(id: NodeId) -> NodeInfo {
    NodeInfo { id, role: Role::Projector, address: format!("projector {id}"), zone: String::new() }
}

pub struct World {
    pub script: Script,
    pub store: MemoryStore,
    service: Option<Service>,
    pub config: Config,
}

/// A projector with a catalog of some indexes.
pub async fn world_with(indexes: &[Arc<IndexInfo>]) -> World {
    let world = World::new(|_| {}).await;
    world.script.say(WatchMessage::Catalog(catalog(1, indexes).into()));
    world
}

impl World {
    pub async fn new(change: impl FnOnce(&mut Config)) -> Self {
        let (messages, _) = watch::channel(Vec::new());
        let (synced, proposed, projectors, lacks) = Default::default();
        let (copies, cuts, hung, halved, pieces) = Default::default();
        let me = PROJECTOR;
        let retained = Arc::default();
        let script = Script {
            messages,
            synced,
            proposed,
            projectors,
            lacks,
            retained,
            copies,
            cuts,
            hung,
            halved,
            left_out: Arc::default(),
            pieces,
            me,
        };
        Self::of(script, PROJECTOR, change).await
    }

    /// Another projector with the same coordinator.
    pub async fn beside(other: &Self, id: NodeId) -> Self {
        Self::beside_with(other, id, |_| ()).await
    }

    /// The same with other settings.
    pub async fn beside_with(other: &Self, id: NodeId, change: impl FnOnce(&mut Config)) -> Self {
        Self::of(other.script.clone(), id, change).await
    }

    async fn of(mut script: Script, id: NodeId, change: impl FnOnce(&mut Config)) -> Self {
        script.me = id;
        let mut config = Config::new(projector_info(id));
        change(&mut config);
        let store = MemoryStore::default();
        let mut world = Self { script, store, service: None, config };
        world.start().await;
        world
    }

    /// Ends the projector as a crash does.
    pub fn stop(&mut self) {
        drop(self.service.take());
        self.script.projectors.lock().unwrap().remove(&self.config.node.id);
    }

    /// Starts the projector, over the same store if it ran before.
    pub async fn start(&mut self) {
        self.stop();
        self.store = self.store.reopened();
        let store: Arc<dyn DocumentStore> = Arc::new(self.store.clone());
        let (directory, router) = (Arc::new(self.script.clone()), Arc::new(Router));
        let service =
            Service::start(self.config.clone(), Env::real(), store, directory, router).await;
        let service = service.expect("the projector starts");
        self.script.projectors.lock().unwrap().insert(self.config.node.id, service.projector());
        self.service = Some(service);
    }

    pub fn projector(&self) -> Arc<Projector> {
        self.service.as_ref().expect("it runs").projector()
    }

    pub async fn write(&self, writes: Vec<Write>) -> Result<WriteReply> {
        self.projector().write(WriteRequest { bucket: BUCKET, writes }).await
    }

    pub async fn subscribe(&self, node: NodeId, from: Option<Cut>) -> Result<Follower> {
        self.subscribe_after(node, from, 0).await
    }

    /// A stream for a node that knows the timestamps up to a given one.
    pub async fn subscribe_after(
        &self,
        node: NodeId,
        from: Option<Cut>,
        last_epoch: u64,
    ) -> Result<Follower> {
        let last_epoch = Epoch(last_epoch);
        let request = SubscribeRequest { node, bucket: BUCKET, from, last_epoch };
        let stream = self.projector().subscribe(request).await?;
        Ok(Follower { stream, at: Cut::zero(VBUCKETS), ..Follower::default() })
    }
}

pub fn upsert(id: &str, json: &str) -> Write {
    Write { id: id.into(), kind: WriteKind::Upsert(Bytes::copy_from_slice(json.as_bytes())) }
}

pub fn insert(id: &str, json: &str) -> Write {
    Write { id: id.into(), kind: WriteKind::Insert(Bytes::copy_from_slice(json.as_bytes())) }
}

pub fn delete(id: &str) -> Write {
    Write { id: id.into(), kind: WriteKind::Delete }
}

/// Holds the syncs of a store until it is dropped, also when a test fails: the runtime waits for their threads.
pub struct HeldSyncs(MemoryStore);

impl HeldSyncs {
    pub fn of(store: &MemoryStore) -> Self {
        store.hold_syncs(true);
        Self(store.clone())
    }
}

impl Drop for HeldSyncs {
    fn drop(&mut self) {
        self.0.hold_syncs(false);
    }
}
