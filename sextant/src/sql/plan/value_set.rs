//! Sets of values of one key part or of the document's id. A set is a union of disjoint intervals
//! in the order of encoded values.
//!
//! An encoded value is never a prefix of another one. Therefore the points "before" and "after"
//! an encoded value lie between entries. An id is not encoded, and can be a prefix of another id.

use std::cmp::Ordering;

use proto::expr::Expr;
use proto::value::Value;
use proto::value::key::{encode_part, successor};

/// A key part, or the id after the key parts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Key { column: u16, descending: bool, is_id: bool, may_be_missing: bool },
    Id,
}

impl Part {
    /// Returns true if an expression is this part.
    pub(super) fn is(self, expr: &Expr) -> bool {
        match (self, expr) {
            (Self::Key { column, .. }, Expr::Column(n)) => column == *n,
            (Self::Key { is_id, .. }, Expr::DocumentId) => is_id,
            (Self::Id, Expr::DocumentId) => true,
            _ => false,
        }
    }

    /// Returns the encoded form of a value of this part.
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

    /// Returns the point just before a value.
    pub(super) fn before(self, value: &Value) -> Bound {
        Bound { code: self.encode(value), after: false }
    }

    /// Returns the point just after a value. For an id, this is before longer ids with the same
    /// beginning.
    pub(super) fn after(self, value: &Value) -> Bound {
        let mut code = self.encode(value);
        match self {
            Self::Key { .. } => Bound { code, after: true },
            Self::Id => {
                code.push(0);
                Bound { code, after: false }
            }
        }
    }

    /// Returns the set with only one value; an empty set if the part cannot have the value.
    pub(super) fn point(self, value: &Value) -> Vec<Interval> {
        if matches!(self, Self::Id) && !matches!(value, Value::String(_)) {
            return Vec::new();
        }
        let (low, high) = (self.before(value), self.after(value));
        vec![Interval { low, high, point: Some(self.encode(value)) }]
    }

    /// Returns the set of the values that SQL treats as NULL: NULL and, if possible, MISSING.
    pub(super) fn absent(self) -> Set {
        let missing = match self {
            Self::Key { may_be_missing: true, .. } => self.point(&Value::Missing),
            _ => Vec::new(),
        };
        union([missing, self.point(&Value::Null)].concat())
    }

    /// Returns the set of all values except NULL and MISSING.
    pub(super) fn present(self) -> Set {
        let low = match self {
            Self::Key { .. } => self.after(&Value::Null),
            Self::Id => Bound { code: Vec::new(), after: false },
        };
        let high = Bound { code: Vec::new(), after: true };
        vec![Interval { low, high, point: None }]
    }

    /// Returns the set of all values except MISSING.
    pub(super) fn not_missing(self) -> Set {
        union([self.point(&Value::Null), self.present()].concat())
    }

    /// Returns true if a set contains both NULL and MISSING, which SQL does not distinguish.
    /// `None` stands for all values.
    pub(super) fn has_null_and_missing(self, set: Option<&Set>) -> bool {
        let Self::Key { may_be_missing: true, .. } = self else { return false };
        let Some(set) = set else { return true };
        let has = |value| !intersect(set, &self.point(value)).is_empty();
        has(&Value::Null) && has(&Value::Missing)
    }

    /// Returns true if a set contains NULL and MISSING, but no other value.
    pub(super) fn is_absent(self, set: &Set) -> bool {
        self.has_null_and_missing(Some(set)) && intersect(set, &self.present()).is_empty()
    }

    /// Returns the interval of all values that have the type of `value`. Returns `None` for NULL
    /// and MISSING, whose comparisons are never true.
    pub(super) fn same_type(self, value: &Value) -> Option<Interval> {
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

    /// Returns the set of strings that begin with `prefix`.
    pub(super) fn beginning_with(self, prefix: &str) -> Vec<Interval> {
        let mut code = self.encode(&Value::String(prefix.to_owned()));
        if matches!(self, Self::Key { .. }) {
            // The final byte of an encoded string.
            code.pop();
        }
        let (low, high) = (Bound { code: code.clone(), after: false }, Bound { code, after: true });
        vec![Interval { low, high, point: None }]
    }
}

/// A point between encoded values: before all values that begin with `code`, or after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) code: Vec<u8>,
    pub(super) after: bool,
}

impl Bound {
    /// Returns the smallest bytes after the point, with `prefix` before them. Returns `None` if
    /// no bytes are after the point.
    pub(super) fn position(&self, prefix: &[u8]) -> Option<Vec<u8>> {
        let bytes = [prefix, &self.code].concat();
        if self.after { successor(&bytes) } else { Some(bytes) }
    }

    /// Returns the same point in the order of inverted bytes, in which DESC parts are stored.
    pub(super) fn inverted(&self) -> Self {
        Self { code: self.code.iter().map(|byte| !byte).collect(), after: !self.after }
    }

    /// Returns true if this point is before another point.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        self.compare(other).is_lt()
    }

    /// Compares the positions of two points without building their bytes.
    fn compare(&self, other: &Self) -> Ordering {
        match (self.position_bytes(), other.position_bytes()) {
            (Some(mine), Some(theirs)) => mine.cmp(theirs),
            (None, None) => Ordering::Equal,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
        }
    }

    /// Returns the bytes of [`Self::position`] for an empty prefix.
    fn position_bytes(&self) -> Option<impl Iterator<Item = u8>> {
        let (begin, last) = match self.after {
            false => (&self.code[..], None),
            true => {
                let end = self.code.iter().rposition(|byte| *byte != 0xff)?;
                (&self.code[..end], Some(self.code[end] + 1))
            }
        };
        Some(begin.iter().copied().chain(last))
    }
}

/// The values between two points. If there is only one value, the interval also contains its
/// encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) low: Bound,
    pub(super) high: Bound,
    pub(super) point: Option<Vec<u8>>,
}

/// A set of values of one part: disjoint intervals, ascending.
pub(super) type Set = Vec<Interval>;

/// The set of a part's possible values, with the terms of the condition that define it. `None` if
/// no term does.
pub(super) type PartSet = Option<(Set, Vec<Expr>)>;

/// Sorts intervals, merges adjacent ones, and removes empty ones.
pub(super) fn union(mut intervals: Set) -> Set {
    intervals.retain(|interval| interval.low.is_before(&interval.high));
    intervals.sort_by(|one, other| one.low.compare(&other.low));
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

/// Returns the intersection of two sets.
pub(super) fn intersect(a: &Set, b: &Set) -> Set {
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

/// Returns the smallest interval that contains a set.
pub(super) fn covering(set: &Set) -> Set {
    match (set.first(), set.last()) {
        (Some(first), Some(last)) => {
            vec![Interval { low: first.low.clone(), high: last.high.clone(), point: None }]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_compared_like_their_positions() {
        let codes: [&[u8]; 8] =
            [b"", b"a", b"a\xff", b"a\xff\xff", b"b", b"b\0", b"\xff", b"\xff\xff"];
        let points: Vec<Bound> = codes
            .iter()
            .flat_map(|code| [false, true].map(|after| Bound { code: code.to_vec(), after }))
            .collect();
        // The very end comes last.
        let order = |point: &Bound| (point.position(&[]).is_none(), point.position(&[]));
        for (one, other) in points.iter().flat_map(|one| points.iter().map(move |b| (one, b))) {
            assert_eq!(one.compare(other), order(one).cmp(&order(other)), "{one:?} {other:?}");
        }
    }
}
