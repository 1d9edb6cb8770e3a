//! The order of values of one type, and the memory that a value takes.

use std::cmp::Ordering;

use proto::value::Value;

use super::oid::{self, Oid};

/// Compares two values of comparable types. NULL is the largest value, as in fields of records and
/// elements of arrays; text is compared by its bytes.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        (Value::Array(a), Value::Array(b)) => compare_all(a, b),
        _ => a.cmp(b),
    }
}

/// Compares two rows, value by value; a row that begins another one is smaller.
pub fn compare_all(a: &[Value], b: &[Value]) -> Ordering {
    let different = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
    different.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// Returns the value that stands for a value in comparisons: `bpchar` has no spaces at its end.
pub fn comparable(value: Value, ty: Oid) -> Value {
    match value {
        Value::String(text) if ty == oid::BPCHAR && text.ends_with(' ') => {
            Value::from(text.trim_end_matches(' '))
        }
        value => value,
    }
}

/// Returns the bytes of memory that a value takes, about.
pub fn size_bytes(value: &Value) -> usize {
    let own = std::mem::size_of::<Value>();
    match value {
        Value::String(text) => own + text.len(),
        Value::Array(items) => own + items.iter().map(size_bytes).sum::<usize>(),
        _ => own,
    }
}

/// Returns the bytes of memory that a row takes, about.
pub fn row_bytes(row: &[Value]) -> usize {
    std::mem::size_of::<Box<[Value]>>() + row.iter().map(size_bytes).sum::<usize>()
}
