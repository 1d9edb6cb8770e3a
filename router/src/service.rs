//! The service: keeps the catalog and the indexers' progress current, reports leases, and starts scans.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::StreamExt;
use proto::client::source::source_of;
use proto::env::{Env, Task};
use proto::flow::{Admission, AdmissionLimits, AdmissionStatus};
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, Position};
use proto::model::ids::{BucketId, Epoch, IndexId, NodeId, VbucketId};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::{Directory, Heartbeat, ProjectorApi, WatchMessage};
use proto::rpc::command::{Command, CommandRequest, Outcome};
use proto::rpc::scan::{Consistency, ScanRequest};
use proto::{Error, ErrorCode, Result};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::applied::{Applied, readable_from};
use crate::leases::{EpochLease, Leases};
use crate::scan::{self, ScanStream};
use crate::topologies::Topologies;

/// Half of the sessions that a process has: most statements are short.
const SCANS_MAX: usize = 512;
/// Room for [`SCANS_MAX`] scans of three nodes each, or for some of hundreds of nodes.
const SCANS_MEMORY_BYTES: usize = 512 << 20;

/// Settings of a router.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who it is.
    pub node: NodeInfo,
    /// How often it reports its leases.
    pub heartbeat: Duration,
    /// How long it waits before it tries a lost peer again.
    pub retry: Duration,
    /// Scans at once; one more waits, until its time-out.
    pub scans_max: usize,
    /// What all scans together may hold of rows on their way, in bytes.
    pub scans_memory_bytes: usize,
    /// What one scan may hold of them.
    pub scan_memory_bytes: usize,
}

impl Config {
    /// The usual settings.
    pub fn new(node: NodeInfo) -> Self {
        Self {
            node,
            heartbeat: Duration::from_millis(500),
            retry: Duration::from_millis(100),
            scans_max: SCANS_MAX,
            scans_memory_bytes: SCANS_MEMORY_BYTES,
            scan_memory_bytes: SCANS_MEMORY_BYTES / 4,
        }
    }
}

/// A router, running until it is dropped.
pub struct Router {
    pub(crate) shared: Shared,
    _tasks: Vec<Task>,
}

/// What scans and tasks share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub config: Config,
    pub env: Env,
    pub directory: Arc<dyn Directory>,
    pub catalog: Arc<ArcSwap<Catalog>>,
    pub catalog_changed: watch::Sender<u64>,
    pub applied: Applied,
    pub leases: Leases,
    pub topologies: Topologies,
    pub admission: Admission,
}

impl Router {
    /// Begins to follow the catalog.
    pub fn start(config: Config, env: Env, directory: Arc<dyn Directory>) -> Self {
        let admission = Admission::new(AdmissionLimits {
            what: format!("scans on router {}", config.node.id),
            count_max: config.scans_max,
            bytes_max: config.scans_memory_bytes,
            bytes_each_max: config.scan_memory_bytes,
        });
        let shared = Shared {
            admission,
            config,
            env: env.clone(),
            directory,
            catalog: Arc::default(),
            catalog_changed: watch::Sender::new(0),
            applied: Applied::default(),
            leases: Leases::default(),
            topologies: Topologies::default(),
        };
        let tasks = vec![
            env.spawn("catalog", follow_catalog(shared.clone())),
            env.spawn("leases", report_leases(shared.clone())),
        ];
        Self { shared, _tasks: tasks }
    }

    /// The catalog as it is known here.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.shared.catalog.load_full()
    }

    /// Who it is.
    pub fn node(&self) -> NodeId {
        self.shared.config.node.id
    }

    /// How many scans run, wait and were refused.
    pub fn scans(&self) -> AdmissionStatus {
        self.shared.admission.status()
    }

    /// Waits until the catalog known here is at least of a `cas`, or shows what is looked for.
    pub async fn wait_catalog(&self, found: impl Fn(&Catalog) -> bool) -> Arc<Catalog> {
        let mut changed = self.shared.catalog_changed.subscribe();
        loop {
            let catalog = self.shared.catalog.load_full();
            if found(&catalog) || changed.changed().await.is_err() {
                return catalog;
            }
        }
    }

    /// Fixes the epoch that scans of an index's bucket read, and keeps it readable: for the scans of a
    /// transaction.
    pub async fn pin(
        &self,
        index: IndexId,
        consistency: &Consistency,
        timeout_ms: u64,
    ) -> Result<EpochLease> {
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        let index = self.index(index)?;
        self.shared.choose_epoch(&index, consistency, deadline).await
    }

    /// Begins a scan, or goes on with one that a token names.
    pub async fn scan(&self, request: ScanRequest, token: Option<&str>) -> Result<ScanStream> {
        let index = self.index(request.index)?;
        scan::begin(self.shared.clone(), index, request, token).await
    }

    fn index(&self, index: IndexId) -> Result<Arc<IndexInfo>> {
        let catalog = self.shared.catalog.load();
        let index = catalog
            .indexes
            .get(&index)
            .ok_or_else(|| Error::new(ErrorCode::Unknown, format!("there is no index {index}")))?;
        match index.state {
            IndexState::Maintenance => Ok(Arc::clone(index)),
            IndexState::Pending => {
                Err(Error::unavailable(format!("index {} is not built", index.spec.name))
                    .with_hint(format!(
                        "BUILD INDEX ON {} ({})",
                        index.spec.bucket, index.spec.name
                    )))
            }
            IndexState::Backfill => {
                Err(Error::unavailable(format!("index {} is being built", index.spec.name))
                    .with_hint("SHOW INDEXES tells when it serves scans"))
            }
        }
    }
}

impl Shared {
    fn bucket(&self, bucket: BucketId) -> Result<(Arc<BucketInfo>, Arc<dyn ProjectorApi>)> {
        let catalog = self.catalog.load();
        let missing = || Error::unavailable(format!("bucket {bucket} is not known here"));
        let info = catalog.buckets.get(&bucket).ok_or_else(missing)?;
        let source = source_of(&*self.directory, info, |node| catalog.nodes.get(&node).cloned())?;
        Ok((Arc::clone(info), source))
    }

    /// Fixes the epoch first (DESIGN section 7): the newest that all slices have applied, or one that
    /// covers given positions, which may still have to be published and applied.
    pub async fn choose_epoch(
        &self,
        index: &IndexInfo,
        consistency: &Consistency,
        deadline: Instant,
    ) -> Result<EpochLease> {
        let choice = async {
            match consistency {
                Consistency::Epoch(epoch) => self.check_alive(index.bucket, *epoch),
                Consistency::Any => {
                    self.wait_applied(index, |applied| applied.newest_common(index)).await
                }
                Consistency::AtPlus(positions) => {
                    self.epoch_covering(index, positions, None, deadline).await
                }
                Consistency::RequestPlus => self.epoch_of_now(index, deadline).await,
            }
        };
        let epoch = timeout_at(deadline, choice).await.map_err(|_| {
            Error::unavailable(format!(
                "no epoch that index {} can answer was there in time",
                index.spec.name
            ))
            .with_hint("SHOW NODES and SHOW SLICES tell which node is missing")
        })??;
        Ok(self.leases.take(index.bucket, epoch))
    }

    /// An epoch that was chosen before, if no rollback has taken it back.
    fn check_alive(&self, bucket: BucketId, epoch: Epoch) -> Result<Epoch> {
        let catalog = self.catalog.load();
        if catalog.buckets.get(&bucket).is_some_and(|bucket| bucket.is_dead(epoch)) {
            let what = format!("a rollback has taken back epoch {epoch}");
            return Err(Error::new(ErrorCode::SnapshotTooOld, what)
                .with_hint("begin the scan or the transaction anew"));
        }
        Ok(epoch)
    }

    /// Waits until what the indexers have applied gives an epoch that a new scan of an index may read:
    /// after a rollback one that has all that survived it.
    async fn wait_applied(
        &self,
        index: &IndexInfo,
        choose: impl Fn(&Applied) -> Option<Epoch>,
    ) -> Result<Epoch> {
        let mut changes = self.applied.changes();
        let mut catalogs = self.catalog_changed.subscribe();
        let stopped = |_| Error::unavailable("the router stops");
        loop {
            let from = readable_from(&self.catalog.load(), index.bucket);
            let chosen = choose(&self.applied);
            if let Some(epoch) = chosen.filter(|epoch| from.is_some_and(|from| *epoch >= from)) {
                return Ok(epoch);
            }
            tokio::select! {
                biased;
                changed = changes.changed() => changed.map_err(stopped)?,
                changed = catalogs.changed() => changed.map_err(stopped)?,
            }
        }
    }

    /// An epoch that covers where the source is now.
    async fn epoch_of_now(&self, index: &IndexInfo, deadline: Instant) -> Result<Epoch> {
        loop {
            let (bucket, source) = self.bucket(index.bucket)?;
            let now = match source.place(index.bucket).await {
                Ok(now) => now,
                // A vbucket may be between two homes.
                Err(error) if error.is_retry() && bucket.source == SourceKind::Push => {
                    tokio::time::sleep(self.config.retry).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let positions: Vec<_> = now.durable.iter().collect();
            match self.epoch_covering(index, &positions, Some(now.history), deadline).await {
                // The source has lost that place meanwhile.
                Err(error) if error.code == ErrorCode::InvalidParameter => {
                    tokio::time::sleep(self.config.retry).await;
                }
                chosen => return chosen,
            }
        }
    }

    async fn epoch_covering(
        &self,
        index: &IndexInfo,
        positions: &[(VbucketId, Position)],
        history: Option<u64>,
        deadline: Instant,
    ) -> Result<Epoch> {
        let (bucket, _) = self.bucket(index.bucket)?;
        let beyond = positions.iter().find(|(vbucket, _)| vbucket.0 >= bucket.vbuckets);
        if let Some((vbucket, _)) = beyond {
            let message = format!(
                "vbucket {vbucket} of the given position: bucket {} has {}",
                bucket.name, bucket.vbuckets
            );
            return Err(Error::new(ErrorCode::InvalidParameter, message));
        }
        let cut = Cut::zero(bucket.vbuckets).with(positions);
        let left_ms = deadline.saturating_duration_since(Instant::now()).as_millis() as u64;
        let coordinator = self.directory.coordinator();
        let mark = coordinator.epoch_covering(index.bucket, cut, history, left_ms).await?;
        // A slice may have been built later than that; and what all slices have already applied may be
        // newer, and then nothing has to be waited for.
        let oldest = self.wait_applied(index, |applied| {
            let newest = applied.newest_common(index).unwrap_or_default();
            Some(mark.epoch.max(applied.oldest_common(index)?).max(newest))
        });
        oldest.await
    }
}

async fn follow_catalog(shared: Shared) {
    let indexers: Mutex<BTreeMap<NodeId, (Arc<NodeInfo>, Task)>> = Mutex::default();
    loop {
        let coordinator = shared.directory.coordinator();
        if let Ok(mut messages) = coordinator.watch().await {
            while let Some(Ok(message)) = messages.next().await {
                // Another member may be behind the one that was asked before.
                if let WatchMessage::Catalog(catalog) = message
                    && catalog.cas >= shared.catalog.load().cas
                {
                    let mut indexers =
                        indexers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    watch_indexers(&shared, &mut indexers, &catalog);
                    shared.topologies.take_catalog(&catalog);
                    shared.catalog.store(catalog);
                    shared.catalog_changed.send_modify(|count| *count += 1);
                }
            }
        }
        tokio::time::sleep(shared.config.retry).await;
    }
}

fn watch_indexers(
    shared: &Shared,
    indexers: &mut BTreeMap<NodeId, (Arc<NodeInfo>, Task)>,
    catalog: &Catalog,
) {
    indexers.retain(|id, (node, _)| catalog.nodes.get(id) == Some(node));
    for node in catalog.nodes.values().filter(|node| node.role == Role::Indexer) {
        indexers.entry(node.id).or_insert_with(|| {
            let task =
                shared.env.spawn("applied", follow_applied(shared.clone(), Arc::clone(node)));
            (Arc::clone(node), task)
        });
    }
}

async fn follow_applied(shared: Shared, node: Arc<NodeInfo>) {
    loop {
        // Its handle is let go at once: in one process it would keep an indexer alive that is stopped.
        let watch = shared.directory.indexer(&node).watch_applied().await;
        if let Ok(mut reports) = watch {
            while let Some(Ok(report)) = reports.next().await {
                shared.applied.report(report);
            }
        }
        shared.applied.lost(node.id);
        tokio::time::sleep(shared.config.retry).await;
    }
}

async fn report_leases(shared: Shared) {
    // Also a router that is known: it may have come back at another address.
    while !register(&shared).await {}
    loop {
        let now = Instant::now();
        shared.leases.see(shared.applied.newest(), now);
        let heartbeat = Heartbeat {
            node: shared.config.node.id,
            buckets: Vec::new(),
            slices: Vec::new(),
            moves: Vec::new(),
            leases: shared.leases.told(now),
            scans: Some(shared.admission.status()),
        };
        let coordinator = shared.directory.coordinator();
        match coordinator.heartbeat(heartbeat).await {
            Err(error) if error.code == ErrorCode::Unknown => {
                register(&shared).await;
            }
            Err(error) => {
                tracing::debug!(%error, "reporting leases");
                tokio::time::sleep(shared.config.retry).await;
            }
            Ok(()) => tokio::time::sleep(shared.config.heartbeat).await,
        }
    }
}

/// Registers the router; false after a pause when that did not work.
async fn register(shared: &Shared) -> bool {
    let command = Command::RegisterNode(shared.config.node.clone());
    let request = CommandRequest { request: None, command };
    match shared.directory.coordinator().propose(request).await {
        Ok(Outcome::Refused(error)) | Err(error) => {
            tracing::debug!(%error, "registering the router");
            tokio::time::sleep(shared.config.retry).await;
            false
        }
        Ok(_) => true,
    }
}
