//! Converts a condition to ranges of entries.
//!
//! A term of the condition that has only one key part and constants is a *set* of values of that
//! part (`condition`, `value_set`). Sets of the same part are intersected. Then the parts are
//! processed in key order. While the set of a part has only single values, each value extends the
//! prefixes of the ranges. The first part whose set is a wider interval completes the ranges; the
//! terms about later parts remain as a filter. The document's id, as raw bytes, comes after the
//! last part.
//!
//! The bytes of a DESC part are inverted. For such a part, "before" and "after" are swapped, as
//! are the ends of an interval.

use bytes::Bytes;
use proto::expr::Expr;
use proto::model::index::{IndexSpec, KeyPart};
use proto::rpc::scan::KeyRange;
use proto::value::key::successor;

use super::condition::matching_values;
use super::partitions::partition_keys;
use super::value_set::{Bound, Part, PartSet, Set, covering, intersect};

/// The maximum number of ranges of a scan. Each range is a seek in each slice, so more ranges are
/// replaced by one range and a filter.
pub const RANGES_MAX: usize = 1000;

/// The ranges of an index and the filter that implement a condition.
#[derive(Debug, PartialEq)]
pub struct IndexAccess {
    /// Ascending, disjoint ranges of entries.
    pub ranges: Vec<KeyRange>,
    /// For each key part, true if it has a single value.
    pub fixed: Vec<bool>,
    /// For each key part, true if it can be both NULL and MISSING, which SQL does not
    /// distinguish.
    pub blurred: Vec<bool>,
    /// The key parts that are NULL or MISSING in all rows.
    pub absent: Vec<u16>,
    /// The terms of the condition that the ranges implement completely.
    pub used: Vec<Expr>,
    /// The other terms of the condition, which the filter checks.
    pub filter: Vec<Expr>,
    /// The partition keys that matching entries can have ([`super::partitions`]); `None` if
    /// unknown.
    pub partitions: Option<Vec<Bytes>>,
}

/// Implements a condition, given as its terms (`conjuncts`), by ranges and a filter.
pub fn index_access(spec: &IndexSpec, conjuncts: Vec<Expr>) -> IndexAccess {
    let parts = parts_of(spec);
    let (mut sets, rest) = sets_of(&parts, conjuncts);
    let blurs = |(part, set): (&Part, &PartSet)| {
        part.has_null_and_missing(set.as_ref().map(|(set, _)| set))
    };
    let absent = parts
        .iter()
        .zip(&sets)
        .zip(0..)
        .filter(|((part, set), _)| set.as_ref().is_some_and(|(set, _)| part.is_absent(set)));
    let mut access = IndexAccess {
        absent: absent.map(|(_, n)| n).collect(),
        ranges: Vec::new(),
        fixed: vec![false; spec.keys.len()],
        blurred: parts.iter().zip(&sets).map(blurs).collect(),
        used: vec![],
        filter: vec![],
        partitions: partition_keys(spec, &sets),
    };
    let mut prefixes = vec![Vec::new()];
    let mut ranges = None;
    for (n, part) in parts.iter().enumerate() {
        let Some((intervals, conjuncts)) = sets[n].take() else { break };
        let fits = prefixes.len().saturating_mul(intervals.len()) <= RANGES_MAX;
        let points = intervals.iter().all(|interval| interval.point.is_some());
        match (fits, part) {
            // An empty set, as of `a = NULL`, counts as a single value: whether an order is possible must not depend on the
            // values of parameters.
            (true, Part::Key { descending, .. }) if points => {
                access.fixed[n] = intervals.len() <= 1;
                access.used.extend(conjuncts);
                prefixes = extend(&prefixes, &intervals, *descending);
            }
            (true, _) => {
                access.used.extend(conjuncts);
                ranges = Some(complete_ranges(&prefixes, &intervals, *part));
                break;
            }
            (false, _) => {
                access.filter.extend(conjuncts);
                ranges = Some(complete_ranges(&prefixes, &covering(&intervals), *part));
                break;
            }
        }
    }
    let left = sets.into_iter().flatten().flat_map(|(_, conjuncts)| conjuncts);
    access.filter.extend(left);
    // Comparisons with constants come first: they cost little, never fail, and may guard the others.
    access.filter.extend(rest);
    access.ranges = ranges.unwrap_or_else(|| prefixes.into_iter().map(beginning_with).collect());
    access
}

/// Returns the key parts of an index, then the id.
fn parts_of(spec: &IndexSpec) -> Vec<Part> {
    let key = |(n, key): (usize, &KeyPart)| Part::Key {
        column: n as u16,
        descending: key.descending,
        is_id: key.expr == Expr::DocumentId,
        // A document without a leading part has no entry, and an array has elements only.
        may_be_missing: (n > 0 || key.include_missing) && spec.array_part() != Some(n),
    };
    spec.keys.iter().enumerate().map(key).chain([Part::Id]).collect()
}

/// Returns the set of values of each part, and the terms that do not determine a set. A term
/// about the id applies to the id after the key, and to a key part that is the id.
fn sets_of(parts: &[Part], conjuncts: Vec<Expr>) -> (Vec<PartSet>, Vec<Expr>) {
    let mut sets: Vec<PartSet> = vec![None; parts.len()];
    let mut rest = Vec::new();
    for conjunct in conjuncts {
        let found = (parts.iter().enumerate())
            .find_map(|(n, part)| matching_values(*part, &conjunct).map(|set| (n, set)));
        let Some((n, set)) = found else {
            rest.push(conjunct);
            continue;
        };
        if let Part::Key { is_id: true, .. } = parts[n]
            && let Some(ids) = matching_values(Part::Id, &conjunct)
        {
            narrow(&mut sets[parts.len() - 1], ids, None);
        }
        narrow(&mut sets[n], set, Some(conjunct));
    }
    (sets, rest)
}

/// Intersects the set of a part with another set, which follows from `conjunct`.
fn narrow(part: &mut PartSet, set: Set, conjunct: Option<Expr>) {
    match part {
        Some((known, conjuncts)) => {
            *known = intersect(known, &set);
            conjuncts.extend(conjunct);
        }
        empty => *empty = Some((set, Vec::from_iter(conjunct))),
    }
}

/// Returns the range of all entries that begin with a prefix.
fn beginning_with(prefix: Vec<u8>) -> KeyRange {
    KeyRange { high: successor(&prefix).map(Bytes::from), low: prefix.into() }
}

/// Returns each prefix extended by each value, in the order of the index.
fn extend(prefixes: &[Vec<u8>], points: &Set, descending: bool) -> Vec<Vec<u8>> {
    let mut codes: Vec<Vec<u8>> = points.iter().filter_map(|point| point.point.clone()).collect();
    if descending {
        codes.reverse();
        codes.iter_mut().flatten().for_each(|byte| *byte = !*byte);
    }
    prefixes
        .iter()
        .flat_map(|prefix| codes.iter().map(move |code| [&prefix[..], code].concat()))
        .collect()
}

/// Returns the ranges of entries that begin with one of `prefixes` and continue with a value of
/// `set`, in the order of the index.
fn complete_ranges(prefixes: &[Vec<u8>], set: &Set, part: Part) -> Vec<KeyRange> {
    let descending = matches!(part, Part::Key { descending: true, .. });
    let mut bounds: Vec<(Bound, Bound)> =
        set.iter().map(|interval| (interval.low.clone(), interval.high.clone())).collect();
    if descending {
        bounds.reverse();
        for (low, high) in &mut bounds {
            (*low, *high) = (high.inverted(), low.inverted());
        }
    }
    let mut ranges = Vec::with_capacity(prefixes.len() * bounds.len());
    for prefix in prefixes {
        for (low, high) in &bounds {
            // An interval that begins at the very end is empty.
            let Some(low) = low.position(prefix) else { continue };
            let high = high.position(prefix).map(Bytes::from);
            ranges.push(KeyRange { low: low.into(), high });
        }
    }
    ranges
}
