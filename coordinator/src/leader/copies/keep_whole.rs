//! Chooses cuts so that no epoch splits a commit of several parts: an epoch has all parts of such
//! a commit or none ([`proto::model::open_commit`]).
//!
//! SYNC names the open commits (those that no epoch has), with all of their participants. After a
//! cut was chosen for each bucket, cuts that split a commit move back. A bucket whose cut would
//! move back to the previous epoch gets no epoch; its commits stay open, without a time limit.
//!
//! - *Joint commits* (of a transaction over several buckets). An epoch of a bucket has such a
//!   commit only if the epochs of its other buckets have it, and those epochs are promoted in one
//!   log entry. A bucket whose cut has a joint commit that another bucket lacks falls back to its
//!   newest closed cut without that commit. The other bucket may then lack a commit as well, so
//!   the choice is repeated until nothing changes. The repetition ends because cuts only move
//!   back. A dropped bucket does not delay the others.
//! - *Commits of producers* (of a pushed transaction over several vbuckets of a bucket).
//!   Mutations of different vbuckets are independent otherwise, so a cut that lacks a part of a
//!   commit moves back to before the commit in each vbucket ([`pushed_commit::keep_whole`]).
//!
//! Only SYNC provides closed cuts. The answer of a source that is queried about its history
//! provides none, because it does not name the open commits.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::cut::Cut;
use proto::model::ids::{BucketId, TransactionId};
use proto::model::joint::JointCommit;
use proto::model::pushed_commit;
use proto::plant::{self, Plant};

use crate::leader::copies::open_commits::OpenCommits;
use crate::leader::epochs::stability::EpochCutChooser;
use crate::state::StateContext;
use crate::state::epochs::history::advanced_positions;

/// The cuts at which the next epochs end.
pub(in crate::leader) type ChosenCuts = BTreeMap<BucketId, Cut>;

/// A joint commit that an epoch would split: the cut of `bucket` includes it, and the bucket
/// `lacking` lacks it. So the cut of `bucket` must move back to before the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::leader) struct SplitCommit {
    pub(in crate::leader) bucket: BucketId,
    pub(in crate::leader) transaction: TransactionId,
    pub(in crate::leader) lacking: BucketId,
}

/// Moves cuts back until none of them splits a commit. Returns the joint commits that made a cut
/// move.
pub(in crate::leader) fn avoid_split_commits(
    stability: &EpochCutChooser,
    state: &StateContext,
    chosen: &mut ChosenCuts,
) -> Vec<SplitCommit> {
    avoid_split_pushed(stability, state, chosen);
    avoid_split_joint(stability, state, chosen)
}

/// Moves cuts back until none of them splits a commit of a producer.
fn avoid_split_pushed(stability: &EpochCutChooser, state: &StateContext, chosen: &mut ChosenCuts) {
    if plant::is(Plant::PushedPartLeftOut) {
        return;
    }
    chosen.retain(|bucket, cut| {
        let open = stability.open_commits(*bucket).filter(|open| open.pushed().next().is_some());
        let Some((open, known)) = open.zip(state.bucket(*bucket)) else { return true };
        let published = &known.epochs.last().cut;
        pushed_commit::avoid_split_commits(open.pushed(), (published, known.logs), cut);
        !advanced_positions(published, cut).is_empty()
    });
}

/// Moves cuts back until none of them splits a joint commit. Returns the joint commits that made
/// a cut move.
fn avoid_split_joint(
    stability: &EpochCutChooser,
    state: &StateContext,
    chosen: &mut ChosenCuts,
) -> Vec<SplitCommit> {
    let mut reasons = Vec::new();
    if !stability.has_joint() {
        return reasons;
    }
    let mut is_whole = false;
    while !is_whole {
        is_whole = true;
        let buckets: Vec<_> = chosen.keys().copied().collect();
        for bucket in buckets {
            let split = split_commits(stability, state, chosen, bucket);
            if split.is_empty() {
                continue;
            }
            is_whole = false;
            reasons.extend(split.iter().map(|(joint, lacking)| SplitCommit {
                bucket,
                transaction: joint.committed.transaction,
                lacking: *lacking,
            }));
            let has_any = |cut: &Cut| split.iter().any(|(joint, _)| joint.is_in(cut));
            let published = published_cut(state, bucket);
            let older = stability.closed_cuts(bucket).rev().find(|cut| !has_any(cut));
            match older.filter(|cut| published.is_some_and(|published| *cut != published)) {
                Some(cut) => chosen.insert(bucket, cut.clone()),
                None => chosen.remove(&bucket),
            };
        }
    }
    reasons
}

/// Returns the sets of buckets that must be promoted together: their chosen cuts include the same
/// joint commit, which no epoch includes yet. Each set has two or more buckets.
pub(in crate::leader) fn buckets_promoted_together(
    stability: &EpochCutChooser,
    state: &StateContext,
    chosen: &ChosenCuts,
) -> Vec<Vec<BucketId>> {
    let mut sets: Vec<BTreeSet<BucketId>> = Vec::new();
    if !stability.has_joint() {
        return Vec::new();
    }
    for bucket in chosen.keys() {
        for joint in newly_included_commits(stability, state, chosen, *bucket) {
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

/// Returns the cut of the last epoch of a bucket.
fn published_cut(state: &StateContext, bucket: BucketId) -> Option<&Cut> {
    state.bucket(bucket).map(|bucket| &*bucket.epochs.last().cut)
}

/// Iterates over the joint commits that the next epoch of a bucket would add: its chosen cut
/// includes them, and its last epoch does not.
fn newly_included_commits<'s>(
    stability: &'s EpochCutChooser,
    state: &'s StateContext,
    chosen: &'s ChosenCuts,
    bucket: BucketId,
) -> impl Iterator<Item = &'s JointCommit> {
    let (cut, published) = (chosen.get(&bucket), published_cut(state, bucket));
    let open = stability.open_commits(bucket).into_iter().flat_map(OpenCommits::joint);
    open.filter(move |joint| {
        cut.is_some_and(|cut| joint.is_in(cut))
            && published.is_some_and(|published| !joint.is_in(published))
    })
}

/// Returns the joint commits that the chosen cut of a bucket includes and another bucket lacks,
/// each with the bucket that lacks it.
fn split_commits<'s>(
    stability: &'s EpochCutChooser,
    state: &'s StateContext,
    chosen: &'s ChosenCuts,
    bucket: BucketId,
) -> Vec<(&'s JointCommit, BucketId)> {
    let lacking = |joint: &'s JointCommit| {
        let others = joint.others(bucket);
        let lacking =
            others.filter(move |other| lacks_commit(stability, state, chosen, (*other, joint)));
        lacking.map(move |other| (joint, other))
    };
    newly_included_commits(stability, state, chosen, bucket).flat_map(lacking).collect()
}

/// Returns true if a bucket lacks a joint commit: neither its chosen cut nor its last epoch
/// includes the commit.
fn lacks_commit(
    stability: &EpochCutChooser,
    state: &StateContext,
    chosen: &ChosenCuts,
    (bucket, joint): (BucketId, &JointCommit),
) -> bool {
    let Some(published) = published_cut(state, bucket) else { return false };
    if plant::is(Plant::ParticipantLeftOut) {
        return false;
    }
    let own = stability
        .open_commits(bucket)
        .and_then(|open| open.find_joint(joint.committed.transaction));
    own.is_none_or(|own| !own.is_in(chosen.get(&bucket).unwrap_or(published)))
}

#[cfg(test)]
#[path = "keep_joint_tests.rs"]
mod joint_tests;
#[cfg(test)]
#[path = "keep_pushed_tests.rs"]
mod pushed_tests;
