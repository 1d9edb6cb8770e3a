//! The services of this process, and the connections to other processes.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use dashmap::DashMap;
use proto::env::Env;
use proto::model::identity::ClusterId;
use proto::model::ids::NodeId;
use proto::rpc::api::{CoordinatorApi, IndexerApi, ProjectorApi};
use proto::{Error, Result};

use super::clusters::OwnCluster;
use super::connect::{Connect, LOCAL};
use super::remote::{Connection, Remote};
use super::versions::ProtocolVersions;

/// The services of this process, and the connections to other processes.
pub struct Peers {
    coordinators: Vec<(NodeId, String)>,
    /// Index in `coordinators` of the member that answered last.
    pub(super) preferred: AtomicUsize,
    local_coordinators: DashMap<NodeId, Arc<dyn CoordinatorApi>>,
    local_projectors: DashMap<NodeId, Arc<dyn ProjectorApi>>,
    local_indexers: DashMap<NodeId, Arc<dyn IndexerApi>>,
    connections: DashMap<String, Connection>,
    connect: Connect,
    pub(super) env: Env,
    /// The protocol versions that this process speaks.
    pub(super) versions: ProtocolVersions,
    pub(super) cluster: Arc<OwnCluster>,
}

impl Peers {
    /// Peers with the addresses of the coordinator's members.
    pub fn new(coordinators: Vec<(NodeId, String)>, connect: Connect, env: &Env) -> Arc<Self> {
        Self::with_versions(coordinators, connect, env, ProtocolVersions::SPOKEN)
    }

    /// Peers that speak other protocol versions, for tests.
    pub(super) fn with_versions(
        coordinators: Vec<(NodeId, String)>,
        connect: Connect,
        env: &Env,
        versions: ProtocolVersions,
    ) -> Arc<Self> {
        Arc::new(Self {
            coordinators,
            preferred: AtomicUsize::new(0),
            local_coordinators: DashMap::new(),
            local_projectors: DashMap::new(),
            local_indexers: DashMap::new(),
            connections: DashMap::new(),
            connect,
            env: env.clone(),
            versions,
            cluster: Arc::default(),
        })
    }

    /// Adds a service of this process that tells its cluster, once it knows it. Calls of other clusters are refused.
    pub fn know_cluster(&self, service: impl Fn() -> Option<ClusterId> + Send + Sync + 'static) {
        self.cluster.add(Box::new(service));
    }

    /// Registers a coordinator member of this process.
    pub fn add_coordinator(&self, node: NodeId, service: Arc<dyn CoordinatorApi>) {
        self.local_coordinators.insert(node, service);
    }

    /// Removes a stopped coordinator member of this process.
    pub fn remove_coordinator(&self, node: NodeId) {
        self.local_coordinators.remove(&node);
    }

    /// Registers a projector of this process.
    pub fn add_projector(&self, node: NodeId, service: Arc<dyn ProjectorApi>) {
        self.local_projectors.insert(node, service);
    }

    /// Registers an indexer of this process.
    pub fn add_indexer(&self, node: NodeId, service: Arc<dyn IndexerApi>) {
        self.local_indexers.insert(node, service);
    }

    /// Removes a stopped indexer of this process.
    pub fn remove_indexer(&self, node: NodeId) {
        self.local_indexers.remove(&node);
    }

    /// The members of the coordinator.
    pub(super) fn members(&self) -> impl ExactSizeIterator<Item = NodeId> {
        self.coordinators.iter().map(|(id, _)| *id)
    }

    /// One member of the coordinator, in this or another process.
    pub(super) fn coordinator_member(&self, node: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        if let Some(local) = self.local_coordinators.get(&node) {
            return Ok(Arc::clone(&local));
        }
        match self.coordinators.iter().find(|(id, _)| *id == node) {
            Some((_, address)) => Ok(Arc::new(self.remote(node, address))),
            None => Err(Error::unavailable(format!("node {node} is not a coordinator member"))),
        }
    }

    /// Returns a coordinator member of this process.
    pub(super) fn local_coordinator(&self, node: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        not_here(self.local_coordinators.get(&node).map(|service| Arc::clone(&service)), node)
    }

    /// Returns a projector of this process.
    pub(super) fn local_projector(&self, node: NodeId) -> Result<Arc<dyn ProjectorApi>> {
        not_here(self.local_projectors.get(&node).map(|service| Arc::clone(&service)), node)
    }

    /// Returns an indexer of this process.
    pub(super) fn local_indexer(&self, node: NodeId) -> Result<Arc<dyn IndexerApi>> {
        not_here(self.local_indexers.get(&node).map(|service| Arc::clone(&service)), node)
    }

    pub(super) fn remote(&self, node: NodeId, address: &str) -> Remote {
        let connection = match self.connections.get(address) {
            _ if address.starts_with(LOCAL) => Err(Error::unavailable("the service is stopped")),
            Some(connection) => Ok(connection.clone()),
            None => (self.connect)(address).map(|channel| {
                let cluster = Arc::clone(&self.cluster);
                let connection = Connection::new(channel, self.versions, cluster, &self.env);
                self.connections.insert(address.to_owned(), connection.clone());
                connection
            }),
        };
        Remote::new(node, address, connection)
    }
}

fn not_here<T>(service: Option<T>, node: NodeId) -> Result<T> {
    service.ok_or_else(|| Error::unavailable(format!("node {node} does not run in this process")))
}
