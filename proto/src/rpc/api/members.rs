//! The members of the coordinator, in the form that is sent to other members and nodes.

use serde::{Deserialize, Serialize};

use crate::model::ids::NodeId;

/// The members of the coordinator, according to one member, whose list may be old if it has no
/// connection to the leader.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorMembers {
    /// The members that vote.
    pub voters: Vec<NodeId>,
    /// The new members, which receive the log and become voters automatically.
    pub learners: Vec<NodeId>,
    /// The former members, whose numbers are not reused; sent only by the leader.
    pub removed: Vec<NodeId>,
    /// The addresses of the present members that are registered.
    pub addresses: Vec<(NodeId, String)>,
    /// The first members; empty if the answering member is still to be added.
    pub founders: Vec<NodeId>,
    /// True if the answering member leads or follows a leader.
    pub has_leader: bool,
}

/// A change of the members that an operator requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CoordinatorChange {
    /// Adds a member: `ADD COORDINATOR 'n' AT 'host:port'`.
    Add {
        /// The number of the new member.
        node: NodeId,
        /// The address by which the other members call the new one.
        address: String,
    },
    /// Removes a member: `REMOVE COORDINATOR 'n'`.
    Remove {
        /// The number of the member.
        node: NodeId,
    },
}

/// The result of a change of the members. The change is made, but a new member may not vote yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorChanged {
    /// The reason why a new member does not vote yet; `None` if it votes.
    pub lacks: Option<String>,
    /// The `cas` of the catalog after the change: a catalog with at least this `cas` contains it.
    pub catalog_cas: u64,
}
