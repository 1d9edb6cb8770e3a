//! The simulated processes: real services behind the real transport, on files that lose unsynced data.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::future::BoxFuture;
use projector::testing::DocumentStore;
use projector::{DiskStore, RecoveredBucket, RecoveryOutcome};
use proto::env::sim::{FlippedBit, InlineSpawner, Interleaving, ProcessSpawners, SimClock, SimFs};
use proto::env::{Clock, Env, real::SeededRandom};
use proto::model::ids::{BucketId, NodeId};
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::Directory;
use proto::{ErrorCode, Result};
use sextant::roles::services;
use sextant::wire::{PeerDirectory, Peers};

use super::net::{PORT, WINDOW_BYTES, connect, incoming};
use super::purges::{Purges, has_purges};
use crate::sim::data_sets::{self, contents};
use crate::sim::documents::{self, Ledger, Mirror, TappedStore};
use crate::sim::judge::copied::Copied;
use crate::sim::judge::truth::Truth;
use crate::sim::operator::removals::Removals;
use crate::sim::operator::stages::Stages;
use crate::sim::producer::Producer;
use crate::sim::ranges::Cancelled;
use crate::sim::transactions::pair::{self, CommitStages};

/// The data directory of each process.
pub const DATA: &str = "/data";
/// The number of vbuckets of the bucket.
pub const VBUCKETS: u16 = 8;
/// The node ids of the projectors of a pushed bucket.
pub const PROJECTORS: [u64; 2] = [100, 101];

/// The node ids of the projectors of a bucket with copies.
pub const COPYING: [u64; 3] = [100, 101, 102];

/// True if the embedded bucket of this seed has copies.
pub fn has_copies(seed: u64) -> bool {
    seed % 3 == 1
}

/// The node ids of the indexers.
pub const INDEXERS: [u64; 3] = [201, 202, 203];
/// The number of zones of the indexers.
pub const ZONES: usize = 2;

/// The size limit of a change log in a quarter of the seeds with purges, in bytes.
const CHANGE_LOG_BYTES: u64 = 24 << 10;

/// The length of an indexer's log that causes a flush, in bytes, in seeds whose blocking work is
/// interleaved.
const LOG_BYTES: u64 = 2 << 10;

/// The size limit of an indexer's queues in an eighth of the seeds, in bytes, so that slow indexers
/// delay epochs.
const QUEUE_BYTES_MAX: u64 = 1 << 9;

/// True if the queues of this seed's indexers are limited to [`QUEUE_BYTES_MAX`]. A copy with a
/// much larger epoch is resynced.
pub(in crate::sim) fn has_small_queues(seed: u64) -> bool {
    seed % 8 == 3
}

/// True if commits of at least two documents are large in this seed (an eighth of all), so that
/// they enter the indexes from the late-commit stores.
fn has_large_commits(seed: u64) -> bool {
    matches!(seed % 16, 7 | 10) || pair::are_chosen(seed) && (seed / 7) % 3 == 1
}

/// The size of a message between the copies of a bucket in a quarter of the seeds with copies, in
/// bytes: a group of three documents is sent in pieces.
const COPY_MESSAGE_BYTES: usize = 120;

/// True if messages between copies are limited to [`COPY_MESSAGE_BYTES`].
fn has_small_messages(seed: u64) -> bool {
    has_copies(seed) && matches!((seed / 3) % 8, 2 | 4)
}

/// The memory of an indexer for open transactions in bytes, enough for a few transactions with some
/// changes each.
const OPEN_TRANSACTIONS_BYTES: u64 = 12 << 10;

/// True if the indexers of this seed have so little memory for open transactions that they write
/// some to disk.
fn has_spills(seed: u64) -> bool {
    matches!(seed % 16, 7 | 10 | 15) || pair::are_chosen(seed) && seed % 2 == 1
}

/// The result of a host's software, as turmoil defines it.
pub type HostResult = turmoil::Result;

/// A simulated process: its identity, and the state that survives its crashes.
#[derive(Clone)]
pub struct Host {
    /// The node id and role of the host.
    pub info: NodeInfo,
    /// The name of the host in the network.
    pub name: String,
    /// The disk of the host.
    pub fs: SimFs,
    seed: u64,
    /// The number of starts; each start draws other random numbers.
    starts: Arc<AtomicU64>,
    /// The number of coordinators.
    coordinators: u64,
    /// True if the sources of moves keep their copies for older scans.
    keep_sources: bool,
    /// True if the change logs of a projector are so short that it purges them.
    has_short_logs: bool,
    /// The interleaving of the host's blocking work; `None` without it.
    interleaved: Option<ProcessSpawners>,
    /// The clock of the host.
    pub clock: Arc<SimClock>,
    /// True if the host's disk is broken, which excuses an error at the start.
    pub excused: Arc<AtomicBool>,
    /// True if the process has ended with an error, so that none of its tasks may continue.
    pub ended: Arc<AtomicBool>,
    /// The mirror of a projector's documents, which knows what they must be.
    pub documents: Mirror,
    /// The purges that are requested of a projector.
    pub purges: Purges,
}

/// The hosts of the cluster.
pub struct Hosts {
    /// The hosts by name.
    pub all: BTreeMap<String, Host>,
    /// The producer if the bucket is pushed; the bucket then has two projectors.
    pub producer: Option<Arc<Producer>>,
    /// The copies of an embedded bucket that has copies.
    pub copied: Option<Arc<Copied>>,
    /// The true history of the two buckets that some transactions write; `None` in seeds without
    /// them.
    pub pair: Option<Arc<Copied>>,
    /// The counts of the stages of commits over both buckets.
    pub commit_stages: CommitStages,
    /// The stages of moves in progress.
    pub stages: Stages,
    /// The time of the last disk fault, in simulated milliseconds.
    pub disks_broken_at_ms: Arc<AtomicU64>,
    /// The number of batches that slow readers have received.
    pub parts_read: Arc<AtomicU64>,
    /// The removed indexers.
    pub removals: Arc<Removals>,
    /// The generations whose builds were cancelled.
    pub cancelled: Cancelled,
}

impl Hosts {
    /// Returns the hosts of a seed: three coordinators, three indexers, and one projector; two
    /// projectors for a pushed bucket, or three for a bucket with copies.
    pub fn new(seed: u64) -> Self {
        let is_pushed = seed % 3 == 2;
        let projectors: &[u64] = match (is_pushed, has_copies(seed)) {
            (true, _) => &PROJECTORS,
            (_, true) => &COPYING,
            _ => &PROJECTORS[..1],
        };
        let mut hosts = Self::with(seed, 3, projectors, &INDEXERS);
        let has_short_logs = has_purges(seed) && seed % 4 == 3;
        hosts.all.values_mut().for_each(|host| host.has_short_logs = has_short_logs);
        hosts.producer = is_pushed.then(|| Arc::new(Producer::new(seed, VBUCKETS)));
        let projectors = hosts.all.values().filter(|host| host.info.role == Role::Projector);
        if data_sets::are_chosen(seed) {
            projectors.clone().for_each(|host| contents::write_files(&host.fs));
        }
        let mirrors: BTreeMap<_, _> =
            projectors.map(|host| (host.info.id, host.documents.clone())).collect();
        hosts.copied = has_copies(seed).then(|| Arc::new(Copied::new(mirrors.clone())));
        hosts.pair = pair::are_chosen(seed).then(|| Arc::new(Copied::new(mirrors)));
        hosts
    }

    /// The true history.
    pub fn truth(&self) -> Truth {
        match (&self.producer, &self.copied) {
            (Some(producer), _) => Truth::Pushed(Arc::clone(producer)),
            (None, Some(copied)) => Truth::Copied(Arc::clone(copied)),
            (None, None) => Truth::Embedded(self.all["projector"].documents.clone()),
        }
    }

    /// Returns hosts with this many coordinators, and with projectors and indexers of these
    /// numbers. The first projector's host is named `projector`.
    pub fn with(seed: u64, coordinators: u64, projectors: &[u64], indexers: &[u64]) -> Self {
        let (mut all, ledger) = (BTreeMap::new(), Ledger::default());
        let members =
            (1..=coordinators).map(|n| (format!("coordinator-{n}"), n, Role::Coordinator));
        let projectors = projectors.iter().enumerate().map(|(n, id)| {
            let name = if n == 0 { "projector".to_owned() } else { format!("projector-{id}") };
            (name, *id, Role::Projector)
        });
        let indexers = indexers.iter().map(|n| (format!("indexer-{n}"), *n, Role::Indexer));
        for (name, id, role) in members.chain(projectors).chain(indexers) {
            let seed = seed ^ (id << 32);
            let host = Host {
                info: NodeInfo {
                    id: NodeId(id),
                    role,
                    address: format!("{name}:{PORT}"),
                    // Two zones, so that two copies always fit into different ones.
                    zone: if id % 3 == 0 { "east" } else { "west" }.to_owned(),
                },
                name: name.clone(),
                coordinators,
                keep_sources: true,
                has_short_logs: false,
                interleaved: None,
                fs: SimFs::new(seed),
                seed,
                starts: Arc::default(),
                clock: Arc::new(SimClock::new(1_700_000_000_000)),
                excused: Arc::default(),
                ended: Arc::default(),
                documents: Mirror::with_ledger(&ledger),
                purges: Purges::default(),
            };
            all.insert(name, host);
        }
        Self {
            all,
            producer: None,
            copied: None,
            pair: None,
            commit_stages: CommitStages::default(),
            stages: Stages::default(),
            disks_broken_at_ms: Arc::default(),
            parts_read: Arc::default(),
            removals: Arc::default(),
            cancelled: Cancelled::default(),
        }
    }
}

impl Hosts {
    /// Returns the hosts with moves whose sources drop their copies at once.
    pub fn without_moved_sources(mut self) -> Self {
        self.all.values_mut().for_each(|host| host.keep_sources = false);
        self
    }

    /// Returns the hosts with interleaved blocking work of all processes.
    pub fn interleaved(mut self, interleaving: &Interleaving) -> Self {
        let interleaved =
            |host: &mut Host| host.interleaved = Some(interleaving.process_spawners());
        self.all.values_mut().for_each(interleaved);
        self
    }
}

/// Returns the coordinators with their host names.
pub fn members(count: u64) -> Vec<(NodeId, String)> {
    (1..=count).map(|n| (NodeId(n), format!("coordinator-{n}:{PORT}"))).collect()
}

/// Returns the environment of a simulated process.
pub fn env(seed: u64, clock: Arc<SimClock>, fs: SimFs) -> Env {
    Env {
        clock,
        random: Arc::new(SeededRandom::new(seed)),
        fs: Arc::new(fs),
        spawner: Arc::new(InlineSpawner),
    }
}

impl Host {
    /// Returns the time of the host's clock, in milliseconds.
    pub fn clock_ms(&self) -> u64 {
        self.clock.unix_ms()
    }

    /// The seed of the run.
    fn run_seed(&self) -> u64 {
        self.seed ^ (self.info.id.0 << 32)
    }

    /// Runs the process until it is crashed. A process that ends because of a broken disk waits
    /// until the fault driver restarts it. Any other end is a violation.
    pub async fn run(self) -> HostResult {
        let Err(error) = self.clone().serve().await else { return Ok(()) };
        let code = error.downcast_ref::<proto::Error>().map(|error| error.code);
        let excused = self.excused.load(Ordering::Relaxed) || self.fs.is_crashed();
        if !excused && code != Some(ErrorCode::Io) {
            return Err(error);
        }
        self.ended.store(true, Ordering::Relaxed);
        std::future::pending().await
    }

    /// Returns the size of a batch of a scan in bytes: mostly one to three rows, so that a node may
    /// fail between two batches.
    fn batch_bytes(&self) -> usize {
        match self.seed % 4 {
            0 => 64 << 10,
            n => 60 * n as usize,
        }
    }

    /// Opens the documents of a projector, and compares them with the mirror.
    async fn open_documents(&self, env: &Env, dir: PathBuf) -> Result<Arc<dyn DocumentStore>> {
        let (options, mirror) = (documents::options(self.seed), self.documents.clone());
        let its_env = env.clone();
        let open = move || TappedStore::open(&its_env, &dir, options, mirror);
        let store = env.blocking(open).await?;
        store.reconcile(self.has_flipped_bits())?;
        Ok(Arc::new(store))
    }

    /// Opens the documents of a stopped projector, and compares them with the mirror.
    pub fn compare_documents(&self) -> Result<()> {
        let env = env(0, Arc::clone(&self.clock), self.fs.clone());
        let (options, mirror) = (documents::options(self.seed), self.documents.clone());
        let store = TappedStore::open(&env, Path::new(DATA), options, mirror)?;
        store.reconcile(self.has_flipped_bits())
    }

    /// True if a bit of the host's disk was flipped.
    pub fn has_flipped_bits(&self) -> bool {
        let is_there = |bit: &FlippedBit| matches!(bit, FlippedBit::Stays { .. });
        self.fs.flipped_bits().iter().any(is_there)
    }

    /// True if a file, or a file in a directory, has a flipped bit and belongs to a damaged bucket
    /// that the projector keeps. The damage of a log is reported for its directory.
    pub fn keeps_flipped(&self, file: &Path) -> bool {
        let is_it = |bit: &FlippedBit| matches!(bit, FlippedBit::Stays { path, .. } if path.starts_with(file));
        self.documents.keeps_damaged() && self.fs.flipped_bits().iter().any(is_it)
    }

    /// Returns the buckets that the next start of a projector would find damaged, optionally with
    /// one more flipped bit.
    pub fn damaged_buckets(&self, flipped: Option<(&Path, u64)>) -> BTreeSet<BucketId> {
        let aside = SimFs::new(0);
        aside.restore_disk(&self.fs.copy());
        if flipped.is_some_and(|(file, bit)| aside.flip_bit(file, bit).is_err()) {
            return BTreeSet::new();
        }
        let env = env(0, Arc::clone(&self.clock), aside);
        let store = DiskStore::open(&env, Path::new(DATA), documents::options(self.seed));
        let damaged = store.and_then(|store| store.damaged());
        damaged.map(|damaged| damaged.into_keys().collect()).unwrap_or_default()
    }

    /// Accepts the loss of a stopped projector, as an operator does; false if its disk is full.
    pub fn accept_loss(&self) -> bool {
        self.fs.restart();
        // Armed faults must not hit the command.
        self.fs.disarm_faults();
        let env = env(0, Arc::clone(&self.clock), self.fs.clone());
        let options = documents::options(self.seed);
        match projector::recover_source(&env, Path::new(DATA), &options, &[]) {
            Ok(found) => {
                let is_whole =
                    |bucket: &RecoveredBucket| matches!(bucket.outcome, RecoveryOutcome::Whole(_));
                assert!(
                    found.iter().all(is_whole),
                    "{}: damaged without a fault: {found:?}",
                    self.name
                );
                self.documents.tell_loss(false);
                true
            }
            Err(error) => {
                assert_eq!(error.code, ErrorCode::Io, "{}: {error}", self.name);
                false
            }
        }
    }

    async fn serve(self) -> HostResult {
        let start = self.starts.fetch_add(1, Ordering::Relaxed);
        let mut env = env(self.seed ^ (start << 48), Arc::clone(&self.clock), self.fs.clone());
        if let Some(interleaved) = &self.interleaved {
            env.spawner = interleaved.spawner();
        }
        let peers = Peers::new(members(self.coordinators), connect(WINDOW_BYTES), &env);
        let directory: Arc<dyn Directory> = Arc::new(PeerDirectory(Arc::clone(&peers)));
        let dir = PathBuf::from(DATA);
        let id = self.info.id;
        // A process ends when its log or its document store has failed.
        let stopped: BoxFuture<'static, ()>;
        // Kept alive beside the server.
        let _service: Box<dyn std::any::Any> = match self.info.role {
            Role::Coordinator => {
                let members = members(self.coordinators);
                let mut config = coordinator::Config::new(id, members, dir);
                config.moves.keep_sources = self.keep_sources;
                // A log that is cut often, so that members which were away catch up from snapshots.
                config.raft.snapshot_entries = 50 + self.seed % 300;
                config.raft.keep_entries = 10;
                let service = coordinator::Coordinator::start(config, env, directory).await?;
                peers.add_coordinator(id, service.clone());
                let ended = Arc::clone(&service);
                stopped = Box::pin(async move { drop(ended.stopped().await) });
                Box::new(service)
            }
            Role::Projector => {
                let store = self.open_documents(&env, dir).await?;
                let purging = self.purges.clone().serve(env.clone(), Arc::clone(&store));
                let purging = env.spawn_request("purges", purging);
                let mut config = projector::Config::new(self.info.clone());
                config.files_dir = Some(PathBuf::from(contents::FILES_DIR));
                if has_large_commits(self.run_seed()) {
                    config.large_commit_changes = 2;
                }
                if has_small_messages(self.run_seed()) {
                    config.copy_message_bytes = COPY_MESSAGE_BYTES;
                }
                if self.has_short_logs {
                    config.log_bytes_max = CHANGE_LOG_BYTES;
                }
                let slice_router = Arc::new(router::SliceRouter);
                let service =
                    projector::Service::start(config, env, store, directory, slice_router).await?;
                let service = Arc::new(service);
                peers.add_projector(id, service.projector());
                let ended = Arc::clone(&service);
                stopped = Box::pin(async move { ended.wait_until_failed().await });
                Box::new((service, purging))
            }
            Role::Indexer => {
                // Little memory; in a quarter of the seeds so little that each second has flushes and compactions.
                let mut config = indexer::Config::new(self.info.clone(), dir);
                let has_least = self.seed % 4 == 1;
                config.store.memory_bytes = if has_least { 8 << 10 } else { 256 << 10 };
                if self.interleaved.is_some() {
                    // Flushes for the log's sake. With little memory instead, epochs would wait for the end of each flush.
                    config.store.log_bytes = LOG_BYTES;
                }
                if has_small_queues(self.seed) {
                    config.queue_bytes_max = Some(QUEUE_BYTES_MAX);
                }
                if has_spills(self.run_seed()) {
                    config.store.open_transactions_bytes_max = Some(OPEN_TRANSACTIONS_BYTES);
                }
                config.scan_batch_bytes = self.batch_bytes();
                let service = services::run_indexer(config, &env, directory).await?;
                peers.add_indexer(id, service.clone());
                let ended = Arc::clone(&service);
                stopped = Box::pin(async move { ended.stopped().await });
                Box::new(service)
            }
            Role::Router => unreachable!("the client runs the router"),
        };
        let incoming = incoming().await?;
        let served = sextant::grpc::peer_services(peers, sextant::wire::PeerTrust::Insecure)
            .serve_with_incoming(incoming);
        tokio::select! {
            biased;
            served = served => Ok(served?),
            () = stopped => Err(proto::Error::new(ErrorCode::Io, "its log has failed").into()),
        }
    }
}
