//! Keeps commits of several parts whole: an epoch has all parts of such a commit or none ([`proto::model::open_commit`]).
//!
//! SYNC names the open commits, with all of their participants. After a cut was chosen for each bucket, cuts that split a commit
//! move back. A bucket whose cut would move back to the previous epoch gets no epoch; its commits stay open, without a time limit.
//!
//! - *Joint commits.* An epoch of a bucket has such a commit only if the epochs of its other buckets have it, and those epochs are
//!   promoted in one log entry. A bucket whose cut has a joint commit that another bucket lacks falls back to its newest closed cut
//!   without that commit. The other bucket may then lack a commit as well, so the choice is repeated until nothing changes. It ends
//!   because cuts only move back. A dropped bucket does not delay the others.
//! - *Commits of producers.* Mutations of different vbuckets are independent otherwise, so a cut that lacks a part of a commit moves
//!   back to before the commit in each vbucket ([`pushed_commit::keep_whole`]).
//!
//! A source's answer to a question about its history names no commits, so only SYNC closes cuts.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::cut::Cut;
use proto::model::ids::{BucketId, TransactionId};
use proto::model::joint::JointCommit;
use proto::model::pushed_commit;
use proto::plant::{self, Plant};

use crate::leader::copies::open_commits::OpenCommits;
use crate::leader::epochs::stability::Stability;
use crate::state::StateContext;
use crate::state::epochs::history::advance;

/// The cuts at which the next epochs end.
pub(in crate::leader) type ChosenCuts = BTreeMap<BucketId, Cut>;

/// A joint commit that the cut of one bucket has and another bucket lacks. The first bucket must
/// end before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::leader) struct Split {
    pub(in crate::leader) bucket: BucketId,
    pub(in crate::leader) transaction: TransactionId,
    pub(in crate::leader) lacking: BucketId,
}

/// Moves cuts back until no commit is split. Returns the joint commits that caused this.
pub(in crate::leader) fn keep_whole(
    stability: &Stability,
    state: &StateContext,
    chosen: &mut ChosenCuts,
) -> Vec<Split> {
    keep_pushed_whole(stability, state, chosen);
    keep_joint_whole(stability, state, chosen)
}

fn keep_pushed_whole(stability: &Stability, state: &StateContext, chosen: &mut ChosenCuts) {
    if plant::is(Plant::PushedPartLeftOut) {
        return;
    }
    chosen.retain(|bucket, cut| {
        let open = stability.open(*bucket).filter(|open| open.pushed().next().is_some());
        let Some((open, known)) = open.zip(state.bucket(*bucket)) else { return true };
        let published = &known.epochs.last().cut;
        pushed_commit::keep_whole(open.pushed(), (published, known.logs), cut);
        !advance(published, cut).is_empty()
    });
}

fn keep_joint_whole(
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
            reasons.extend(split.iter().map(|(joint, lacking)| Split {
                bucket,
                transaction: joint.committed.transaction,
                lacking: *lacking,
            }));
            let has_any = |cut: &Cut| split.iter().any(|(joint, _)| joint.is_in(cut));
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

/// Returns the sets, of two or more buckets, whose chosen cuts share a joint commit that no epoch
/// has.
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
        for joint in newly_in(stability, state, chosen, *bucket) {
            let others = joint.others(*bucket).filter(|other| chosen.contains_key(other));
            let mut set: BTreeSet<_> = others.chain([*bucket]).collect();
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

/// Iterates over the joint commits of a bucket that its chosen cut has and its last epoch lacks.
fn newly_in<'s>(
    stability: &'s Stability,
    state: &'s StateContext,
    chosen: &'s ChosenCuts,
    bucket: BucketId,
) -> impl Iterator<Item = &'s JointCommit> {
    let (cut, published) = (chosen.get(&bucket), published(state, bucket));
    let open = stability.open(bucket).into_iter().flat_map(OpenCommits::joint);
    open.filter(move |joint| {
        cut.is_some_and(|cut| joint.is_in(cut))
            && published.is_some_and(|published| !joint.is_in(published))
    })
}

/// Iterates over the joint commits that the chosen cut of a bucket has, each with every bucket that
/// lacks it.
fn split<'s>(
    stability: &'s Stability,
    state: &'s StateContext,
    chosen: &'s ChosenCuts,
    bucket: BucketId,
) -> Vec<(&'s JointCommit, BucketId)> {
    let lacking = |joint: &'s JointCommit| {
        let others = joint.others(bucket);
        let lacking = others.filter(move |other| lacks(stability, state, chosen, (*other, joint)));
        lacking.map(move |other| (joint, other))
    };
    newly_in(stability, state, chosen, bucket).flat_map(lacking).collect()
}

/// Returns true if neither the chosen cut of a bucket nor its last epoch has a joint commit.
fn lacks(
    stability: &Stability,
    state: &StateContext,
    chosen: &ChosenCuts,
    (bucket, joint): (BucketId, &JointCommit),
) -> bool {
    let Some(published) = published(state, bucket) else { return false };
    if plant::is(Plant::ParticipantLeftOut) {
        return false;
    }
    let own = stability.open(bucket).and_then(|open| open.find_joint(joint.committed.transaction));
    own.is_none_or(|own| !own.is_in(chosen.get(&bucket).unwrap_or(published)))
}

#[cfg(test)]
#[path = "keep_joint_tests.rs"]
mod joint_tests;
#[cfg(test)]
#[path = "keep_pushed_tests.rs"]
mod pushed_tests;
