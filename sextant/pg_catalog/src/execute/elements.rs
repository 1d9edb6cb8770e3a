//! Elements and slices of arrays.

use std::borrow::Cow;

use proto::value::{Number, Value};

fn subscript(value: &Value) -> Option<i64> {
    value.as_number().and_then(Number::as_i64)
}

/// Returns an element; NULL outside the array, for a NULL subscript, and for a wrong number of
/// subscripts. `first` is the subscript of the first element.
pub(super) fn element(array: &Value, first: i64, subscripts: &[Cow<'_, Value>]) -> Value {
    let mut at = array;
    for value in subscripts {
        let place = subscript(value).and_then(|n| n.checked_sub(first));
        let place = place.and_then(|n| usize::try_from(n).ok());
        match (at, place) {
            (Value::Array(items), Some(n)) => match items.get(n) {
                Some(item) => at = item,
                None => return Value::Null,
            },
            _ => return Value::Null,
        }
    }
    at.clone()
}

/// Returns the elements from one subscript to another, both included; the whole array's bounds
/// count where none is given. The result is NULL if a bound is.
pub(super) fn slice(array: &Value, first: i64, from: Option<Value>, to: Option<Value>) -> Value {
    let Value::Array(items) = array else { return Value::Null };
    let last = first + items.len() as i64 - 1;
    let bound = |value: Option<Value>, default| match value {
        None => Some(default),
        Some(value) => subscript(&value),
    };
    let (Some(from), Some(to)) = (bound(from, first), bound(to, last)) else { return Value::Null };
    let (from, to) = (from.max(first), to.min(last));
    if from > to {
        return Value::Array(Vec::new());
    }
    // Both bounds are within the array now.
    Value::Array(items[(from - first) as usize..=(to - first) as usize].to_vec())
}
