//! State that the scans and the background tasks of a router share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use proto::env::Env;
use proto::flow::Admission;
use proto::model::catalog::Catalog;
use proto::model::ids::NodeId;
use proto::rpc::api::Directory;
use tokio::sync::watch;

use crate::config::Config;
use crate::epochs::applied::AppliedEpochs;
use crate::epochs::leases::Leases;
use crate::epochs::topologies::Topologies;

/// Settings, access to the other services, and the router's view of the cluster.
#[derive(Clone)]
pub(crate) struct RouterContext {
    pub config: Config,
    pub env: Env,
    pub directory: Arc<dyn Directory>,
    pub catalog: Arc<ArcSwap<Catalog>>,
    pub catalog_changed: watch::Sender<u64>,
    pub applied: AppliedEpochs,
    /// The nodes that the coordinator's leader does not hear of.
    pub silent: watch::Sender<BTreeSet<NodeId>>,
    pub leases: Leases,
    pub topologies: Topologies,
    pub admission: Admission,
    /// The number of shard scans that went on with another attempt after at least one row.
    pub resumed: Arc<AtomicU64>,
}
