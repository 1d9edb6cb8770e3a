//! The measured cluster and the phases of a run: the start, a phase without mutations, and a phase
//! with mutations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coordinator::Coordinator;
use futures::StreamExt;
use proto::env::{Env, Task};
use proto::lock::lock;
use proto::model::bucket::SourceKind;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, LocalIndexId, NodeId};
use proto::model::index::{IndexInfo, IndexSpec, IndexState};
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::{CoordinatorApi, Directory, WatchKind, WatchMessage};
use proto::rpc::command::{Command, CreateBucket, CreateIndex, Outcome, Proposal, RequestId};
use proto::rpc::scan::Consistency;
use proto::{Error, Result};
use router::Router;
use sextant::wire::{PeerDirectory, Peers};
use tokio::time::{Instant, sleep, timeout};

use super::coordinators;
use super::figures::{Figures, Phase, Processor};
use super::indexer::{LightIndexer, RemoteIndexer};
use super::network::{End, Network};
use super::peers::peers_of;
use super::process::{Processes, env_of, node_of};
use super::projector::{LightProjector, RemoteProjector};
use super::scale::Scale;
use super::size::size;

/// The number of coordinators.
const COORDINATORS: u64 = 3;
/// The number of buckets of each projector.
const BUCKETS_EACH: u64 = 8;
/// The first node number of processes other than coordinators.
const PROJECTORS_FROM: u64 = 100;
const ROUTER: u64 = 99;
const INDEXERS_FROM: u64 = 1_000;

/// The time limit of each step of the start.
const STEP_MAX: Duration = Duration::from_secs(120);
/// The time between two phases, in which the traffic of the first ends.
const SETTLES: Duration = Duration::from_secs(2);
/// The interval between two checks for the first leader.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The interval at which the router requests an epoch.
const ASK_EVERY: Duration = Duration::from_millis(100);
const ASK_TIMEOUT_MS: u64 = 5_000;

/// The coordinators of the cluster.
struct Coordinators {
    network: Arc<Network>,
    /// The members, of which the first is the leader.
    members: Vec<(NodeId, String)>,
    peers: Vec<Arc<Peers>>,
    leader: Arc<Coordinator>,
    term: u64,
}

/// A running cluster.
struct Cluster {
    scale: Scale,
    coordinators: Coordinators,
    router: Arc<Router>,
    directory: Arc<dyn Directory>,
    env: Env,
    rate: Arc<AtomicU64>,
    _tasks: Vec<Task>,
}

/// Starts a cluster and measures it.
pub(super) async fn measure(scale: Scale) -> Result<Figures> {
    let coordinators = Coordinators::start(scale.seed).await?;
    let begun = Instant::now();
    let cluster = Cluster::start(scale, coordinators)?;
    cluster.define().await?;
    let (start, _) = cluster.take(begun.elapsed()).await?;
    let (idle, idle_ms) = cluster.phase().await?;
    cluster.rate.store(scale.rate, Ordering::Relaxed);
    let asked = cluster.ask();
    let (load, load_ms) = cluster.phase().await?;
    let epochs = cluster.coordinators.network.observer.take();
    let (catalog, asked) = (cluster.router.catalog(), *lock(&asked.counts));
    let followed = catalog.indexes.values().map(|index| index.topology.nodes().len() as u64).sum();
    let catalog_bytes = size(&*catalog);
    let processor = Processor { idle_ms, load_ms };
    Ok(Figures { scale, start, idle, load, catalog_bytes, followed, asked, epochs, processor })
}

/// Waits for a step of the start.
async fn step<T>(what: &str, done: impl Future<Output = T>) -> Result<T> {
    let late = |_| Error::unavailable(format!("{what}: not done in {STEP_MAX:?}"));
    timeout(STEP_MAX, done).await.map_err(late)
}

impl Coordinators {
    async fn start(seed: u64) -> Result<Self> {
        let nodes = (1..=COORDINATORS).map(|id| node_of(id, Role::Coordinator));
        let mut members: Vec<_> = nodes.map(|node| (node.id, node.address)).collect();
        let network = Network::new(seed, members.iter().map(|(id, _)| *id));
        let mut peers = Vec::new();
        for (id, _) in &members {
            let node = node_of(id.0, Role::Coordinator);
            let own = peers_of(&network, &node, &members, &env_of(seed, *id));
            let directory = Arc::new(PeerDirectory(Arc::clone(&own)));
            coordinators::start(&network, (*id, &members), directory, seed).await?;
            peers.push(own);
        }
        let first = network.coordinator(members[0].0)?;
        let led = async {
            loop {
                let status = first.status().await?;
                if let Some(leader) = status.leader {
                    return Ok::<_, Error>((leader, status.term));
                }
                sleep(LOOK_EVERY).await;
            }
        };
        let (leader, term) = step("an election", led).await??;
        network.set_leader(leader);
        members.sort_by_key(|(id, _)| (*id != leader, *id));
        let leader = network.coordinator(leader)?;
        Ok(Self { network, members, peers, leader, term })
    }

    /// Records the publication of epochs, at the leader.
    async fn observe(network: Arc<Network>, leader: Arc<Coordinator>) {
        let Ok(mut messages) = leader.watch(WatchKind::CatalogAndEpochs).await else { return };
        while let Some(Ok(message)) = messages.next().await {
            if let WatchMessage::Epochs(marks) = message {
                marks.iter().for_each(|mark| network.observer.published(mark));
            }
        }
    }

    /// Returns the peers of another process.
    fn peers_of(&self, node: &NodeInfo, env: &Env) -> Arc<Peers> {
        peers_of(&self.network, node, &self.members, env)
    }
}

impl Cluster {
    fn start(scale: Scale, coordinators: Coordinators) -> Result<Self> {
        let (network, rate) = (&coordinators.network, Arc::new(AtomicU64::new(0)));
        let (mut indexers, mut tasks) = (Processes::new(), Vec::new());
        for id in (INDEXERS_FROM..).take(scale.indexers as usize) {
            let node = node_of(id, Role::Indexer);
            let env = env_of(scale.seed, node.id);
            let directory = Arc::new(PeerDirectory(coordinators.peers_of(&node, &env)));
            let (indexer, its_tasks) = LightIndexer::start(node, &env, directory)?;
            indexers.insert(NodeId(id), indexer);
            tasks.extend(its_tasks);
        }
        let mut projectors = Processes::new();
        for id in (PROJECTORS_FROM..).take(scale.buckets.div_ceil(BUCKETS_EACH) as usize) {
            let node = node_of(id, Role::Projector);
            let env = env_of(scale.seed, node.id);
            let directory = Arc::new(PeerDirectory(coordinators.peers_of(&node, &env)));
            let of = (network, node, env);
            let (projector, its_tasks) =
                LightProjector::start(of, directory, indexers.clone(), Arc::clone(&rate))?;
            tasks.extend(its_tasks);
            for (n, peers) in (1..).zip(&coordinators.peers) {
                let from = End { node: NodeId(n), role: Role::Coordinator };
                peers.add_projector(NodeId(id), RemoteProjector::new(network, from, &projector));
            }
            projectors.insert(NodeId(id), projector);
        }
        let node = node_of(ROUTER, Role::Router);
        let env = env_of(scale.seed, node.id);
        let peers = coordinators.peers_of(&node, &env);
        let from = End { node: node.id, role: Role::Router };
        for (id, indexer) in &indexers {
            peers.add_indexer(*id, RemoteIndexer::new(network, from, indexer));
        }
        for (id, projector) in &projectors {
            peers.add_projector(*id, RemoteProjector::new(network, from, projector));
        }
        let directory: Arc<dyn Directory> = Arc::new(PeerDirectory(peers));
        let config = router::Config::new(node);
        let router = Arc::new(Router::start(config, env.clone(), Arc::clone(&directory)));
        let (observed, leader) = (Arc::clone(network), Arc::clone(&coordinators.leader));
        tasks.push(env.spawn_request("observer", Coordinators::observe(observed, leader)));
        Ok(Self { scale, coordinators, router, directory, env, rate, _tasks: tasks })
    }

    /// Waits for all processes, then creates the buckets and their indexes.
    async fn define(&self) -> Result<()> {
        let Scale { indexers, buckets, vbuckets, slices, .. } = self.scale;
        let nodes = (indexers + buckets.div_ceil(BUCKETS_EACH) + 1 + COORDINATORS) as usize;
        let all = self.router.wait_catalog(move |catalog| catalog.nodes.len() >= nodes);
        step("the registrations", all).await?;
        for n in 1..=buckets {
            let (name, if_not_exists) = (format!("bucket_{n}"), false);
            let source = SourceKind::Push;
            let bucket = Command::CreateBucket(CreateBucket {
                name: name.clone(),
                vbuckets,
                source,
                projectors: 1,
                copies: None,
                if_not_exists,
            });
            let spec = IndexSpec { slices, ..IndexSpec::new(format!("index_{n}"), name) };
            self.propose(2 * n, bucket).await?;
            let (bucket, defer_build) = (BucketId(n), false);
            let index =
                Command::CreateIndex(CreateIndex { bucket, spec, defer_build, if_not_exists });
            self.propose(2 * n + 1, index).await?;
        }
        let is_online = move |catalog: &Catalog| {
            let online = |index: &&Arc<IndexInfo>| index.state == IndexState::Maintenance;
            catalog.indexes.values().filter(online).count() as u64 == buckets
        };
        step("the builds", self.router.wait_catalog(is_online)).await?;
        Ok(())
    }

    async fn propose(&self, sequence: u64, command: Command) -> Result<()> {
        let request = RequestId { client: 1, sequence };
        let proposal = Proposal::from(command).with_request(request);
        match self.directory.coordinator().propose(proposal).await?.outcome {
            Outcome::Refused(error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Measures a phase, after a pause. Returns its messages, and the leader's processor time in
    /// milliseconds per second.
    async fn phase(&self) -> Result<(Phase, f64)> {
        sleep(SETTLES).await;
        self.take(SETTLES).await?;
        self.coordinators.network.observer.take();
        let time = Duration::from_secs(self.scale.seconds);
        sleep(time).await;
        self.take(time).await
    }

    /// Returns the messages of the time since the last call, and the leader's processor time in
    /// milliseconds per second.
    async fn take(&self, time: Duration) -> Result<(Phase, f64)> {
        let Coordinators { network, leader, term, .. } = &self.coordinators;
        if leader.status().await?.term != *term {
            return Err(Error::unavailable("another coordinator leads now"));
        }
        let flows = network.counts.take();
        let (log_entries, log_bytes) = network.log.take(COORDINATORS - 1);
        let simulated_ms = time.as_millis() as u64;
        let spent = network.place(self.coordinators.members[0].0).meter.take();
        let each_ms = spent.as_secs_f64() * 1_000.0 / time.as_secs_f64();
        Ok((Phase { simulated_ms, flows, log_entries, log_bytes }, each_ms))
    }

    /// Starts to request epochs that cover the present, of one bucket after another.
    fn ask(&self) -> Asking {
        let (counts, router) = (Arc::new(Mutex::default()), Arc::clone(&self.router));
        let asked: Arc<Mutex<(u64, u64)>> = Arc::clone(&counts);
        let asking = async move {
            let catalog = router.catalog();
            let indexes: Vec<LocalIndexId> =
                catalog.indexes.values().map(|index| index.local_id()).collect();
            for index in indexes.iter().cycle() {
                sleep(ASK_EVERY).await;
                let pinned = router.pin(*index, &Consistency::RequestPlus, ASK_TIMEOUT_MS).await;
                let mut asked = lock(&asked);
                *asked = (asked.0 + 1, asked.1 + u64::from(pinned.is_err()));
            }
        };
        Asking { counts, _task: self.env.spawn_request("asks", asking) }
    }
}

/// The router's requests for epochs, which end on drop.
struct Asking {
    /// The numbers of finished and of failed requests.
    counts: Arc<Mutex<(u64, u64)>>,
    _task: Task,
}
