//! The service: starts the tasks of a node, and implements [`IndexerApi`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream;
use proto::client::DataDir;
use proto::env::{Env, Task};
use proto::flow::{Admission, AdmissionStatus};
use proto::model::bucket::BucketInfo;
use proto::model::identity::ClusterId;
use proto::model::ids::{BucketId, Epoch, NodeId, SliceId, SliceNo};
use proto::model::topology::TopologyProvider;
use proto::rpc::api::{Directory, IndexerApi, ResultStream, SliceProgress};
use proto::rpc::export::{ExportMessage, ExportRequest};
use proto::rpc::scan::{AppliedReport, FirstBatch, ShardBatch, ShardScan};
use proto::{Error, ErrorCode, Result};
use storage::{LateCommitCounters, SliceStore, Snapshot, StorageEngine};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::applied_watch::AppliedWatch;
use super::catalog::follow_catalog;
use super::followers::Followers;
use super::heartbeat::send_heartbeats;
use crate::config::Config;
use crate::context::NodeContext;
use crate::moves::{IncomingMoves, export};
use crate::scan::{ScanTimeouts, Scans, check_scan, wait_for_own_changes};

/// An indexer, which runs until it is dropped.
pub struct Indexer {
    context: NodeContext,
    scans: Scans,
    _lock: Box<dyn Send + Sync>,
    _tasks: Vec<Task>,
}

/// The status of an indexer.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Status {
    /// The id of this node.
    pub node: NodeId,
    /// Bytes of memory that the slices of this node use.
    pub memory_bytes: u64,
    /// The numbers of running, waiting and refused shard scans.
    pub scans: AdmissionStatus,
    /// The figures of the open transactions on this node.
    pub late_commit: LateCommitCounters,
    /// The number of generations whose slices were made in place from an earlier generation,
    /// since the start.
    pub slices_split: u64,
    /// The number of snapshots of the source that builds have begun to read since the start.
    pub backfills: u64,
    /// The slices of this node, for the heartbeat.
    pub slices: Vec<SliceProgress>,
}

impl Indexer {
    /// Opens the data directory, recovers it, and starts the node's tasks. Blocks during the
    /// recovery.
    pub fn start(config: Config, env: Env, directory: Arc<dyn Directory>) -> Result<Self> {
        let dir = &config.data_dir;
        let has_data = || env.fs.exists(&storage::layout::manifest_dir(dir));
        let opened =
            DataDir::open(&env, dir, storage::layout::DATA_VERSION, &config.node, has_data)?;
        let DataDir { lock, identity, .. } = opened;
        let options = config.store.clone();
        let store = Arc::new(StorageEngine::open(&env, config.node.id, dir, options)?);
        let context = NodeContext {
            config,
            identity,
            env: env.clone(),
            directory,
            store,
            catalog_taken: watch::Sender::new(0),
            catalog: Arc::default(),
            applied: watch::Sender::new(0),
            slices: watch::Sender::new(0),
            slices_split: Arc::default(),
            backfills: Arc::default(),
            builds: Arc::default(),
        };
        let admission = Admission::new(context.config.scan_limits());
        let (patience, batch_bytes) = (ScanTimeouts::default(), context.config.scan_batch_bytes);
        let scans =
            Scans::new(env.clone(), &context.store, admission.clone(), patience, batch_bytes);
        let (incoming, followers) = (IncomingMoves::default(), Followers::default());
        let catalog = follow_catalog(context.clone(), incoming.clone(), Arc::clone(&followers));
        let reporting = context.clone();
        let heartbeat = move || {
            let (incoming, followers) = (incoming.clone(), Arc::clone(&followers));
            send_heartbeats(reporting.clone(), incoming, followers, admission.clone())
        };
        let tasks = vec![
            // A catalog may be half carried out, and a follower missing.
            env.spawn_service("catalog", catalog),
            // It only reads what it reports.
            env.spawn_restarted("heartbeat", heartbeat),
        ];
        Ok(Self { context, scans, _lock: lock, _tasks: tasks })
    }

    /// Returns the present status.
    pub fn status(&self) -> Status {
        Status {
            node: self.context.config.node.id,
            memory_bytes: self.context.store.memory_bytes(),
            scans: self.scans.status(),
            late_commit: self.context.store.late_commit().counters(),
            slices_split: self.context.slices_split.load(Ordering::Relaxed),
            backfills: self.context.backfills.load(Ordering::Relaxed),
            slices: self.context.store.progress(),
        }
    }

    /// Returns the cluster that the node's data directory belongs to; `None` if it belongs to none
    /// yet.
    pub fn cluster(&self) -> Option<ClusterId> {
        self.context.identity.cluster()
    }

    /// Flushes all memory into fragments, so that the next start has nothing to replay.
    pub async fn flush(&self) -> Result<()> {
        self.context.store.flush().await
    }

    /// Waits until the commit log has failed, because of a broken disk. The node then applies no
    /// epoch until it is restarted.
    pub async fn stopped(&self) {
        self.context.store.wait_log_failed().await;
    }

    /// Waits until an epoch of a bucket is applied.
    async fn wait_applied(&self, bucket: BucketId, epoch: Epoch) -> Result<()> {
        if self.context.store.committed(bucket) >= epoch {
            return Ok(());
        }
        let mut applied = self.context.applied.subscribe();
        while self.context.store.committed(bucket) < epoch {
            applied.changed().await.map_err(|_| Error::unavailable("the indexer stops"))?;
        }
        Ok(())
    }
}

/// The result of the search for the slices of a scan.
enum ScanSlices {
    /// All slices are on this node.
    Here(Arc<dyn Snapshot>),
    /// Some slices are not on this node: the batch names the nodes that have them.
    Elsewhere(ShardBatch),
}

impl Indexer {
    /// Finds the slices of a scan at its epoch. Waits until the epoch is applied, the index is
    /// loaded, and the node has the changes of the transaction in which the scan runs.
    async fn find_slices(&self, scan: &ShardScan) -> Result<ScanSlices> {
        let dead = |bucket: &Arc<BucketInfo>| bucket.is_dead(scan.epoch);
        if self.context.catalog.load().buckets.get(&scan.bucket).is_some_and(dead) {
            let what = format!("a rollback has removed epoch {}", scan.epoch);
            return Err(Error::new(ErrorCode::SnapshotTooOld, what)
                .with_hint("begin the scan or the transaction anew"));
        }
        let by = Instant::now() + Duration::from_millis(scan.timeout_ms);
        let ready = async {
            self.wait_applied(scan.bucket, scan.epoch).await?;
            self.context.store.wait_loaded(scan.index).await
        };
        timeout_at(by, ready).await.map_err(|_| {
            Error::new(
                ErrorCode::Cancelled,
                format!(
                    "index {} could not be read at epoch {} within {} ms: the epoch is not applied, or \
                     the index is being loaded",
                    scan.index, scan.epoch, scan.timeout_ms
                ),
            )
        })??;
        let store = &*self.context.store;
        wait_for_own_changes(store, scan, by).await?;
        let snapshot = match store.snapshot_of_transaction(scan.index, scan.epoch, scan.own) {
            // All slices of the index have left the node.
            Err(error) if error.code == ErrorCode::SliceMoved => {
                return Ok(ScanSlices::Elsewhere(self.moved(scan, &scan.slices)));
            }
            snapshot => snapshot?,
        };
        check_scan(scan, &snapshot.info().spec)?;
        let is_gone = |slice: &SliceNo| !snapshot.has(*slice);
        let gone: Vec<SliceNo> = scan.slices.iter().copied().filter(is_gone).collect();
        if !gone.is_empty() {
            return Ok(ScanSlices::Elsewhere(self.moved(scan, &gone)));
        }
        Ok(ScanSlices::Here(snapshot))
    }

    /// Returns the batch that redirects a scan: it lists the slices that are not on this node,
    /// with their nodes in the catalog.
    fn moved(&self, scan: &ShardScan, slices: &[SliceNo]) -> ShardBatch {
        let catalog = self.context.catalog.load();
        let index = catalog.local_index(scan.index);
        let place = |slice: &SliceNo| {
            let nodes = index.map_or(&[][..], |index| index.topology.replicas(*slice));
            // Without a known node the router retries later.
            (*slice, nodes.first().copied().unwrap_or(self.context.config.node.id))
        };
        ShardBatch::Moved(slices.iter().map(place).collect())
    }
}

#[async_trait]
impl IndexerApi for Indexer {
    async fn scan(&self, scan: ShardScan) -> Result<ResultStream<ShardBatch>> {
        let began = Instant::now();
        match self.find_slices(&scan).await? {
            ScanSlices::Here(snapshot) => self.scans.open(scan, snapshot, began).await,
            ScanSlices::Elsewhere(moved) => Ok(Box::pin(stream::iter([Ok(moved)]))),
        }
    }

    async fn first_batch(&self, scan: ShardScan) -> Result<FirstBatch> {
        let began = Instant::now();
        match self.find_slices(&scan).await? {
            ScanSlices::Here(snapshot) => self.scans.first_batch(scan, snapshot, began).await,
            ScanSlices::Elsewhere(batch) => Ok(FirstBatch { batch, is_whole: true }),
        }
    }

    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>> {
        let watch = AppliedWatch {
            store: Arc::clone(&self.context.store),
            catalog: Arc::clone(&self.context.catalog),
            node: self.context.config.node.id,
            changed: self.context.applied.subscribe(),
            slices: self.context.slices.subscribe(),
            told: BTreeMap::new(),
            first: true,
        };
        Ok(Box::pin(stream::unfold(watch, |mut watch| async {
            let report = watch.next().await?;
            Some((Ok(report), watch))
        })))
    }

    async fn checksum(&self, slice: SliceId, epoch: Epoch) -> Result<(u64, u64)> {
        self.context.store.wait_loaded(slice.local_index()).await?;
        let snapshot = self.context.store.snapshot(slice.local_index(), epoch)?;
        // The reading stops with its caller: it would slow down the next attempt.
        let call = Arc::new(());
        let caller = Arc::downgrade(&call);
        let wanted = move || caller.strong_count() > 0;
        let sum = move || snapshot.checksum_while(slice.slice, &wanted);
        let sum = self.context.env.blocking(sum).await;
        drop(call);
        sum
    }

    async fn export(&self, request: ExportRequest) -> Result<ResultStream<ExportMessage>> {
        let catalog = self.context.catalog.load_full();
        let bucket = catalog.indexes.get(&request.slice.index).map(|index| index.bucket);
        let bucket = bucket.ok_or_else(|| {
            Error::unavailable(format!("index {} is not known here", request.slice.index))
        })?;
        let patience = Duration::from_millis(request.timeout_ms);
        timeout(patience, self.wait_applied(bucket, request.epoch)).await.map_err(|_| {
            Error::unavailable(format!("epoch {} was not applied in time", request.epoch))
        })??;
        if request.epoch > Epoch(0) {
            // This is the last round. An early heartbeat lets the coordinator compare both ends soon.
            self.context.slices_changed();
        }
        let export = self.context.store.export_slice(request.slice).await?;
        let rate = self.context.config.move_bytes_per_s_max;
        Ok(Box::pin(export::send(export, &request, rate)))
    }
}
