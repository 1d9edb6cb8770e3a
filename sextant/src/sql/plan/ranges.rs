//! From conditions to ranges of entries.
//!
//! A conjunct that speaks of one key part and constants is a *set* of values of that part: a union of
//! intervals in the order of encoded values. Sets of one part are intersected. Then the parts are
//! taken in order: while a part's set is single values, each extends the prefixes that the ranges
//! begin with; the first part with wider intervals ends the prefixes in ranges; the conjuncts of later
//! parts stay behind as a filter. After the last part comes the document's id, as raw bytes.
//!
//! A comparison holds within one type only, so `a > 5` is the interval from behind 5 to the end of the
//! numbers. An encoded value is never a prefix of another, so "before" and "after" an encoded value are
//! places between entries; a DESC part inverts the bytes, which swaps the two and the ends.

use bytes::Bytes;
use proto::expr::{CompareOp, Expr};
use proto::model::index::IndexSpec;
use proto::rpc::scan::KeyRange;
use proto::value::Value;
use proto::value::key::{encode_part, successor};

/// Most ranges of a scan: each is a seek in each slice. Longer lists are filtered in one range.
pub const RANGES_MAX: usize = 1000;

/// What the conditions of a scan became.
#[derive(Debug, PartialEq)]
pub struct Access {
    /// Ascending, disjoint ranges of entries.
    pub ranges: Vec<KeyRange>,
    /// For each key part: has it one value only?
    pub fixed: Vec<bool>,
    /// The conjuncts that the ranges stand for.
    pub used: Vec<Expr>,
    /// The conjuncts that are left to be checked.
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
            // No value at all, as in `a = NULL`, is at most one: whether an order is the index's must
            // not depend on what the values of parameters leave.
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

/// A key part, or the id behind them.
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

    /// The place before a value.
    fn before(self, value: &Value) -> Bound {
        Bound { code: self.encode(value), after: false }
    }

    /// The place after a value: ids may continue each other, encoded parts may not.
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

    /// One value; nothing where the part cannot have it.
    fn point(self, value: &Value) -> Vec<Interval> {
        if matches!(self, Self::Id) && !matches!(value, Value::String(_)) {
            return Vec::new();
        }
        let (low, high) = (self.before(value), self.after(value));
        vec![Interval { low, high, point: Some(self.encode(value)) }]
    }

    /// All values of the same type; nothing for NULL and MISSING, which compare with nothing.
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
                // The first byte of an encoded value is its type's.
                let tag = |value: &Value| self.encode(value)[..1].to_vec();
                Some(Interval {
                    low: Bound { code: tag(&least), after: false },
                    high: Bound { code: tag(&greatest), after: true },
                    point: None,
                })
            }
        }
    }

    /// The strings that begin with `prefix`.
    fn beginning_with(self, prefix: &str) -> Vec<Interval> {
        let mut code = self.encode(&Value::String(prefix.to_owned()));
        if matches!(self, Self::Key { .. }) {
            // The byte that ends a string.
            code.pop();
        }
        let (low, high) = (Bound { code: code.clone(), after: false }, Bound { code, after: true });
        vec![Interval { low, high, point: None }]
    }
}

/// A place between encoded values: before all that begin with `code`, or after them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    code: Vec<u8>,
    after: bool,
}

impl Bound {
    /// The first bytes behind the place; `None` is the end of everything.
    fn position(&self, prefix: &[u8]) -> Option<Vec<u8>> {
        let bytes = [prefix, &self.code].concat();
        if self.after { successor(&bytes) } else { Some(bytes) }
    }

    /// The place that this is when all bytes are inverted.
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

/// The values between two places; with the encoded value, if it is a single one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interval {
    low: Bound,
    high: Bound,
    point: Option<Vec<u8>>,
}

/// A set of values of one part: disjoint intervals, ascending.
type Set = Vec<Interval>;

/// The set of each part with the conjuncts that made it, and the conjuncts that made none.
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

/// The values of a part for which a condition is true, if that is all that the condition speaks of.
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
        // Each term made a set of its own where the condition was split; here inside an OR.
        Expr::And(terms) => {
            let mut sets = terms.iter().map(|term| set_of(part, term));
            let first = sets.next()??;
            sets.try_fold(first, |known, set| Some(intersect(&known, &set?)))
        }
        // A condition that is known already: `FALSE` empties the first part.
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

/// A pattern without wildcards is one string, one that ends with its only wildcard `%` is a prefix.
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

/// Sorts intervals and joins those that meet; empty ones go.
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

/// What two sets share: every pair's overlap, found by walking both in step.
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

/// One interval over a whole set.
fn covering(set: &Set) -> Set {
    match (set.first(), set.last()) {
        (Some(first), Some(last)) => {
            vec![Interval { low: first.low.clone(), high: last.high.clone(), point: None }]
        }
        _ => Vec::new(),
    }
}

/// Each prefix with each of the values behind it, in the order of the index.
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

/// The ranges of each interval behind each prefix, in the order of the index.
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
            // No place is after everything and before something.
            let Some(low) = low.position(prefix) else { continue };
            let high = high.position(prefix).map(Bytes::from);
            ranges.push(KeyRange { low: low.into(), high });
        }
    }
    ranges
}
