//! Operations on ranges of entries.

use proto::rpc::scan::KeyRange;

/// Returns the intersection of two ranges.
pub(super) fn intersection(a: &KeyRange, b: &KeyRange) -> KeyRange {
    let high = match (&a.high, &b.high) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.as_ref().or(b.as_ref()),
    };
    KeyRange { low: a.low.clone().max(b.low.clone()), high: high.cloned() }
}

/// Returns true if a range contains no entry.
pub(super) fn is_empty(range: &KeyRange) -> bool {
    range.high.as_ref().is_some_and(|high| *high <= range.low)
}
