//! Casts between SQL's types, by PostgreSQL's rules.
//!
//! | to | from |
//! |---|---|
//! | `text` | any value: strings without quotes, all others as JSON |
//! | `bool` | a whole number (0 is false), and a text: `true yes on 1`, `false no off 0`, or an unambiguous prefix of such a word |
//! | `int4 int8` | a number, rounded half away from zero, and the text of an integer; `int4` also true (1) and false (0) |
//! | `float8 numeric` | a number, and the text of one; `Infinity` among them |
//!
//! White space around a text, and upper and lower case, are ignored. NaN is not a value, and is
//! refused with an error that names it. A number from a double is rounded half to even, by
//! [`Function::RoundToEven`](super::Function::RoundToEven) before its cast.

use crate::expr::ast::ColumnType;
use crate::value;
use crate::value::{Number, Value};
use crate::{Error, ErrorCode};

/// The reason why a value cannot be converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastFailure {
    /// The type has no such value.
    Invalid,
    /// The number is outside of the range of the type.
    OutOfRange,
    /// The number is NaN.
    NotANumber,
}

/// Converts a value to another type. NULL and MISSING are returned unchanged.
pub fn cast(value: &Value, to: ColumnType) -> Result<Value, CastFailure> {
    if value.is_absent() {
        return Ok(value.clone());
    }
    match to {
        ColumnType::Text => {
            let text = value::text(value).unwrap_or_default();
            Ok(Value::String(text.into_owned()))
        }
        ColumnType::Bool => to_bool(value).map(Value::Bool).ok_or(CastFailure::Invalid),
        ColumnType::Int4 => match value {
            Value::Bool(truth) => Ok(Value::int((*truth).into())),
            _ => to_integer(value)
                .and_then(|n| i32::try_from(n).map_err(|_| CastFailure::OutOfRange))
                .map(|n| Value::int(n.into())),
        },
        ColumnType::Int8 => to_integer(value).map(Value::int),
        ColumnType::Float8 => {
            let number = to_number(value)?.as_f64();
            Number::from_double(number).map(Value::Number).ok_or(CastFailure::NotANumber)
        }
        ColumnType::Numeric => to_number(value).map(Value::Number),
    }
}

impl CastFailure {
    /// Returns the error for a value that cannot be converted to a type.
    pub fn error(self, value: &Value, to: ColumnType) -> Error {
        let name = to.name();
        match self {
            Self::Invalid => Error::new(
                ErrorCode::InvalidText,
                format!("{} is not a valid {name}", shortened_text(value)),
            ),
            Self::OutOfRange => Error::new(
                ErrorCode::OutOfRange,
                format!("{} is out of range for type {name}", shortened_text(value)),
            ),
            Self::NotANumber => not_a_number(),
        }
    }
}

/// Returns the error for a computation whose result is NaN, and for a text that denotes NaN.
pub(super) fn not_a_number() -> Error {
    Error::new(ErrorCode::Unsupported, "NaN is not supported").with_hint("use NULL for no number")
}

/// Maximum number of characters of a value that an error quotes.
const SHOWN_CHARS: usize = 60;

/// Returns a value as text for an error, shortened if it is long.
fn shortened_text(value: &Value) -> String {
    let text = value::text(value).unwrap_or("NULL".into());
    let begins: String = text.chars().take(SHOWN_CHARS).collect();
    let more = if begins.len() < text.len() { "…" } else { "" };
    match value {
        Value::String(_) => format!("{begins:?}{more}"),
        _ => format!("{begins}{more}"),
    }
}

impl ColumnType {
    /// Returns PostgreSQL's name of the type, for display.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Bool => "boolean",
            Self::Int4 => "integer",
            Self::Int8 => "bigint",
            Self::Float8 => "double precision",
            Self::Numeric => "numeric",
        }
    }
}

/// Trims the white space around a text, as defined by C's `isspace`.
fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}'])
}

fn to_bool(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::Number(number) => number.as_i128().map(|n| n != 0),
        Value::String(text) => {
            let text = trim(text).to_ascii_lowercase();
            let begins = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
            match () {
                () if begins("true", 1) || begins("yes", 1) || text == "on" || text == "1" => {
                    Some(true)
                }
                () if begins("false", 1) || begins("no", 1) || begins("off", 2) || text == "0" => {
                    Some(false)
                }
                () => None,
            }
        }
        _ => None,
    }
}

fn to_integer(value: &Value) -> Result<i64, CastFailure> {
    match value {
        Value::Number(Number::Float(float)) => match Number::from_f64(float.round()) {
            Some(Number::Int(n)) => Ok(n),
            _ => Err(CastFailure::OutOfRange),
        },
        Value::Number(number) => number.as_i64().ok_or(CastFailure::OutOfRange),
        Value::String(text) => {
            let text = trim(text);
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(CastFailure::Invalid);
            }
            text.parse().map_err(|_| CastFailure::OutOfRange)
        }
        _ => Err(CastFailure::Invalid),
    }
}

fn to_number(value: &Value) -> Result<Number, CastFailure> {
    match value {
        Value::Number(number) => Ok(*number),
        Value::String(text) => {
            let text = trim(text);
            match Number::parse_sql(text) {
                Some(number) => Ok(number),
                None => parse_infinity(text),
            }
        }
        _ => Err(CastFailure::Invalid),
    }
}

/// Parses a text that denotes an infinite number. Returns an error for NaN and for any other
/// text.
fn parse_infinity(text: &str) -> Result<Number, CastFailure> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text).to_ascii_lowercase();
    match unsigned.as_str() {
        "inf" | "infinity" => {
            let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
            Ok(Number::Float(sign * f64::INFINITY))
        }
        "nan" if text.len() == unsigned.len() => Err(CastFailure::NotANumber),
        // A number, as parse_sql spells it, but beyond the doubles.
        digits
            if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
                && digits.parse::<f64>().is_ok() =>
        {
            Err(CastFailure::OutOfRange)
        }
        _ => Err(CastFailure::Invalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Value {
        match text {
            "Infinity" => Value::Number(Number::Float(f64::INFINITY)),
            "-Infinity" => Value::Number(Number::Float(f64::NEG_INFINITY)),
            text => Value::parse_json(text.as_bytes()).expect(text),
        }
    }

    #[test]
    fn casts_follow_postgresql() {
        use ColumnType::*;
        for (value, to, expected) in [
            ("3.0", Int8, "3"),
            ("19.99", Int8, "20"),
            ("2.5", Int8, "3"),
            ("-2.5", Int8, "-3"),
            ("-0.4", Int4, "0"),
            ("\" 12\\n\"", Int8, "12"),
            ("\"+12\"", Int8, "12"),
            ("2147483647.4", Int4, "2147483647"),
            ("\"-5\"", Int4, "-5"),
            ("true", Int4, "1"),
            ("1.50", Text, "\"1.5\""),
            ("\"a\"", Text, "\"a\""),
            ("[1]", Text, "\"[1]\""),
            ("null", Text, "null"),
            ("null", Int8, "null"),
            ("1", Bool, "true"),
            ("-7", Bool, "true"),
            ("0", Bool, "false"),
            ("9007199254740993", Float8, "9007199254740992"),
            ("\"1e3\"", Float8, "1000"),
            ("\" +.5 \"", Numeric, "0.5"),
            ("\"9007199254740993\"", Numeric, "9007199254740993"),
            ("\"Infinity\"", Float8, "Infinity"),
            ("\" -INF\"", Float8, "-Infinity"),
            ("\"+infinity\"", Numeric, "Infinity"),
            ("Infinity", Text, "\"Infinity\""),
        ] {
            assert_eq!(cast(&json(value), to), Ok(json(expected)), "{value}::{to:?}");
        }
        for word in ["t", "TRUE", "tr", "y", "Yes", " on ", "1"] {
            assert_eq!(cast(&Value::from(word), Bool), Ok(Value::Bool(true)), "{word}");
        }
        for word in ["f", "FALSE", "fals", "n", "no", "of", "OFF", "0"] {
            assert_eq!(cast(&Value::from(word), Bool), Ok(Value::Bool(false)), "{word}");
        }
    }

    #[test]
    fn invalid_and_out_of_range_differ() {
        use CastFailure::{Invalid, NotANumber, OutOfRange};
        use ColumnType::*;
        for (value, to, unfit) in [
            ("\"x\"", Int8, Invalid),
            ("\"19.99\"", Int8, Invalid),
            ("\"1e3\"", Int8, Invalid),
            ("\"\"", Int8, Invalid),
            ("\"+-1\"", Int8, Invalid),
            ("\"\\u00a01\"", Int8, Invalid),
            ("true", Int8, Invalid),
            ("[1]", Int4, Invalid),
            ("9223372036854775808", Int8, OutOfRange),
            ("\"9223372036854775808\"", Int8, OutOfRange),
            ("1e300", Int8, OutOfRange),
            ("Infinity", Int8, OutOfRange),
            ("2147483647.5", Int4, OutOfRange),
            ("\"99999999999\"", Int4, OutOfRange),
            ("1.5", Bool, Invalid),
            ("\"o\"", Bool, Invalid),
            ("\"yess\"", Bool, Invalid),
            ("\"\"", Bool, Invalid),
            ("\"2\"", Bool, Invalid),
            ("true", Float8, Invalid),
            ("\"1e999\"", Float8, OutOfRange),
            ("\"1x\"", Numeric, Invalid),
            ("\"\"", Numeric, Invalid),
            ("\"0x10\"", Float8, Invalid),
            ("\"NaN\"", Float8, NotANumber),
        ] {
            assert_eq!(cast(&json(value), to), Err(unfit), "{value}::{to:?}");
        }
        let long = Value::String("x".repeat(1000));
        let error = Invalid.error(&long, Int8);
        assert!(error.message.len() < 100 && error.message.ends_with("is not a valid bigint"));
    }
}
