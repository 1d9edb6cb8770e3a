//! Lists, for the status, the buckets whose epochs are held back by a joint commit (a commit of
//! one transaction in several buckets).
//!
//! An epoch does not include a joint commit until the epochs of all buckets of that commit
//! include it ([`crate::leader::copies::keep_whole`]). The next reports of the projectors usually
//! end the wait, unless the projector of another bucket is silent. For this list the leader
//! remembers only when each commit was reported first. At each status query it chooses cuts
//! again, from the newest reported ones, so delays by slow indexers are not listed.

use std::collections::BTreeMap;

use proto::model::ids::BucketId;
use proto::rpc::api::{EpochWait, HELD_MS_MIN, HOLDS_MAX};

use crate::leader::copies::keep_whole::{ChosenCuts, SplitCommit, avoid_split_commits};
use crate::leader::epochs::stability::EpochCutChooser;
use crate::state::{BucketView, StateContext};

/// Returns the buckets whose epochs are held back by a joint commit now, each with the commit and
/// the bucket that lacks it. The longest wait is first.
pub(in crate::leader) fn epoch_holds(
    stability: &EpochCutChooser,
    state: &StateContext,
    now_ms: u64,
) -> Vec<EpochWait> {
    if !stability.has_joint() {
        return Vec::new();
    }
    let newest = |(id, bucket): (BucketId, BucketView<'_>)| {
        bucket.info.readable_from()?;
        Some((id, stability.newest_closed_cut(id)?.clone()))
    };
    let mut newest: ChosenCuts = state.buckets().filter_map(newest).collect();
    let mut oldest: BTreeMap<(BucketId, BucketId), EpochWait> = BTreeMap::new();
    for SplitCommit { bucket, transaction, lacking } in
        avoid_split_commits(stability, state, &mut newest)
    {
        let since_ms =
            stability.open_commits(bucket).and_then(|open| open.joint_since_ms(transaction));
        let since_ms = since_ms.unwrap_or(now_ms);
        let held_ms = now_ms.saturating_sub(since_ms);
        let hold = EpochWait { bucket, transaction, waits_for: lacking, held_ms };
        let known = oldest.entry((bucket, lacking)).or_insert_with(|| hold.clone());
        if known.held_ms < held_ms {
            *known = hold;
        }
    }
    let mut holds: Vec<_> =
        oldest.into_values().filter(|hold| hold.held_ms >= HELD_MS_MIN).collect();
    holds.sort_by_key(|hold| std::cmp::Reverse(hold.held_ms));
    holds.truncate(HOLDS_MAX);
    holds
}
