//! Access to the other processes of the cluster: a directory of clients.

use std::sync::Arc;

use super::coordinator::CoordinatorApi;
use super::indexer::IndexerApi;
use super::projector::ProjectorApi;
use crate::error::Result;
use crate::model::ids::NodeId;
use crate::model::node::NodeInfo;

/// A directory that returns clients of the other processes. Clients are cheap to create and
/// reconnect automatically.
pub trait Directory: Send + Sync + 'static {
    /// Returns a client of the coordinator, which calls any member that answers.
    fn coordinator(&self) -> Arc<dyn CoordinatorApi>;
    /// Returns a client of one member of the coordinator.
    fn coordinator_member(&self, node: NodeId) -> Result<Arc<dyn CoordinatorApi>>;
    /// Stores the addresses of the present members of the coordinator, in addition to those in
    /// the settings.
    fn learn_coordinators(&self, _members: Vec<(NodeId, String)>) {}
    /// Returns a client of a projector.
    fn projector(&self, node: &NodeInfo) -> Arc<dyn ProjectorApi>;
    /// Returns a client of an indexer.
    fn indexer(&self, node: &NodeInfo) -> Arc<dyn IndexerApi>;
}
