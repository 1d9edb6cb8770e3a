//! JSON values: the six types of JSON, and MISSING for a path without a value.
//!
//! A number has one representation for each mathematical value. An integer that fits 64 bits
//! (signed or unsigned) is stored as an integer, whatever its spelling: `1`, `1.0` and `1e0` are
//! the same value. Every other number is a double; the result of a cast may be an infinite one.
//! Equality, order, hashing and the key encoding therefore agree.
//!
//! **The order** ([`compare`]): MISSING < NULL < false < true < numbers < strings < arrays <
//! objects. Numbers are compared by exact value, strings by UTF-8 bytes, arrays element by
//! element (a prefix comes first). Objects are compared by the number of fields, then field by
//! field in the order of their names: name, then value. `key` encodes the same order into bytes.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::nesting::recursive;
use crate::value::number::Number;
use crate::value::path::Step;

/// Maximum nesting of arrays and objects in a document. Real documents have less than ten levels,
/// and each level costs a stack frame in every recursive function over values.
pub const MAX_DEPTH: usize = 32;

/// Maximum length of a document, as JSON. Typical documents have a few kilobytes. Several
/// documents of a megabyte still fit into a client's message, whose limit is 16 MiB.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// A JSON value, or MISSING.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum Value {
    /// No value: the path leads to nothing. Not the same as NULL.
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

recursive!(Value);

/// A JSON object: its fields sorted by name, each name once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Object(Vec<(String, Value)>);

/// A reference to MISSING, for functions that return a reference.
pub static MISSING: Value = Value::Missing;
/// A reference to NULL, for functions that return a reference.
pub static NULL: Value = Value::Null;

// A `Number` is never NaN, so equality is total.
impl Eq for Value {}
impl Eq for Object {}

impl Object {
    /// Builds an object from its fields; if a name occurs twice, the last field counts.
    pub fn new(mut fields: Vec<(String, Value)>) -> Self {
        if !fields.is_sorted_by(|a, b| a.0 < b.0) {
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            // The sort is stable: of equal names the last given one is last, and is moved into the place of the first
            // before the rest are dropped.
            fields.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    std::mem::swap(later, kept);
                }
                same
            });
        }
        Self(fields)
    }

    /// Returns the value of a field; `None` if the object does not have the field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let at = self.0.binary_search_by(|(field, _)| field.as_str().cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    /// Returns the fields in the order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Value {
    /// Creates an integer.
    pub fn int(n: i64) -> Self {
        Self::Number(Number::Int(n))
    }

    /// Creates a number from a double; NULL if it is not finite.
    pub fn float(f: f64) -> Self {
        Number::from_f64(f).map_or(Self::Null, Self::Number)
    }

    /// Returns the string; `None` for a value of another type.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the boolean; `None` for a value of another type.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// Returns the number; `None` for a value of another type.
    pub fn as_number(&self) -> Option<Number> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns true for MISSING and NULL.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Missing | Self::Null)
    }

    /// Returns the value at the end of a path; MISSING if there is none.
    pub fn path(&self, steps: &[Step]) -> &Value {
        let mut at = self;
        for step in steps {
            let next = match (at, step) {
                (Self::Object(object), Step::Field(name)) => object.get(name),
                (Self::Array(items), Step::Index(n)) => element(items, *n),
                _ => None,
            };
            match next {
                Some(value) => at = value,
                None => return &MISSING,
            }
        }
        at
    }

    /// Returns the rank of the value's type in the order of types. SQL compares values only
    /// within one type.
    pub fn type_rank(&self) -> u8 {
        match self {
            Self::Missing => 0,
            Self::Null => 1,
            Self::Bool(_) => 2,
            Self::Number(_) => 3,
            Self::String(_) => 4,
            Self::Array(_) => 5,
            Self::Object(_) => 6,
        }
    }
}

/// Returns element `n` of an array, counted from the end if negative; `None` outside the array.
fn element(items: &[Value], n: i64) -> Option<&Value> {
    let at = if n < 0 { (items.len() as i64).checked_add(n)? } else { n };
    items.get(usize::try_from(at).ok()?)
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self, other)
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares any two values, by the total order that the documentation of this module describes.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Array(a), Value::Array(b)) => a.cmp(b),
        (Value::Object(a), Value::Object(b)) => {
            a.len().cmp(&b.len()).then_with(|| a.iter().cmp(b.iter()))
        }
        _ => a.type_rank().cmp(&b.type_rank()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Value {
        Value::parse_json(text.as_bytes()).expect(text)
    }

    #[test]
    fn of_equal_names_the_last_counts() {
        let object = json(r#"{"b":1,"a":2,"b":3,"a":4,"b":5}"#);
        assert_eq!(object.to_json(), r#"{"a":4,"b":5}"#);
    }

    #[test]
    fn paths_lead_through_objects_and_arrays_or_nowhere() {
        let doc = json(r#"{"a":{"tags":["x","y"]}}"#);
        let tags = |n| [Step::Field("a".into()), Step::Field("tags".into()), Step::Index(n)];
        assert_eq!(doc.path(&tags(0)), &Value::from("x"));
        assert_eq!(doc.path(&tags(-1)), &Value::from("y"));
        for outside in [2, -3, i64::MIN, i64::MAX] {
            assert_eq!(doc.path(&tags(outside)), &Value::Missing, "{outside}");
        }
    }
}
