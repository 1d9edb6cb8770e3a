//! Starts the service of each role.

use std::path::PathBuf;
use std::sync::Arc;

use projector::FjallStore;
use proto::Result;
use proto::env::Env;
use proto::model::ids::NodeId;
use proto::model::node::NodeInfo;
use proto::rpc::api::Directory;

use crate::descriptors::Shares;

/// Starts a coordinator member.
pub async fn start_coordinator(
    node: NodeId,
    members: Vec<(NodeId, String)>,
    data_dir: PathBuf,
    env: &Env,
    directory: Arc<dyn Directory>,
) -> Result<Arc<coordinator::Coordinator>> {
    let config = coordinator::Config::new(node, members, data_dir);
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

/// Starts an indexer. Recovery blocks, so it runs outside of the async threads.
pub async fn run_indexer(
    config: indexer::Config,
    env: &Env,
    directory: Arc<dyn Directory>,
) -> Result<Arc<indexer::Indexer>> {
    let its_env = env.clone();
    let start = move || indexer::Indexer::start(config, its_env, directory);
    Ok(Arc::new(env.blocking(start).await?))
}

/// Starts a projector with its documents on disk.
pub async fn start_projector(
    config: projector::Config,
    data_dir: PathBuf,
    env: &Env,
    directory: Arc<dyn Directory>,
) -> Result<projector::Service> {
    let fs = Arc::clone(&env.fs);
    let open_max = Shares::of_process().documents();
    let store = env.blocking(move || FjallStore::open(&*fs, &data_dir, open_max)).await?;
    let slice_router = Arc::new(router::SliceRouter);
    projector::Service::start(config, env.clone(), Arc::new(store), directory, slice_router).await
}
