//! The role of a member: its term, its leader, and whether it leads.

use proto::model::ids::NodeId;
use proto::{Error, ErrorCode};

/// The role of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RaftRole {
    /// The current term.
    pub term: u64,
    /// The leader of the term, if it is known.
    pub leader: Option<NodeId>,
    /// True if this member leads and has applied all entries that earlier leaders committed. Only
    /// then may it decide.
    pub leads: bool,
}

/// Returns the error of a member that does not lead; it names the leader if it is known.
pub fn not_leader(leader: Option<NodeId>) -> Error {
    match leader {
        Some(leader) => Error::new(ErrorCode::NotLeader, format!("coordinator {leader} leads")),
        None => Error::new(ErrorCode::NotLeader, "the coordinators have no leader at the moment"),
    }
}
