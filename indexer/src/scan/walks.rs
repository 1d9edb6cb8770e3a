//! The walks of a shard scan. A walk reads a range of one or all slices in one way. The table
//! shows which walks a request needs.
//!
//! | the scan requests | walks | each walk |
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

/// A walk: a range to read in one slice or in all slices, its direction, and the use of its
/// entries.
#[derive(Debug)]
pub(super) struct Walk {
    /// The slice to read; `None` for all slices of the scan, merged.
    pub slice: Option<SliceNo>,
    pub range: KeyRange,
    pub reverse: bool,
    pub reads: EntryUse,
}

/// The use of the entries that a walk reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryUse {
    /// Packs all visible entries as rows.
    Packed,
    /// Counts all visible entries.
    Counted,
    /// Searches the first visible entry. Its leading key is the result of the aggregate with this
    /// number.
    EndFor(usize),
    /// Evaluates each entry: its filter, DISTINCT, and aggregates.
    Each,
}

impl Walk {
    /// Returns the walk, shortened so that it begins at an entry.
    pub fn from(mut self, entry: Vec<u8>) -> Self {
        match self.reverse {
            // The bound is exclusive.
            true => self.range.high = Some(behind(&entry)),
            false => self.range.low = entry.into(),
        }
        self
    }

    /// Returns the walk, shortened so that it begins after an entry.
    pub fn starting_after(mut self, entry: Vec<u8>) -> Self {
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
        Output::Rows { .. } if is_plain => over_ranges(scan, None, scan.reverse, EntryUse::Packed),
        Output::Aggregates(calls) if is_plain => {
            aggregates(scan, calls, spec).unwrap_or_else(|| evaluating_walks(scan))
        }
        _ => evaluating_walks(scan),
    };
    walks.reverse();
    walks
}

/// Returns the walks that evaluate each entry.
fn evaluating_walks(scan: &ShardScan) -> Vec<Walk> {
    over_ranges(scan, None, scan.reverse, EntryUse::Each)
}

/// Returns the walks of aggregates; `None` if an aggregate must evaluate each row.
fn aggregates(scan: &ShardScan, calls: &[AggregateCall], spec: &IndexSpec) -> Option<Vec<Walk>> {
    let mut walks = Vec::new();
    let mut counts = false;
    for (n, call) in calls.iter().enumerate() {
        match (call.function, &call.argument) {
            (AggregateFunction::Count, None) => counts = true,
            (AggregateFunction::Min | AggregateFunction::Max, Some(Expr::Column(0))) => {
                walks.extend(end_walks(scan, n, call.function, spec.keys.first()?.descending));
            }
            _ => return None,
        }
    }
    if counts {
        let of_slice = |slice: &SliceNo| over_ranges(scan, Some(*slice), false, EntryUse::Counted);
        walks.extend(scan.slices.iter().flat_map(of_slice));
    }
    Some(walks)
}

/// Returns the walks that search the least or greatest leading key. `call` is the number of the
/// aggregate that needs the key.
fn end_walks(
    scan: &ShardScan,
    call: usize,
    function: AggregateFunction,
    descending: bool,
) -> impl Iterator<Item = Walk> {
    let reverse = (function == AggregateFunction::Max) != descending;
    let (low, high) = key::range_of_present_values(descending);
    let known = KeyRange { low: low.into(), high: high.map(Bytes::from) };
    let walks = over_ranges(scan, None, reverse, EntryUse::EndFor(call));
    walks
        .into_iter()
        .filter_map(move |walk| Some(Walk { range: intersection(walk.range, &known)?, ..walk }))
}

/// Returns a walk for each range that a scan reads, without the entries up to its resume point.
fn over_ranges(
    scan: &ShardScan,
    slice: Option<SliceNo>,
    reverse: bool,
    reads: EntryUse,
) -> Vec<Walk> {
    let left = resume_range(scan);
    let ranges = scan.ranges.iter().filter_map(|range| intersection(range.clone(), &left));
    let mut walks: Vec<Walk> = ranges.map(|range| Walk { slice, range, reverse, reads }).collect();
    if reverse {
        walks.reverse();
    }
    walks
}

/// Returns the range of entries after the resume point of a scan.
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
