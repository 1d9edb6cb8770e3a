//! The leases of epochs and of moments. A lease of a moment counts, in each bucket, as a lease of
//! the epoch in force at the moment.

use std::collections::BTreeSet;

use proto::model::ids::{BucketId, Epoch};
use proto::model::moment::Moment;

use crate::leader::epochs::horizon::LEASE_MS;
use crate::leader::nodes::heartbeats::Heartbeats;
use crate::state::StateContext;

/// Returns the log indexes of the leased moments. If the leader no longer knows the index of a
/// moment, it uses the index that the router reported.
pub(in crate::leader) fn leased_indexes(
    state: &StateContext,
    heartbeats: &Heartbeats,
    now_ms: u64,
) -> BTreeSet<u64> {
    let index_of = |moment: &Moment| state.index_of(moment).unwrap_or(moment.at);
    heartbeats.moments(now_ms).iter().map(index_of).collect()
}

/// Returns the epochs of a bucket that are in force at the given log indexes, ascending. Where
/// the epoch in force is no longer known, returns an older one, which holds the horizon back
/// further.
pub(in crate::leader) fn epochs_in_force(
    state: &StateContext,
    bucket: BucketId,
    indexes: &BTreeSet<u64>,
) -> impl Iterator<Item = Epoch> {
    let moments = state.moments(bucket);
    indexes.iter().filter_map(move |at| moments?.newest_until(*at))
}

/// Returns true if a scan or transaction that chose its slices by an older catalog may still read
/// this epoch of a bucket, or an older epoch. (A transaction may read the bucket for the first
/// time later, at its moment.) In an idle bucket all scans read one epoch. So a lease of exactly
/// this epoch counts only if its router may have scans that began before the catalog.
pub(in crate::leader) fn is_leased_before(
    state: &StateContext,
    heartbeats: &Heartbeats,
    (bucket, epoch): (BucketId, Epoch),
    catalog_cas: u64,
    now_ms: u64,
) -> bool {
    let moments = leased_indexes(state, heartbeats, now_ms);
    let mut in_force = epochs_in_force(state, bucket, &moments);
    let may_be_older = |(leased, reads_since): (Epoch, u64)| {
        leased < epoch || leased == epoch && reads_since < catalog_cas
    };
    heartbeats.term_ms(now_ms) < LEASE_MS
        || in_force.any(|leased| leased <= epoch)
        || heartbeats.leases_with_catalogs(bucket, now_ms).any(may_be_older)
}
