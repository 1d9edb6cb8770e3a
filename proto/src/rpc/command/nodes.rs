//! Commands about processes of the cluster, and about the slices of silent indexers.

use serde::{Deserialize, Serialize};

use super::kind::{AuditClass, CommandKind, PlacedKind, RequiredRights, SendingProcess};
use crate::model::identity::JoinRequest;
use crate::model::ids::NodeId;
use crate::model::node::NodeInfo;
use crate::model::users::Privilege;

/// Registers a process that joins, or that restarts with a new address. Refused if the node id
/// belongs to a process with another role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegisterNode {
    /// The process to register.
    pub node: NodeInfo,
}

impl CommandKind for RegisterNode {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Node(self.node.id, Some(self.node.role)))
    }
}

/// Lets a process with a data directory join the cluster, or return to it after a restart. The
/// first process founds the cluster. Refused if the data belongs to another cluster, or if
/// another process has the same node id and is not silent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// The process with its proof, and the cluster of its data directory.
    pub request: Box<JoinRequest>,
}

impl CommandKind for Join {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Node(
            self.request.node.id,
            Some(self.request.node.role),
        ))
    }
}

/// DRAIN NODE: the coordinator assigns no more slices to the indexer, and the leader moves its
/// slices to other indexers. With `drain` false, the indexer gets slices again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrainNode {
    /// The node to drain.
    pub node: NodeId,
    /// True to drain; false to end a drain.
    pub drain: bool,
}

impl CommandKind for DrainNode {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Node);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::All(Privilege::Rebalance)
    }

    fn placed_kind(&self) -> Option<PlacedKind> {
        self.drain.then_some(PlacedKind::Slices)
    }
}

/// REMOVE NODE: removes a process from the cluster. Its copies of slices are removed from the
/// catalog. Refused for an indexer that has the only copy of a slice, unless `force` is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemoveNode {
    /// The node to remove.
    pub node: NodeId,
    /// REMOVE NODE … FORCE: true to assign slices without another copy to other indexers, which
    /// rebuild them from the source. The leader refuses this with `WrongState` for an indexer
    /// that is alive. No effect for other roles.
    pub force: bool,
}

impl CommandKind for RemoveNode {
    const AUDITED: Option<AuditClass> = Some(AuditClass::Node);

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::All(Privilege::Admin)
    }

    fn placed_kind(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }
}

/// Assigns each slice whose copies are all on silent indexers to another indexer, which rebuilds
/// it from the source. The silent indexers remain nodes of the cluster. An indexer that returns
/// drops the slices that the catalog no longer assigns to it. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplaceLostSlices {
    /// The indexers that have been silent for so long that their copies count as lost.
    pub lost: Vec<NodeId>,
    /// The indexers that have been silent for longer than the build of an index waits. May
    /// include indexers in `lost`.
    pub lost_to_builds: Vec<NodeId>,
}

impl CommandKind for ReplaceLostSlices {
    const AUDITED: Option<AuditClass> = None;

    fn required_rights(&self) -> RequiredRights {
        RequiredRights::Process(SendingProcess::Leader)
    }

    fn placed_kind(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }
}
