//! Plans which projectors join the copies of a bucket, and which leave
//! ([`proto::model::copies`]).
//!
//! For each bucket, the plan makes one change at a time, by the first rule that applies:
//!
//! 1. A joining copy whose projector has been silent for [`GONE_MS`] leaves, if another live
//!    projector could have it.
//! 2. If there are too many copies, one that is joining leaves. A bucket that moves may have one
//!    more. The leading copy removes a surplus copy that is in sync.
//! 3. The projector that the bucket moves to joins.
//! 4. If a copy is missing, a live projector joins. A projector whose copy was removed lately is
//!    preferred, since it still has most of the bucket. Otherwise the projector with the fewest
//!    copies joins, in a zone without a copy if there is a choice. For [`FORMER_WAIT_MS`] after a
//!    loss only a projector that had a copy before may join: a restarted process is back by then.
//!
//! The coordinator promotes no copy and removes no copy in sync, because only the copies
//! themselves know which of them is complete. Each change names the revision of the copies that
//! it was planned for, so it has no effect if the copies have changed since.

pub mod check;
pub mod holds;
pub mod keep_whole;
pub mod open_commits;

use std::collections::{BTreeMap, BTreeSet};

use proto::model::copies::{Copies, CopiesChange, CopyRole};
use proto::model::ids::{BucketId, NodeId};
use proto::model::node::{NodeInfo, Role};
use proto::rpc::command::{ChangeCopies, Command};

use crate::leader::check_timer::CheckTimer;
use crate::leader::nodes::heartbeats::Heartbeats;
use crate::leader::nodes::old_copy::all_have_reported;
use crate::leader::plan::Plan;
use crate::state::StateContext;

/// The interval between two checks of the copies, in ms. It also limits how fast a change without
/// effect is planned again.
const LOOK_EVERY_MS: u64 = 500;
/// The silence, in ms, after which a projector with a joining copy is replaced by another one:
/// twice the silence of a dead node.
const GONE_MS: u64 = 10_000;
/// The time, in ms, that a bucket with a missing copy waits for a projector that had a copy
/// before.
const FORMER_WAIT_MS: u64 = 30_000;
/// The limit of copies that join at the same time on one projector. Each joining copy reads a
/// whole bucket from its leader.
const JOINING_MAX: usize = 4;
/// The limit of copies that join at the same time in the cluster.
const JOINING_IN_ALL_MAX: usize = 8;

/// The leader's memory of its plans for copies.
#[derive(Debug, Default)]
pub(in crate::leader) struct CopyPlans {
    looks: CheckTimer<LOOK_EVERY_MS>,
    /// The buckets that lack a copy, each with the time since which the copy is missing.
    short_since_ms: BTreeMap<BucketId, u64>,
}

impl CopyPlans {
    /// Plans at most one change of the copies of each bucket.
    pub(in crate::leader) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        if !self.looks.is_due(now_ms) {
            return;
        }
        let is_short = |copies: &Copies| copies.members().count() < usize::from(copies.wanted);
        let short: BTreeSet<BucketId> =
            state.all_copies().filter(|(_, copies)| is_short(copies)).map(|(id, _)| id).collect();
        self.short_since_ms.retain(|bucket, _| short.contains(bucket));
        let mut projectors = Projectors::new(state, heartbeats, now_ms);
        for (bucket, copies) in state.all_copies() {
            let since_ms = match short.contains(&bucket) {
                true => *self.short_since_ms.entry(bucket).or_insert(now_ms),
                false => now_ms,
            };
            let may_be_new = copies.former.is_empty() || now_ms >= since_ms + FORMER_WAIT_MS;
            if let Some(change) = projectors.next_change(copies, may_be_new) {
                projectors.count_change(change);
                let revision = copies.revision;
                plan.commands.push(Command::ChangeCopies(ChangeCopies {
                    bucket,
                    revision,
                    change,
                }));
            }
        }
    }
}

/// The projectors, with the numbers of their copies. The changes planned so far count as made.
struct Projectors<'a> {
    state: &'a StateContext,
    heartbeats: &'a Heartbeats,
    now_ms: u64,
    /// The number of copies on each projector.
    copies: BTreeMap<NodeId, usize>,
    /// The number of joining copies on each projector.
    joining: BTreeMap<NodeId, usize>,
    /// True if all indexers and projectors have reported in this term, or have had the time to.
    is_complete: bool,
}

impl<'a> Projectors<'a> {
    fn new(state: &'a StateContext, heartbeats: &'a Heartbeats, now_ms: u64) -> Self {
        let (mut copies, mut joining) = (BTreeMap::new(), BTreeMap::new());
        for (_, of_bucket) in state.all_copies() {
            of_bucket.members().for_each(|node| *copies.entry(node).or_default() += 1);
            of_bucket.joining.iter().for_each(|node| *joining.entry(*node).or_default() += 1);
        }
        let is_complete = all_have_reported(state, heartbeats, now_ms);
        Self { state, heartbeats, now_ms, copies, joining, is_complete }
    }

    /// Returns the next change of the copies of a bucket. Without `may_be_new`, only a projector
    /// that had a copy before may get the missing one.
    fn next_change(&self, copies: &Copies, may_be_new: bool) -> Option<CopiesChange> {
        let leaves =
            self.gone_joining_projector(copies).or_else(|| self.surplus_joining_projector(copies));
        let joins =
            || self.target(copies).or_else(|| self.projector_for_missing_copy(copies, may_be_new));
        leaves.map(CopiesChange::Leave).or_else(|| joins().map(CopiesChange::Join))
    }

    /// Counts a planned change in the numbers of copies.
    fn count_change(&mut self, change: CopiesChange) {
        if let CopiesChange::Join(node) = change {
            *self.copies.entry(node).or_default() += 1;
            *self.joining.entry(node).or_default() += 1;
        }
    }

    /// Returns the joining projector that must leave because it has been silent for [`GONE_MS`];
    /// `None` if no other projector can replace it.
    fn gone_joining_projector(&self, copies: &Copies) -> Option<NodeId> {
        let joining = copies.joining.iter().copied();
        let is_gone = |node: &NodeId| self.heartbeats.silent_ms(*node, self.now_ms) >= GONE_MS;
        let mut gone = joining.filter(|node| copies.move_to != Some(*node)).filter(is_gone);
        gone.next().filter(|_| self.projectors_without_copy(copies).next().is_some())
    }

    /// Returns the joining projector that must leave because the bucket has a surplus of copies.
    fn surplus_joining_projector(&self, copies: &Copies) -> Option<NodeId> {
        let joining = copies.joining.iter().copied().filter(|node| copies.move_to != Some(*node));
        let least =
            joining.max_by_key(|node| (!self.is_alive(*node), self.copies_on(*node), *node));
        least.filter(|_| copies.has_surplus())
    }

    /// Returns the projector that the bucket moves to, if that projector has no copy yet and can
    /// begin to join.
    fn target(&self, copies: &Copies) -> Option<NodeId> {
        let to = copies.move_to.filter(|to| copies.role(*to) == CopyRole::None)?;
        (self.is_alive(to) && self.may_copy_more(to)).then_some(to)
    }

    /// Returns the projector that should get the missing copy. Without `may_be_new`, only a
    /// projector that had a copy before qualifies.
    fn projector_for_missing_copy(&self, copies: &Copies, may_be_new: bool) -> Option<NodeId> {
        if copies.members().count() >= usize::from(copies.wanted) || !self.is_complete {
            return None;
        }
        let place = |node: &NodeInfo| {
            let former = copies.former.iter().position(|known| *known == node.id);
            (
                former.unwrap_or(usize::MAX),
                self.copies_on(node.id),
                self.is_zone_taken(node, copies),
            )
        };
        let with_room =
            self.projectors_without_copy(copies).filter(|node| self.may_copy_more(node.id));
        let allowed = with_room.filter(|node| may_be_new || copies.former.contains(&node.id));
        allowed.min_by_key(|node| (place(node), node.id)).map(|node| node.id)
    }

    /// Iterates over the live projectors without a copy of a bucket.
    fn projectors_without_copy(&self, copies: &Copies) -> impl Iterator<Item = &NodeInfo> {
        let projectors = self.state.nodes().filter(|node| node.role == Role::Projector);
        projectors
            .map(|node| &**node)
            .filter(|node| copies.role(node.id) == CopyRole::None && self.is_alive(node.id))
    }

    fn is_alive(&self, node: NodeId) -> bool {
        self.heartbeats.is_alive(node, self.now_ms)
    }

    /// Returns the number of copies on a projector.
    fn copies_on(&self, node: NodeId) -> usize {
        self.copies.get(&node).copied().unwrap_or_default()
    }

    /// Returns true if another copy may join on the projector now.
    fn may_copy_more(&self, node: NodeId) -> bool {
        let of_node = self.joining.get(&node).copied().unwrap_or_default();
        let live = self.joining.iter().filter(|(node, _)| self.is_alive(**node));
        let in_all: usize = live.map(|(_, count)| count).sum();
        of_node < JOINING_MAX && in_all < JOINING_IN_ALL_MAX
    }

    /// Returns true if a copy is in the projector's zone.
    fn is_zone_taken(&self, node: &NodeInfo, copies: &Copies) -> bool {
        let zone = |member| self.state.node(member).map(|info| &*info.zone);
        !node.zone.is_empty() && copies.members().any(|member| zone(member) == Some(&*node.zone))
    }
}

#[cfg(test)]
mod tests;
