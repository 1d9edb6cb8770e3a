//! Commands about processes of the cluster, and about the slices of silent indexers.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, PlacedKind, Process};
use crate::model::identity::JoinRequest;
use crate::model::ids::NodeId;
use crate::model::node::NodeInfo;
use crate::model::users::Privilege;

/// Registers a process that joins, or that restarts with a new address. Refused if the node id
/// belongs to a process with another role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegisterNode {
    /// The process.
    pub node: NodeInfo,
}

impl CommandKind for RegisterNode {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Node(self.node.id, Some(self.node.role)))
    }
}

/// Lets a process with a data directory join the cluster, or return after a restart. The first
/// process founds the cluster. Refused if its data belongs to another cluster, or if a process that
/// is not silent has the same node id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// The process, and the proof that it holds the cluster's secret.
    pub request: Box<JoinRequest>,
}

impl CommandKind for Join {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Node(self.request.node.id, Some(self.request.node.role)))
    }
}

/// DRAIN NODE: the coordinator gives the indexer no more slices, and the leader moves its slices to
/// others. With `drain` false the indexer gets slices again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrainNode {
    /// The node to drain.
    pub node: NodeId,
    /// True to drain; false to end a drain.
    pub drain: bool,
}

impl CommandKind for DrainNode {
    const AUDITED: Option<Audited> = Some(Audited::Node);

    fn need(&self) -> Need {
        Need::All(Privilege::Rebalance)
    }

    fn places(&self) -> Option<PlacedKind> {
        self.drain.then_some(PlacedKind::Slices)
    }
}

/// REMOVE NODE: the process leaves the cluster, and other copies on it are removed from the
/// catalog. Refused for an indexer that has the only copy of a slice, unless `force` is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemoveNode {
    /// The node to remove.
    pub node: NodeId,
    /// REMOVE NODE … FORCE: slices without another copy are given to other indexers, which rebuild
    /// them from the source. The leader refuses this with `WrongState` for an indexer that is
    /// alive. Without effect for other roles.
    pub force: bool,
}

impl CommandKind for RemoveNode {
    const AUDITED: Option<Audited> = Some(Audited::Node);

    fn need(&self) -> Need {
        Need::All(Privilege::Admin)
    }

    fn places(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }
}

/// Gives each slice all of whose copies are on silent indexers to another indexer, which rebuilds
/// it from the source. The silent indexers remain nodes of the cluster; an indexer that returns
/// drops the slices that the catalog no longer assigns to it. Sent by the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaceLost {
    /// The indexers that have been silent for so long that their copies count as lost.
    pub lost: Vec<NodeId>,
    /// The indexers that have been silent for longer than a build waits; may include those in
    /// `lost`.
    pub lost_to_builds: Vec<NodeId>,
}

impl CommandKind for PlaceLost {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Leader)
    }

    fn places(&self) -> Option<PlacedKind> {
        Some(PlacedKind::Slices)
    }
}
