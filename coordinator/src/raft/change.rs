//! Changes of the members: the leader proposes them, all members apply them ([`super::members`]
//! has the rules).
//!
//! A change is an entry of its own kind. The `raft` crate replaces a change by an empty entry if
//! the log has an earlier change that is not applied. So this module checks for an unapplied
//! change first.
//!
//! Each change is followed by a snapshot on every member. A new member begins with a snapshot
//! that names it, and never with the first entry: it does not know the members at the beginning
//! of the log.
//!
//! The context of the entry has the change in our own encoding, since the crate would read its
//! data as protobuf. The state machine takes part in a change, on all members alike. It adds the
//! address of a new member as a node of the catalog, and refuses a node id that a process of
//! another role has.

use bytes::Bytes;
use proto::model::ids::NodeId;
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};
use raft::eraftpb::{ConfChange, ConfChangeType, Entry, EntryType, Message, MessageType};
use raft::{INVALID_ID, ProgressState, StateRole};

use super::core::{AppliedChange, RaftCore, raft_error};
use super::members::{MemberChange, Members};
use super::role::not_leader;
use super::state_machine::StateMachine;
use super::wire::ChangeContext;

/// The lag, in entries, up to which a learner counts as near the end of the log. The small lag
/// ensures that no write waits long for the new voter.
const BEHIND_MAX: u64 = 100;

impl<M: StateMachine> RaftCore<M> {
    /// The members, as of the last applied entry.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// True if this member was removed.
    pub fn is_removed(&self) -> bool {
        self.members.is_removed(self.config.member)
    }

    /// Proposes a change of the members. A later [`RaftCore::poll`] returns its result with the
    /// same context. No result follows if leadership is lost. A leader cannot remove itself: it
    /// hands leadership over first.
    pub fn propose_change(&mut self, context: Bytes, change: MemberChange) -> Result<()> {
        if self.node.raft.state != StateRole::Leader {
            return Err(not_leader(self.role().leader));
        }
        if self.node.raft.has_pending_conf() && !plant::is(Plant::TwoMemberChanges) {
            return Err(Error::unavailable("another change of the coordinators is under way")
                .with_hint("send the same request again"));
        }
        if self.node.raft.lead_transferee.is_some() {
            return Err(not_leader(None));
        }
        if change == (MemberChange::Remove { node: self.config.member }) {
            return Err(Error::new(ErrorCode::NotLeader, "the leader hands over before it leaves"));
        }
        let after = self.members.after(&change)?;
        if matches!(change, MemberChange::Remove { .. }) {
            self.check_majority(&after)?;
        }
        let context = ChangeContext { proposer: context, change }.encode()?;
        let entry_type = EntryType::EntryConfChange;
        let entry = Entry { entry_type, context, ..Default::default() };
        let mut message = Message { msg_type: MessageType::MsgPropose, ..Default::default() };
        message.set_entries(vec![entry].into());
        if plant::is(Plant::TwoMemberChanges) {
            self.node.raft.pending_conf_index = 0;
        }
        self.node.raft.step(message).map_err(raft_error)
    }

    /// Refuses a change if a majority of the members after it could not commit now. Members count
    /// as alive if they sent a message within one election timeout. (A member that answers may
    /// still lack most of the log.)
    fn check_majority(&self, after: &Members) -> Result<()> {
        let raft = &self.node.raft;
        let committed = raft.raft_log.committed;
        let follows = |id: &&u64| {
            **id == self.config.member.0
                || raft.prs().get(**id).is_some_and(|progress| {
                    progress.recent_active && progress.matched + BEHIND_MAX >= committed
                })
        };
        if 2 * after.voters.iter().filter(follows).count() > after.voters.len() {
            return Ok(());
        }
        Err(Error::unavailable("the coordinators that would stay have no majority that follows the leader")
            .with_hint("start those that are down, wait for those that are behind, or add another one with ADD COORDINATOR"))
    }

    /// Begins to hand leadership over to the voter that has most of the log, and returns that
    /// voter; `None` if there is no other voter.
    pub fn hand_over(&mut self) -> Option<NodeId> {
        if self.node.raft.state != StateRole::Leader {
            return None;
        }
        let progress = self.node.raft.prs();
        let stays = |id: &&u64| self.unapplied_removal(**id).is_none();
        let others = self.members.voters.iter().filter(|id| **id != self.config.member.0);
        let others = others.filter(stays);
        let known = others.filter_map(|id| Some((progress.get(*id)?, *id)));
        let (_, to) = known
            .map(|(progress, id)| ((progress.recent_active, progress.matched), id))
            .max_by_key(|(order, id)| (*order, std::cmp::Reverse(*id)))?;
        self.node.transfer_leader(to);
        Some(NodeId(to))
    }

    /// Makes a learner that is near the end of the log a voter.
    pub(super) fn promote_learner(&mut self) {
        let raft = &self.node.raft;
        if raft.state != StateRole::Leader
            || self.members.learners.is_empty()
            || !raft.apply_to_current_term()
            || raft.has_pending_conf()
        {
            return;
        }
        let last = raft.raft_log.last_index();
        let is_near = |id: &&u64| {
            raft.prs().get(**id).is_some_and(|progress| {
                // A learner that only answers heartbeats has nothing, however short the log is.
                progress.state != ProgressState::Snapshot
                    && progress.matched > 0
                    && progress.recent_active
                    && progress.matched + BEHIND_MAX >= last
            })
        };
        let Some(node) = self.members.learners.iter().find(is_near).map(|id| NodeId(*id)) else {
            return;
        };
        if let Err(error) = self.propose_change(Bytes::new(), MemberChange::Promote { node }) {
            tracing::debug!(%node, %error, "a learner has to wait until it votes");
        }
    }

    /// Applies a change of the members, or refuses it without any effect, on all members alike.
    /// Returns the result. Returns `None` if the result of a removal must wait until the removal
    /// is settled.
    pub(super) fn apply_change(&mut self, entry: &Entry) -> Result<Option<AppliedChange>> {
        let ChangeContext { proposer, change } = ChangeContext::decode(&entry.context)?;
        let changed = self.members.after(&change).and_then(|after| {
            self.machine.change_members(entry.index, &change)?;
            Ok(after)
        });
        let result = match changed {
            Ok(after) => {
                self.node.apply_conf_change(&to_raft(&change)).map_err(raft_error)?;
                tracing::info!(member = %self.config.member, ?change, "the coordinators have changed");
                self.members = after;
                self.snapshot_is_due = true;
                Ok(())
            }
            Err(refused) => Err(refused),
        };
        if self.is_removed() && self.node.raft.state == StateRole::Leader {
            // This member had the entry of its removal before it began to lead.
            let term = self.node.raft.term;
            self.node.raft.become_follower(term, INVALID_ID);
        }
        let waits = result.is_ok() && matches!(change, MemberChange::Remove { .. });
        let changed = AppliedChange { context: proposer, result };
        Ok(if waits { self.hold_removal(changed) } else { Some(changed) })
    }
}

/// Converts a change to the `raft` crate's type.
fn to_raft(change: &MemberChange) -> ConfChange {
    let change_type = match change {
        MemberChange::Add { .. } => ConfChangeType::AddLearnerNode,
        MemberChange::Promote { .. } => ConfChangeType::AddNode,
        MemberChange::Remove { .. } => ConfChangeType::RemoveNode,
    };
    ConfChange { change_type, node_id: change.node().0, ..Default::default() }
}
