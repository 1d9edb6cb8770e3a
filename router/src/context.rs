//! State that the scans and the background tasks of a router share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use proto::Error;
use proto::env::Env;
use proto::flow::{Admission, AdmissionLimits};
use proto::model::catalog::Catalog;
use proto::model::ids::NodeId;
use proto::model::index::IndexInfo;
use proto::rpc::api::Directory;
use tokio::sync::watch;

use crate::busy::RequestCounts;
use crate::config::Config;
use crate::epochs::applied_epochs::AppliedEpochs;
use crate::epochs::leases::Leases;
use crate::epochs::read_view::{ReadView, ReadViews};
use crate::epochs::topologies::Topologies;
use crate::hedging::Hedging;
use crate::knowledge::AnswerTimes;

/// The state that scans and background tasks share: settings, access to other services, and the
/// router's view of the cluster.
#[derive(Clone)]
pub(crate) struct RouterContext {
    pub config: Config,
    pub env: Env,
    pub directory: Arc<dyn Directory>,
    pub catalog: Arc<ArcSwap<Catalog>>,
    pub catalog_changed: watch::Sender<u64>,
    pub applied: AppliedEpochs,
    /// The nodes from which the coordinator's leader receives no heartbeats.
    pub silent: watch::Sender<BTreeSet<NodeId>>,
    pub leases: Leases,
    /// The moment (one point in time for all buckets) of the coordinator's last answer to a
    /// heartbeat; zero before the first answer.
    pub moment: Arc<AtomicU64>,
    /// The time of the coordinators' last answer, and whether the catalog was received from a
    /// coordinator or read from disk.
    pub heard: AnswerTimes,
    /// The error with which the coordinators refuse this process, because another process has its
    /// node id.
    pub taken: watch::Sender<Option<Error>>,
    pub topologies: Topologies,
    pub views: ReadViews,
    pub admission: Admission,
    /// The number of shard scans that another attempt has continued after at least one row.
    pub resumed: Arc<AtomicU64>,
    pub hedging: Arc<Hedging>,
    pub busy: Arc<RequestCounts>,
}

impl RouterContext {
    /// Creates the context of a router that has no catalog and no reports yet.
    pub fn new(config: Config, env: Env, directory: Arc<dyn Directory>) -> Self {
        let admission = Admission::new(AdmissionLimits {
            what: format!("scans on router {}", config.node.id),
            count_max: config.scans_max,
            bytes_max: config.scan_memory_total_bytes,
            bytes_each_max: config.scan_memory_each_bytes,
        });
        Self {
            admission,
            config,
            env,
            directory,
            catalog: Arc::default(),
            catalog_changed: watch::Sender::new(0),
            applied: AppliedEpochs::default(),
            silent: watch::Sender::default(),
            leases: Leases::default(),
            moment: Arc::default(),
            heard: AnswerTimes::default(),
            taken: watch::Sender::default(),
            topologies: Topologies::default(),
            views: ReadViews::default(),
            resumed: Arc::default(),
            hedging: Arc::default(),
            busy: Arc::default(),
        }
    }

    /// Returns the current read view of an index, from which a new scan begins.
    pub fn view(&self, index: &Arc<IndexInfo>) -> Arc<ReadView> {
        self.views.view(index, &self.applied, &self.catalog)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proto::model::node::{NodeInfo, Role};

    use super::*;

    /// Creates the context of a router whose catalog has the indexers 1 to `indexers`.
    pub(crate) fn context_of(indexers: u64, directory: Arc<dyn Directory>) -> RouterContext {
        let node = |id, role| {
            let address = String::new();
            Arc::new(NodeInfo { id: NodeId(id), role, address, zone: String::new() })
        };
        let nodes = (1..=indexers).map(|id| (NodeId(id), node(id, Role::Indexer)));
        let catalog = Catalog { nodes: nodes.collect(), ..Catalog::default() };
        let mut config = Config::new((*node(9, Role::Router)).clone());
        (config.scans_max, config.scan_memory_total_bytes) = (1, 1 << 20);
        config.scan_memory_each_bytes = 1 << 20;
        let context = RouterContext::new(config, Env::real(), directory);
        context.catalog.store(Arc::new(catalog));
        context
    }
}
