//! The copies of an embedded bucket: which projectors store it completely, and which of them
//! leads.
//!
//! The scheme is PacificA's (Lin, Yang, Zhang, Zhou: "PacificA: Replication in Log-Based
//! Distributed Storage Systems", 2008). The coordinators keep the configuration of each bucket,
//! which is its list of copies with their roles; the copies replicate among themselves. A
//! configuration changes only by compare-and-set on its `revision`. The arrows are the changes
//! ([`CopiesChange`]):
//!
//! ```text
//!            Join                    Grow (by the leader)               Promote (by the copy), Give (by the leader)
//!   nothing ──────▶ joining: copies ──────────────────────▶ in sync ──────────────────────────▶ leader
//!      ▲                │  Leave                             │  Shrink (by the leader), Leave
//!      └────────────────┴────────────────────────────────────┘
//! ```
//!
//! - **A write is durable when every copy in sync has it.** So each of them has every
//!   acknowledged write, and any of them may lead.
//! - Only the leader proposes *Grow*. It first begins to wait for the copy at each write, and
//!   proposes when the copy has all acknowledged writes. *Shrink* takes effect before the leader
//!   stops waiting for the copy. So at any moment the leader waits for at least the copies in
//!   sync.
//! - *Promote* begins a term. The leader serves under a lease that its followers grant, and a
//!   follower requests leadership only when its last grant has ended. So the leaders of two terms
//!   never serve at the same time.
//! - A leader that begins to serve after a start raises the revision. So the proposals of its
//!   earlier process are void.
//! - A move to another projector adds a copy there; then the leader hands leadership to it.
//!
//! Every change is a pure function of the configuration, which a refused change leaves as it was.

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorCode, Result};
use crate::model::ids::NodeId;

/// The maximum number of copies of a bucket.
pub const COPIES_MAX: u8 = 3;

/// The configuration of a bucket's copies: the projectors that have one, and their roles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copies {
    /// The desired number of copies.
    pub wanted: u8,
    /// The term: the number of the present leadership, which grows with each change of the
    /// leader.
    pub term: u64,
    /// The revision, which grows with each change, and when the leader begins to serve. A
    /// proposal for an earlier revision is refused.
    pub revision: u64,
    /// The projector whose copy leads: it numbers the mutations and serves reads.
    pub leader: NodeId,
    /// The projectors whose copies have all acknowledged writes, ascending, including the leader.
    pub in_sync: Vec<NodeId>,
    /// The projectors that are copying the bucket and are not in sync yet, ascending.
    pub joining: Vec<NodeId>,
    /// The projector to which leadership should be handed.
    pub move_to: Option<NodeId>,
    /// True if the previous leader stopped serving and then handed leadership over. If false, it
    /// may still have a lease.
    pub is_given: bool,
    /// Projectors whose copies were removed because they were silent, the last one first. They
    /// still have most of the data, so they are the first choice for a new copy.
    pub former: Vec<NodeId>,
}

/// A change of the configuration of a bucket's copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopiesChange {
    /// A projector begins to copy the bucket. Proposed by the leading coordinator.
    Join(NodeId),
    /// A joining copy has all acknowledged writes and becomes a copy in sync. Proposed by the
    /// leading copy.
    Grow(NodeId),
    /// A copy in sync is removed because it does not answer. Proposed by the leading copy.
    Shrink(NodeId),
    /// A copy in sync replaces a silent leader. Proposed by that copy.
    Promote(NodeId),
    /// The leading copy has stopped serving, and hands leadership to a copy in sync. Proposed by
    /// the leading copy.
    Give(NodeId),
    /// A copy is removed because it is surplus or its projector is lost. The leading coordinator
    /// proposes this for a joining copy, the leading copy for a copy in sync. The coordinators
    /// must not remove a copy in sync: they notice late that a leader is lost, and then each copy
    /// in sync may have to replace it.
    Leave(NodeId),
}

impl CopiesChange {
    /// Returns the projector whose copy is changed.
    pub fn node(self) -> NodeId {
        match self {
            Self::Join(node)
            | Self::Grow(node)
            | Self::Shrink(node)
            | Self::Promote(node)
            | Self::Give(node)
            | Self::Leave(node) => node,
        }
    }
}

/// The role of a projector's copy of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyRole {
    /// The copy leads: it numbers the mutations and serves calls.
    Leader,
    /// The copy has every acknowledged write.
    InSync,
    /// The copy does not have all acknowledged writes yet.
    Joining,
    /// The projector has no copy of the bucket.
    None,
}

impl CopyRole {
    /// Returns the name of the role in SHOW COPIES.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::InSync => "in sync",
            Self::Joining => "joining",
            Self::None => "none",
        }
    }
}

fn insert(nodes: &mut Vec<NodeId>, node: NodeId) {
    if let Err(at) = nodes.binary_search(&node) {
        nodes.insert(at, node);
    }
}

fn remove(nodes: &mut Vec<NodeId>, node: NodeId) {
    nodes.retain(|known| *known != node);
}

impl Copies {
    /// Creates the configuration of a bucket with a single copy.
    pub fn single(leader: NodeId) -> Self {
        Self {
            wanted: 1,
            term: 1,
            revision: 1,
            leader,
            in_sync: vec![leader],
            joining: Vec::new(),
            move_to: None,
            is_given: true,
            former: Vec::new(),
        }
    }

    /// Returns the role of a projector's copy.
    pub fn role(&self, node: NodeId) -> CopyRole {
        match (node == self.leader, self.in_sync.contains(&node), self.joining.contains(&node)) {
            (true, ..) => CopyRole::Leader,
            (_, true, _) => CopyRole::InSync,
            (.., true) => CopyRole::Joining,
            _ => CopyRole::None,
        }
    }

    /// Returns the projectors with a copy, also an incomplete one: the leader first, then those
    /// in sync, then the joining ones.
    pub fn members(&self) -> impl Iterator<Item = NodeId> + '_ {
        let others = self.in_sync.iter().copied().filter(|node| *node != self.leader);
        std::iter::once(self.leader).chain(others).chain(self.joining.iter().copied())
    }

    /// Returns the projectors with a copy in sync, except the leader.
    pub fn followers(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.in_sync.iter().copied().filter(|node| *node != self.leader)
    }

    /// Returns true if there are more copies than desired. While the bucket is moved to another
    /// projector, one more is allowed.
    pub fn has_surplus(&self) -> bool {
        let moves = self.move_to.is_some_and(|to| self.role(to) != CopyRole::None);
        self.members().count() > usize::from(self.wanted) + usize::from(moves)
    }

    /// Raises the revision, because the leader begins to serve.
    pub fn begin_to_serve(&mut self) {
        self.revision += 1;
    }

    /// Sets the desired number of copies.
    pub fn set_wanted(&mut self, wanted: u8) {
        self.wanted = wanted;
        self.revision += 1;
    }

    /// Sets the projector to which leadership should be handed; `None` clears it. Returns false
    /// if this changes nothing.
    pub fn set_move_to(&mut self, node: Option<NodeId>) -> bool {
        let node = node.filter(|node| *node != self.leader);
        if self.move_to == node {
            return false;
        }
        self.move_to = node;
        self.revision += 1;
        true
    }

    /// Makes a change that was proposed for a revision. Returns an error if the revision has
    /// changed or the change is not possible.
    pub fn change(&mut self, revision: u64, change: CopiesChange) -> Result<()> {
        let refused = |what: String| Err(Error::new(ErrorCode::Unavailable, what));
        if revision != self.revision {
            let now = self.revision;
            return refused(format!("the copies have changed: revision {now}, not {revision}"));
        }
        let node = change.node();
        match (change, self.role(node)) {
            (CopiesChange::Join(_), CopyRole::None) => {
                insert(&mut self.joining, node);
                remove(&mut self.former, node);
            }
            (CopiesChange::Grow(_), CopyRole::Joining) => {
                remove(&mut self.joining, node);
                insert(&mut self.in_sync, node);
            }
            (CopiesChange::Shrink(_), CopyRole::InSync) => self.remove_silent_copy(node),
            (CopiesChange::Leave(_), CopyRole::InSync | CopyRole::Joining) => {
                remove(&mut self.in_sync, node);
                remove(&mut self.joining, node);
                self.move_to = self.move_to.filter(|to| *to != node);
            }
            (CopiesChange::Promote(_), CopyRole::InSync) => {
                let old = self.set_leader(node, false);
                self.remove_silent_copy(old);
            }
            (CopiesChange::Give(_), CopyRole::InSync) => self.hand_over_leadership(node),
            (_, role) => {
                let role = role.name();
                return refused(format!("projector {node} is {role}: {change:?} is not possible"));
            }
        }
        self.revision += 1;
        Ok(())
    }

    /// Forgets a former copy, because its projector has left the cluster.
    pub fn forget_former_copy(&mut self, node: NodeId) {
        if self.former.contains(&node) {
            remove(&mut self.former, node);
            self.revision += 1;
        }
    }

    /// Removes a copy in sync because it was silent, and remembers its projector as a former one.
    fn remove_silent_copy(&mut self, node: NodeId) {
        remove(&mut self.in_sync, node);
        remove(&mut self.former, node);
        self.former.insert(0, node);
        self.former.truncate(usize::from(COPIES_MAX));
    }

    /// Begins a term with `node` as the leader, and returns the old leader, which remains in
    /// sync. `is_given` is true if the old leader has handed leadership over.
    fn set_leader(&mut self, node: NodeId, is_given: bool) -> NodeId {
        self.term += 1;
        self.is_given = is_given;
        self.move_to = self.move_to.filter(|to| *to != node);
        std::mem::replace(&mut self.leader, node)
    }

    /// Hands leadership to a copy in sync. The old leader's copy remains, unless there are enough
    /// copies without it.
    fn hand_over_leadership(&mut self, node: NodeId) {
        let old = self.set_leader(node, true);
        if self.in_sync.len() > usize::from(self.wanted) {
            remove(&mut self.in_sync, old);
        }
    }

    /// Checks the invariants of a configuration; the error names the one that is violated.
    pub fn check(&self) -> std::result::Result<(), String> {
        let sorted = |nodes: &[NodeId]| nodes.is_sorted_by(|one, next| one < next);
        let rules = [
            (self.in_sync.contains(&self.leader), "the leader is in sync"),
            (sorted(&self.in_sync) && sorted(&self.joining), "copies are in order, each once"),
            (
                !self.joining.iter().any(|node| self.in_sync.contains(node)),
                "a joining copy is not in sync",
            ),
            (self.move_to != Some(self.leader), "a bucket does not move to its leader"),
            ((1..=COPIES_MAX).contains(&self.wanted), "a bucket has one to three copies"),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            None => Ok(()),
            Some((_, rule)) => Err(format!("broken: {rule}: {self:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NodeId = NodeId(1);
    const TWO: NodeId = NodeId(2);
    const THREE: NodeId = NodeId(3);

    fn changed(copies: &Copies, change: CopiesChange) -> Copies {
        let mut next = copies.clone();
        next.change(copies.revision, change).unwrap_or_else(|error| panic!("{change:?}: {error}"));
        next.check().unwrap_or_else(|broken| panic!("{change:?}: {broken}"));
        assert!(next.revision > copies.revision);
        next
    }

    fn refused(copies: &Copies, change: CopiesChange) {
        let mut next = copies.clone();
        assert!(next.change(copies.revision, change).is_err(), "{change:?} of {copies:?}");
        assert_eq!(next, *copies, "a refusal changes nothing");
    }

    fn of_two() -> Copies {
        let joining = changed(&Copies::single(ONE), CopiesChange::Join(TWO));
        let mut two = changed(&joining, CopiesChange::Grow(TWO));
        two.set_wanted(2);
        two
    }

    #[test]
    fn a_copy_joins_grows_and_leads() {
        let joining = changed(&Copies::single(ONE), CopiesChange::Join(TWO));
        assert_eq!(joining.role(TWO), CopyRole::Joining);
        refused(&joining, CopiesChange::Promote(TWO));
        refused(&joining, CopiesChange::Shrink(TWO));
        let grown = changed(&joining, CopiesChange::Grow(TWO));
        assert_eq!(grown.followers().collect::<Vec<_>>(), [TWO]);
        let led = changed(&grown, CopiesChange::Promote(TWO));
        assert_eq!((led.leader, led.term, led.role(ONE)), (TWO, 2, CopyRole::None));
        assert_eq!(led.former, [ONE], "it was silent");
        let back = changed(&led, CopiesChange::Join(ONE));
        assert!(back.former.is_empty());
    }

    #[test]
    fn only_a_copy_in_sync_leads_and_the_leader_never_goes() {
        let shrunk = changed(&of_two(), CopiesChange::Shrink(TWO));
        assert_eq!(shrunk.role(TWO), CopyRole::None);
        for change in [CopiesChange::Promote(TWO), CopiesChange::Grow(TWO)] {
            refused(&shrunk, change);
        }
        for change in [CopiesChange::Leave(ONE), CopiesChange::Shrink(ONE), CopiesChange::Join(ONE)]
        {
            refused(&shrunk, change);
        }
    }

    #[test]
    fn a_change_of_an_older_revision_is_refused() {
        let mut two = of_two();
        let revision = two.revision;
        two.change(revision, CopiesChange::Shrink(TWO)).expect("shrunk");
        two.change(two.revision, CopiesChange::Join(TWO)).expect("back");
        let late = two.change(revision - 1, CopiesChange::Grow(TWO));
        assert!(late.is_err(), "the copy that grew was another one");
    }

    #[test]
    fn a_bucket_moves_and_leaves_its_old_projector_if_there_are_enough_copies() {
        let mut one = Copies::single(ONE);
        assert!(one.set_move_to(Some(TWO)) && !one.set_move_to(Some(TWO)));
        let joining = changed(&one, CopiesChange::Join(TWO));
        let grown = changed(&joining, CopiesChange::Grow(TWO));
        let moved = changed(&grown, CopiesChange::Give(TWO));
        assert_eq!((moved.in_sync.as_slice(), moved.move_to), (&[TWO][..], None));
        let mut two = of_two();
        two.set_move_to(Some(TWO));
        let moved = changed(&two, CopiesChange::Give(TWO));
        assert_eq!(moved.in_sync, [ONE, TWO], "two copies are wanted");
        assert!(moved.is_given && !changed(&of_two(), CopiesChange::Promote(TWO)).is_given);
        let mut three = of_two();
        three.set_move_to(Some(THREE));
        let joining = changed(&three, CopiesChange::Join(THREE));
        let taken_over = changed(&joining, CopiesChange::Promote(TWO));
        assert_eq!(taken_over.move_to, Some(THREE), "another take-over does not end the move");
        let left = changed(&taken_over, CopiesChange::Leave(THREE));
        assert_eq!(left.move_to, None);
    }
}
