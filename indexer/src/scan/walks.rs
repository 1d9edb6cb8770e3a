//! The walks of a shard scan: which slices and ranges it reads, in which order, and how.
//!
//! | the scan requests | walks | each |
//! |---|---|---|
//! | rows, without a filter and DISTINCT | its ranges, over all slices merged | packs entries, or whole blocks |
//! | `count(*)`, without a filter | its ranges, slice by slice, which needs no merge | counts entries, or whole blocks |
//! | `min` or `max` of the leading key, without a filter | its ranges from one end, without NULL and MISSING, over all slices merged | ends all walks of this aggregate at the first entry |
//! | anything else | its ranges, over all slices merged | evaluates each entry |

use bytes::Bytes;
use proto::expr::Expr;
use proto::expr::aggregate::AggregateFunction;
use proto::model::ids::SliceNo;
use proto::model::index::IndexSpec;
use proto::rpc::scan::{AggregateCall, KeyRange, Output, ShardScan};
use proto::value::key;

/// A walk over some slices.
#[derive(Debug)]
pub(super) struct Walk {
    /// The slice to read; `None` for all slices of the scan, merged.
    pub slice: Option<SliceNo>,
    pub range: KeyRange,
    pub reverse: bool,
    pub reads: Reads,
}

/// The way in which a walk uses its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// Packs all visible entries as rows.
    Packed,
    /// Counts all visible entries.
    Counted,
    /// Searches the first visible entry: its leading key is the result of the aggregate with this
    /// number.
    EndFor(usize),
    /// Evaluates each entry.
    Each,
}

impl Walk {
    /// Makes a walk begin at an entry.
    pub fn from(mut self, entry: Vec<u8>) -> Self {
        match self.reverse {
            // The bound is exclusive.
            true => self.range.high = Some(behind(&entry)),
            false => self.range.low = entry.into(),
        }
        self
    }

    /// Makes a walk begin after an entry.
    pub fn behind(mut self, entry: Vec<u8>) -> Self {
        match self.reverse {
            true => self.range.high = Some(entry.into()),
            false => self.range.low = behind(&entry),
        }
        self
    }
}

/// Returns the walks of a scan, in reverse order: the last element is walked first.
pub(super) fn walks(scan: &ShardScan, spec: &IndexSpec) -> Vec<Walk> {
    let is_plain = scan.filter.is_none() && scan.distinct_parts.is_none();
    let mut walks = match &scan.output {
        Output::Rows { .. } if is_plain => over_ranges(scan, None, scan.reverse, Reads::Packed),
        Output::Aggregates(calls) if is_plain => {
            aggregates(scan, calls, spec).unwrap_or_else(|| each(scan))
        }
        _ => each(scan),
    };
    walks.reverse();
    walks
}

fn each(scan: &ShardScan) -> Vec<Walk> {
    over_ranges(scan, None, scan.reverse, Reads::Each)
}

/// Returns the walks of aggregates; `None` if an aggregate must evaluate each row.
fn aggregates(scan: &ShardScan, calls: &[AggregateCall], spec: &IndexSpec) -> Option<Vec<Walk>> {
    let mut walks = Vec::new();
    let mut counts = false;
    for (n, call) in calls.iter().enumerate() {
        match (call.function, &call.argument) {
            (AggregateFunction::Count, None) => counts = true,
            (AggregateFunction::Min | AggregateFunction::Max, Some(Expr::Column(0))) => {
                walks.extend(to_end(scan, n, call.function, spec.keys.first()?.descending));
            }
            _ => return None,
        }
    }
    if counts {
        let of_slice = |slice: &SliceNo| over_ranges(scan, Some(*slice), false, Reads::Counted);
        walks.extend(scan.slices.iter().flat_map(of_slice));
    }
    Some(walks)
}

/// Returns the walks that search the least or greatest leading key, for the aggregate `call`.
fn to_end(
    scan: &ShardScan,
    call: usize,
    function: AggregateFunction,
    descending: bool,
) -> impl Iterator<Item = Walk> {
    let reverse = (function == AggregateFunction::Max) != descending;
    let (low, high) = key::values_known(descending);
    let known = KeyRange { low: low.into(), high: high.map(Bytes::from) };
    let walks = over_ranges(scan, None, reverse, Reads::EndFor(call));
    walks
        .into_iter()
        .filter_map(move |walk| Some(Walk { range: intersection(walk.range, &known)?, ..walk }))
}

/// Returns a walk for each range that a scan reads, without the entries before its resume point.
fn over_ranges(scan: &ShardScan, slice: Option<SliceNo>, reverse: bool, reads: Reads) -> Vec<Walk> {
    let left = resume_range(scan);
    let ranges = scan.ranges.iter().filter_map(|range| intersection(range.clone(), &left));
    let mut walks: Vec<Walk> = ranges.map(|range| Walk { slice, range, reverse, reads }).collect();
    if reverse {
        walks.reverse();
    }
    walks
}

/// The range after the resume point of a scan.
fn resume_range(scan: &ShardScan) -> KeyRange {
    match &scan.resume_after {
        None => KeyRange::all(),
        Some(after) if scan.reverse => KeyRange { low: Bytes::new(), high: Some(after.clone()) },
        Some(after) => KeyRange { low: behind(after), high: None },
    }
}

/// Returns the smallest entry greater than `entry`: `entry` with a zero byte appended.
fn behind(entry: &[u8]) -> Bytes {
    [entry, &[0][..]].concat().into()
}

/// Returns the intersection of two ranges; `None` if it is empty.
fn intersection(mut range: KeyRange, other: &KeyRange) -> Option<KeyRange> {
    if other.low > range.low {
        range.low = other.low.clone();
    }
    if let Some(high) = &other.high
        && range.high.as_ref().is_none_or(|own| high < own)
    {
        range.high = Some(high.clone());
    }
    let is_empty = range.high.as_ref().is_some_and(|high| *high <= range.low);
    (!is_empty).then_some(range)
}
