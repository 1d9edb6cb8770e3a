//! The members of the group, and how they change.
//!
//! The members are part of the log. At its beginning they are those in the settings of the first
//! start (the *founders*), and each change is an entry. A change counts on a member when that
//! member has applied its entry. The members at a snapshot are part of the snapshot.
//!
//! - A new member is a *learner*: it gets the log, does not vote and is not waited for. The
//!   leader makes it a *voter* when it is near the end of the log.
//! - One change at a time: the next one is proposed when the previous one is applied. So any
//!   majority before a change has a voter in common with any majority after it.
//! - The number of a removed member is never given again. A process with an empty disk under that
//!   number would have forgotten its votes, and entries that it has acknowledged.
//! - Numbers alone do not tell two groups apart: a process that was started by mistake may form
//!   another group with others. So each message carries the group's number, a hash of the
//!   founders, and members drop messages of other groups.
//!
//! A member stores the commit index of a message durably with the entries of that message. So a
//! member that has the entry of a second change on disk knows after a restart that the first
//! change was committed, and never elects a leader with the membership from before both changes.

use proto::model::ids::NodeId;
use proto::{Error, ErrorCode, Result};
use raft::eraftpb::ConfState;
use serde::{Deserialize, Serialize};

/// The limit of members. More members make each write slower and no write safer.
pub const MEMBERS_MAX: usize = 9;
/// The limit of removed members, whose numbers are part of each snapshot.
pub const REMOVED_MAX: usize = 1024;

/// A change of the members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberChange {
    /// A new member joins, as a learner.
    Add {
        /// The node id of the new member.
        node: NodeId,
        /// The address by which the others call it.
        address: String,
    },
    /// A learner becomes a voter.
    Promote {
        /// The node id of the learner.
        node: NodeId,
    },
    /// A member leaves, and its number is never given again.
    Remove {
        /// The node id of the member that leaves.
        node: NodeId,
    },
}

impl MemberChange {
    /// Returns the member that is added, promoted or removed.
    pub fn node(&self) -> NodeId {
        match self {
            Self::Add { node, .. } | Self::Promote { node } | Self::Remove { node } => *node,
        }
    }
}

/// The members at one position of the log. All lists are ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// The first members; empty on a member that has joined and has no snapshot yet.
    pub founders: Vec<u64>,
    /// The voting members.
    pub voters: Vec<u64>,
    /// The members that receive the log and do not vote.
    pub learners: Vec<u64>,
    /// The former members.
    pub removed: Vec<u64>,
}

impl Members {
    /// Creates the members at the beginning of a log; `founders` is empty for a member that joins a
    /// group.
    pub fn new(founders: Vec<u64>) -> Self {
        let (learners, removed) = Default::default();
        Self { voters: founders.clone(), founders, learners, removed }
    }

    /// Returns true if this member has not received the members of its group yet.
    pub fn is_unknown(&self) -> bool {
        self.founders.is_empty()
    }

    /// Returns the number of the group in messages, a hash of its founders; 0 if the founders are
    /// unknown.
    pub fn group(&self) -> u32 {
        match self.is_unknown() {
            true => 0,
            false => {
                let bytes: Vec<u8> = self.founders.iter().flat_map(|id| id.to_le_bytes()).collect();
                crc32c::crc32c(&bytes).max(1)
            }
        }
    }

    /// True if the node votes.
    pub fn is_voter(&self, node: NodeId) -> bool {
        self.voters.contains(&node.0)
    }

    /// True if the node is a learner.
    pub fn is_learner(&self, node: NodeId) -> bool {
        self.learners.contains(&node.0)
    }

    /// Returns true if the node is a voter or a learner.
    pub fn contains(&self, node: NodeId) -> bool {
        self.is_voter(node) || self.is_learner(node)
    }

    /// True if the node was a member and has been removed.
    pub fn is_removed(&self, node: NodeId) -> bool {
        self.removed.contains(&node.0)
    }

    /// All present members, ascending.
    pub fn all(&self) -> Vec<NodeId> {
        let mut all: Vec<NodeId> =
            self.voters.iter().chain(&self.learners).copied().map(NodeId).collect();
        all.sort_unstable();
        all
    }

    /// Returns true if the lists of members are possible: some sequence of changes leads to them.
    /// The `raft` crate panics on other lists.
    pub fn is_sound(&self) -> bool {
        let ascends = |ids: &[u64]| ids.is_sorted_by(|a, b| a < b) && ids.first() != Some(&0);
        let lists = [&self.founders, &self.voters, &self.learners, &self.removed];
        let of_present = |id: &u64| self.contains(NodeId(*id));
        lists.iter().all(|ids| ascends(ids))
            && !self.founders.is_empty()
            && !self.voters.is_empty()
            && !self.learners.iter().any(|id| self.voters.contains(id))
            && !self.removed.iter().any(of_present)
    }

    /// Returns the members after a change. Returns an error if the change is not allowed; all
    /// members then refuse it alike.
    pub fn after(&self, change: &MemberChange) -> Result<Self> {
        let mut after = self.clone();
        let node = change.node();
        match change {
            MemberChange::Add { .. } => {
                self.check_add(node)?;
                insert(&mut after.learners, node);
            }
            MemberChange::Promote { .. } if self.is_learner(node) => {
                after.learners.retain(|id| *id != node.0);
                insert(&mut after.voters, node);
            }
            MemberChange::Promote { .. } => {
                return Err(bad(format!("coordinator {node} is not a learner")));
            }
            MemberChange::Remove { .. } => {
                self.check_remove(node)?;
                after.voters.retain(|id| *id != node.0);
                after.learners.retain(|id| *id != node.0);
                insert(&mut after.removed, node);
            }
        }
        Ok(after)
    }

    fn check_add(&self, node: NodeId) -> Result<()> {
        if node.0 == 0 {
            return Err(bad("0 is not a valid node id".to_owned()));
        }
        if self.is_removed(node) {
            return Err(removed_error(node));
        }
        if self.contains(node) {
            return Err(bad(format!("coordinator {node} is a member already")));
        }
        if self.all().len() >= MEMBERS_MAX {
            let what = format!("there are {MEMBERS_MAX} coordinators, which is the limit");
            return Err(Error::new(ErrorCode::OverLimit, what)
                .with_hint("three or five are enough; REMOVE COORDINATOR takes one out"));
        }
        Ok(())
    }

    fn check_remove(&self, node: NodeId) -> Result<()> {
        if !self.contains(node) {
            return Err(bad(format!("node {node} is not a coordinator member"))
                .with_hint("SHOW NODES lists the coordinators"));
        }
        if self.voters == [node.0] {
            return Err(bad(format!("coordinator {node} is the last one that votes"))
                .with_hint("ADD COORDINATOR adds another one first"));
        }
        if self.removed.len() >= REMOVED_MAX {
            let what = format!("{REMOVED_MAX} coordinators were removed, which is the limit");
            return Err(Error::new(ErrorCode::OverLimit, what)
                .with_hint("keep the members, and move their data directories instead"));
        }
        Ok(())
    }

    /// The members in the `raft` crate's form.
    pub(super) fn to_conf_state(&self) -> ConfState {
        let (voters, learners) = (self.voters.clone(), self.learners.clone());
        ConfState { voters, learners, ..Default::default() }
    }
}

/// Returns the error for a process that uses the node id of a removed member.
pub fn removed_error(node: NodeId) -> Error {
    bad(format!("coordinator {node} was removed, and its number is not given again")).with_hint(
        "start a coordinator with a new --id and an empty data directory, and add it with ADD COORDINATOR 'id' AT \
         'host:port'",
    )
}

fn bad(what: String) -> Error {
    Error::new(ErrorCode::InvalidParameter, what)
}

fn insert(ids: &mut Vec<u64>, node: NodeId) {
    if let Err(at) = ids.binary_search(&node.0) {
        ids.insert(at, node.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(node: u64) -> MemberChange {
        MemberChange::Add { node: NodeId(node), address: "h:1".into() }
    }

    fn promote(node: u64) -> MemberChange {
        MemberChange::Promote { node: NodeId(node) }
    }

    fn remove(node: u64) -> MemberChange {
        MemberChange::Remove { node: NodeId(node) }
    }

    fn after(members: &Members, changes: &[MemberChange]) -> Members {
        let apply = |members: Members, change| members.after(change).expect("accepted");
        changes.iter().fold(members.clone(), apply)
    }

    #[test]
    fn a_member_learns_votes_and_leaves() {
        let three = Members::new(vec![1, 2, 3]);
        let learns = after(&three, &[add(4)]);
        assert_eq!((&*learns.voters, &*learns.learners), (&[1, 2, 3][..], &[4][..]));
        let replaced = after(&learns, &[promote(4), remove(2)]);
        assert_eq!((&*replaced.voters, &*replaced.removed), (&[1, 3, 4][..], &[2][..]));
        assert!(replaced.is_sound() && replaced.learners.is_empty());
        assert_eq!(replaced.group(), three.group(), "it is the same group");
        assert!(!after(&learns, &[remove(4)]).contains(NodeId(4)), "a learner may leave");
    }

    #[test]
    fn impossible_changes_are_refused_with_a_hint() {
        let members = after(&Members::new(vec![1, 2, 3]), &[add(4), remove(3)]);
        for change in [add(3), add(1), add(4), add(0), promote(1), promote(9), remove(9)] {
            let refused = members.after(&change).expect_err("refused");
            assert_eq!(refused.code, ErrorCode::InvalidParameter, "{change:?}");
        }
        let again = members.after(&add(3)).expect_err("its number is used up");
        assert!(again.hint.is_some_and(|hint| hint.contains("ADD COORDINATOR")));
        let last = after(&members, &[remove(1)]).after(&remove(2)).expect_err("the last voter");
        assert!(last.message.contains("last one"), "{last}");
        let full = after(&members, &(10..16).map(add).collect::<Vec<_>>());
        assert_eq!(full.after(&add(20)).expect_err("full").code, ErrorCode::OverLimit);
    }

    #[test]
    fn groups_with_other_founders_have_other_numbers() {
        let mark = |founders: &[u64]| Members::new(founders.to_vec()).group();
        assert_eq!(mark(&[]), 0);
        assert!(mark(&[1]) != mark(&[1, 2, 3]) && mark(&[1]) != 0);
    }
}
