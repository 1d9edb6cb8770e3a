//! A complete cluster in one process, for `sextant dev` and `sextant demo`: coordinators, a
//! projector, indexers and a router. Each is a real service with a separate data directory, and
//! calls the others directly. A coordinator or an indexer can be stopped and restarted while the
//! others run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt;
use proto::env::{Env, FileSystem, Task};
use proto::model::ids::NodeId;
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::{CoordinatorApi, Directory};
use proto::{Error, ErrorCode, Result};

use super::cluster_dirs::prepare_directories;
use super::services::{self, RecoveryFlags};
use crate::auth::newest_users::NewestUsers;
use crate::descriptors::Shares;
use crate::wire::{LOCAL, PeerDirectory, Peers, tcp_connect};

/// The first node number of each role; `dev` starts at most 99 nodes of one role.
const COORDINATOR: u64 = 1;
const PROJECTOR: u64 = 100;
const INDEXER: u64 = 200;
const ROUTER: u64 = 300;

/// The settings of a cluster in one process.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// The data directory, which contains a directory for each node.
    pub data_dir: PathBuf,
    /// The number of coordinator members.
    pub coordinators: u64,
    /// The number of indexers.
    pub indexers: u64,
    /// The size limit of each bucket's change log, in bytes; `None` for the default.
    pub log_bytes_max: Option<u64>,
    /// The directory that contains the files from which versions of data sets are loaded.
    pub files_dir: Option<PathBuf>,
    /// The maximum number of concurrent scans of the router; `None` for the default.
    pub scans_max: Option<usize>,
    /// The memory of each indexer's slices, in bytes; `None` for the default.
    pub memory_bytes: Option<u64>,
    /// The number of changes from which a commit counts as a large one; `None` for the default.
    pub large_commit_changes: Option<u64>,
    /// The recovery flags of this start.
    pub recovery: RecoveryFlags,
}

/// A running cluster, which stops when this value is dropped.
pub struct Cluster {
    config: ClusterConfig,
    env: Env,
    peers: Arc<Peers>,
    coordinators: BTreeMap<NodeId, Arc<coordinator::Coordinator>>,
    indexers: BTreeMap<NodeId, Arc<indexer::Indexer>>,
    projector: projector::Service,
    router: Arc<router::Router>,
    users: Arc<NewestUsers>,
    _following_users: Task,
}

impl Cluster {
    /// Starts a cluster. If the data directory contains the data of a cluster, this cluster
    /// continues.
    pub async fn start(config: ClusterConfig, env: Env) -> Result<Self> {
        let (its_env, data_dir) = (env.clone(), config.data_dir.clone());
        let dirs: Vec<_> = members(&config)
            .iter()
            .map(|(id, _)| node_dir(&config.data_dir, "coordinator", id.0))
            .collect();
        let forced = config.recovery.force_new_cluster;
        env.blocking(move || prepare_directories(&its_env, &data_dir, &dirs, forced)).await?;
        let peers = Peers::new(members(&config), tcp_connect(), &env);
        let directory = directory(&peers);
        let mut coordinators = BTreeMap::new();
        for (id, _) in members(&config) {
            let member = start_coordinator(&config, &env, &peers, id).await?;
            coordinators.insert(id, member);
        }
        for member in coordinators.values().map(Arc::downgrade) {
            peers.add_cluster_source(move || member.upgrade()?.cluster());
        }
        let projector_info = node_info(PROJECTOR, Role::Projector);
        let dir = node_dir(&config.data_dir, "projector", 1);
        let mut projector_config = projector::Config::new(projector_info.clone());
        let usual = projector_config.log_bytes_max;
        projector_config.log_bytes_max = config.log_bytes_max.unwrap_or(usual);
        projector_config.files_dir.clone_from(&config.files_dir);
        let usual = projector_config.large_commit_changes;
        projector_config.large_commit_changes = config.large_commit_changes.unwrap_or(usual);
        let projector =
            services::start_projector(projector_config, dir, &env, directory.clone()).await?;
        peers.add_projector(projector_info.id, projector.projector());
        // The indexers start at the same time, since each of them replays its log.
        let ids: Vec<NodeId> = (0..config.indexers).map(|n| NodeId(INDEXER + n)).collect();
        let starting = ids.iter().map(|id| start_indexer(&config, &env, &peers, *id));
        let started = futures::future::try_join_all(starting).await?;
        let indexers = ids.iter().copied().zip(started).collect();
        let mut router_config = router::Config::new(node_info(ROUTER, Role::Router));
        router_config.scans_max = config.scans_max.unwrap_or(router_config.scans_max);
        let its_directory = Arc::clone(&directory);
        let router = Arc::new(router::Router::start(router_config, env.clone(), its_directory));
        let (users, follower) = services::follow_users(directory, &router);
        let _following_users = follower.start(&env);
        Ok(Self {
            config,
            env,
            peers,
            coordinators,
            indexers,
            projector,
            router,
            users,
            _following_users,
        })
    }

    /// Returns the directory by which the services of the cluster find each other.
    pub fn directory(&self) -> Arc<dyn Directory> {
        directory(&self.peers)
    }

    /// Returns the cluster's services, for the gRPC port.
    pub fn peers(&self) -> Arc<Peers> {
        Arc::clone(&self.peers)
    }

    /// Returns the router of the cluster.
    pub fn router(&self) -> Arc<router::Router> {
        Arc::clone(&self.router)
    }

    /// Returns the users that the router has received.
    pub fn users(&self) -> Arc<NewestUsers> {
        Arc::clone(&self.users)
    }

    /// Returns the directory with all data.
    pub fn data_dir(&self) -> &Path {
        &self.config.data_dir
    }

    /// Returns the running indexers.
    pub fn indexers(&self) -> Vec<Arc<indexer::Indexer>> {
        self.indexers.values().cloned().collect()
    }

    /// Returns the projector of the cluster.
    pub fn projector(&self) -> Arc<projector::Projector> {
        self.projector.projector()
    }

    /// Waits until a service has stopped because of an error, such as a failed write. Returns the
    /// reason. The other services could continue, but without the stopped one the cluster is
    /// incomplete.
    pub async fn stopped(&self) -> Error {
        let coordinators = self.coordinators.iter().map(|(id, member)| {
            async move {
                let removed = member.stopped().await;
                removed.unwrap_or_else(|| stopped_error(Role::Coordinator, *id, "log"))
            }
            .boxed()
        });
        let indexers = self.indexers.iter().map(|(id, indexer)| {
            async move {
                indexer.stopped().await;
                stopped_error(Role::Indexer, *id, "log")
            }
            .boxed()
        });
        let projector = async {
            self.projector.wait_until_failed().await;
            stopped_error(Role::Projector, NodeId(PROJECTOR), "documents")
        };
        let all = coordinators.chain(indexers).chain([projector.boxed()]);
        futures::future::select_all(all).await.0
    }

    /// Returns the number of the leading coordinator; `None` if no coordinator leads.
    pub async fn leader(&self) -> Option<NodeId> {
        for member in self.coordinators.values() {
            if let Ok(status) = member.status().await
                && status.leader == Some(status.node)
            {
                return Some(status.node);
            }
        }
        None
    }

    /// Stops a coordinator as abruptly as a crash does: without a flush or a hand-over.
    pub fn kill_coordinator(&mut self, node: NodeId) {
        self.peers.remove_coordinator(node);
        self.coordinators.remove(&node);
    }

    /// Restarts a stopped coordinator with its data.
    pub async fn restart_coordinator(&mut self, node: NodeId) -> Result<()> {
        let member = start_coordinator(&self.config, &self.env, &self.peers, node).await?;
        self.coordinators.insert(node, member);
        Ok(())
    }

    /// Starts another indexer. Returns its number.
    pub async fn add_indexer(&mut self) -> Result<NodeId> {
        let node = NodeId(INDEXER + self.config.indexers);
        self.config.indexers += 1;
        self.restart_indexer(node).await?;
        Ok(node)
    }

    /// Stops an indexer as abruptly as a crash does.
    pub fn kill_indexer(&mut self, node: NodeId) {
        self.peers.remove_indexer(node);
        self.indexers.remove(&node);
    }

    /// Restarts a stopped indexer with its data.
    pub async fn restart_indexer(&mut self, node: NodeId) -> Result<()> {
        let indexer = start_indexer(&self.config, &self.env, &self.peers, node).await?;
        self.indexers.insert(node, indexer);
        Ok(())
    }
}

/// Returns the error with which a process ends after its service has stopped because of an error.
pub(super) fn stopped_error(role: Role, id: NodeId, unwritten: &str) -> Error {
    let text = format!("{} {id} has stopped: its {unwritten} could not be written", role.name());
    Error::new(ErrorCode::Io, text).with_hint(
        "the log has the reason; check the disk (is it full?), then start the process again",
    )
}

/// Returns the numbers and addresses of the coordinators.
fn members(config: &ClusterConfig) -> Vec<(NodeId, String)> {
    let member = |n| (NodeId(COORDINATOR + n), format!("{LOCAL}{}", COORDINATOR + n));
    (0..config.coordinators).map(member).collect()
}

/// Returns the directory that finds the services of a process.
fn directory(peers: &Arc<Peers>) -> Arc<dyn Directory> {
    Arc::new(PeerDirectory(Arc::clone(peers)))
}

/// Returns the description of a node of this process.
fn node_info(id: u64, role: Role) -> NodeInfo {
    NodeInfo { id: NodeId(id), role, address: format!("{LOCAL}{id}"), zone: String::new() }
}

/// Returns the data directory of a node.
fn node_dir(data_dir: &Path, role: &str, n: u64) -> PathBuf {
    data_dir.join(format!("{role}-{n}"))
}

/// Starts a coordinator and registers it.
async fn start_coordinator(
    config: &ClusterConfig,
    env: &Env,
    peers: &Arc<Peers>,
    id: NodeId,
) -> Result<Arc<coordinator::Coordinator>> {
    let dir = node_dir(&config.data_dir, "coordinator", id.0);
    // Only one coordinator has to request this, whether it leads or not.
    let skip_epochs = config.recovery.skip_epochs && id == NodeId(COORDINATOR);
    // Files of a cluster that is given up are not in the directory any more.
    let flags = RecoveryFlags { skip_epochs, force_new_cluster: false, ..config.recovery };
    let member =
        services::start_coordinator(id, members(config), dir, flags, env, directory(peers)).await?;
    peers.add_coordinator(id, Arc::clone(&member) as _);
    Ok(member)
}

/// Starts an indexer and registers it.
async fn start_indexer(
    config: &ClusterConfig,
    env: &Env,
    peers: &Arc<Peers>,
    id: NodeId,
) -> Result<Arc<indexer::Indexer>> {
    let dir = node_dir(&config.data_dir, "indexer", id.0 - INDEXER + 1);
    let mut settings = indexer::Config::new(node_info(id.0, Role::Indexer), dir);
    let usual = settings.store.memory_bytes;
    settings.store.memory_bytes = config.memory_bytes.unwrap_or(usual);
    let indexers = usize::try_from(config.indexers).unwrap_or(usize::MAX);
    settings.store.open_files_max = Shares::of_process().fragments(indexers);
    let indexer = services::run_indexer(settings, env, directory(peers)).await?;
    peers.add_indexer(id, Arc::clone(&indexer) as _);
    Ok(indexer)
}

/// Removes the permissions of other users from an existing data directory, which may be a copy
/// with other permissions. Failures are ignored, since the directory may belong to another user.
pub(super) fn make_private(fs: &dyn FileSystem, dir: &Path) {
    if fs.exists(dir)
        && let Err(error) = fs.make_private(dir)
    {
        let dir = dir.display();
        tracing::warn!(%error, "others may read the data directory {dir}, and its mode cannot be changed: chmod 700 {dir}");
    }
}

/// Locks a data directory for this process. Each service checks the version of its own files.
pub fn lock_data_dir(env: &Env, dir: &Path) -> Result<Box<dyn Send + Sync>> {
    let here = |error: std::io::Error| {
        Error::from(error).context(format!("data directory {}", dir.display()))
    };
    env.fs.create_dir_all(dir).map_err(here)?;
    make_private(&*env.fs, dir);
    env.fs.lock_dir(dir).map_err(|error| {
        let busy = error.kind() == std::io::ErrorKind::WouldBlock;
        let error = here(error);
        if busy {
            Error { code: ErrorCode::Io, ..error }
                .with_hint("stop the other process, or choose another --data")
        } else {
            error
        }
    })
}

#[cfg(test)]
#[path = "cluster_tests.rs"]
mod tests;
