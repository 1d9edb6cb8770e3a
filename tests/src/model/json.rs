//! Values: their total order, with numbers by their mathematical value, their SQL text, and JSON in
//! any spelling.

use std::cmp::Ordering;
use std::fmt::Write;

use serde_json::Number;

/// A JSON value.
pub type Json = serde_json::Value;

/// A JSON value, or MISSING.
pub type Value = Option<Json>;

/// A number of the model: exact if 64 bits can hold the integer, otherwise a double.
#[derive(Clone, Copy, Debug)]
pub enum Num {
    /// An integer from -2^63 to 2^64 - 1.
    Int(i128),
    /// Any other number.
    Real(f64),
}

impl Num {
    /// Converts a JSON number.
    pub fn of(number: &Number) -> Self {
        match (number.as_i64(), number.as_u64()) {
            (Some(n), _) => Self::Int(n.into()),
            (_, Some(n)) => Self::Int(n.into()),
            _ => Self::real(number.as_f64().expect("a number")),
        }
    }

    /// Returns an integer, or a double if it is too large.
    pub fn int(n: i128) -> Self {
        match n {
            n if i64::try_from(n).is_ok() || u64::try_from(n).is_ok() => Self::Int(n),
            n => Self::real(n as f64),
        }
    }

    /// Returns a double, or an integer if its value is one.
    pub fn real(f: f64) -> Self {
        let whole = f.is_finite() && f.fract() == 0.0 && f.abs() < 1e30;
        match whole.then_some(f as i128) {
            Some(n) if i64::try_from(n).is_ok() || u64::try_from(n).is_ok() => Self::Int(n),
            _ => Self::Real(f),
        }
    }

    /// The nearest double.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(n) => n as f64,
            Self::Real(f) => f,
        }
    }

    /// Returns the number as JSON; null if it is not finite.
    pub fn json(self) -> Json {
        match self {
            Self::Int(n) => match (i64::try_from(n), u64::try_from(n)) {
                (Ok(n), _) => Json::from(n),
                (_, Ok(n)) => Json::from(n),
                _ => unreachable!("an integer of 64 bits"),
            },
            Self::Real(f) => Number::from_f64(f).map_or(Json::Null, Json::Number),
        }
    }

    /// Compares two numbers by their exact value.
    pub fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(&b),
            (Self::Real(a), Self::Real(b)) => a.partial_cmp(&b).expect("no NaN"),
            (Self::Int(a), Self::Real(b)) => compare_int_real(a, b),
            (Self::Real(a), Self::Int(b)) => compare_int_real(b, a).reverse(),
        }
    }

    /// Returns the shortest JSON text that is parsed to an equal number.
    pub fn text(self) -> String {
        match self {
            Self::Int(n) => n.to_string(),
            Self::Real(f) => format!("{f:?}"),
        }
    }
}

fn compare_int_real(n: i128, f: f64) -> Ordering {
    if f.abs() >= 1e30 {
        return if f > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    // The integral part is exact; if the integral parts are equal, the fraction decides.
    n.cmp(&(f.trunc() as i128)).then(0.0.partial_cmp(&f.fract()).expect("no NaN"))
}

/// Returns the rank of a value's type in the order of types.
pub fn rank(value: Option<&Json>) -> u8 {
    match value {
        None => 0,
        Some(Json::Null) => 1,
        Some(Json::Bool(_)) => 2,
        Some(Json::Number(_)) => 3,
        Some(Json::String(_)) => 4,
        Some(Json::Array(_)) => 5,
        Some(Json::Object(_)) => 6,
    }
}

/// Compares two values in the total order.
pub fn compare(a: Option<&Json>, b: Option<&Json>) -> Ordering {
    match (a, b) {
        (Some(Json::Bool(a)), Some(Json::Bool(b))) => a.cmp(b),
        (Some(Json::Number(a)), Some(Json::Number(b))) => Num::of(a).compare(Num::of(b)),
        (Some(Json::String(a)), Some(Json::String(b))) => a.as_bytes().cmp(b.as_bytes()),
        (Some(Json::Array(a)), Some(Json::Array(b))) => {
            let pairs = a.iter().zip(b).map(|(a, b)| compare(Some(a), Some(b)));
            first_difference(pairs).then(a.len().cmp(&b.len()))
        }
        (Some(Json::Object(a)), Some(Json::Object(b))) => {
            let (a, b) = (sorted(a), sorted(b));
            let pairs = a.iter().zip(&b).map(|((name_a, a), (name_b, b))| {
                name_a.as_bytes().cmp(name_b.as_bytes()).then_with(|| compare(Some(a), Some(b)))
            });
            a.len().cmp(&b.len()).then(first_difference(pairs))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn sorted(object: &serde_json::Map<String, Json>) -> Vec<(&String, &Json)> {
    let mut fields: Vec<_> = object.iter().collect();
    fields.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    fields
}

/// Returns SQL's text of a value: strings without quotes, other values as JSON, `None` for MISSING
/// and NULL.
pub fn text(value: Option<&Json>) -> Option<String> {
    match value {
        None | Some(Json::Null) => None,
        Some(Json::String(text)) => Some(text.clone()),
        Some(other) => Some(compact(other)),
    }
}

/// Returns JSON without spaces, with fields in the order of their names and only necessary escapes.
pub fn compact(value: &Json) -> String {
    let mut out = String::new();
    write(value, &mut out, &mut Plain);
    out
}

/// A spelling of JSON.
pub trait Spelling {
    /// Returns the spelling of a number.
    fn number(&mut self, number: Num) -> String;
    /// True to escape a character that needs no escape.
    fn escape(&mut self, ch: char) -> bool;
    /// Returns the white space between two tokens.
    fn space(&mut self) -> &'static str;
    /// True to write a field twice; the reader must ignore the first one.
    fn doubled(&mut self) -> bool;
}

/// The canonical spelling.
struct Plain;

impl Spelling for Plain {
    fn number(&mut self, number: Num) -> String {
        number.text()
    }

    fn escape(&mut self, _: char) -> bool {
        false
    }

    fn space(&mut self) -> &'static str {
        ""
    }

    fn doubled(&mut self) -> bool {
        false
    }
}

/// Appends a value in a spelling.
pub fn write(value: &Json, out: &mut String, spelling: &mut dyn Spelling) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Json::Number(number) => out.push_str(&spelling.number(Num::of(number))),
        Json::String(text) => write_string(text, out, spelling),
        Json::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                out.push_str(spelling.space());
                write(item, out, spelling);
            }
            out.push(']');
        }
        Json::Object(fields) => {
            out.push('{');
            for (n, (name, value)) in sorted(fields).into_iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                out.push_str(spelling.space());
                if spelling.doubled() {
                    write_string(name, out, spelling);
                    out.push_str(":[{}],");
                }
                write_string(name, out, spelling);
                out.push(':');
                out.push_str(spelling.space());
                write(value, out, spelling);
            }
            out.push('}');
        }
    }
}

fn write_string(text: &str, out: &mut String, spelling: &mut dyn Spelling) {
    out.push('"');
    for ch in text.chars() {
        match ch {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ch if ch < ' ' || spelling.escape(ch) => {
                for unit in ch.encode_utf16(&mut [0; 2]) {
                    let _infallible = write!(out, "\\u{unit:04x}");
                }
            }
            ch => out.push(ch),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_model_orders_as_the_design_says() {
        let ascending = [
            json!(null),
            json!(false),
            json!(true),
            json!(i64::MIN),
            json!(-1.5),
            json!(-1),
            json!(0),
            json!(9007199254740992i64),
            json!(9007199254740993i64),
            json!(u64::MAX),
            json!(1.8446744073709552e19),
            json!(1e300),
            json!(""),
            json!("a"),
            json!("a\u{0}"),
            json!("é"),
            json!([]),
            json!([1]),
            json!([1, 0]),
            json!([2]),
            json!({}),
            json!({"b": 1}),
            json!({"c": 0}),
            json!({"a": 1, "b": 2}),
        ];
        for (n, a) in ascending.iter().enumerate() {
            for (m, b) in ascending.iter().enumerate() {
                assert_eq!(compare(Some(a), Some(b)), n.cmp(&m), "{a} and {b}");
            }
            assert_eq!(compare(None, Some(a)), Ordering::Less);
        }
        assert_eq!(compare(Some(&json!(1)), Some(&json!(1.0))), Ordering::Equal);
    }

    #[test]
    fn text_is_bare_for_strings_alone() {
        assert_eq!(text(Some(&json!("a\"b"))).unwrap(), "a\"b");
        assert_eq!(
            text(Some(&json!({"b": [1.0, "x\n\u{1}"], "a": null}))).unwrap(),
            "{\"a\":null,\"b\":[1,\"x\\n\\u0001\"]}"
        );
        assert_eq!(text(Some(&json!(null))), None);
        assert_eq!(text(None), None);
    }
}
