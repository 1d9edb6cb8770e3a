//! An indexer without storage, with the real membership and the real follower of the catalog.
//! Models replace everything else: the indexer applies an epoch when it arrives, and an applied
//! epoch is durable at the next heartbeat.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream;
use proto::client::{
    CatalogFollower, CatalogSink, ForgottenPolicy, Membership, MembershipConfig, NodeIdentity,
    Retry,
};
use proto::env::{Env, Task};
use proto::lock::lock;
use proto::model::catalog::Catalog;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, NodeId, SliceId};
use proto::model::index::IndexState;
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::{
    BucketProgress, Directory, Heartbeat, IndexerApi, IndexerReport, ResultStream, SliceProgress,
};
use proto::rpc::export::{ExportMessage, ExportRequest};
use proto::rpc::scan::{AppliedReport, ShardBatch, ShardScan};
use proto::{Error, ErrorCode, Result};
use tokio::sync::watch;

use super::counts::Kind;
use super::network::{End, Network};
use super::process::identity_of;
use super::size::size;

/// The interval of heartbeats and the pause after a failure, as in an indexer's default settings.
const HEARTBEAT: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(100);

/// The number of entries of a slice, on which only the sizes of reports depend.
const SLICE_ENTRIES: u64 = 1_000_000;
const SLICE_BYTES: u64 = 100 << 20;
const QUEUE_BYTES_MAX: u64 = 64 << 20;

/// An indexer without storage.
pub struct LightIndexer {
    node: NodeInfo,
    state: Mutex<State>,
    applied: watch::Sender<u64>,
    slices: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    catalog: Arc<Catalog>,
    /// The newest epoch of each bucket.
    applied: BTreeMap<BucketId, EpochMark>,
    durable: BTreeMap<BucketId, Epoch>,
    /// The floors of the slices that can be read.
    readable: BTreeMap<SliceId, Epoch>,
}

impl LightIndexer {
    /// Starts an indexer; returns it and its tasks, with which it ends.
    pub fn start(
        node: NodeInfo,
        env: &Env,
        directory: Arc<dyn Directory>,
    ) -> Result<(Arc<Self>, Vec<Task>)> {
        let indexer = Arc::new(Self {
            node: node.clone(),
            state: Mutex::default(),
            applied: watch::Sender::new(0),
            slices: watch::Sender::new(0),
        });
        let identity = identity_of(env, &node)?;
        let follower = CatalogFollower::new(Arc::clone(&directory), Retry::constant(RETRY))
            .with_identity(Some(Arc::clone(&identity)));
        let follow = follower.run(Sink(Arc::clone(&indexer)));
        let report = Arc::clone(&indexer).report(directory, identity);
        let tasks =
            vec![env.spawn_service("catalog", follow), env.spawn_service("heartbeat", report)];
        Ok((indexer, tasks))
    }

    /// The node id of the indexer.
    pub fn id(&self) -> NodeId {
        self.node.id
    }

    /// Applies an epoch that has arrived in the stream of its bucket.
    pub fn take_epoch(&self, mark: &EpochMark) {
        let mut state = lock(&self.state);
        let newest = state.applied.get(&mark.bucket).map_or(Epoch(0), |known| known.epoch);
        if mark.epoch > newest {
            state.applied.insert(mark.bucket, mark.clone());
            self.make_readable(&mut state);
            self.applied.send_modify(|count| *count += 1);
        }
    }

    /// Makes slices of the catalog readable if their bucket has an epoch.
    fn make_readable(&self, state: &mut State) {
        let State { catalog, applied, readable, .. } = state;
        let known = readable.len();
        for index in catalog.indexes.values().filter(|index| index.state != IndexState::Pending) {
            let Some(mark) = applied.get(&index.bucket) else { continue };
            for slice in index.topology.slices_on(self.node.id) {
                readable.entry(index.local_id().slice(slice)).or_insert(mark.epoch);
            }
        }
        if readable.len() > known {
            self.slices.send_modify(|count| *count += 1);
        }
    }

    async fn report(
        self: Arc<Self>,
        directory: Arc<dyn Directory>,
        identity: Arc<NodeIdentity>,
    ) -> Infallible {
        let config = MembershipConfig {
            node: self.node.clone(),
            heartbeat: HEARTBEAT,
            retry: Retry::constant(RETRY),
            client: None,
            has_news_at_once: true,
            when_forgotten: ForgottenPolicy::StayOut,
            identity: Some(identity),
        };
        let slices = self.slices.subscribe();
        Membership::new(directory, config).run(move || self.heartbeat(), Some(slices)).await
    }

    fn heartbeat(&self) -> Heartbeat {
        let mut state = lock(&self.state);
        let State { catalog, applied, durable, readable } = &mut *state;
        let progress = |mark: &EpochMark| BucketProgress {
            bucket: mark.bucket,
            high_watermark: (*mark.cut).clone(),
            applied: mark.epoch,
            durable: durable.get(&mark.bucket).copied().unwrap_or_default(),
            queue_bytes: 0,
            queue_bytes_max: QUEUE_BYTES_MAX,
        };
        let buckets = applied.values().map(progress).collect();
        let slice = |(slice, floor): (&SliceId, &Epoch)| SliceProgress {
            slice: *slice,
            floor: Some(*floor),
            entries: SLICE_ENTRIES,
            bytes: SLICE_BYTES,
            live_bytes: Some(SLICE_BYTES),
            built_percent: None,
            seconds_left: None,
            copied_from: None,
            trouble: None,
        };
        let slices = readable.iter().map(slice).collect();
        durable.extend(applied.values().map(|mark| (mark.bucket, mark.epoch)));
        let report = IndexerReport { buckets, slices, ..IndexerReport::default() };
        Heartbeat::new(self.node.id, catalog.cas, report)
    }

    /// Returns the changes that were not reported to a router yet, and records them as reported.
    fn changes(
        &self,
        told: &mut BTreeMap<BucketId, Epoch>,
        slices_told: &mut Option<u64>,
    ) -> AppliedReport {
        let state = lock(&self.state);
        let mut applied = Vec::new();
        for mark in state.applied.values() {
            if told.insert(mark.bucket, mark.epoch) != Some(mark.epoch) {
                applied.push((mark.bucket, mark.epoch));
            }
        }
        let slices = *self.slices.borrow();
        let is_news = slices_told.replace(slices) != Some(slices);
        let readable = || state.readable.iter().map(|(slice, floor)| (*slice, *floor)).collect();
        let readable = is_news.then(readable);
        AppliedReport { node: self.node.id, applied, readable, rebuilt: Vec::new() }
    }
}

struct Sink(Arc<LightIndexer>);

impl CatalogSink for Sink {
    async fn take_catalog(&mut self, catalog: Arc<Catalog>) -> Result<()> {
        let mut state = lock(&self.0.state);
        state.catalog = catalog;
        self.0.make_readable(&mut state);
        Ok(())
    }
}

/// An indexer from the view of a router.
pub struct RemoteIndexer {
    network: Arc<Network>,
    from: End,
    to: Arc<LightIndexer>,
}

impl RemoteIndexer {
    /// Returns the client of an indexer in another process.
    pub fn new(network: &Arc<Network>, from: End, to: &Arc<LightIndexer>) -> Arc<Self> {
        Arc::new(Self { network: Arc::clone(network), from, to: Arc::clone(to) })
    }
}

/// Returns the error for calls that the measurement does not make.
fn unsupported<T>() -> Result<T> {
    Err(Error::new(ErrorCode::Unsupported, "this process has no data"))
}

#[async_trait]
impl IndexerApi for RemoteIndexer {
    async fn scan(&self, _: ShardScan) -> Result<ResultStream<ShardBatch>> {
        unsupported()
    }

    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>> {
        let (network, from, indexer) = (Arc::clone(&self.network), self.from, Arc::clone(&self.to));
        let to = End { node: indexer.node.id, role: Role::Indexer };
        network.send(from, to, Kind::Watch, size(&())).await;
        let changed = (indexer.applied.subscribe(), indexer.slices.subscribe());
        let begun = (changed, BTreeMap::new(), None);
        Ok(Box::pin(stream::unfold(
            begun,
            move |((mut applied, slices), mut told, mut slices_told)| {
                let (network, indexer) = (Arc::clone(&network), Arc::clone(&indexer));
                async move {
                    if slices_told.is_some() {
                        applied.changed().await.ok()?;
                    }
                    let report = indexer.changes(&mut told, &mut slices_told);
                    network.send(to, from, Kind::Applied, size(&report)).await;
                    Some((Ok(report), ((applied, slices), told, slices_told)))
                }
            },
        )))
    }

    async fn checksum(&self, _: SliceId, _: Epoch) -> Result<(u64, u64)> {
        unsupported()
    }

    async fn export(&self, _: ExportRequest) -> Result<ResultStream<ExportMessage>> {
        unsupported()
    }
}
