//! Orders of rows by keys.

use std::cmp::Ordering;

use proto::value::Value;

use crate::plan::Expr;
use crate::types::order::compare;

/// The direction of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Direction {
    pub descending: bool,
    pub nulls_first: bool,
}

impl Direction {
    /// Returns the directions of the keys of an ORDER BY: expression, descending, nulls first.
    pub fn of(order: &[(Expr, bool, bool)]) -> Vec<Self> {
        let direction = |(_, descending, nulls_first): &(Expr, bool, bool)| Self {
            descending: *descending,
            nulls_first: *nulls_first,
        };
        order.iter().map(direction).collect()
    }
}

/// Compares two lists of keys.
pub(super) fn compare_keys(a: &[Value], b: &[Value], directions: &[Direction]) -> Ordering {
    let order = |((a, b), direction): ((&Value, &Value), &Direction)| {
        let nulls = |ordering: Ordering| match direction.nulls_first {
            true => ordering.reverse(),
            false => ordering,
        };
        match (a.is_absent(), b.is_absent()) {
            (true, true) => Ordering::Equal,
            (true, false) => nulls(Ordering::Greater),
            (false, true) => nulls(Ordering::Less),
            (false, false) if direction.descending => compare(b, a),
            (false, false) => compare(a, b),
        }
    };
    let mut orders = a.iter().zip(b).zip(directions).map(order);
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}
