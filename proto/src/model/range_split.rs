//! Splits of an index that is partitioned by ranges: the split point, the new definition, and the
//! present slices from which the new slices are made.
//!
//! A generation *derives* from another one if both have the same entries, and each slice of the
//! new one is a range of one slice of the other. This relation is not recorded, but computed from
//! the two definitions. A node can make the new slices from its present ones. If it lacks one of
//! these, it builds the new slices from the source, with an equal result.
//!
//! A slice is a range of entries if the partition expression is the leading key part, ascending.
//! An entry then begins with the encoded value that the bounds are compared with, and no encoded
//! value is a prefix of another one.

use super::ids::SliceNo;
use super::index::{BOUND_BYTES_MAX, IndexSpec, PartitionBy, RangePartition, SLICES_MAX};
use crate::expr::Expr;
use crate::plant::{self, Plant};
use crate::value::Value;
use crate::value::key::{decode_part, encode_part, successor};

/// A slice of a new generation, and the present slice that contains its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedSlice {
    /// The slice of the new generation.
    pub slice: SliceNo,
    /// The slice of the present generation.
    pub from: SliceNo,
    /// The range of the present slice's entries that belong to the new slice; `None` means all of
    /// them.
    pub part: Option<SlicePart>,
}

/// A range of the keys of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicePart {
    /// The inclusive lower bound; empty means the beginning of the slice.
    pub low: Vec<u8>,
    /// The exclusive upper bound; `None` means the end of the slice.
    pub high: Option<Vec<u8>>,
}

impl RangePartition {
    /// Returns the lower and the upper bound of a slice; `None` for an unbounded side.
    pub fn bounds_of(&self, slice: SliceNo) -> (Option<&[u8]>, Option<&[u8]>) {
        let bound = |n: usize| self.bounds.get(n).map(Vec::as_slice);
        let slice = usize::from(slice.0);
        (slice.checked_sub(1).and_then(bound), bound(slice))
    }

    /// Returns the ranges after one slice is divided at a bound; `None` if the bound is not
    /// inside the slice.
    pub fn divided(&self, slice: SliceNo, at: &[u8]) -> Option<Self> {
        let (low, high) = self.bounds_of(slice);
        let is_known = usize::from(slice.0) <= self.bounds.len();
        let is_inside = low.is_none_or(|low| low < at) && high.is_none_or(|high| at < high);
        if !is_known || !is_inside || !is_split_point(at) {
            return None;
        }
        let mut divided = self.clone();
        divided.bounds.insert(usize::from(slice.0), at.to_vec());
        Some(divided)
    }
}

/// Returns true if a statement can declare this bound: it is one encoded number, text, true or
/// false.
fn is_split_point(bound: &[u8]) -> bool {
    let mut rest = bound;
    bound.len() <= BOUND_BYTES_MAX
        && decode_part(&mut rest, false).is_ok_and(|value| rest.is_empty() && is_scalar(&value))
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_))
}

/// Returns the bound that equals the leading key part at the beginning of the encoded key `part`,
/// in ascending form. Returns `None` if no statement can declare this bound.
pub fn bound_at(part: &[u8]) -> Option<Vec<u8>> {
    let mut rest = part;
    let value = decode_part(&mut rest, false).ok().filter(is_scalar)?;
    let mut bound = Vec::with_capacity(part.len());
    encode_part(&value, false, &mut bound);
    (bound.len() <= BOUND_BYTES_MAX).then_some(bound)
}

impl IndexSpec {
    /// Returns the ranges of an index whose slices can be split in place: it is partitioned by
    /// its leading key part, which is ascending. `None` for other indexes.
    pub fn leading_ranges(&self) -> Option<&RangePartition> {
        let PartitionBy::Range(range) = &self.partition else { return None };
        let leads =
            self.keys.first().is_some_and(|part| part.expr == range.expr && !part.descending);
        (leads && !matches!(range.expr, Expr::Unnest(_))).then_some(range)
    }

    /// Returns the definition with one slice split at a bound; `None` if the split is impossible.
    pub fn with_split(&self, slice: SliceNo, at: &[u8]) -> Option<Self> {
        let ranges = self.leading_ranges()?.divided(slice, at)?;
        let slices = self.slices.checked_add(1).filter(|slices| *slices <= SLICES_MAX)?;
        Some(Self { partition: PartitionBy::Range(ranges), slices, ..self.clone() })
    }

    /// Returns, for each slice of this definition, the slice of the definition `from` that
    /// contains its range. Returns `None` if this definition does not derive from `from`.
    ///
    /// The name, the statement, the number of copies and the grouping of columns may differ,
    /// because they do not affect the entries.
    pub fn derived_from(&self, from: &Self) -> Option<Vec<DerivedSlice>> {
        let (mine, parents) = (self.leading_ranges()?, from.leading_ranges()?);
        let is_finer = mine.bounds.len() > parents.bounds.len()
            && parents.bounds.iter().all(|bound| mine.bounds.binary_search(bound).is_ok());
        let same = Self {
            name: self.name.clone(),
            sql: self.sql.clone(),
            replicas: self.replicas,
            separate_included_columns: self.separate_included_columns,
            partition: self.partition.clone(),
            slices: self.slices,
            ..from.clone()
        };
        if !is_finer || mine.expr != parents.expr || same != *self {
            return None;
        }
        let slices = (0..=mine.bounds.len()).map(|n| SliceNo(n as u16));
        Some(slices.map(|slice| derived_slice(mine, parents, slice)).collect())
    }
}

fn derived_slice(mine: &RangePartition, parents: &RangePartition, slice: SliceNo) -> DerivedSlice {
    let (low, high) = mine.bounds_of(slice);
    let from = low.map_or(SliceNo(0), |low| parents.slice(low));
    if parents.bounds_of(from) == (low, high) {
        return DerivedSlice { slice, from, part: None };
    }
    // The entries with the split point as their value belong to the upper half.
    let first = |low: &[u8]| match plant::is(Plant::SplitLosesBoundary) {
        true => successor(low).unwrap_or_default(),
        false => low.to_vec(),
    };
    let (low, high) = (low.map(first).unwrap_or_default(), high.map(<[u8]>::to_vec));
    DerivedSlice { slice, from, part: Some(SlicePart { low, high }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::ColumnType;
    use crate::model::index::{KeyPart, RangePartition};
    use crate::value::path::Step;

    fn path(name: &str) -> Expr {
        Expr::Path(vec![Step::Field(name.into())])
    }

    fn bound(value: &Value) -> Vec<u8> {
        let mut bound = Vec::new();
        encode_part(value, false, &mut bound);
        bound
    }

    fn number(n: i64) -> Vec<u8> {
        bound(&Value::int(n))
    }

    /// An index over `n`, divided by ranges of it.
    fn spec(bounds: &[i64]) -> IndexSpec {
        let part = |name: &str| KeyPart {
            expr: path(name),
            name: name.into(),
            column_type: ColumnType::Text,
            descending: false,
            include_missing: false,
        };
        let bounds: Vec<_> = bounds.iter().map(|n| number(*n)).collect();
        IndexSpec {
            primary: false,
            keys: vec![part("n"), part("w")],
            slices: bounds.len() as u16 + 1,
            partition: PartitionBy::Range(RangePartition { expr: path("n"), bounds }),
            ..IndexSpec::new("i", "b")
        }
    }

    fn part(low: Option<i64>, high: Option<i64>) -> Option<SlicePart> {
        Some(SlicePart { low: low.map(number).unwrap_or_default(), high: high.map(number) })
    }

    #[test]
    fn the_slices_of_a_split_are_ranges_of_those_before_it() {
        let before = spec(&[20, 45]);
        let after = before.with_split(SliceNo(1), &number(30)).unwrap();
        assert_eq!(after, spec(&[20, 30, 45]));
        let derived = after.derived_from(&before).unwrap();
        let slice =
            |slice, from, part| DerivedSlice { slice: SliceNo(slice), from: SliceNo(from), part };
        let expected = vec![
            slice(0, 0, None),
            slice(1, 1, part(Some(20), Some(30))),
            slice(2, 1, part(Some(30), Some(45))),
            slice(3, 2, None),
        ];
        assert_eq!(derived, expected);
        let last = before.with_split(SliceNo(2), &number(60)).unwrap();
        let derived = last.derived_from(&before).unwrap();
        assert_eq!(derived[3], slice(3, 2, part(Some(60), None)));
    }

    #[test]
    fn an_entry_of_a_split_slice_is_in_one_of_its_halves() {
        let (before, after) = (spec(&[20]), spec(&[20, 40]));
        let derived = after.derived_from(&before).unwrap();
        let PartitionBy::Range(ranges) = &after.partition else { unreachable!() };
        for n in 18..44 {
            let mut entry = number(n);
            encode_part(&Value::int(7), false, &mut entry);
            entry.extend_from_slice(b"id");
            let own = ranges.slice(&number(n));
            let has = |slice: &&DerivedSlice| {
                let all = slice.from == before.leading_ranges().unwrap().slice(&number(n));
                let is_in = |part: &SlicePart| {
                    entry >= part.low && part.high.as_ref().is_none_or(|high| entry < *high)
                };
                all && slice.part.as_ref().is_none_or(is_in)
            };
            let found: Vec<SliceNo> = derived.iter().filter(has).map(|slice| slice.slice).collect();
            assert_eq!(found, [own], "value {n}");
        }
    }

    #[test]
    fn only_finer_ranges_of_equal_entries_derive() {
        let (before, after) = (spec(&[20, 45]), spec(&[20, 30, 45]));
        assert_eq!(before.derived_from(&before), None, "REINDEX builds from the source");
        assert_eq!(before.derived_from(&after), None, "slices are joined");
        assert_eq!(spec(&[20, 30, 50]).derived_from(&before), None, "a bound is gone");
        let renamed = IndexSpec { name: "j".into(), replicas: 2, ..before.clone() };
        assert!(after.derived_from(&renamed).is_some(), "these change in place");
        let other = IndexSpec { predicate: Some(path("w")), ..before.clone() };
        assert_eq!(after.derived_from(&other), None);
        let mut other = before.clone();
        other.keys.remove(1);
        assert_eq!(after.derived_from(&other), None);
    }

    #[test]
    fn a_division_by_another_expression_than_an_ascending_first_key_is_not_split() {
        let mut other = spec(&[20]);
        other.keys.swap(0, 1);
        assert_eq!(other.with_split(SliceNo(0), &number(10)), None);
        let descend = |mut spec: IndexSpec| {
            spec.keys[0].descending = true;
            spec
        };
        let before = descend(spec(&[20]));
        assert_eq!(before.with_split(SliceNo(0), &number(10)), None);
        let after = descend(spec(&[10, 20]));
        assert_eq!(after.derived_from(&before), None, "the build is from the source");
    }

    #[test]
    fn a_split_point_is_a_scalar_inside_of_its_slice() {
        let before = spec(&[20, 45]);
        let at = |slice, bound: &[u8]| before.with_split(SliceNo(slice), bound).is_some();
        assert!(at(1, &number(21)) && at(1, &number(44)) && at(0, &number(-1)));
        assert!(!at(1, &number(20)) && !at(1, &number(45)) && !at(1, &number(7)));
        assert!(!at(3, &number(60)), "there is no such slice");
        assert!(at(2, &bound(&Value::String("text".into()))));
        assert!(!at(2, &bound(&Value::String("t".repeat(BOUND_BYTES_MAX)))), "it is too long");
        assert!(!at(0, &bound(&Value::Null)) && !at(2, &[number(60), number(1)].concat()));
    }

    #[test]
    fn a_bound_is_a_value_that_a_statement_can_declare() {
        let entry = [number(7), b"rest".to_vec()].concat();
        assert_eq!(bound_at(&entry), Some(number(7)));
        assert_eq!(bound_at(&bound(&Value::Null)), None);
        assert_eq!(bound_at(&bound(&Value::String("t".repeat(BOUND_BYTES_MAX)))), None);
    }
}
