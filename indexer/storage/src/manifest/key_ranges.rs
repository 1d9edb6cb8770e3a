//! Ranges of entries.

use proto::rpc::scan::KeyRange;

/// The entries that lie in both.
pub(super) fn intersection(a: &KeyRange, b: &KeyRange) -> KeyRange {
    let high = match (&a.high, &b.high) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.as_ref().or(b.as_ref()),
    };
    KeyRange { low: a.low.clone().max(b.low.clone()), high: high.cloned() }
}

/// Can no entry lie inside?
pub(super) fn is_empty(range: &KeyRange) -> bool {
    range.high.as_ref().is_some_and(|high| *high <= range.low)
}
