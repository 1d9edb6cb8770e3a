//! The client of a simulated cluster: two routers, as in two processes, and a backend that runs statements.

use std::sync::Arc;

use proto::env::Env;
use proto::env::sim::{SimClock, SimFs};
use proto::model::ids::NodeId;
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::Directory;
use router::Router;
use sextant::backend::ClusterBackend;
use sextant::backend::Counters;
use sextant::wire::{PeerDirectory, Peers};

use super::hosts::{env, members};
use super::net::{WINDOW_BYTES, connect};

/// The client.
pub struct Client {
    /// Its environment.
    pub env: Env,
    /// The cluster's nodes.
    pub directory: Arc<dyn Directory>,
    /// The routers, which serve the pages of a scan alternately.
    pub routers: [Arc<Router>; 2],
    /// The backend on the first router, which runs statements.
    pub backend: Arc<ClusterBackend>,
}

impl Client {
    /// A client of this many coordinators.
    pub fn start(seed: u64, coordinators: u64) -> Self {
        let env = env(seed ^ 0xc0, Arc::new(SimClock::new(0)), SimFs::new(seed));
        // In most seeds a shard is only a few rows ahead of the reader.
        let (window_bytes, ahead_bytes) = match seed % 4 {
            0 => (WINDOW_BYTES, None),
            _ => (128, Some(64)),
        };
        let peers = Peers::new(members(coordinators), connect(window_bytes));
        let directory: Arc<dyn Directory> = Arc::new(PeerDirectory(peers));
        let start = |id: u64| {
            let info = NodeInfo {
                id: NodeId(id),
                role: Role::Router,
                address: format!("client:{id}"),
                zone: String::new(),
            };
            let (env, directory) = (env.clone(), Arc::clone(&directory));
            let mut config = router::Config::new(info);
            config.scan_ahead_bytes = ahead_bytes.unwrap_or(config.scan_ahead_bytes);
            Arc::new(Router::start(config, env, directory))
        };
        let routers = [start(300), start(301)];
        let (first, counters) = (Arc::clone(&routers[0]), Arc::new(Counters::default()));
        let backend = ClusterBackend::new(first, Arc::clone(&directory), env.clone(), counters);
        Self { env, directory, routers, backend: Arc::new(backend) }
    }
}
