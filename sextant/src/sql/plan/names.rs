//! The names of result columns that have no alias.

use proto::expr::aggregate::AggregateFunction;
use proto::expr::{Expr, Function};

/// Returns the name of a result column without an alias: the name of its column or function, or
/// PostgreSQL's `?column?`.
pub(super) fn default_name(expr: &Expr, column: &impl Fn(u16) -> String) -> String {
    match expr {
        Expr::Column(n) => column(*n),
        Expr::DocumentId => "id".into(),
        Expr::Cast(inner, _) => default_name(inner, column),
        Expr::Call(function, arguments) => match function {
            Function::Lower => "lower",
            Function::Upper => "upper",
            Function::Length => "length",
            Function::Coalesce => "coalesce",
            Function::Abs => "abs",
            Function::RoundToEven => {
                return arguments.first().map_or_else(String::new, |e| default_name(e, column));
            }
        }
        .into(),
        _ => "?column?".into(),
    }
}

/// Returns the name of an aggregate function.
pub(super) fn aggregate_name(function: AggregateFunction) -> &'static str {
    use AggregateFunction::{Avg, Count, Max, Min, Sum};
    match function {
        Count => "count",
        Min => "min",
        Max => "max",
        Sum => "sum",
        Avg => "avg",
    }
}
