//! The client of a simulated cluster: two routers, as in two processes, and a backend that runs statements.

use std::sync::Arc;

use proto::env::Env;
use proto::env::sim::{SimClock, SimFs};
use proto::model::ids::NodeId;
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::Directory;
use proto::rpc::scan::HedgeAfter;
use router::Router;
use sextant::backend::ClusterBackend;
use sextant::backend::Counters;
use sextant::wire::{PeerDirectory, Peers};

use super::hosts::{env, members};
use super::net::{WINDOW_BYTES, connect};

/// The simulated client.
pub struct Client {
    /// The environment of the client.
    pub env: Env,
    /// The cluster's nodes.
    pub directory: Arc<dyn Directory>,
    /// The routers, which serve the pages of a scan alternately.
    pub routers: [Arc<Router>; 2],
    /// Starts the second router again.
    pub maker: RouterMaker,
    /// The backend on the first router, which runs statements.
    pub backend: Arc<ClusterBackend>,
}

/// Starts a router.
#[derive(Clone)]
pub struct RouterMaker {
    config: router::Config,
    env: Env,
    directory: Arc<dyn Directory>,
}

impl RouterMaker {
    /// A router without any knowledge.
    pub fn start(&self) -> Arc<Router> {
        let (env, directory) = (self.env.clone(), Arc::clone(&self.directory));
        Arc::new(Router::start(self.config.clone(), env, directory))
    }
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
        let peers = Peers::new(members(coordinators), connect(window_bytes), &env);
        let directory: Arc<dyn Directory> = Arc::new(PeerDirectory(peers));
        let maker = |id: u64| {
            let mut config = router::Config::new(NodeInfo {
                id: NodeId(id),
                role: Role::Router,
                address: format!("client:{id}"),
                zone: String::new(),
            });
            config.scan_ahead_bytes = ahead_bytes.unwrap_or(config.scan_ahead_bytes);
            config.hedge_after = if seed % 4 == 3 { HedgeAfter::Usual } else { HedgeAfter::Never };
            RouterMaker { config, env: env.clone(), directory: Arc::clone(&directory) }
        };
        let (first, maker) = (maker(300).start(), maker(301));
        let routers = [Arc::clone(&first), maker.start()];
        let counters = Arc::new(Counters::default());
        let backend = ClusterBackend::new(first, Arc::clone(&directory), env.clone(), counters);
        Self { env, directory, routers, maker, backend: Arc::new(backend) }
    }
}
