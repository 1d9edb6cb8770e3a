//! A projector without documents, with the real membership, the real follower of the catalog and
//! the real loop of SYNC. Models replace everything else: the buckets advance at a given rate, and
//! the projector sends epochs, without mutations, to the indexers that follow a bucket.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use projector::testing::{Reporter, report_changes};
use proto::client::{
    CatalogFollower, CatalogSink, ForgottenPolicy, Membership, MembershipConfig, NodeIdentity,
    Retry,
};
use proto::env::{Env, Random, Task};
use proto::lock::lock;
use proto::model::assignment::VbucketSet;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::history::{FailoverLogs, SourceHistory, SourcePlace};
use proto::model::ids::{BucketId, LocalIndexId, NodeId, Seqno, VbucketId, Vbuuid};
use proto::model::index::IndexState;
use proto::model::left_out::LeftOut;
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::{
    BucketReport, CopyAnswer, CopyRequest, Directory, HandOverPiece, HandOverRequest, Heartbeat,
    ProjectorApi, ProjectorReport, PushReply, PushRequest, ResultStream, SyncReply, WatchKind,
    WriteReply, WriteRequest,
};
use proto::rpc::mutation::{BackfillMessage, BackfillRequest, StreamMessage, SubscribeRequest};
use proto::{Error, ErrorCode, Result};
use tokio::sync::Notify;

use super::counts::Kind;
use super::indexer::LightIndexer;
use super::network::{End, Network};
use super::process::{Processes, identity_of};
use super::size::size;

/// The interval of heartbeats, and the pauses after failures, as in a projector.
const HEARTBEAT: Duration = Duration::from_secs(1);
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// The interval at which the buckets advance.
const ADVANCE_MS: u64 = 2;

/// A projector without storage.
pub struct LightProjector {
    network: Arc<Network>,
    node: NodeInfo,
    env: Env,
    directory: Arc<dyn Directory>,
    indexers: Processes<LightIndexer>,
    buckets: Mutex<BTreeMap<BucketId, Source>>,
    changed: Mutex<BTreeSet<BucketId>>,
    some_changed: Notify,
    catalog_cas: AtomicU64,
    /// The number of mutations of each bucket per second.
    rate: Arc<AtomicU64>,
}

/// A bucket.
struct Source {
    durable: Cut,
    logs: Arc<FailoverLogs>,
    newest: Option<EpochMark>,
    /// The indexers that follow the bucket.
    readers: BTreeSet<NodeId>,
}

impl LightProjector {
    /// Starts a projector; returns it and its tasks, with which it ends.
    pub fn start(
        (network, node, env): (&Arc<Network>, NodeInfo, Env),
        directory: Arc<dyn Directory>,
        indexers: Processes<LightIndexer>,
        rate: Arc<AtomicU64>,
    ) -> Result<(Arc<Self>, Vec<Task>)> {
        let identity = identity_of(&env, &node)?;
        let projector = Arc::new(Self {
            network: Arc::clone(network),
            node,
            env: env.clone(),
            directory: Arc::clone(&directory),
            indexers,
            buckets: Mutex::default(),
            changed: Mutex::default(),
            some_changed: Notify::new(),
            catalog_cas: AtomicU64::new(0),
            rate,
        });
        let follower = CatalogFollower::new(directory, Retry::doubling(RETRY_MIN, RETRY_MAX))
            .with_identity(Some(Arc::clone(&identity)));
        let follow = follower.run(Sink(Arc::clone(&projector)));
        let (syncing, advancing) = (Arc::clone(&projector), Arc::clone(&projector));
        let tasks = vec![
            env.spawn_service("catalog", follow),
            env.spawn_service("heartbeat", Arc::clone(&projector).stay_registered(identity)),
            env.spawn_service("SYNC", async move { report_changes(&*syncing).await }),
            env.spawn_service("mutations", async move { advancing.advance().await }),
        ];
        Ok((projector, tasks))
    }

    async fn stay_registered(self: Arc<Self>, identity: Arc<NodeIdentity>) -> Infallible {
        let config = MembershipConfig {
            node: self.node.clone(),
            heartbeat: HEARTBEAT,
            retry: Retry::doubling(RETRY_MIN, RETRY_MAX),
            client: Some(self.env.random.next_u64()),
            has_news_at_once: true,
            when_forgotten: ForgottenPolicy::RegisterAfterPause,
            identity: Some(identity),
        };
        let directory = Arc::clone(&self.directory);
        let heartbeat = move || {
            let all = |source: &Source| VbucketSet::all(source.durable.vbuckets());
            let owned = lock(&self.buckets).iter().map(|(id, of)| (*id, all(of))).collect();
            let report = ProjectorReport { owned, ..ProjectorReport::default() };
            Heartbeat::new(self.node.id, self.catalog_cas.load(Ordering::Relaxed), report)
        };
        Membership::new(directory, config).run(heartbeat, None).await
    }

    /// Advances random vbuckets at the given rate, for ever.
    async fn advance(&self) -> Infallible {
        let mut random = fastrand::Rng::with_seed(self.env.random.next_u64());
        let mut thousandths = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(ADVANCE_MS)).await;
            thousandths += self.rate.load(Ordering::Relaxed) * ADVANCE_MS;
            let mutations = thousandths / 1_000;
            thousandths %= 1_000;
            for (id, source) in lock(&self.buckets).iter_mut().filter(|_| mutations > 0) {
                (0..mutations).for_each(|_| source.mutate(&mut random));
                lock(&self.changed).insert(*id);
            }
            if mutations > 0 {
                self.some_changed.notify_one();
            }
        }
    }

    /// Sends an epoch to indexers, in their streams.
    fn send_epoch(&self, mark: &EpochMark, readers: &BTreeSet<NodeId>) {
        let from = End { node: self.node.id, role: Role::Projector };
        let bytes = self.network.sizes.of_mark(mark) + 1;
        let mut by_delay: BTreeMap<Duration, Vec<Arc<LightIndexer>>> = BTreeMap::new();
        for id in readers {
            let to = End { node: *id, role: Role::Indexer };
            self.network.count(from, to, Kind::EpochInStream, bytes);
            let delay = self.network.delay(from.node, *id);
            by_delay.entry(delay).or_default().push(Arc::clone(&self.indexers[id]));
        }
        for (delay, indexers) in by_delay {
            let (mark, network) = (mark.clone(), Arc::clone(&self.network));
            let deliver = async move {
                tokio::time::sleep(delay).await;
                for indexer in indexers {
                    indexer.take_epoch(&mark);
                    network.observer.arrived(mark.bucket, mark.epoch, indexer.id());
                }
            };
            self.env.spawn_request("epoch", deliver).detach();
        }
    }

    fn take_catalog(&self, catalog: &Catalog) {
        self.catalog_cas.fetch_max(catalog.cas, Ordering::Relaxed);
        let mut buckets = lock(&self.buckets);
        for bucket in catalog.buckets.values().filter(|b| b.assignment.concerns(self.node.id)) {
            let source = buckets
                .entry(bucket.id)
                .or_insert_with(|| Source::new(bucket.vbuckets, &*self.env.random));
            let indexes = catalog.indexes.values();
            let followed =
                indexes.filter(|i| i.bucket == bucket.id && i.state != IndexState::Pending);
            let readers: BTreeSet<NodeId> =
                followed.flat_map(|index| index.topology.nodes()).collect();
            let new: BTreeSet<NodeId> = readers.difference(&source.readers).copied().collect();
            source.readers = readers;
            if let Some(newest) = source.newest.as_ref().filter(|_| !new.is_empty()) {
                self.send_epoch(newest, &new);
            }
        }
    }

    fn with<T>(&self, bucket: BucketId, get: impl FnOnce(&Source) -> T) -> Result<T> {
        let unknown = || Error::unavailable(format!("bucket {bucket} is not here"));
        lock(&self.buckets).get(&bucket).map(get).ok_or_else(unknown)
    }
}

impl Source {
    fn new(vbuckets: u16, random: &dyn Random) -> Self {
        let branches = (0..vbuckets).map(|_| vec![(Vbuuid(random.next_u64().max(1)), 0)]);
        Self {
            durable: Cut::zero(vbuckets),
            logs: Arc::new(FailoverLogs::new(branches.collect())),
            newest: None,
            readers: BTreeSet::new(),
        }
    }

    fn mutate(&mut self, random: &mut fastrand::Rng) {
        let vbucket = VbucketId(random.u16(..self.durable.vbuckets()));
        let seqno = Seqno(self.durable.get(vbucket).seqno.0 + 1);
        let vbuuid = self.logs.branch_of(vbucket, seqno);
        self.durable.set(vbucket, Position { vbuuid, seqno });
    }

    fn all(&self) -> VbucketSet {
        VbucketSet::all(self.durable.vbuckets())
    }
}

struct Sink(Arc<LightProjector>);

impl CatalogSink for Sink {
    fn watch_kind(&self) -> WatchKind {
        WatchKind::CatalogAndEpochs
    }

    async fn take_catalog(&mut self, catalog: Arc<Catalog>) -> Result<()> {
        self.0.take_catalog(&catalog);
        Ok(())
    }

    async fn take_epochs(&mut self, marks: Vec<EpochMark>) -> Result<()> {
        let projector = &self.0;
        let mut buckets = lock(&projector.buckets);
        for mark in marks {
            let Some(source) = buckets.get_mut(&mark.bucket) else { continue };
            projector.network.observer.sent(mark.bucket, mark.epoch, &source.readers);
            projector.send_epoch(&mark, &source.readers);
            source.newest = Some(mark);
        }
        Ok(())
    }
}

impl Reporter for LightProjector {
    fn node(&self) -> NodeId {
        self.node.id
    }

    fn directory(&self) -> &Arc<dyn Directory> {
        &self.directory
    }

    async fn wait_changed(&self) {
        self.some_changed.notified().await;
    }

    fn take_changed(&self) -> BTreeSet<BucketId> {
        std::mem::take(&mut *lock(&self.changed))
    }

    fn bucket_ids(&self) -> BTreeSet<BucketId> {
        lock(&self.buckets).keys().copied().collect()
    }

    fn bucket_report(&self, bucket: BucketId) -> Option<BucketReport> {
        let report =
            |source: &Source| BucketReport::new(bucket, source.all(), source.durable.clone());
        self.with(bucket, report).ok()
    }

    fn left_out(&self) -> Vec<(LocalIndexId, LeftOut)> {
        Vec::new()
    }

    fn apply_sync_reply(&self, _reply: &SyncReply) {}
}

/// A projector from the view of another process.
pub struct RemoteProjector {
    network: Arc<Network>,
    from: End,
    to: Arc<LightProjector>,
}

impl RemoteProjector {
    /// Returns the client of a projector in another process.
    pub fn new(network: &Arc<Network>, from: End, to: &Arc<LightProjector>) -> Arc<Self> {
        Arc::new(Self { network: Arc::clone(network), from, to: Arc::clone(to) })
    }
}

impl RemoteProjector {
    async fn ask<T: serde::Serialize>(
        &self,
        bucket: BucketId,
        get: impl FnOnce(&Source) -> T + Send,
    ) -> Result<T> {
        let to = End { node: self.to.node.id, role: Role::Projector };
        let answer = async { self.to.with(bucket, get) };
        let kinds = (Kind::Request, Kind::Reply);
        self.network.call((self.from, to), kinds, size(&bucket), answer).await
    }
}

/// Returns the error for calls that the measurement does not make.
fn unsupported<T>() -> Result<T> {
    Err(Error::new(ErrorCode::Unsupported, "this process has no documents"))
}

#[async_trait]
impl ProjectorApi for RemoteProjector {
    async fn place(&self, bucket: BucketId) -> Result<SourcePlace> {
        let place = |source: &Source| SourcePlace {
            durable: source.durable.clone(),
            history: source.logs.fingerprint(),
            kept: source.all(),
        };
        self.ask(bucket, place).await
    }

    async fn history(&self, bucket: BucketId) -> Result<SourceHistory> {
        let history = |source: &Source| SourceHistory {
            durable: source.durable.clone(),
            logs: Arc::clone(&source.logs),
            kept: source.all(),
        };
        self.ask(bucket, history).await
    }

    async fn write(&self, _: WriteRequest) -> Result<WriteReply> {
        unsupported()
    }

    async fn get(&self, _: BucketId, _: Vec<String>) -> Result<Vec<Option<Bytes>>> {
        unsupported()
    }

    async fn push(&self, _: PushRequest) -> Result<PushReply> {
        unsupported()
    }

    async fn subscribe(&self, _: SubscribeRequest) -> Result<ResultStream<StreamMessage>> {
        unsupported()
    }

    async fn backfill(&self, _: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        unsupported()
    }

    async fn hand_over(&self, _: HandOverRequest) -> Result<HandOverPiece> {
        unsupported()
    }

    async fn copy(&self, _: CopyRequest) -> Result<CopyAnswer> {
        unsupported()
    }
}
