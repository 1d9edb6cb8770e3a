//! The list of the coordinator's members, and its changes.

use serde::{Deserialize, Serialize};

use crate::model::ids::NodeId;

/// The members of the coordinator, as one of them knows them. The list may be out of date if that
/// member has no connection to the leader.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorMembers {
    /// The members that vote.
    pub voters: Vec<NodeId>,
    /// The new members, which receive the log and become voters when they have it.
    pub learners: Vec<NodeId>,
    /// The former members, whose numbers are not reused; sent only by the leader.
    pub removed: Vec<NodeId>,
    /// The addresses of the present members that are registered.
    pub addresses: Vec<(NodeId, String)>,
    /// The members with which the coordinator began; empty if the answering member was not added
    /// yet.
    pub founders: Vec<NodeId>,
    /// True if the answering member is the leader or follows one.
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

/// The result of a change of the members, which has been made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorChanged {
    /// The reason why a new member does not vote yet; `None` if it votes.
    pub lacks: Option<String>,
    /// The `cas` of the catalog after the change: a catalog with at least this `cas` contains it.
    pub catalog_cas: u64,
}
