//! Where a member stands: its term, and who leads.

use proto::model::ids::NodeId;
use proto::{Error, ErrorCode};

/// Where a member stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// The term it is in.
    pub term: u64,
    /// The leader that it knows of.
    pub leader: Option<NodeId>,
    /// It leads, and has applied everything that earlier leaders committed: it may decide.
    pub leads: bool,
}

/// The error of a member that does not lead.
pub fn not_leader(leader: Option<NodeId>) -> Error {
    match leader {
        Some(leader) => Error::new(ErrorCode::NotLeader, format!("coordinator {leader} leads")),
        None => Error::new(ErrorCode::NotLeader, "the coordinators have no leader at the moment"),
    }
}
