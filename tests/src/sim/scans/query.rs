//! A query: its request to the product, and its expected rows, computed without code of the
//! product.

use std::cmp::Ordering;

use proto::expr::aggregate::{AggregateFunction, PartialAggregate};
use proto::expr::{CompareOp, Expr};
use proto::model::ids::LocalIndexId;
use proto::rpc::scan::{AggregateCall, Consistency, HedgeAfter, KeyRange, Output, ScanRequest};
use proto::value::Value;
use proto::value::key;
use serde_json::json;

use crate::sim::judge::oracle::{Shown, SimIndex, compare};

/// A range of the first key part: from the first value to the second, exclusive.
type Between = (serde_json::Value, serde_json::Value);

/// A condition on each entry in addition to the ranges.
#[derive(Clone, Debug)]
pub enum Condition {
    /// The document's id is smaller than this text.
    IdBelow(String),
    /// A key part is greater than this number; false for a part that is not a number.
    Above(usize, i64),
    /// The first key part is not NULL; MISSING is not NULL.
    FirstIsNotNull,
}

/// The aggregates of a query: `count(*)`, `count`, `min` and `max` of the first key part, and the sum of the numeric part.
const AGGREGATES: [AggregateFunction; 5] = [
    AggregateFunction::Count,
    AggregateFunction::Count,
    AggregateFunction::Min,
    AggregateFunction::Max,
    AggregateFunction::Sum,
];

/// A query of one index.
#[derive(Clone, Debug)]
pub struct Query {
    /// The ranges, ascending and disjoint; `None` for the whole index.
    pub ranges: Option<Vec<Between>>,
    /// The condition of the query.
    pub condition: Option<Condition>,
    /// True if the query returns aggregates: [`Self::aggregates_asked`].
    pub aggregates: bool,
    /// The number of leading key parts by which rows must differ (DISTINCT); `None` without
    /// DISTINCT.
    pub distinct: Option<u16>,
    /// True if the scan is read backwards.
    pub reverse: bool,
    /// True if rows must be in the order of the index.
    pub ordered: bool,
    /// The number of rows to skip.
    pub offset: u64,
    /// The maximum number of rows.
    pub limit: Option<u64>,
    /// True if the included values are read.
    pub include: bool,
}

/// The result of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Rows, in the order of the index or its reverse.
    Rows(Vec<Shown>),
    /// The text of each aggregate.
    Aggregates(Vec<String>),
}

impl Query {
    /// Returns a query of all rows of an index.
    pub fn all(random: &mut fastrand::Rng) -> Self {
        let (reverse, include) = (random.bool(), random.bool());
        Self {
            ranges: None,
            condition: None,
            aggregates: false,
            distinct: None,
            reverse,
            ordered: true,
            offset: 0,
            limit: None,
            include,
        }
    }

    /// Returns a random query of an index.
    pub fn draw(random: &mut fastrand::Rng, index: &SimIndex) -> Self {
        let mut query = Self::all(random);
        query.ranges = (random.u8(..3) == 0).then(|| draw_ranges(random, index));
        query.condition = (random.u8(..4) == 0).then(|| draw_condition(random, index));
        match random.u8(..8) {
            0 => query.aggregates = true,
            1 => query.distinct = Some(random.u16(1..=index.descending.len() as u16)),
            2 | 3 => query.ordered = false,
            _ => {}
        }
        if query.ordered && !query.aggregates {
            query.limit = random.bool().then(|| random.u64(..30));
            query.offset = if random.u8(..4) == 0 { random.u64(..20) } else { 0 };
        }
        query
    }

    /// Returns the indexes of the query's aggregates in [`AGGREGATES`]: all, or those that do not
    /// need each row.
    pub fn aggregates_asked(&self) -> &'static [usize] {
        // The direction means nothing to aggregates.
        if self.reverse { &[0, 2, 3] } else { &[0, 1, 2, 3, 4] }
    }

    /// Returns the request to the product.
    pub fn request(
        &self,
        index: &SimIndex,
        id: LocalIndexId,
        consistency: Consistency,
    ) -> ScanRequest {
        let calls = || {
            let argument = |n: usize| match n {
                0 => None,
                4 => Some(Expr::Column(number_part(index.name) as u16)),
                _ => Some(Expr::Column(0)),
            };
            let call =
                |n: &usize| AggregateCall { function: AGGREGATES[*n], argument: argument(*n) };
            self.aggregates_asked().iter().map(call).collect()
        };
        let all = || [KeyRange::all()].into();
        ScanRequest {
            index: id,
            ranges: self.ranges.as_ref().map_or_else(all, |r| r.iter().map(key_range).collect()),
            partitions: None,
            filter: self.condition.as_ref().map(|condition| condition.expr().into()),
            reverse: self.reverse,
            ordered: self.ordered,
            distinct_parts: self.distinct,
            limit: self.limit,
            offset: self.offset,
            output: match self.aggregates {
                true => Output::Aggregates(calls()),
                false => Output::Rows { include: self.include },
            },
            consistency,
            own: None,
            timeout_ms: 5_000,
            hedge_after: HedgeAfter::Usual,
        }
    }

    /// Returns the expected answer over the entries of an index, which are in its order.
    pub fn answer(&self, index: &SimIndex, mut rows: Vec<Shown>) -> Answer {
        if let Some(ranges) = &self.ranges {
            rows.retain(|((key, _), _)| ranges.iter().any(|range| is_in(&key[0], range)));
        }
        if let Some(condition) = &self.condition {
            rows.retain(|row| condition.is_met(row));
        }
        if self.aggregates {
            let all = aggregates(index, &rows);
            return Answer::Aggregates(
                self.aggregates_asked().iter().map(|n| all[*n].clone()).collect(),
            );
        }
        if self.reverse {
            rows.reverse();
        }
        if let Some(parts) = self.distinct {
            rows.dedup_by(|later, first| {
                // MISSING reads like NULL in the last part.
                let (last, null) = (usize::from(parts) - 1, serde_json::Value::Null);
                let known = |value: &Option<_>| value.clone().unwrap_or(null.clone());
                let (later, first) = (&later.0.0, &first.0.0);
                later[..last] == first[..last] && known(&later[last]) == known(&first[last])
            });
        }
        if !self.include {
            rows.iter_mut().for_each(|(_, included)| *included = None);
        }
        let limit = self.limit.map_or(usize::MAX, |limit| limit as usize);
        Answer::Rows(rows.into_iter().skip(self.offset as usize).take(limit).collect())
    }
}

/// Returns the texts of the product's aggregates.
pub fn totals(partials: &[PartialAggregate]) -> Vec<String> {
    let text = |partial: &PartialAggregate| match partial {
        PartialAggregate::Count(count) => count.to_string(),
        PartialAggregate::Extreme { value: Value::Null, .. } => "null".into(),
        PartialAggregate::Extreme { value, .. } => value.to_json(),
        PartialAggregate::Sum { .. } => partial.sum().map_or("null".into(), |sum| sum.to_string()),
    };
    partials.iter().map(text).collect()
}

fn aggregates(index: &SimIndex, rows: &[Shown]) -> Vec<String> {
    let firsts = rows.iter().map(|((key, _), _)| &key[0]);
    let mut present: Vec<&Option<serde_json::Value>> =
        firsts.filter(|value| !matches!(value, None | Some(serde_json::Value::Null))).collect();
    present.sort_by(|left, right| compare(left, right));
    let text = |value: Option<&&Option<serde_json::Value>>| {
        value.and_then(|value| value.as_ref()).map_or("null".into(), ToString::to_string)
    };
    let part = number_part(index.name);
    let numbers = rows.iter().filter_map(|((key, _), _)| key[part].as_ref()?.as_i64());
    let numbers: Vec<i64> = numbers.collect();
    let sum = || numbers.iter().sum::<i64>().to_string();
    vec![
        rows.len().to_string(),
        present.len().to_string(),
        text(present.first()),
        text(present.last()),
        if numbers.is_empty() { "null".into() } else { sum() },
    ]
}

/// Returns the number of the key part with the field `n`.
pub fn number_part(index: &str) -> usize {
    match index {
        "by_a" | "by_tag" => 1,
        _ => 0,
    }
}

impl Condition {
    fn is_met(&self, ((key, id), _): &Shown) -> bool {
        match self {
            Self::IdBelow(bound) => id.as_bytes() < bound.as_bytes(),
            Self::Above(part, bound) => {
                let number = key[*part].as_ref().and_then(serde_json::Value::as_i64);
                number.is_some_and(|number| number > *bound)
            }
            Self::FirstIsNotNull => key[0] != Some(serde_json::Value::Null),
        }
    }

    fn expr(&self) -> Expr {
        let number =
            |n: i64| Expr::Literal(Value::parse_json(n.to_string().as_bytes()).expect("JSON"));
        match self {
            Self::IdBelow(bound) => Expr::Compare(
                CompareOp::Less,
                Box::new(Expr::DocumentId),
                Box::new(Expr::Literal(Value::from(bound.as_str()))),
            ),
            Self::Above(part, bound) => Expr::Compare(
                CompareOp::Greater,
                Box::new(Expr::Column(*part as u16)),
                Box::new(number(*bound)),
            ),
            Self::FirstIsNotNull => Expr::IsNull { expr: Box::new(Expr::Column(0)), negated: true },
        }
    }
}

fn draw_condition(random: &mut fastrand::Rng, index: &SimIndex) -> Condition {
    match random.u8(..3) {
        0 => Condition::IdBelow(format!("k{}", random.u8(..70))),
        1 => Condition::Above(number_part(index.name), random.i64(-1..100)),
        _ => Condition::FirstIsNotNull,
    }
}

/// Returns one to three random ranges, ascending and disjoint.
fn draw_ranges(random: &mut fastrand::Rng, index: &SimIndex) -> Vec<Between> {
    let mut bounds: Vec<serde_json::Value> = match index.name.starts_with("by_") {
        true => {
            let texts = ["", "a", "aa", "b", "é", "z"];
            let mut chosen: Vec<&str> =
                (0..6).map(|_| texts[random.usize(..texts.len())]).collect();
            chosen.sort_by(|left, right| left.as_bytes().cmp(right.as_bytes()));
            chosen.into_iter().map(|text| json!(text)).collect()
        }
        false => {
            let mut chosen: Vec<i64> = (0..6).map(|_| random.i64(-1..110)).collect();
            chosen.sort_unstable();
            chosen.into_iter().map(|number| json!(number)).collect()
        }
    };
    bounds.truncate(2 * random.usize(1..=3));
    let mut bounds = bounds.into_iter();
    std::iter::from_fn(|| Some((bounds.next()?, bounds.next()?))).collect()
}

fn is_in(first: &Option<serde_json::Value>, (low, high): &Between) -> bool {
    compare(first, &Some(low.clone())) != Ordering::Less
        && compare(first, &Some(high.clone())) == Ordering::Less
}

fn key_range((low, high): &Between) -> KeyRange {
    let bound = |value: &serde_json::Value| {
        let value = Value::parse_json(value.to_string().as_bytes()).expect("JSON");
        let mut encoded = Vec::new();
        key::encode_part(&value, false, &mut encoded);
        bytes::Bytes::from(encoded)
    };
    KeyRange { low: bound(low), high: Some(bound(high)) }
}
