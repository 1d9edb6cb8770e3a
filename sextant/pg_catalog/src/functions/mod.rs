//! The functions, operators, aggregates and casts.
//!
//! Each row of the data has its implementation here, found once by name and argument types. The
//! list [`later`] names those without one: they need values of dates, times, `bytea` or other types
//! that [`proto::value::Value`] does not have, or they make no sense here.

mod aggregate;
mod arithmetic;
mod array;
pub(crate) mod cast;
mod catalogue;
mod context;
mod json;
pub mod later;
mod math;
mod operator;
mod ordered_set;
mod patterns;
mod series;
mod session;
mod signature;
mod text;

use std::sync::LazyLock;

pub(crate) use self::context::{Arguments, Context};
pub(crate) use self::patterns::Patterns;
pub(crate) use self::signature::{
    Fold, FoldCall, Implementation, OrderedSet, OrderedSetCall, Ranking,
};
use crate::data::{FunctionRow, data};
use crate::plan::Call;

static FUNCTIONS: LazyLock<Vec<Option<Implementation>>> =
    LazyLock::new(|| data().functions.iter().map(find).collect());

static OPERATORS: LazyLock<Vec<Option<Implementation>>> = LazyLock::new(|| {
    data().operators.iter().map(|row| operator::find(row).map(Implementation::Scalar)).collect()
});

/// Returns the implementation of a function, by its index in the data.
pub(crate) fn function(index: usize) -> Option<&'static Implementation> {
    FUNCTIONS.get(index)?.as_ref()
}

/// Returns the implementation of an operator, by its index in the data.
pub(crate) fn operator(index: usize) -> Option<&'static Implementation> {
    OPERATORS.get(index)?.as_ref()
}

/// Returns true if the result of a call is NULL when an argument is.
pub(crate) fn is_strict(call: Call) -> bool {
    match call {
        Call::Function { index, .. } => {
            data().functions.get(index).is_some_and(|row| row.is_strict)
        }
        Call::Operator(index) => {
            let name = data().operators.get(index).map_or("", |row| row.function.as_str());
            !matches!(name, "array_append" | "array_prepend" | "array_cat")
        }
    }
}

fn find(row: &FunctionRow) -> Option<Implementation> {
    if later::is_later(row) {
        return None;
    }
    match row.kind {
        'a' => aggregate::find(row)
            .map(Implementation::Aggregate)
            .or_else(|| ordered_set::find(row).map(Implementation::OrderedSet)),
        'w' => ranking(&row.name).map(Implementation::Window),
        _ if row.returns_set => series::find(row)
            .or_else(|| json::find_set(row))
            .or_else(|| text::find_set(row))
            .or_else(|| catalogue::find_set(row))
            .map(Implementation::Set),
        _ => text::find(row)
            .or_else(|| math::find(row))
            .or_else(|| array::find(row))
            .or_else(|| json::find(row))
            .or_else(|| session::find(row))
            .or_else(|| catalogue::find(row))
            .or_else(|| cast::find(row))
            .map(Implementation::Scalar),
    }
}

fn ranking(name: &str) -> Option<Ranking> {
    Some(match name {
        "row_number" => Ranking::RowNumber,
        "rank" => Ranking::Rank,
        "dense_rank" => Ranking::DenseRank,
        "percent_rank" => Ranking::PercentRank,
        "cume_dist" => Ranking::CumeDist,
        "ntile" => Ranking::Ntile,
        "lag" => Ranking::Lag,
        "lead" => Ranking::Lead,
        "first_value" => Ranking::FirstValue,
        "last_value" => Ranking::LastValue,
        "nth_value" => Ranking::NthValue,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_has_an_implementation_or_is_in_the_list() {
        let missing: Vec<String> = data()
            .functions
            .iter()
            .filter(|row| function(row.index).is_none() && !later::is_later(row))
            .map(|row| format!("{} {:?} {}", row.name, row.arguments, row.kind))
            .collect();
        assert_eq!(missing, Vec::<String>::new(), "without implementation: {}", missing.len());
    }

    #[test]
    fn each_operator_has_an_implementation_or_is_in_the_list() {
        let missing: Vec<String> = data()
            .operators
            .iter()
            .filter(|row| operator(row.index).is_none() && !later::is_later_operator(row))
            .map(|row| format!("{} {} {} {}", row.name, row.left, row.right, row.function))
            .collect();
        assert_eq!(missing, Vec::<String>::new(), "without implementation: {}", missing.len());
    }
}
