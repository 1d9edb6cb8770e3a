//! Computes the row of a result with aggregates from the partial aggregates of the scan.

use bigdecimal::BigDecimal;
use proto::expr::aggregate::{AggregateFunction, PartialAggregate};
use proto::value::{Number, Value};
use proto::{Error, ErrorCode, Result};

use crate::rows::value::Datum;
use crate::sql::plan::Cell;

/// The minimum number of decimal places of an average. A small average has more decimal places,
/// so that it has as many significant digits.
const AVERAGE_SCALE: i64 = 16;

/// Returns the row of the result, with the cells that a plan specifies.
pub(super) fn aggregate_row(cells: &[Cell], partials: &[PartialAggregate]) -> Result<Vec<Datum>> {
    if cells.len() != partials.len() {
        return Err(wrong_result_kind());
    }
    let datum = |(cell, partial): (&Cell, &PartialAggregate)| {
        let Cell::Aggregate(function, cast) = cell else { return Err(wrong_result_kind()) };
        let datum = aggregate(*function, partial)?;
        match cast {
            Some(to) => datum.cast(*to),
            None => Ok(datum),
        }
    };
    cells.iter().zip(partials).map(datum).collect()
}

/// Returns the value of an aggregate function from a partial aggregate.
fn aggregate(function: AggregateFunction, partial: &PartialAggregate) -> Result<Datum> {
    if let Some(sum) = partial.infinite_sum() {
        let not_a_number = || {
            Error::new(ErrorCode::Unsupported, "the sum of Infinity and -Infinity is not supported")
        };
        let number = Number::from_double(sum).ok_or_else(not_a_number)?;
        return Ok(Datum::Value(Value::Number(number)));
    }
    Ok(match (function, partial) {
        (_, PartialAggregate::Count(count)) => {
            Datum::int(i64::try_from(*count).unwrap_or(i64::MAX))
        }
        (_, PartialAggregate::Extreme { value, .. }) => Datum::Value(value.clone()),
        (AggregateFunction::Avg, PartialAggregate::Sum { count, .. }) => match partial.sum() {
            Some(sum) => Datum::Decimal(average(&sum, *count)),
            None => Datum::Value(Value::Null),
        },
        (_, PartialAggregate::Sum { .. }) => partial.sum().map_or(Datum::NULL, Datum::Decimal),
    })
}

/// Returns the quotient of a sum and a count, with at least [`AVERAGE_SCALE`] significant digits,
/// like PostgreSQL's averages.
fn average(sum: &BigDecimal, count: u64) -> BigDecimal {
    let first_digit = sum.digits() as i64 - 1 - sum.fractional_digit_count();
    let zeros = i64::from(count.max(1).ilog10()) + 1 - first_digit;
    (sum.clone() / count).round(AVERAGE_SCALE + zeros.max(1) - 1)
}

/// Returns the error for a batch that has another kind of result than the scan has requested.
pub(super) fn wrong_result_kind() -> Error {
    Error::internal("a scan returned rows instead of aggregates, or aggregates instead of rows")
}

#[cfg(test)]
mod tests {
    use proto::expr::ColumnType;

    use super::*;

    #[test]
    fn aggregates_are_exact() {
        let mut sum = PartialAggregate::new(AggregateFunction::Avg);
        for value in [1, 2, 2] {
            sum.add(&Value::int(value));
        }
        let avg = aggregate(AggregateFunction::Avg, &sum).unwrap();
        let mut out = Vec::new();
        assert_eq!(avg.write(ColumnType::Numeric, Default::default(), &mut out), Ok(true));
        assert_eq!(out, b"1.6666666666666667");
        let small = average(&"1.5e-20".parse().unwrap(), 2);
        assert_eq!(small.to_plain_string(), "0.000000000000000000007500000000000000");
        let whole = aggregate(AggregateFunction::Sum, &sum).unwrap().cast(ColumnType::Int8);
        assert_eq!(whole, Ok(Datum::int(5)));
        let none = PartialAggregate::new(AggregateFunction::Sum);
        assert_eq!(aggregate(AggregateFunction::Sum, &none), Ok(Datum::NULL));
        let infinite = |float| Value::Number(Number::from_double(float).unwrap());
        sum.add(&infinite(f64::INFINITY));
        let endless = Datum::Value(infinite(f64::INFINITY));
        assert_eq!(aggregate(AggregateFunction::Avg, &sum), Ok(endless));
        sum.add(&infinite(f64::NEG_INFINITY));
        assert!(aggregate(AggregateFunction::Sum, &sum).is_err());
    }
}
