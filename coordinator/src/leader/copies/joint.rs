//! Keeps joint commits whole: an epoch of a bucket has such a commit only if the epochs of its other buckets have it, and those epochs
//! are promoted in one log entry.
//!
//! SYNC names the open joint commits of each bucket ([`proto::model::joint`]). After a cut was chosen for each bucket, a bucket whose cut
//! has a joint commit that another bucket lacks falls back to its newest closed cut without that commit. The other bucket may then lack a
//! commit as well, so the choice is repeated until nothing changes. It ends because cuts only move back. A bucket for which no cut is left
//! gets no epoch; its commits stay open until the other buckets have received their parts, without a time limit.
//!
//! A dropped bucket does not delay the others.
//!
//! A source's answer to a question about its history names no commits, so only SYNC closes cuts.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::cut::Cut;
use proto::model::ids::{BucketId, TransactionId};
use proto::model::joint::{JointMark, is_in};
use proto::plant::{self, Plant};

use crate::leader::epochs::stability::Stability;
use crate::state::StateContext;

/// The cuts at which the next epochs end.
pub(in crate::leader) type ChosenCuts = BTreeMap<BucketId, Cut>;

/// A commit before which a bucket must end, since another bucket lacks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::leader) struct Split {
    pub(in crate::leader) bucket: BucketId,
    pub(in crate::leader) transaction: TransactionId,
    pub(in crate::leader) lacking: BucketId,
}

/// Moves cuts back until no joint commit is split. Returns the reasons.
pub(in crate::leader) fn keep_whole(
    stability: &Stability,
    state: &StateContext,
    chosen: &mut ChosenCuts,
) -> Vec<Split> {
    let mut reasons = Vec::new();
    if !stability.has_joint() {
        return reasons;
    }
    let mut is_whole = false;
    while !is_whole {
        is_whole = true;
        let buckets: Vec<_> = chosen.keys().copied().collect();
        for bucket in buckets {
            let split = split(stability, state, chosen, bucket);
            if split.is_empty() {
                continue;
            }
            is_whole = false;
            reasons.extend(split.iter().map(|(mark, lacking)| Split {
                bucket,
                transaction: mark.transaction,
                lacking: *lacking,
            }));
            let has_any = |cut: &Cut| split.iter().any(|(mark, _)| is_in(mark.at, cut));
            let published = published(state, bucket);
            let older = stability.closed(bucket).rev().find(|cut| !has_any(cut));
            match older.filter(|cut| published.is_some_and(|published| *cut != published)) {
                Some(cut) => chosen.insert(bucket, cut.clone()),
                None => chosen.remove(&bucket),
            };
        }
    }
    reasons
}

/// The buckets whose chosen cuts have a joint commit in common that no epoch has: sets of two and more.
pub(in crate::leader) fn joined(
    stability: &Stability,
    state: &StateContext,
    chosen: &ChosenCuts,
) -> Vec<Vec<BucketId>> {
    let mut sets: Vec<BTreeSet<BucketId>> = Vec::new();
    if !stability.has_joint() {
        return Vec::new();
    }
    for bucket in chosen.keys() {
        for mark in newly_in(stability, state, chosen, *bucket) {
            let others = mark.others.iter().filter(|other| chosen.contains_key(other));
            let mut set: BTreeSet<_> = others.copied().chain([*bucket]).collect();
            sets.retain(|known| {
                let is_apart = known.is_disjoint(&set);
                if !is_apart {
                    set.extend(known);
                }
                is_apart
            });
            sets.push(set);
        }
    }
    sets.into_iter().filter(|set| set.len() > 1).map(|set| set.into_iter().collect()).collect()
}

fn published(state: &StateContext, bucket: BucketId) -> Option<&Cut> {
    state.bucket(bucket).map(|bucket| &*bucket.epochs.last().cut)
}

/// The joint commits of a bucket that its chosen cut has, and its last epoch has not.
fn newly_in<'s>(
    stability: &'s Stability,
    state: &'s StateContext,
    chosen: &'s ChosenCuts,
    bucket: BucketId,
) -> impl Iterator<Item = &'s JointMark> {
    let (cut, published) = (chosen.get(&bucket), published(state, bucket));
    stability.joint(bucket).filter(move |mark| {
        cut.is_some_and(|cut| is_in(mark.at, cut))
            && published.is_some_and(|published| !is_in(mark.at, published))
    })
}

/// The joint commits that the chosen cut of a bucket has, each with every bucket that lacks it.
fn split<'s>(
    stability: &'s Stability,
    state: &'s StateContext,
    chosen: &'s ChosenCuts,
    bucket: BucketId,
) -> Vec<(&'s JointMark, BucketId)> {
    let lacking = |mark: &'s JointMark| {
        let others = mark.others.iter().copied();
        let lacking = others.filter(move |other| lacks(stability, state, chosen, (*other, mark)));
        lacking.map(move |other| (mark, other))
    };
    newly_in(stability, state, chosen, bucket).flat_map(lacking).collect()
}

/// True if neither the chosen cut of a bucket nor its last epoch has a joint commit.
fn lacks(
    stability: &Stability,
    state: &StateContext,
    chosen: &ChosenCuts,
    (bucket, mark): (BucketId, &JointMark),
) -> bool {
    let Some(published) = published(state, bucket) else { return false };
    if plant::is(Plant::ParticipantLeftOut) {
        return false;
    }
    let own = stability.find_joint(bucket, mark.transaction);
    own.is_none_or(|own| !is_in(own.at, chosen.get(&bucket).unwrap_or(published)))
}

#[cfg(test)]
#[path = "joint_tests.rs"]
mod tests;
