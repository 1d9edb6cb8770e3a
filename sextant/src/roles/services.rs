//! Functions that start the service of each role.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use projector::{DiskStore, DiskStoreOptions};
use proto::client::NodeIdentity;
use proto::env::{Env, create_dir_durably};
use proto::model::ids::NodeId;
use proto::model::node::NodeInfo;
use proto::rpc::api::Directory;
use proto::{Error, Result};
use router::RouterData;

use crate::auth::follower::UsersFollower;
use crate::auth::newest_users::NewestUsers;
use crate::descriptors::Shares;

/// The recovery options of a coordinator, which an operator sets after data or nodes are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryFlags {
    /// True to begin a new cluster although the log in the data directory is lost.
    pub force_new_cluster: bool,
    /// True to continue all numbers above the known ones, because the data directory is an older
    /// copy.
    pub skip_epochs: bool,
    /// The time, in seconds, after which an indexer that sends nothing counts as lost: other
    /// indexers then rebuild the slices of which only it has a copy. 0 means never, `None` the
    /// default.
    pub lost_after_s: Option<u64>,
}

/// Starts a coordinator in this process, from its data directory.
pub async fn start_coordinator(
    node: NodeId,
    members: Vec<(NodeId, String)>,
    data_dir: PathBuf,
    flags: RecoveryFlags,
    env: &Env,
    directory: Arc<dyn Directory>,
) -> Result<Arc<coordinator::Coordinator>> {
    let mut config = coordinator::Config::new(node, members, data_dir);
    config.force_new_cluster = flags.force_new_cluster;
    config.skip_epochs = flags.skip_epochs;
    if let Some(s) = flags.lost_after_s {
        config.moves.lost_after_ms = (s > 0).then(|| s.saturating_mul(1_000));
    }
    coordinator::Coordinator::start(config, env.clone(), directory).await
}

/// Starts an indexer with default settings, except for the memory of its slices.
pub async fn start_indexer(
    node: NodeInfo,
    data_dir: PathBuf,
    memory_bytes: Option<u64>,
    env: &Env,
    directory: Arc<dyn Directory>,
) -> Result<Arc<indexer::Indexer>> {
    let mut config = indexer::Config::new(node, data_dir);
    if let Some(bytes) = memory_bytes {
        config.store.memory_bytes = bytes;
    }
    run_indexer(config, env, directory).await
}

/// Starts an indexer. Its data is recovered on a blocking thread.
pub async fn run_indexer(
    config: indexer::Config,
    env: &Env,
    directory: Arc<dyn Directory>,
) -> Result<Arc<indexer::Indexer>> {
    let its_env = env.clone();
    let start = move || indexer::Indexer::start(config, its_env, directory);
    Ok(Arc::new(env.blocking(start).await?))
}

/// Starts a projector, which stores its documents on disk.
pub async fn start_projector(
    mut config: projector::Config,
    data_dir: PathBuf,
    env: &Env,
    directory: Arc<dyn Directory>,
) -> Result<projector::Service> {
    let (its_env, node) = (env.clone(), config.node.clone());
    let open_max = Shares::of_process().documents();
    let open = move || {
        create_dir_durably(&*its_env.fs, &data_dir)?;
        let has_data = DiskStore::is_in(&*its_env.fs, &data_dir);
        let identity = NodeIdentity::open(&its_env, data_dir.clone(), &node, has_data)?;
        let options = DiskStoreOptions { open_files_max: open_max, ..DiskStoreOptions::default() };
        Ok::<_, Error>((DiskStore::open(&its_env, &data_dir, options)?, identity))
    };
    let (store, identity) = env.blocking(open).await?;
    config.identity = Some(Arc::new(identity));
    let slice_router = Arc::new(router::SliceRouter);
    projector::Service::start(config, env.clone(), Arc::new(store), directory, slice_router).await
}

/// Opens the data directory of a router.
pub async fn open_router_data(env: &Env, dir: &Path, node: &NodeInfo) -> Result<RouterData> {
    let (its_env, dir, node) = (env.clone(), dir.to_owned(), node.clone());
    env.blocking(move || RouterData::open(&its_env, &dir, &node)).await
}

/// Returns the users of a process that serves clients, and the task that keeps them up to date.
/// The caller starts the task.
pub fn follow_users(
    directory: Arc<dyn Directory>,
    router: &Arc<router::Router>,
) -> (Arc<NewestUsers>, UsersFollower) {
    let (known, router) = (Arc::<NewestUsers>::default(), Arc::downgrade(router));
    let cluster = move || router.upgrade()?.catalog().cluster;
    (Arc::clone(&known), UsersFollower::new(directory, known, cluster))
}
