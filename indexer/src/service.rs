//! The service: follows the catalog, runs a follower for each bucket that has slices here, reports to
//! the coordinator, and answers scans.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use futures::{StreamExt, stream};
use proto::api::{
    BucketProgress, CoordinatorApi, Directory, Heartbeat, IndexerApi, ResultStream, SliceProgress,
    WatchMessage,
};
use proto::command::{Command, CommandRequest, Outcome};
use proto::env::{Admission, AdmissionStatus, Env, OpenMode, Task, create_dir_durably};
use proto::ids::{BucketId, Epoch, NodeId, SliceId, SliceNo};
use proto::index::{BucketInfo, Catalog, IndexInfo, IndexState};
use proto::moves::{ExportMessage, ExportRequest, MoveStage, SliceMove};
use proto::plant::{self, Plant};
use proto::scan::{AppliedReport, ShardBatch, ShardScan};
use proto::topology::TopologyProvider;
use proto::{Error, ErrorCode, Result};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::config::Config;
use crate::follower::{FollowerState, Shared, follow, grouping};
use crate::moves::Incoming;
use crate::scan::check;
use crate::scans::{Patience, Scans};
use storage::{SliceStore, StorageEngine, StoredIndex};

/// What the data directory's VERSION file says.
const DATA_VERSION: &str = "sextant indexer data 4\n";

/// An indexer, running until it is dropped.
pub struct Indexer {
    shared: Shared,
    scans: Scans,
    _lock: Box<dyn Send + Sync>,
    _tasks: Vec<Task>,
}

struct Follower {
    state: watch::Receiver<FollowerState>,
    _task: Task,
}

/// What an indexer says of itself.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Status {
    /// The node.
    pub node: NodeId,
    /// Bytes of memory of its slices.
    pub memory_bytes: u64,
    /// Shard scans that run, wait and were refused.
    pub scans: AdmissionStatus,
    /// Its slices.
    pub slices: Vec<SliceProgress>,
}

type Followers = Arc<Mutex<BTreeMap<BucketId, Follower>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Indexer {
    /// Opens the data directory, recovers, and begins to follow. Blocks while it recovers.
    pub fn start(config: Config, env: Env, directory: Arc<dyn Directory>) -> Result<Self> {
        let dir_lock = open_data_dir(&env, &config.data_dir)?;
        let store =
            StorageEngine::open(&env, config.node.id, &config.data_dir, config.store.clone())?;
        let store = Arc::new(store);
        let shared = Shared {
            config,
            env: env.clone(),
            directory,
            store: store.clone(),
            fragments: store,
            incoming: Incoming::default(),
            catalog_taken: watch::Sender::new(0),
            catalog: Arc::default(),
            applied: watch::Sender::new(0),
            slices: watch::Sender::new(0),
        };
        let admission = Admission::new(shared.config.scan_limits());
        let scans = Scans::new(env.clone(), &shared.store, admission.clone(), Patience::default());
        let followers = Followers::default();
        let tasks = vec![
            env.spawn("catalog", follow_catalog(shared.clone(), Arc::clone(&followers))),
            env.spawn("heartbeat", report(shared.clone(), followers, admission.clone())),
        ];
        Ok(Self { shared, scans, _lock: dir_lock, _tasks: tasks })
    }

    /// What it says of itself.
    pub fn status(&self) -> Status {
        Status {
            node: self.shared.config.node.id,
            memory_bytes: self.shared.store.memory_bytes(),
            scans: self.scans.status(),
            slices: self.shared.store.progress(),
        }
    }

    /// Waits until its log has failed: a broken disk. It applies no epoch until the process is started again.
    pub async fn stopped(&self) {
        self.shared.fragments.log_failed().await;
    }

    async fn wait_applied(&self, bucket: BucketId, epoch: Epoch) -> Result<()> {
        let mut applied = self.shared.applied.subscribe();
        while self.shared.store.committed(bucket) < epoch {
            applied.changed().await.map_err(|_| Error::unavailable("the indexer stops"))?;
        }
        Ok(())
    }
}

impl Indexer {
    /// Says that slices are not here, and where the catalog has them.
    fn moved(&self, scan: &ShardScan, slices: &[SliceNo]) -> ResultStream<ShardBatch> {
        let catalog = self.shared.catalog.load();
        let index = catalog.indexes.get(&scan.index);
        let place = |slice: &SliceNo| {
            let nodes = index.map_or(&[][..], |index| index.topology.replicas(*slice));
            // Without a better idea the asker looks again.
            (*slice, nodes.first().copied().unwrap_or(self.shared.config.node.id))
        };
        let places = slices.iter().map(place).collect();
        Box::pin(stream::iter([Ok(ShardBatch::Moved(places))]))
    }
}

/// Takes the directory for this process and checks that this build can read it.
fn open_data_dir(env: &Env, dir: &Path) -> Result<Box<dyn Send + Sync>> {
    let here = |error: std::io::Error| {
        Error::from(error).context(format!("data directory {}", dir.display()))
    };
    create_dir_durably(&*env.fs, dir).map_err(here)?;
    let lock = env.fs.lock_dir(dir).map_err(here)?;
    let path = dir.join("VERSION");
    let file = env.fs.open(&path, OpenMode::Create).map_err(here)?;
    let mut found = vec![0; file.len().map_err(here)?.min(1024) as usize];
    file.read_exact_at(&mut found, 0).map_err(here)?;
    if found.is_empty() {
        file.write_all_at(DATA_VERSION.as_bytes(), 0).map_err(here)?;
        file.sync().and_then(|()| env.fs.sync_dir(dir)).map_err(here)?;
    } else if found != DATA_VERSION.as_bytes() {
        let found = String::from_utf8_lossy(&found);
        return Err(Error::new(
            ErrorCode::Version,
            format!(
                "{} holds {:?}, this build reads {:?}",
                path.display(),
                found.trim(),
                DATA_VERSION.trim()
            ),
        )
        .with_hint("use a directory of this version, or an empty one"));
    }
    Ok(lock)
}

/// Watches the catalog and keeps the followers in step with it.
async fn follow_catalog(shared: Shared, followers: Followers) {
    let mut newest_cas = 0;
    loop {
        let coordinator = shared.directory.coordinator();
        if let Ok(mut watch) = coordinator.watch().await {
            while let Some(Ok(message)) = watch.next().await {
                // Another member may be behind the one that was asked before.
                if let WatchMessage::Catalog(catalog) = message
                    && catalog.cas >= newest_cas
                {
                    newest_cas = catalog.cas;
                    take_catalog(&shared, &followers, &catalog).await;
                }
            }
        }
        tokio::time::sleep(shared.config.retry).await;
    }
}

async fn take_catalog(shared: &Shared, followers: &Followers, catalog: &Arc<Catalog>) {
    shared.catalog.store(Arc::clone(catalog));
    shared.catalog_taken.send_modify(|count| *count += 1);
    for stored in shared.store.indexes() {
        if let Err(error) = bring_in_step(shared, catalog, &stored).await {
            tracing::warn!(index = %stored.info.id, %error, "bringing an index in step with the catalog");
        }
    }
    let node = shared.config.node.id;
    for (id, _) in shared.fragments.rebuilds() {
        let index = catalog.indexes.get(&id);
        let is_past = index.map_or(id <= catalog.newest_index, |index| !index.feeds_any(node));
        if is_past && let Err(error) = shared.fragments.drop_rebuild(id).await {
            tracing::warn!(index = %id, %error, "giving up a rebuild");
        }
    }
    let is_given = |index: &&Arc<IndexInfo>| {
        let is_copied = |m: &SliceMove| matches!(m.stage, MoveStage::Pending | MoveStage::Catchup);
        index.moves.iter().any(|m| is_copied(m) && index.topology.hosts(node, m.slice))
    };
    let given = catalog.indexes.values().filter(is_given).map(|index| index.id).collect();
    shared.fragments.keep_files_of(&given);
    shared.incoming.take_catalog(shared, catalog);
    let mut followers = lock(followers);
    let concerns = |bucket: &BucketId| {
        catalog.indexes.values().any(|index| {
            index.bucket == *bucket && index.state != IndexState::Pending && index.feeds_any(node)
        })
    };
    followers.retain(|bucket, _| concerns(bucket) && catalog.buckets.contains_key(bucket));
    for bucket in catalog.buckets.values().filter(|bucket| concerns(&bucket.id)) {
        followers.entry(bucket.id).or_insert_with(|| {
            let (task, state) = follow(shared.clone(), bucket.id);
            Follower { state, _task: task }
        });
    }
}

/// Drops an index, or those slices of it, that the catalog no longer has on this node, and divides its columns
/// as the catalog says.
async fn bring_in_step(shared: &Shared, catalog: &Catalog, stored: &StoredIndex) -> Result<()> {
    let (id, generation, node) = (stored.info.id, stored.info.generation, shared.config.node.id);
    let Some(index) = catalog.indexes.get(&id) else {
        if id <= catalog.newest_index {
            shared.store.drop_index(id).await?;
            shared.slices_changed();
        }
        return Ok(());
    };
    // This member of the coordinator may be behind the one that told of the slices' arrival.
    if index.revision < stored.info.revision || index.generation != generation {
        return Ok(());
    }
    // Costs nothing where they are divided so already.
    shared.store.regroup(id, generation, grouping(index)).await?;
    let stale = plant::is(Plant::StaleOwnerAnswers);
    let left = |(slice, _): &&(SliceNo, Epoch)| !index.may_keep(node, *slice) && !stale;
    let gone: Vec<SliceNo> = stored.slices.iter().filter(left).map(|(slice, _)| *slice).collect();
    if stored.slices.is_empty() && !index.feeds_any(node) {
        shared.store.drop_index(id).await?;
        return Ok(());
    }
    if gone.is_empty() {
        return Ok(());
    }
    if stored.floor.is_none() && gone.len() == stored.slices.len() {
        // A build for nothing.
        shared.store.drop_index(id).await?;
    } else {
        // One by one: another slice may be arriving.
        for slice in gone {
            match shared.store.drop_slice(SliceId { index: id, generation, slice }).await {
                // The bucket's follower has dropped it already.
                Err(error) if error.code == ErrorCode::SliceMoved => {}
                dropped => dropped?,
            }
        }
    }
    shared.slices_changed();
    Ok(())
}

fn bucket_progress(shared: &Shared, followers: &Followers) -> Vec<BucketProgress> {
    let followers = lock(followers);
    let progress = |mark: proto::cut::EpochMark| {
        let state = followers.get(&mark.bucket).map(|f| f.state.borrow().clone());
        let state = state.unwrap_or_default();
        BucketProgress {
            bucket: mark.bucket,
            high_watermark: state.watermarks,
            applied: mark.epoch,
            durable: shared.store.counters(mark.bucket).durable,
            queue_bytes: state.staged_bytes,
            queue_bytes_max: shared.config.queue_bytes_max(),
        }
    };
    shared.store.applied().into_iter().map(progress).collect()
}

/// Registers the node, then says what it has: regularly, and at once when a slice becomes readable.
async fn report(shared: Shared, followers: Followers, scans: Admission) {
    let mut slices = shared.slices.subscribe();
    // Also a node that is known: it may have come back at another address.
    while !register(&shared, &*shared.directory.coordinator()).await {}
    loop {
        let coordinator = shared.directory.coordinator();
        let heartbeat = Heartbeat {
            node: shared.config.node.id,
            buckets: bucket_progress(&shared, &followers),
            slices: [shared.store.progress(), shared.incoming.restoring()].concat(),
            moves: shared.incoming.progress(),
            leases: Vec::new(),
            scans: Some(scans.status()),
        };
        match coordinator.heartbeat(heartbeat).await {
            Ok(()) => {}
            // Also where it is not known: a leader that has just begun will know it, and a node that was
            // removed stays out until an operator starts it again.
            Err(error) => {
                tracing::debug!(%error, "heartbeat");
                tokio::time::sleep(shared.config.retry).await;
                continue;
            }
        }
        tokio::select! {
            biased;
            _ = slices.changed() => {}
            () = tokio::time::sleep(shared.config.heartbeat) => {}
        }
    }
}

/// Registers the node; false after a pause when that did not work.
async fn register(shared: &Shared, coordinator: &dyn CoordinatorApi) -> bool {
    let command = Command::RegisterNode(shared.config.node.clone());
    match coordinator.propose(CommandRequest { request: None, command }).await {
        Ok(Outcome::Refused(error)) | Err(error) => {
            tracing::debug!(%error, "registering the indexer");
            tokio::time::sleep(shared.config.retry).await;
            false
        }
        Ok(_) => true,
    }
}

/// Which slices can be read on a node, each from which epoch on.
fn readable_slices(store: &dyn SliceStore) -> Vec<(SliceId, Epoch)> {
    let mut readable = Vec::new();
    for StoredIndex { info, slices, .. } in store.indexes().iter().filter(|s| s.floor.is_some()) {
        for (slice, floor) in slices {
            let (index, generation) = (info.id, info.generation);
            readable.push((SliceId { index, generation, slice: *slice }, *floor));
        }
    }
    readable
}

#[async_trait]
impl IndexerApi for Indexer {
    async fn scan(&self, scan: ShardScan) -> Result<ResultStream<ShardBatch>> {
        let began = Instant::now();
        let dead = |bucket: &Arc<BucketInfo>| bucket.is_dead(scan.epoch);
        if self.shared.catalog.load().buckets.get(&scan.bucket).is_some_and(dead) {
            let what = format!("a rollback has taken back epoch {}", scan.epoch);
            return Err(Error::new(ErrorCode::SnapshotTooOld, what)
                .with_hint("begin the scan or the transaction anew"));
        }
        let deadline = Duration::from_millis(scan.timeout_ms);
        let ready = async {
            self.wait_applied(scan.bucket, scan.epoch).await?;
            self.shared.store.wait_loaded(scan.index).await
        };
        timeout(deadline, ready).await.map_err(|_| {
            Error::new(
                ErrorCode::Cancelled,
                format!(
                    "index {} could not be read at epoch {} within {} ms: the epoch is not applied, or \
                     the index is being loaded",
                    scan.index, scan.epoch, scan.timeout_ms
                ),
            )
        })??;
        let snapshot = self.shared.store.snapshot(scan.index, scan.generation, scan.epoch);
        let snapshot = match snapshot {
            // All slices of the index have left.
            Err(error) if error.code == ErrorCode::SliceMoved => {
                return Ok(self.moved(&scan, &scan.slices));
            }
            snapshot => snapshot?,
        };
        check(&scan, &snapshot.info().spec)?;
        let here = |slice: &&SliceNo| snapshot.has(**slice);
        let gone: Vec<SliceNo> = scan.slices.iter().filter(|s| !here(s)).copied().collect();
        if !gone.is_empty() {
            return Ok(self.moved(&scan, &gone));
        }
        self.scans.open(scan, snapshot, began).await
    }

    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>> {
        let watch = AppliedWatch {
            store: Arc::clone(&self.shared.store),
            catalog: Arc::clone(&self.shared.catalog),
            node: self.shared.config.node.id,
            changed: self.shared.applied.subscribe(),
            slices: self.shared.slices.subscribe(),
            told: BTreeMap::new(),
            first: true,
        };
        Ok(Box::pin(stream::unfold(watch, |mut watch| async {
            let report = watch.next().await?;
            Some((Ok(report), watch))
        })))
    }

    async fn checksum(&self, slice: SliceId, epoch: Epoch) -> Result<(u64, u64)> {
        self.shared.store.wait_loaded(slice.index).await?;
        let snapshot = self.shared.store.snapshot(slice.index, slice.generation, epoch)?;
        // Who has gone leaves no reading behind: it would slow down the next try.
        let call = Arc::new(());
        let caller = Arc::downgrade(&call);
        let wanted = move || caller.strong_count() > 0;
        let sum = move || snapshot.checksum_while(slice.slice, &wanted);
        let sum = self.shared.env.blocking(sum).await;
        drop(call);
        sum
    }

    async fn export(&self, request: ExportRequest) -> Result<ResultStream<ExportMessage>> {
        let catalog = self.shared.catalog.load_full();
        let bucket = catalog.indexes.get(&request.slice.index).map(|index| index.bucket);
        let bucket = bucket.ok_or_else(|| {
            Error::unavailable(format!("index {} is not known here", request.slice.index))
        })?;
        let patience = Duration::from_millis(request.timeout_ms);
        timeout(patience, self.wait_applied(bucket, request.epoch)).await.map_err(|_| {
            Error::unavailable(format!("epoch {} was not applied in time", request.epoch))
        })??;
        if request.epoch > Epoch(0) {
            // The last round: both ends are compared as soon as the coordinator knows that this one is here.
            self.shared.slices_changed();
        }
        let export = self.shared.fragments.export(request.slice).await?;
        let rate = self.shared.config.move_bytes_per_s_max;
        Ok(Box::pin(crate::export::send(export, &request, rate)))
    }
}

/// A router's view of what is applied here: the whole first, then what changed.
struct AppliedWatch {
    store: Arc<dyn SliceStore>,
    catalog: Arc<ArcSwap<Catalog>>,
    node: NodeId,
    changed: watch::Receiver<u64>,
    slices: watch::Receiver<u64>,
    told: BTreeMap<BucketId, Epoch>,
    first: bool,
}

impl AppliedWatch {
    async fn next(&mut self) -> Option<AppliedReport> {
        if !self.first {
            self.changed.changed().await.ok()?;
        }
        let slices_changed = self.slices.has_changed().unwrap_or(false) || self.first;
        self.first = false;
        self.slices.mark_unchanged();
        let mut applied = Vec::new();
        let catalog = self.catalog.load_full();
        for mark in self.store.applied() {
            // What a rollback has left lacks what has survived it, until that is applied again.
            let bucket = catalog.buckets.get(&mark.bucket);
            if bucket.is_some_and(|b| b.readable_from().is_some_and(|from| mark.epoch < from)) {
                continue;
            }
            if self.told.insert(mark.bucket, mark.epoch) != Some(mark.epoch) {
                applied.push((mark.bucket, mark.epoch));
            }
        }
        let readable = slices_changed.then(|| readable_slices(&*self.store));
        Some(AppliedReport { node: self.node, applied, readable })
    }
}
