//! The members of the coordinator, as they tell them to others.

use serde::{Deserialize, Serialize};

use crate::model::ids::NodeId;

/// The members of the coordinator, as a member that knows a leader has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorMembers {
    /// The members that vote.
    pub voters: Vec<NodeId>,
    /// The new members: they get the log and become voters by themselves.
    pub learners: Vec<NodeId>,
    /// The former members. Their numbers are not given again.
    pub removed: Vec<NodeId>,
    /// The addresses of the present members, as far as they are registered.
    pub addresses: Vec<(NodeId, String)>,
}

/// A change of the members that an operator asks for.
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
}
