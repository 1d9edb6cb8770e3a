//! The directory by which services find other services, in this or another process.

use std::sync::Arc;

use proto::Result;
use proto::model::ids::NodeId;
use proto::model::node::NodeInfo;
use proto::rpc::api::{CoordinatorApi, Directory, IndexerApi, ProjectorApi};

use super::any_member::AnyMember;
use super::peers::Peers;

/// The implementation of [`Directory`] by the services and connections of a process.
#[derive(Clone)]
pub struct PeerDirectory(pub Arc<Peers>);

impl Directory for PeerDirectory {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        Arc::new(AnyMember::new(Arc::clone(&self.0)))
    }

    fn coordinator_member(&self, node: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        self.0.coordinator_member(node)
    }

    fn learn_coordinators(&self, members: Vec<(NodeId, String)>) {
        self.0.learn_coordinators(members);
    }

    fn projector(&self, node: &NodeInfo) -> Arc<dyn ProjectorApi> {
        match self.0.local_projector(node.id) {
            Ok(local) => local,
            Err(_) => Arc::new(self.0.remote(node.role, node.id, &node.address)),
        }
    }

    fn indexer(&self, node: &NodeInfo) -> Arc<dyn IndexerApi> {
        match self.0.local_indexer(node.id) {
            Ok(local) => local,
            Err(_) => Arc::new(self.0.remote(node.role, node.id, &node.address)),
        }
    }
}
