//! The members of the coordinator, as sent to other members and nodes.

use serde::{Deserialize, Serialize};

use crate::model::ids::NodeId;

/// The members of the coordinator, as one member has them. A member without a connection to the leader may have an old
/// list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorMembers {
    /// The members that vote.
    pub voters: Vec<NodeId>,
    /// The new members: they get the log and become voters by themselves.
    pub learners: Vec<NodeId>,
    /// The former members; sent only by the leader. Their numbers are not reused.
    pub removed: Vec<NodeId>,
    /// The addresses of the present members, as far as they are registered.
    pub addresses: Vec<(NodeId, String)>,
    /// The first members; empty if the answering member waits until it is added.
    pub founders: Vec<NodeId>,
    /// True if the answering member leads or follows a leader.
    pub has_leader: bool,
}

/// A change of the members that an operator requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CoordinatorChange {
    /// `ADD COORDINATOR 'n' AT 'host:port'`.
    Add {
        /// The number of the new member.
        node: NodeId,
        /// The address by which the others call it.
        address: String,
    },
    /// `REMOVE COORDINATOR 'n'`.
    Remove {
        /// The number of the member.
        node: NodeId,
    },
}

/// The end of a change. The change is made; a new member may still lack something before it votes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorChanged {
    /// The reason why a new member does not vote yet.
    pub lacks: Option<String>,
    /// The `cas` of the catalog after it: a catalog at least as new shows the change.
    pub catalog_cas: u64,
}
