//! The services of this process, and the connections to other processes.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use dashmap::DashMap;
use proto::env::Env;
use proto::lock::lock;
use proto::model::identity::ClusterId;
use proto::model::ids::NodeId;
use proto::model::node::Role;
use proto::rpc::api::{CoordinatorApi, IndexerApi, ProjectorApi};
use proto::{Error, Result};

use super::clusters::OwnCluster;
use super::connect::{Connect, LOCAL, PeerTarget};
use super::remote::{Connection, Remote};
use super::versions::ProtocolVersions;

/// The services of this process, and the connections to services of other processes.
pub struct Peers {
    /// The coordinators that the settings name, with their addresses.
    coordinators: Vec<(NodeId, String)>,
    /// The present coordinators according to the catalog, with their addresses; empty before the
    /// first catalog.
    learned: Mutex<Arc<Vec<(NodeId, String)>>>,
    /// The number of the coordinator that has answered last; 0 if none has.
    pub(super) preferred: AtomicU64,
    local_coordinators: DashMap<NodeId, Arc<dyn CoordinatorApi>>,
    local_projectors: DashMap<NodeId, Arc<dyn ProjectorApi>>,
    local_indexers: DashMap<NodeId, Arc<dyn IndexerApi>>,
    /// The address of each node and the connection to it.
    connections: DashMap<NodeId, (Arc<str>, Connection)>,
    connect: Connect,
    pub(super) env: Env,
    /// The protocol versions that this process supports.
    pub(super) versions: ProtocolVersions,
    pub(super) cluster: Arc<OwnCluster>,
}

impl Peers {
    /// Creates a set without services. `coordinators` are the numbers and addresses of the
    /// coordinators.
    pub fn new(coordinators: Vec<(NodeId, String)>, connect: Connect, env: &Env) -> Arc<Self> {
        Self::with_versions(coordinators, connect, env, ProtocolVersions::SPOKEN)
    }

    /// Creates a set with other protocol versions, for tests.
    pub(super) fn with_versions(
        coordinators: Vec<(NodeId, String)>,
        connect: Connect,
        env: &Env,
        versions: ProtocolVersions,
    ) -> Arc<Self> {
        Arc::new(Self {
            coordinators,
            learned: Mutex::default(),
            preferred: AtomicU64::new(0),
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

    /// Adds a service of this process that returns the cluster as soon as it knows it. Calls of
    /// other clusters are refused from then on.
    pub fn add_cluster_source(
        &self,
        service: impl Fn() -> Option<ClusterId> + Send + Sync + 'static,
    ) {
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

    /// Stores the addresses of the present coordinators, in addition to those of the settings.
    pub(super) fn learn_coordinators(&self, members: Vec<(NodeId, String)>) {
        if !members.is_empty() {
            *lock(&self.learned) = Arc::new(members);
        }
    }

    /// Returns the coordinators in the order in which they should be called: first the present
    /// ones, then those of the settings, which may have left the group.
    pub(super) fn members(&self) -> Vec<NodeId> {
        let learned = self.learned();
        let is_present =
            |id: &NodeId| learned.is_empty() || learned.iter().any(|(known, _)| known == id);
        let named: Vec<NodeId> = self.coordinators.iter().map(|(id, _)| *id).collect();
        let (present, gone): (Vec<_>, Vec<_>) = named.iter().partition(|id| is_present(id));
        let others = learned.iter().map(|(id, _)| *id).filter(|id| !named.contains(id));
        present.into_iter().chain(others).chain(gone).collect()
    }

    /// Returns the present coordinators according to the catalog.
    fn learned(&self) -> Arc<Vec<(NodeId, String)>> {
        Arc::clone(&lock(&self.learned))
    }

    /// Returns the numbers of the present coordinators that this process knows.
    pub(crate) fn present_members(&self) -> Vec<NodeId> {
        let learned = self.learned();
        let known = if learned.is_empty() { &self.coordinators } else { &*learned };
        known.iter().map(|(id, _)| *id).collect()
    }

    /// Returns a client of one coordinator, in this or another process.
    pub(super) fn coordinator_member(&self, node: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        if let Some(local) = self.local_coordinators.get(&node) {
            return Ok(Arc::clone(&local));
        }
        let learned = self.learned();
        match self.coordinators.iter().chain(&*learned).find(|(id, _)| *id == node) {
            Some((_, address)) => Ok(Arc::new(self.remote(Role::Coordinator, node, address))),
            None => Err(Error::unavailable(format!("node {node} is not a coordinator member"))),
        }
    }

    /// Returns a coordinator of this process.
    pub(super) fn local_coordinator(&self, node: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        require_local(self.local_coordinators.get(&node).map(|service| Arc::clone(&service)), node)
    }

    /// Returns a projector of this process.
    pub(super) fn local_projector(&self, node: NodeId) -> Result<Arc<dyn ProjectorApi>> {
        require_local(self.local_projectors.get(&node).map(|service| Arc::clone(&service)), node)
    }

    /// Returns an indexer of this process.
    pub(super) fn local_indexer(&self, node: NodeId) -> Result<Arc<dyn IndexerApi>> {
        require_local(self.local_indexers.get(&node).map(|service| Arc::clone(&service)), node)
    }

    /// Returns the client of a node in another process. If the address of the node has changed,
    /// the earlier connection is closed.
    pub(super) fn remote(&self, role: Role, node: NodeId, address: &str) -> Remote {
        if address.starts_with(LOCAL) {
            return Remote::new(node, address, Err(Error::unavailable("the service is stopped")));
        }
        if let Some(known) = self.connections.get(&node)
            && *known.0 == *address
        {
            return Remote::new(node, address, Ok(known.1.clone()));
        }
        let target = PeerTarget { role, node, address: address.to_owned() };
        let connection = (self.connect)(&target).map(|channel| {
            let cluster = Arc::clone(&self.cluster);
            let connection = Connection::new(channel, self.versions, cluster, &self.env);
            self.connections.insert(node, (address.into(), connection.clone()));
            connection
        });
        Remote::new(node, address, connection)
    }
}

/// Returns a service, or the error for a service that this process does not run.
fn require_local<T>(service: Option<T>, node: NodeId) -> Result<T> {
    service.ok_or_else(|| Error::unavailable(format!("node {node} does not run in this process")))
}
