//! Determines when the removal of a member is safe (*settled*).
//!
//! A removal takes effect on a member when it learns that the entry is committed. The remaining
//! members need not be a majority of the members before the removal (one of two is not). If they
//! crash before the commit is on their disks, they need the vote of the removed member.
//!
//! - The leader therefore proposes an empty entry after each removal. A majority of the remaining
//!   members stores it together with the commit index of the removal. Then the removal is
//!   settled, and its proposer is answered.
//! - No message tells a member that its own removal is committed. A removed member no longer
//!   receives messages of a leader, so it queries the other members. It ends when a leader whose
//!   removals are settled reports it as removed (`service::ask_members`). If a member finds its
//!   removal in its own log, because it was the leader, it continues as a follower until then: it
//!   votes and acknowledges, as the remaining members may need it.
//! - A new leader has applied the removals before its first entry, or settles them itself.

use proto::plant::{self, Plant};
use raft::StateRole;
use raft::eraftpb::{Entry, EntryType, Message, MessageType};

use super::core::{AppliedChange, Output, RaftCore};
use super::members::MemberChange;
use super::state_machine::StateMachine;
use super::unsettled_removal::UnsettledRemoval;
use super::wire::ChangeContext;

impl<M: StateMachine> RaftCore<M> {
    /// Returns true if this member leads and all removals that it has applied are settled.
    pub fn has_settled(&self) -> bool {
        self.role().leads && self.unsettled.is_empty()
    }

    /// Keeps the result of an applied removal until the removal is settled, and then returns
    /// `None`. Returns the result at once if this member is not the leader, which alone settles
    /// removals.
    pub(super) fn hold_removal(&mut self, changed: AppliedChange) -> Option<AppliedChange> {
        if self.node.raft.state != StateRole::Leader || plant::is(Plant::RemovalNotSettled) {
            return Some(changed);
        }
        let term = self.node.raft.term;
        self.unsettled.push(UnsettledRemoval { proposer: changed.context, term, behind: None });
        None
    }

    /// Proposes the empty entry after each removal that has none yet, and adds the settled
    /// removals to the output.
    pub(super) fn settle(&mut self, output: &mut Output<M::Outcome>) {
        let raft = &mut self.node.raft;
        let (leads, term, applied) = (raft.state == StateRole::Leader, raft.term, self.applied);
        // The proposers of an earlier term already got the error that their answer is lost.
        self.unsettled.retain(|removal| leads && removal.term == term);
        for removal in self.unsettled.iter_mut().filter(|removal| removal.behind.is_none()) {
            let mut message = Message { msg_type: MessageType::MsgPropose, ..Default::default() };
            message.set_entries(vec![Entry::default()].into());
            // It is refused while the leader hands over: then the next tick tries again, or the next leader.
            if raft.step(message).is_ok() {
                removal.behind = Some(raft.raft_log.last_index());
            }
        }
        let is_settled =
            |removal: &mut UnsettledRemoval| removal.behind.is_some_and(|b| b <= applied);
        for removal in self.unsettled.extract_if(.., is_settled) {
            output.changed.push(AppliedChange { context: removal.proposer, result: Ok(()) });
        }
    }

    /// Returns the commit index for a message to the member `to`. The index stays below the entry
    /// that removes that member, so that no message tells it of its removal.
    pub(super) fn commit_for(&self, to: u64, commit: u64) -> u64 {
        self.unapplied_removal(to).map_or(commit, |index| commit.min(index - 1))
    }

    /// Returns the index of the entry that removes a member and is in the log, but not applied;
    /// `None` if there is no such entry.
    pub(super) fn unapplied_removal(&self, of: u64) -> Option<u64> {
        let removes = |entry: &&Entry| {
            entry.entry_type == EntryType::EntryConfChange
                && ChangeContext::decode(&entry.context).is_ok_and(|context| {
                    matches!(context.change, MemberChange::Remove { node } if node.0 == of)
                })
        };
        self.node.store().entries_from(self.applied + 1).find(removes).map(|entry| entry.index)
    }
}
