//! Turns conditions into ranges of entries.
//!
//! A conjunct over one key part and constants is a *set* of values of that part: a union of intervals in the order of
//! encoded values. Sets of the same part are intersected. Then the parts are processed in key order. While a part's set
//! has only single values, each value extends the prefixes of the ranges. The first part with a wider interval completes
//! the ranges, and the conjuncts of later parts remain as a filter. The document's id, as raw bytes, comes after the last
//! part.
//!
//! A comparison is true only within one type, so `a > 5` is the interval from after 5 to the end of the numbers. An encoded
//! value is never a prefix of another one, so "before" and "after" an encoded value are points between entries. A DESC
//! part inverts the bytes, which swaps before and after, and the ends of an interval.

use bytes::Bytes;
use proto::expr::{CompareOp, Expr};
use proto::model::index::IndexSpec;
use proto::rpc::scan::KeyRange;
use proto::value::Value;
use proto::value::key::{encode_part, successor};

/// Maximum of ranges in a scan, because each is a seek in each slice. A longer list becomes one range and a filter.
pub const RANGES_MAX: usize = 1000;

/// The ranges and the filter of a scan.
#[derive(Debug, PartialEq)]
pub struct Access {
    /// Ascending, disjoint ranges of entries.
    pub ranges: Vec<KeyRange>,
    /// For each key part, true if it has a single value.
    pub fixed: Vec<bool>,
    /// The conjuncts that the ranges implement.
    pub used: Vec<Expr>,
    /// The remaining conjuncts, which the filter checks.
    pub filter: Vec<Expr>,
}

/// Splits the conjuncts of a condition into ranges and a filter.
pub fn access(spec: &IndexSpec, conjuncts: Vec<Expr>) -> Access {
    let parts: Vec<Part> = (0..spec.keys.len())
        .map(|n| Part::Key { column: n as u16, descending: spec.keys[n].descending })
        .chain([Part::Id])
        .collect();
    let (mut sets, rest) = sets_of(&parts, conjuncts);
    let mut access = Access {
        ranges: Vec::new(),
        fixed: vec![false; spec.keys.len()],
        used: vec![],
        filter: rest,
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
                ranges = Some(close(&prefixes, &intervals, *part));
                break;
            }
            (false, _) => {
                access.filter.extend(conjuncts);
                ranges = Some(close(&prefixes, &covering(&intervals), *part));
                break;
            }
        }
    }
    let left = sets.into_iter().flatten().flat_map(|(_, conjuncts)| conjuncts);
    access.filter.extend(left);
    access.ranges = ranges.unwrap_or_else(|| {
        prefixes
            .into_iter()
            .map(|prefix| KeyRange {
                high: successor(&prefix).map(Bytes::from),
                low: prefix.into(),
            })
            .collect()
    });
    access
}

/// A key part, or the id after them.
#[derive(Clone, Copy, Debug)]
enum Part {
    Key { column: u16, descending: bool },
    Id,
}

impl Part {
    fn is(self, expr: &Expr) -> bool {
        match (self, expr) {
            (Self::Key { column, .. }, Expr::Column(n)) => column == *n,
            (Self::Id, Expr::DocumentId) => true,
            _ => false,
        }
    }

    fn encode(self, value: &Value) -> Vec<u8> {
        match (self, value) {
            (Self::Id, Value::String(id)) => id.as_bytes().to_vec(),
            _ => {
                let mut code = Vec::new();
                encode_part(value, false, &mut code);
                code
            }
        }
    }

    /// The point before a value.
    fn before(self, value: &Value) -> Bound {
        Bound { code: self.encode(value), after: false }
    }

    /// The point after a value. An id can be a prefix of another id; an encoded part cannot be one of another part.
    fn after(self, value: &Value) -> Bound {
        let mut code = self.encode(value);
        match self {
            Self::Key { .. } => Bound { code, after: true },
            Self::Id => {
                code.push(0);
                Bound { code, after: false }
            }
        }
    }

    /// The set of one value; empty if the part cannot have it.
    fn point(self, value: &Value) -> Vec<Interval> {
        if matches!(self, Self::Id) && !matches!(value, Value::String(_)) {
            return Vec::new();
        }
        let (low, high) = (self.before(value), self.after(value));
        vec![Interval { low, high, point: Some(self.encode(value)) }]
    }

    /// The set of all values of a value's type; empty for NULL and MISSING, whose comparisons are never true.
    fn same_type(self, value: &Value) -> Option<Interval> {
        let (least, greatest) = match value {
            Value::Missing | Value::Null => return None,
            Value::Bool(_) => (Value::Bool(false), Value::Bool(true)),
            Value::Number(_) => (Value::float(f64::MIN), Value::float(f64::MAX)),
            other => (other.clone(), other.clone()),
        };
        let all = Interval {
            low: Bound { code: Vec::new(), after: false },
            high: Bound { code: Vec::new(), after: true },
            point: None,
        };
        match (self, value) {
            (Self::Id, Value::String(_)) => Some(all),
            (Self::Id, _) => None,
            (Self::Key { .. }, _) => {
                // The first byte of an encoded value is its type.
                let tag = |value: &Value| self.encode(value)[..1].to_vec();
                Some(Interval {
                    low: Bound { code: tag(&least), after: false },
                    high: Bound { code: tag(&greatest), after: true },
                    point: None,
                })
            }
        }
    }

    /// The set of strings that begin with `prefix`.
    fn beginning_with(self, prefix: &str) -> Vec<Interval> {
        let mut code = self.encode(&Value::String(prefix.to_owned()));
        if matches!(self, Self::Key { .. }) {
            // The final byte of an encoded string.
            code.pop();
        }
        let (low, high) = (Bound { code: code.clone(), after: false }, Bound { code, after: true });
        vec![Interval { low, high, point: None }]
    }
}

/// A point between encoded values: before or after all values that begin with `code`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    code: Vec<u8>,
    after: bool,
}

impl Bound {
    /// The smallest bytes after the point; `None` at the very end.
    fn position(&self, prefix: &[u8]) -> Option<Vec<u8>> {
        let bytes = [prefix, &self.code].concat();
        if self.after { successor(&bytes) } else { Some(bytes) }
    }

    /// The same point after all bytes are inverted.
    fn inverted(&self) -> Self {
        Self { code: self.code.iter().map(|byte| !byte).collect(), after: !self.after }
    }

    fn is_before(&self, other: &Self) -> bool {
        match (self.position(&[]), other.position(&[])) {
            (Some(mine), Some(theirs)) => mine < theirs,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }
}

/// The values between two points, with the encoded value if there is just one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interval {
    low: Bound,
    high: Bound,
    point: Option<Vec<u8>>,
}

/// A set of values of one part: disjoint intervals, ascending.
type Set = Vec<Interval>;

/// Returns the set of each part with its conjuncts, and the conjuncts that form no set.
type PartSet = Option<(Set, Vec<Expr>)>;

fn sets_of(parts: &[Part], conjuncts: Vec<Expr>) -> (Vec<PartSet>, Vec<Expr>) {
    let mut sets: Vec<PartSet> = vec![None; parts.len()];
    let mut rest = Vec::new();
    for conjunct in conjuncts {
        let found = parts
            .iter()
            .enumerate()
            .find_map(|(n, part)| set_of(*part, &conjunct).map(|set| (n, set)));
        match found {
            None => rest.push(conjunct),
            Some((n, set)) => match &mut sets[n] {
                Some((known, conjuncts)) => {
                    *known = intersect(known, &set);
                    conjuncts.push(conjunct);
                }
                empty => *empty = Some((set, vec![conjunct])),
            },
        }
    }
    (sets, rest)
}

/// Returns the values of a part for which a condition is true, if the condition depends on that part alone.
fn set_of(part: Part, condition: &Expr) -> Option<Set> {
    match condition {
        Expr::Compare(op, left, right) => match (&**left, &**right) {
            (left, Expr::Literal(value)) if part.is(left) => compare(part, *op, value),
            (Expr::Literal(value), right) if part.is(right) => compare(part, mirror(*op), value),
            _ => None,
        },
        Expr::Between { expr, low, high, negated: false } if part.is(expr) => {
            let (Expr::Literal(low), Expr::Literal(high)) = (&**low, &**high) else { return None };
            let from = compare(part, CompareOp::GreaterEq, low)?;
            Some(intersect(&from, &compare(part, CompareOp::LessEq, high)?))
        }
        Expr::In { expr, list, negated: false } if part.is(expr) => {
            let mut all = Vec::with_capacity(list.len());
            for item in list {
                let Expr::Literal(value) = item else { return None };
                all.extend(compare(part, CompareOp::Eq, value)?);
            }
            Some(union(all))
        }
        Expr::Like { expr, pattern, negated: false } if part.is(expr) => match &**pattern {
            Expr::Literal(Value::String(pattern)) => like(part, pattern),
            _ => None,
        },
        Expr::IsNull { expr, negated: false } if part.is(expr) => Some(part.point(&Value::Null)),
        Expr::IsMissing { expr, negated: false } if part.is(expr) => {
            Some(part.point(&Value::Missing))
        }
        Expr::Or(terms) => {
            let mut all = Vec::new();
            for term in terms {
                all.extend(set_of(part, term)?);
            }
            Some(union(all))
        }
        // Outside of an OR the terms were separate conjuncts.
        Expr::And(terms) => {
            let mut sets = terms.iter().map(|term| set_of(part, term));
            let first = sets.next()??;
            sets.try_fold(first, |known, set| Some(intersect(&known, &set?)))
        }
        // A constant condition: `FALSE` makes the set of the first part empty.
        Expr::Literal(Value::Bool(false) | Value::Null) => Some(Vec::new()),
        _ => None,
    }
}

fn compare(part: Part, op: CompareOp, value: &Value) -> Option<Set> {
    if op == CompareOp::NotEq {
        return None;
    }
    let Some(mut all) = part.same_type(value) else { return Some(Vec::new()) };
    match op {
        CompareOp::Eq => return Some(part.point(value)),
        CompareOp::Less => all.high = part.before(value),
        CompareOp::LessEq => all.high = part.after(value),
        CompareOp::Greater => all.low = part.after(value),
        _ => all.low = part.before(value),
    }
    Some(union(vec![all]))
}

fn mirror(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Less => CompareOp::Greater,
        CompareOp::LessEq => CompareOp::GreaterEq,
        CompareOp::Greater => CompareOp::Less,
        CompareOp::GreaterEq => CompareOp::LessEq,
        same => same,
    }
}

/// The set of a LIKE pattern: one string if it has no wildcard, a prefix if `%` at its end is the only one.
fn like(part: Part, pattern: &str) -> Option<Set> {
    let mut prefix = String::new();
    let mut chars = pattern.chars();
    while let Some(ch) = chars.next() {
        match ch {
            '%' if chars.as_str().is_empty() => return Some(part.beginning_with(&prefix)),
            '%' | '_' => return None,
            '\\' => prefix.push(chars.next()?),
            _ => prefix.push(ch),
        }
    }
    Some(part.point(&Value::String(prefix)))
}

/// Sorts intervals, merges adjacent ones, and removes empty ones.
fn union(mut intervals: Set) -> Set {
    intervals.retain(|interval| interval.low.is_before(&interval.high));
    intervals.sort_by_cached_key(|interval| interval.low.position(&[]));
    let mut joined: Set = Vec::with_capacity(intervals.len());
    for interval in intervals {
        match joined.last_mut() {
            Some(last) if interval.low.is_before(&last.high) => {
                if last.high.is_before(&interval.high) {
                    last.high = interval.high;
                    last.point = None;
                }
            }
            _ => joined.push(interval),
        }
    }
    joined
}

/// The intersection of two sets, by a walk over both in step.
fn intersect(a: &Set, b: &Set) -> Set {
    let (mut i, mut j) = (0, 0);
    let mut shared = Vec::new();
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let low = if x.low.is_before(&y.low) { &y.low } else { &x.low };
        let high = if x.high.is_before(&y.high) { &x.high } else { &y.high };
        if low.is_before(high) {
            let (low, high) = (low.clone(), high.clone());
            shared.push(Interval { low, high, point: x.point.clone().or_else(|| y.point.clone()) });
        }
        if x.high.is_before(&y.high) {
            i += 1;
        } else {
            j += 1;
        }
    }
    shared
}

/// The smallest interval that contains a set.
fn covering(set: &Set) -> Set {
    match (set.first(), set.last()) {
        (Some(first), Some(last)) => {
            vec![Interval { low: first.low.clone(), high: last.high.clone(), point: None }]
        }
        _ => Vec::new(),
    }
}

/// Each prefix extended by each value, in the order of the index.
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

/// The range of each interval after each prefix, in the order of the index.
fn close(prefixes: &[Vec<u8>], set: &Set, part: Part) -> Vec<KeyRange> {
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
