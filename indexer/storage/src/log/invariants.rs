//! Invariants of the log, as predicates. Debug builds check them when records are appended, when a
//! segment is begun, and at each release.

use std::collections::VecDeque;

use crate::log::lsn::Lsn;

/// Returns true if at least one segment exists and the segments begin at ascending LSNs.
pub(super) fn segments_are_in_order(bases: &VecDeque<Lsn>) -> bool {
    !bases.is_empty() && bases.iter().zip(bases.iter().skip(1)).all(|(left, right)| left < right)
}

/// Returns true if a release up to `lsn` has removed no segment with records after `lsn`.
/// `oldest_before` is the oldest segment before the release, and `bases` are the segments after
/// it.
pub(super) fn release_kept_the_rest(oldest_before: Lsn, bases: &VecDeque<Lsn>, lsn: Lsn) -> bool {
    bases.front().is_some_and(|oldest| *oldest <= lsn.max(oldest_before))
}

/// Returns true if the positions at the end of a log are in order: no record claims that the log
/// is durable beyond `durable`, and neither `durable` nor the last data record is beyond the end.
pub(super) fn ends_are_in_order(vouched: Lsn, durable: Lsn, data_end: Lsn, end: Lsn) -> bool {
    vouched <= durable && durable <= end && data_end <= end
}
