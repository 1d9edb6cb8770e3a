//! The row of a result with aggregates, made from their partial states.

use proto::expr::aggregate::{AggregateFunction, Partial};
use proto::value::Value;
use proto::{Error, Result};

use crate::rows::value::Datum;
use crate::sql::plan::Cell;

/// Decimal places of an average; PostgreSQL returns at least 16.
const AVERAGE_SCALE: i64 = 16;

/// Makes the row of the cells of a plan.
pub(super) fn aggregate_row(cells: &[Cell], partials: &[Partial]) -> Result<Vec<Datum>> {
    if cells.len() != partials.len() {
        return Err(unexpected());
    }
    let datum = |(cell, partial): (&Cell, &Partial)| {
        let Cell::Aggregate(function, cast) = cell else { return Err(unexpected()) };
        let datum = aggregate(*function, partial);
        Ok(match cast {
            Some(to) => datum.cast(*to),
            None => datum,
        })
    };
    cells.iter().zip(partials).map(datum).collect()
}

fn aggregate(function: AggregateFunction, partial: &Partial) -> Datum {
    match (function, partial) {
        (_, Partial::Count(count)) => Datum::int(i64::try_from(*count).unwrap_or(i64::MAX)),
        (_, Partial::Extreme { value, .. }) => Datum::Value(value.clone()),
        (AggregateFunction::Avg, Partial::Sum { count, .. }) => match partial.sum() {
            Some(sum) => Datum::Decimal((sum / *count).round(AVERAGE_SCALE)),
            None => Datum::Value(Value::Null),
        },
        (_, Partial::Sum { .. }) => partial.sum().map_or(Datum::NULL, Datum::Decimal),
    }
}

/// The error for a batch of the other kind.
pub(super) fn unexpected() -> Error {
    Error::internal("a scan returned rows instead of aggregates, or aggregates instead of rows")
}

#[cfg(test)]
mod tests {
    use proto::expr::ColumnType;

    use super::*;

    #[test]
    fn aggregates_are_exact() {
        let mut sum = Partial::new(AggregateFunction::Avg);
        for value in [1, 2, 2] {
            sum.add(&Value::int(value));
        }
        let avg = aggregate(AggregateFunction::Avg, &sum);
        let mut out = Vec::new();
        assert_eq!(avg.write(ColumnType::Numeric, Default::default(), &mut out), Ok(true));
        assert_eq!(out, b"1.6666666666666667");
        assert_eq!(aggregate(AggregateFunction::Sum, &sum).cast(ColumnType::Int8), Datum::int(5));
        let none = Partial::new(AggregateFunction::Sum);
        assert_eq!(aggregate(AggregateFunction::Sum, &none), Datum::NULL);
    }
}
