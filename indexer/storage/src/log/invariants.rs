//! Invariants of the log, as predicates. Debug builds check them when records are appended, when a
//! segment is begun, and at each release.

use std::collections::VecDeque;

use crate::log::lsn::Lsn;

/// Returns true if at least one segment exists and the segments begin at ascending LSNs.
pub(super) fn segments_are_in_order(bases: &VecDeque<Lsn>) -> bool {
    !bases.is_empty() && bases.iter().zip(bases.iter().skip(1)).all(|(left, right)| left < right)
}

/// Returns true if a release up to `lsn` has removed no segment that contains records after `lsn`.
pub(super) fn release_kept_the_rest(oldest_before: Lsn, bases: &VecDeque<Lsn>, lsn: Lsn) -> bool {
    bases.front().is_some_and(|oldest| *oldest <= lsn.max(oldest_before))
}

/// Returns true if no record claims a durable end above the real one, and no durable end is above
/// the end of the data.
pub(super) fn ends_are_in_order(vouched: Lsn, durable: Lsn, data_end: Lsn, end: Lsn) -> bool {
    vouched <= durable && durable <= end && data_end <= end
}
