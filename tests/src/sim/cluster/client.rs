//! The client of a simulated cluster: two routers, as if in two processes, and a backend that runs
//! statements.

use std::ops::Deref;
use std::sync::Arc;

use proto::Result;
use proto::env::Env;
use proto::env::sim::{SimClock, SimFs};
use proto::model::bucket::BucketInfo;
use proto::model::ids::NodeId;
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::{Directory, ProjectorApi};
use proto::rpc::scan::HedgeAfter;
use router::Router;
use sextant::access::{AccessProvider, AuditedAccess};
use sextant::audit::Attempt;
use sextant::backend::{ClusterBackend, Counters};
use sextant::flow::{ClientCapacity, ClientLimits};
use sextant::principal::Principal;
use sextant::wire::{PeerDirectory, Peers};

use super::hosts::{env, members};
use super::net::{WINDOW_BYTES, connect};

/// The simulated client.
pub struct Client {
    /// The environment of the client.
    pub env: Env,
    /// The directory of the cluster's nodes.
    pub directory: Arc<dyn Directory>,
    /// The routers, which serve the pages of a scan alternately.
    pub routers: [Arc<Router>; 2],
    /// The starter of the second router.
    pub maker: RouterMaker,
    /// The backend on the first router, which runs statements.
    pub backend: ClientBackend,
}

/// The cluster as a trusted client uses it, without an audit, and its projectors one by one; cheap to clone.
#[derive(Clone)]
pub struct ClientBackend {
    cluster: Arc<ClusterBackend>,
    access: Arc<AuditedAccess>,
}

impl ClientBackend {
    fn new(cluster: ClusterBackend) -> Self {
        let cluster = Arc::new(cluster);
        let authorization = cluster.authorization(&ClientCapacity::new(ClientLimits::default()));
        let access = authorization.access_of(Principal::Trusted);
        Self { cluster, access: Arc::new(access.audited(&Attempt::default())) }
    }

    /// The projectors of a bucket according to the newest catalog.
    pub fn source(&self, bucket: &BucketInfo) -> Result<Arc<dyn ProjectorApi>> {
        self.cluster.source(bucket)
    }

    /// The cluster, for sessions of its own.
    pub fn cluster(&self) -> &Arc<ClusterBackend> {
        &self.cluster
    }
}

impl Deref for ClientBackend {
    type Target = AuditedAccess;

    fn deref(&self) -> &AuditedAccess {
        &self.access
    }
}

/// A starter of routers.
#[derive(Clone)]
pub struct RouterMaker {
    config: router::Config,
    env: Env,
    directory: Arc<dyn Directory>,
}

impl RouterMaker {
    /// Starts a router without any knowledge.
    pub fn start(&self) -> Arc<Router> {
        let (env, directory) = (self.env.clone(), Arc::clone(&self.directory));
        Arc::new(Router::start(self.config.clone(), env, directory))
    }
}

impl Client {
    /// Starts a client of this many coordinators.
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
        Self { env, directory, routers, maker, backend: ClientBackend::new(backend) }
    }
}
