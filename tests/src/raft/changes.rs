//! Random changes of the members: several are proposed at once, the leader hands over, and the
//! network is partitioned.

use bytes::Bytes;
use coordinator::testing::{AppliedChange, MemberChange, Members};
use proto::model::ids::NodeId;

use super::{JOINING, World};

/// The minimum number of voters, except in seeds that only remove members: with fewer, each crash
/// stops all progress for a long time.
const VOTERS_MIN: usize = 2;

impl World {
    /// Returns the members according to a member.
    pub fn members(&self, at: usize) -> &Members {
        self.members[at].running.as_ref().expect("it runs").core.members()
    }

    /// Returns the indexes of the present members, all of which must vote.
    pub(super) fn present(&self, leader: usize) -> Vec<usize> {
        let members = self.members(leader);
        assert!(members.learners.is_empty(), "seed {}: a learner never votes", self.seed);
        members.voters.iter().map(|id| *id as usize - 1).collect()
    }

    /// Proposes a change to a member; true if the member accepted it.
    pub fn propose_change(&mut self, at: usize, change: MemberChange) -> bool {
        let mut accepted = false;
        let removes = matches!(change, MemberChange::Remove { .. });
        let node = if removes { change.node().0 } else { 0 };
        let context = Bytes::copy_from_slice(&node.to_le_bytes());
        self.with_core(at, |core| accepted = core.propose_change(context, change).is_ok());
        accepted
    }

    /// Processes the answers to changes. A member whose removal is answered is switched off, unless
    /// the world keeps removed members.
    pub(super) fn take_answers(&mut self, leader: usize, changed: &[AppliedChange]) {
        for changed in changed.iter().filter(|changed| changed.result.is_ok()) {
            self.answered += 1;
            self.answering = Some(leader);
            let node = changed.context[..].try_into().map_or(0, u64::from_le_bytes);
            let removed = self.members.iter_mut().find(|member| member.id.0 == node);
            if let Some(member) = removed.filter(|_| !self.keeps_removed) {
                member.running = None;
                self.gone.insert(NodeId(node));
            }
        }
    }

    /// Proposes to add the next waiting member; true if this was accepted.
    pub fn propose_next(&mut self, at: usize) -> bool {
        let Some(node) = JOINING.get(self.added).copied() else { return false };
        let accepted = self.propose_change(at, MemberChange::Add { node, address: "h:1".into() });
        self.added += usize::from(accepted);
        accepted
    }

    /// Lets a leader hand its leadership over.
    pub fn hand_over(&mut self, at: usize) {
        self.with_core(at, |core| {
            core.hand_over();
        });
    }

    /// Executes a random step of a world in which the members change.
    pub(super) fn change_step(&mut self) {
        // An answered change must hold even if the leader ends just after it.
        if let Some(leader) = self.answering.take()
            && self.random.u32(..3) == 0
        {
            self.crash(leader);
        }
        let at = self.random.usize(..self.members.len());
        let is_leader =
            self.members[at].running.as_ref().is_some_and(|running| running.core.is_leader());
        match self.random.u32(..1000) {
            0..3 => self.cut_some_off(),
            3..40 if is_leader => {
                for _ in 0..self.random.u32(1..3) {
                    self.change_at_random(at);
                }
                // Some members may receive the changes, and others not.
                if self.random.u32(..3) == 0 {
                    self.cut_some_off();
                }
            }
            40..42 => self.hand_over(at),
            _ => {}
        }
    }

    fn cut_some_off(&mut self) {
        let ids: Vec<NodeId> = self.members.iter().map(|member| member.id).collect();
        self.cut_off = ids.into_iter().filter(|_| self.random.bool()).collect();
    }

    fn change_at_random(&mut self, at: usize) {
        // The member may have ended with the change before.
        let Some(running) = &self.members[at].running else { return };
        let voters = running.core.members().voters.clone();
        let only_removes = !self.keeps_removed;
        if !only_removes && self.random.bool() {
            self.propose_next(at);
        } else if voters.len() > VOTERS_MIN || only_removes {
            let node = NodeId(voters[self.random.usize(..voters.len())]);
            self.propose_change(at, MemberChange::Remove { node });
        }
    }
}
