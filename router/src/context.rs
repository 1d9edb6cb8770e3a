//! State that the scans and the background tasks of a router share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use proto::env::Env;
use proto::flow::Admission;
use proto::model::catalog::Catalog;
use proto::model::ids::NodeId;
use proto::model::index::IndexInfo;
use proto::rpc::api::Directory;
use tokio::sync::watch;

use crate::busy::Busy;
use crate::config::Config;
use crate::epochs::applied::AppliedEpochs;
use crate::epochs::leases::Leases;
use crate::epochs::read_view::{ReadView, ReadViews};
use crate::epochs::topologies::Topologies;
use crate::hedging::Hedging;

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
    /// The moment of the coordinator's last answer to a heartbeat; zero before the first.
    pub moment: Arc<AtomicU64>,
    pub topologies: Topologies,
    pub views: ReadViews,
    pub admission: Admission,
    /// The number of shard scans that went on with another attempt after at least one row.
    pub resumed: Arc<AtomicU64>,
    pub hedging: Arc<Hedging>,
    pub busy: Arc<Busy>,
}

impl RouterContext {
    /// The present view of an index.
    pub fn view(&self, index: &Arc<IndexInfo>) -> Arc<ReadView> {
        self.views.view(index, &self.applied, &self.catalog)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proto::flow::AdmissionLimits;
    use proto::model::node::{NodeInfo, Role};

    use super::*;

    /// The context of a router that knows indexers 1 up to a number.
    pub(crate) fn context_of(indexers: u64, directory: Arc<dyn Directory>) -> RouterContext {
        let node = |id, role| {
            let address = String::new();
            Arc::new(NodeInfo { id: NodeId(id), role, address, zone: String::new() })
        };
        let nodes = (1..=indexers).map(|id| (NodeId(id), node(id, Role::Indexer)));
        let catalog = Catalog { nodes: nodes.collect(), ..Catalog::default() };
        let limits = AdmissionLimits {
            what: String::new(),
            count_max: 1,
            bytes_max: 1 << 20,
            bytes_each_max: 1 << 20,
        };
        RouterContext {
            admission: Admission::new(limits),
            config: Config::new((*node(9, Role::Router)).clone()),
            env: Env::real(),
            directory,
            catalog: Arc::new(arc_swap::ArcSwap::from_pointee(catalog)),
            catalog_changed: tokio::sync::watch::Sender::new(0),
            applied: Default::default(),
            silent: Default::default(),
            leases: Default::default(),
            moment: Default::default(),
            topologies: Default::default(),
            views: Default::default(),
            resumed: Arc::default(),
            hedging: Arc::default(),
            busy: Arc::default(),
        }
    }
}
