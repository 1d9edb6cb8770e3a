//! Names the epochs that commits over several buckets hold, for status.
//!
//! An epoch does not include a joint commit until the epochs of all buckets of that commit include it ([`crate::leader::copies::keep_whole`]).
//! The next reports of the projectors end such a hold, unless the projector of the other bucket is silent. The leader remembers when each
//! commit was reported first, and nothing else for this: for each status query it repeats the choice with the newest cuts, so slow indexers
//! are not listed as holds.

use std::collections::BTreeMap;

use proto::model::ids::BucketId;
use proto::rpc::api::{EpochHold, HELD_MS_MIN, HOLDS_MAX};

use crate::leader::copies::keep_whole::{ChosenCuts, Split, keep_whole};
use crate::leader::epochs::stability::Stability;
use crate::state::{BucketView, StateContext};

/// Returns the epochs that are held now, the longest hold first.
pub(in crate::leader) fn holds(
    stability: &Stability,
    state: &StateContext,
    now_ms: u64,
) -> Vec<EpochHold> {
    if !stability.has_joint() {
        return Vec::new();
    }
    let newest = |(id, bucket): (BucketId, BucketView<'_>)| {
        bucket.info.readable_from()?;
        Some((id, stability.newest(id)?.clone()))
    };
    let mut newest: ChosenCuts = state.buckets().filter_map(newest).collect();
    let mut oldest: BTreeMap<(BucketId, BucketId), EpochHold> = BTreeMap::new();
    for Split { bucket, transaction, lacking } in keep_whole(stability, state, &mut newest) {
        let since_ms = stability.open(bucket).and_then(|open| open.joint_since_ms(transaction));
        let since_ms = since_ms.unwrap_or(now_ms);
        let held_ms = now_ms.saturating_sub(since_ms);
        let hold = EpochHold { bucket, transaction, waits_for: lacking, held_ms };
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
