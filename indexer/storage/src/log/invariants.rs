//! Invariants of the log, as predicates. Debug builds check them when records are appended, when a
//! segment is begun, and at each release.

use std::collections::VecDeque;

use crate::log::lsn::Lsn;

/// There is always a last segment, and segments begin at ascending LSNs.
pub(super) fn segments_are_in_order(bases: &VecDeque<Lsn>) -> bool {
    !bases.is_empty() && bases.iter().zip(bases.iter().skip(1)).all(|(left, right)| left < right)
}

/// A release up to `lsn` has removed no segment that holds records after `lsn`.
pub(super) fn release_kept_the_rest(oldest_before: Lsn, bases: &VecDeque<Lsn>, lsn: Lsn) -> bool {
    bases.front().is_some_and(|oldest| *oldest <= lsn.max(oldest_before))
}

/// No record claims that more of the log is durable than really is, and no part ends after the end of the data.
pub(super) fn ends_are_in_order(vouched: Lsn, durable: Lsn, data_end: Lsn, end: Lsn) -> bool {
    vouched <= durable && durable <= end && data_end <= end
}
