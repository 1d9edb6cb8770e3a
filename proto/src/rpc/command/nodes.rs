//! Processes of the cluster, and what indexers have that are silent.

use serde::{Deserialize, Serialize};

use super::kind::{Audited, CommandKind, Need, PlacedKind, Process};
use crate::model::identity::JoinRequest;
use crate::model::ids::NodeId;
use crate::model::node::NodeInfo;
use crate::model::users::Privilege;

/// A process joins, or restarts with a new address. A node id of a process with another role is refused.
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

/// A process with a data directory joins the cluster, or restarts. The first process founds the cluster. Refused if its
/// data is of another cluster, or if another process holds its number and is not silent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// The process, with its proof.
    pub request: Box<JoinRequest>,
}

impl CommandKind for Join {
    const AUDITED: Option<Audited> = None;

    fn need(&self) -> Need {
        Need::Process(Process::Node(self.request.node.id, Some(self.request.node.role)))
    }
}

/// DRAIN NODE: the indexer gets no more slices, and the leader moves its slices away. With `drain` false the indexer
/// gets slices again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrainNode {
    /// The node to drain.
    pub node: NodeId,
    /// Begin or stop?
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

/// REMOVE NODE: the process leaves the cluster. Refused for an indexer with the only copy of a slice, unless it is forced; the other copies
/// on it are given up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemoveNode {
    /// The node to remove.
    pub node: NodeId,
    /// REMOVE NODE … FORCE: the slices that only this indexer has are given to other indexers, which rebuild them from the source.
    /// The leader refuses it (`WrongState`) for an indexer that is alive. For other roles it makes no difference.
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

/// Gives each slice whose copies are all on silent indexers to another indexer, which rebuilds it from the source. The silent indexers stay
/// nodes of the cluster; one that returns drops the slices that the catalog no longer assigns to it. From the leader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaceLost {
    /// Indexers that have been silent so long that their copies count as lost for good.
    pub lost: Vec<NodeId>,
    /// Indexers that are silent for longer than a build waits for them. They may be among `lost`.
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
