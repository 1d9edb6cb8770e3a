//! The leases of moments: for each bucket, a leased moment is a lease of the epoch in force there at it.

use std::collections::BTreeSet;

use proto::model::ids::{BucketId, Epoch};
use proto::model::moment::Moment;

use super::heartbeats::Heartbeats;
use crate::state::StateContext;

/// The log indexes of the leased moments. A moment whose epoch is not known any more counts where its router saw it.
pub(super) fn leased_indexes(
    state: &StateContext,
    heartbeats: &Heartbeats,
    now_ms: u64,
) -> BTreeSet<u64> {
    let index_of = |moment: &Moment| state.index_of(moment).unwrap_or(moment.at);
    heartbeats.moments(now_ms).iter().map(index_of).collect()
}

/// The epochs of a bucket that are in force at some indexes, ascending. Where the epoch itself is not known any more, it is the one before
/// it, which holds more.
pub(super) fn in_force(
    state: &StateContext,
    bucket: BucketId,
    indexes: &BTreeSet<u64>,
) -> impl Iterator<Item = Epoch> {
    let moments = state.moments(bucket);
    indexes.iter().filter_map(move |at| moments?.newest_until(*at))
}
