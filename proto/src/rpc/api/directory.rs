//! Access to the services.

use std::sync::Arc;

use super::coordinator::CoordinatorApi;
use super::indexer::IndexerApi;
use super::projector::ProjectorApi;
use crate::error::Result;
use crate::model::ids::NodeId;
use crate::model::node::NodeInfo;

/// Access to the other processes of the cluster. Clients are cheap to create and reconnect
/// automatically.
pub trait Directory: Send + Sync + 'static {
    /// Returns a client of the coordinator, which uses any member that answers.
    fn coordinator(&self) -> Arc<dyn CoordinatorApi>;
    /// Returns a client of one member of the coordinator.
    fn coordinator_member(&self, node: NodeId) -> Result<Arc<dyn CoordinatorApi>>;
    /// Adds the addresses of the present members of the coordinator to those in the settings.
    fn learn_coordinators(&self, _members: Vec<(NodeId, String)>) {}
    /// The client of a projector.
    fn projector(&self, node: &NodeInfo) -> Arc<dyn ProjectorApi>;
    /// The client of an indexer.
    fn indexer(&self, node: &NodeInfo) -> Arc<dyn IndexerApi>;
}
