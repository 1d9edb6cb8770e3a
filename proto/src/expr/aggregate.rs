//! Aggregates of a scan, such as `sum`: each shard computes a partial aggregate of its entries,
//! and the router merges these. Sums are exact decimals, so that the result does not depend on
//! the distribution of entries over slices.

use std::cmp::Ordering;

use bigdecimal::BigDecimal;
use serde::{Deserialize, Serialize};

use crate::value::Number;
use crate::value::{Value, compare};

/// The aggregate functions that scans compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum AggregateFunction {
    Count,
    Min,
    Max,
    Sum,
    Avg,
}

/// The result of an aggregate over a part of the rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PartialAggregate {
    /// The number of rows.
    Count(u64),
    /// The smallest or largest value so far; MISSING and NULL are ignored.
    Extreme {
        /// True if the value is the largest, false if it is the smallest.
        greatest: bool,
        /// The value; `Value::Null` if there was no value.
        value: Value,
    },
    /// The exact sum and the number of its terms.
    Sum {
        /// The sum of all integers, which are nearly always the only terms.
        integers: i128,
        /// The sum of all other numbers.
        decimals: ExactDecimal,
        /// The sum of all infinite terms: 0 without such terms, NaN if there are terms of both
        /// signs.
        infinite: f64,
        /// The number of terms.
        count: u64,
    },
}

impl PartialAggregate {
    /// Creates the aggregate of no rows.
    pub fn new(function: AggregateFunction) -> Self {
        match function {
            AggregateFunction::Count => Self::Count(0),
            AggregateFunction::Min => Self::Extreme { greatest: false, value: Value::Null },
            AggregateFunction::Max => Self::Extreme { greatest: true, value: Value::Null },
            AggregateFunction::Sum | AggregateFunction::Avg => Self::Sum {
                integers: 0,
                decimals: ExactDecimal::default(),
                infinite: 0.0,
                count: 0,
            },
        }
    }

    /// Counts rows without their values, for `count(*)`.
    pub fn add_rows(&mut self, rows: u64) {
        if let Self::Count(count) = self {
            *count += rows;
        }
    }

    /// Adds a value. MISSING and NULL are ignored; a sum also ignores values that are not numbers.
    pub fn add(&mut self, value: &Value) {
        if matches!(value, Value::Missing | Value::Null) {
            return;
        }
        match self {
            Self::Count(count) => *count += 1,
            Self::Extreme { greatest, value: best } => {
                let better = if *greatest { Ordering::Greater } else { Ordering::Less };
                if matches!(best, Value::Null) || compare(value, best) == better {
                    *best = value.clone();
                }
            }
            Self::Sum { integers, decimals, infinite, count } => {
                let Value::Number(number) = value else { return };
                *count += 1;
                match number {
                    // 2^64 entries of 2^64 fit an i128.
                    Number::Int(int) => *integers += i128::from(*int),
                    Number::Uint(uint) => *integers += i128::from(*uint),
                    Number::Float(float) if float.is_infinite() => *infinite += float,
                    Number::Float(float) => {
                        // The shortest text of a double always parses.
                        decimals.0 += float.to_string().parse::<BigDecimal>().unwrap_or_default();
                    }
                }
            }
        }
    }

    /// Merges another shard's result of the same aggregate.
    pub fn merge(&mut self, other: &PartialAggregate) {
        match (self, other) {
            (Self::Count(mine), Self::Count(theirs)) => *mine += theirs,
            (mine @ Self::Extreme { .. }, Self::Extreme { value, .. }) => mine.add(value),
            (
                Self::Sum { integers, decimals, infinite, count },
                Self::Sum {
                    integers: more_integers,
                    decimals: more_decimals,
                    infinite: more_infinite,
                    count: more,
                },
            ) => {
                *integers += more_integers;
                *infinite += more_infinite;
                decimals.0 += &more_decimals.0;
                *count += more;
            }
            _ => {}
        }
    }

    /// Returns the sum of the infinite terms, which is then the complete sum; `None` if all terms
    /// are finite.
    pub fn infinite_sum(&self) -> Option<f64> {
        match self {
            Self::Sum { infinite, .. } if *infinite != 0.0 => Some(*infinite),
            _ => None,
        }
    }

    /// Returns the exact sum of all finite terms; `None` if there are no numbers.
    pub fn sum(&self) -> Option<BigDecimal> {
        match self {
            Self::Sum { integers, decimals, count, .. } if *count > 0 => {
                Some(BigDecimal::from(*integers) + &decimals.0)
            }
            _ => None,
        }
    }
}

/// An exact decimal, serialized as text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExactDecimal(pub BigDecimal);

impl Serialize for ExactDecimal {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_string())
    }
}

impl<'de> Deserialize<'de> for ExactDecimal {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}
