//! JSON values as Sextant sees them: JSON's six types, and MISSING for a path that leads nowhere.
//!
//! A number has one representation per mathematical value: an integer that fits 64 bits (signed or
//! unsigned) is kept as one, however it was spelled (`1`, `1.0` and `1e0` are the same value), all
//! else is a finite double. So equality, order, hashing and the key encoding agree.

use serde::{Deserialize, Serialize};

/// A JSON value, or MISSING.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// No value at all: the path leads nowhere.
    Missing,
    /// JSON null.
    Null,
    /// JSON true or false.
    Bool(bool),
    /// JSON number.
    Number(Number),
    /// JSON string.
    String(String),
    /// JSON array.
    Array(Vec<Value>),
    /// JSON object.
    Object(Object),
}

/// A JSON number in its canonical form; make one with the constructors, which keep the form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Number {
    /// Any integer in the range of `i64`.
    Int(i64),
    /// An integer above `i64::MAX`.
    Uint(u64),
    /// A finite double that is not an integer in the range of `i64` or `u64`.
    Float(f64),
}

/// A JSON object: its fields sorted by name, each name once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Object(Vec<(String, Value)>);

/// The total order over all values; replaced by the full implementation on merge.
pub fn compare(_left: &Value, _right: &Value) -> std::cmp::Ordering {
    std::cmp::Ordering::Equal
}
