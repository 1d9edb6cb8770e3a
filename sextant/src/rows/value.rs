//! Conversion of single values to the forms that clients read: text and binary.

use bigdecimal::{BigDecimal, RoundingMode, ToPrimitive};
use proto::expr::ColumnType;
use proto::expr::cast::cast;
use proto::value::{Number, Value};
use proto::{Error, ErrorCode, Result};

use super::format::Format;

/// A computed value of a result, in contrast to values that are printed directly from an entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Datum {
    /// A JSON value; NULL and MISSING are SQL's NULL.
    Value(Value),
    /// An exact decimal number, which is a sum or an average.
    Decimal(BigDecimal),
}

impl Datum {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Value(Value::String(text.into()))
    }

    pub(crate) fn int(int: i64) -> Self {
        Self::Value(Value::int(int))
    }

    pub(crate) const NULL: Self = Self::Value(Value::Null);

    /// Casts the value to a type.
    pub(crate) fn cast(self, to: ColumnType) -> Result<Self> {
        let cast = |value: &Value| cast(value, to).map_err(|unfit| unfit.error(value, to));
        match (self, to) {
            (Self::Value(value), _) => cast(&value).map(Self::Value),
            (decimal, ColumnType::Numeric) => Ok(decimal),
            (Self::Decimal(decimal), ColumnType::Text) => Ok(Self::text(plain(&decimal))),
            (Self::Decimal(decimal), ColumnType::Int4 | ColumnType::Int8) => {
                let whole = decimal.with_scale_round(0, RoundingMode::HalfUp).to_i64();
                let out_of_range = || out_of_range(plain(&decimal), to);
                cast(&Value::int(whole.ok_or_else(out_of_range)?)).map(Self::Value)
            }
            (Self::Decimal(decimal), _) => {
                let text = Value::from(plain(&decimal).as_str());
                let number = proto::expr::cast::cast(&text, ColumnType::Numeric);
                cast(&number.map_err(|unfit| unfit.error(&text, to))?).map(Self::Value)
            }
        }
    }

    /// Appends the value in a column's type and format and returns true. For NULL, appends
    /// nothing and returns false.
    pub(crate) fn write(
        &self,
        column_type: ColumnType,
        format: Format,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        match self {
            Self::Value(value) => write_value(value, column_type, format, out),
            Self::Decimal(decimal) => {
                let text = plain(decimal);
                match format {
                    Format::Text => out.extend_from_slice(text.as_bytes()),
                    Format::Binary => numeric_to_binary(&text, out),
                }
                Ok(true)
            }
        }
    }
}

/// Returns a decimal as text without an exponent.
fn plain(decimal: &BigDecimal) -> String {
    decimal.normalized().to_plain_string()
}

/// Appends a value in a column's type and format and returns true. For NULL and for a value of
/// another type, appends nothing and returns false. Returns the error `OutOfRange` for a number
/// outside the column's type, such as the result of integer arithmetic beyond 64 bits.
pub(crate) fn write_value(
    value: &Value,
    column_type: ColumnType,
    format: Format,
    out: &mut Vec<u8>,
) -> Result<bool> {
    if column_type == ColumnType::Text {
        let Some(text) = proto::value::text(value) else { return Ok(false) };
        out.extend_from_slice(text.as_bytes());
        return Ok(true);
    }
    match (of_type(value, column_type), format) {
        (Value::Bool(truth), Format::Text) => out.push(if truth { b't' } else { b'f' }),
        (Value::Bool(truth), Format::Binary) => out.push(truth.into()),
        (Value::Number(number), Format::Text) => {
            // Writing to a vector cannot fail.
            let _infallible = std::io::Write::write_fmt(out, format_args!("{number}"));
        }
        (Value::Number(number), Format::Binary) => write_binary(number, column_type, out),
        _ => match value {
            Value::Number(number) if column_type != ColumnType::Bool => {
                return Err(out_of_range(number, column_type));
            }
            _ => return Ok(false),
        },
    }
    Ok(true)
}

/// Returns a value if it has the column's type, without rounding; NULL if it has another type.
fn of_type(value: &Value, column_type: ColumnType) -> Value {
    match (value, column_type) {
        (Value::Number(Number::Float(_)), ColumnType::Int4 | ColumnType::Int8) => Value::Null,
        (Value::Number(_), ColumnType::Bool) | (Value::Bool(_), ColumnType::Int4) => Value::Null,
        _ => cast(value, column_type).unwrap_or(Value::Null),
    }
}

/// Returns the error for a number outside the range of its column's type.
pub(crate) fn out_of_range(number: impl std::fmt::Display, column_type: ColumnType) -> Error {
    let name = match column_type {
        ColumnType::Int4 => "integer",
        ColumnType::Int8 => "bigint",
        _ => "number",
    };
    Error::new(ErrorCode::OutOfRange, format!("{name} out of range: {number}"))
        .with_hint("cast an operand to numeric or float8")
}

/// Appends a number in binary form. The number must already have the column's type, so the
/// conversion loses nothing.
fn write_binary(number: Number, column_type: ColumnType, out: &mut Vec<u8>) {
    let int = number.as_i64().unwrap_or_default();
    match column_type {
        ColumnType::Int4 => out.extend_from_slice(&(int as i32).to_be_bytes()),
        ColumnType::Int8 => out.extend_from_slice(&int.to_be_bytes()),
        ColumnType::Float8 => out.extend_from_slice(&number.as_f64().to_be_bytes()),
        _ => match number {
            Number::Float(float) if float.is_infinite() => {
                let sign = if float > 0.0 { NUMERIC_INFINITE } else { NUMERIC_NEGATIVE_INFINITE };
                [0, 0, sign, 0].iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
            }
            // Display prints a double without an exponent.
            Number::Float(float) => numeric_to_binary(&format!("{float}"), out),
            integer => numeric_to_binary(&integer.to_string(), out),
        },
    }
}

const NUMERIC_NEGATIVE: u16 = 0x4000;
const NUMERIC_INFINITE: u16 = 0xd000;
const NUMERIC_NEGATIVE_INFINITE: u16 = 0xf000;

/// Appends PostgreSQL's binary form of a numeric: number of digits in base 10,000, power of the
/// first digit, sign, number of decimal places, digits. `text` is a decimal number without an
/// exponent.
fn numeric_to_binary(text: &str, out: &mut Vec<u8>) {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (NUMERIC_NEGATIVE, digits),
        None => (0, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let lead = (4 - whole.len() % 4) % 4;
    let trail = (4 - fraction.len() % 4) % 4;
    let padded = [&"000"[..lead], whole, fraction, &"000"[..trail]].concat();
    let mut groups: Vec<u16> = padded
        .as_bytes()
        .chunks(4)
        .map(|group| group.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0')))
        .collect();
    let mut weight = ((whole.len() + lead) / 4) as i16 - 1;
    let zeros = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..zeros);
    weight -= zeros as i16;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    out.extend_from_slice(&(groups.len() as u16).to_be_bytes());
    out.extend_from_slice(&weight.to_be_bytes());
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&(fraction.len() as u16).to_be_bytes());
    groups.iter().for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
}

/// Decodes PostgreSQL's binary form of a numeric to the text of a decimal number. Returns `None`
/// if it is malformed or NaN.
pub(crate) fn numeric_from_binary(bytes: &[u8]) -> Option<String> {
    let mut words = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let (count, weight) = (usize::from(words.next()?), words.next()? as i16);
    let (sign, scale) = (words.next()?, words.next()?);
    let groups: Vec<u16> = words.collect();
    let whole_bytes = bytes.len() == 8 + 2 * count;
    if !whole_bytes || groups.iter().any(|group| *group > 9999) {
        return None;
    }
    // 64-bit integers and doubles need no more. Without a limit a client could make the server allocate a huge text.
    if !(-100..=100).contains(&weight) || scale > 400 {
        return None;
    }
    let sign = match sign {
        0 => "",
        NUMERIC_NEGATIVE => "-",
        NUMERIC_INFINITE if count == 0 => return Some("Infinity".into()),
        NUMERIC_NEGATIVE_INFINITE if count == 0 => return Some("-Infinity".into()),
        _ => return None,
    };
    let digit = |power: i16| {
        let at = i32::from(weight) - i32::from(power);
        usize::try_from(at).ok().and_then(|at| groups.get(at)).copied().unwrap_or(0)
    };
    let mut text = String::from(sign);
    let whole: String =
        (0..=weight.max(0)).rev().map(|power| format!("{:04}", digit(power))).collect();
    let whole = whole.trim_start_matches('0');
    text.push_str(if whole.is_empty() { "0" } else { whole });
    let lowest = weight.saturating_sub(count as i16 - 1).min(0);
    let fraction: String = (lowest..0).rev().map(|power| format!("{:04}", digit(power))).collect();
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numerics_are_the_same_after_encoding_and_decoding() {
        for text in [
            "0",
            "1",
            "-1",
            "9999",
            "10000",
            "12345678901234567890",
            "0.5",
            "-0.0001",
            "0.00001",
            "1234.5678",
            "100000000.25",
            "1.10001",
        ] {
            let mut bytes = Vec::new();
            numeric_to_binary(text, &mut bytes);
            assert_eq!(numeric_from_binary(&bytes).as_deref(), Some(text), "{bytes:?}");
            for cut in 0..bytes.len() {
                assert_ne!(numeric_from_binary(&bytes[..cut]).as_deref(), Some(text));
            }
        }
        // PostgreSQL's encoding of 1234.5678.
        let mut bytes = Vec::new();
        numeric_to_binary("1234.5678", &mut bytes);
        assert_eq!(bytes, [0, 2, 0, 0, 0, 0, 0, 4, 0x04, 0xd2, 0x16, 0x2e]);
        assert_eq!(numeric_from_binary(&[0, 0, 0, 0, 0xc0, 0, 0, 0]), None, "NaN");
    }

    #[test]
    fn values_are_written_in_the_type_and_format_of_their_column() {
        let write = |value: &Value, column_type, format| {
            let mut out = Vec::new();
            write_value(value, column_type, format, &mut out)
                .map(|is_there| is_there.then_some(out))
        };
        let (text, binary) = (Format::Text, Format::Binary);
        let json = |json: &str| Value::parse_json(json.as_bytes()).unwrap();
        assert_eq!(write(&json("\"x\""), ColumnType::Text, text), Ok(Some(b"x".to_vec())));
        assert_eq!(
            write(&json("[1,\"x\"]"), ColumnType::Text, binary),
            Ok(Some(b"[1,\"x\"]".to_vec()))
        );
        assert_eq!(write(&json("true"), ColumnType::Text, text), Ok(Some(b"true".to_vec())));
        assert_eq!(write(&json("true"), ColumnType::Bool, text), Ok(Some(b"t".to_vec())));
        assert_eq!(write(&json("3.0"), ColumnType::Int8, text), Ok(Some(b"3".to_vec())));
        for beyond in ["3.7", "9223372036854775808", "1e300"] {
            let refused = write(&json(beyond), ColumnType::Int8, text).unwrap_err();
            assert_eq!(refused.code.sqlstate(), "22003", "{beyond}");
        }
        assert_eq!(write(&json("7"), ColumnType::Int4, binary), Ok(Some(vec![0, 0, 0, 7])));
        assert_eq!(write(&Value::Missing, ColumnType::Text, text), Ok(None));
        let sum = Datum::Decimal("12.50".parse().unwrap());
        let mut out = Vec::new();
        assert_eq!(sum.write(ColumnType::Numeric, text, &mut out), Ok(true));
        assert_eq!(out, b"12.5");
        assert_eq!(sum.clone().cast(ColumnType::Int8), Ok(Datum::int(13)), "half away from zero");
        assert_eq!(sum.clone().cast(ColumnType::Float8), Ok(Datum::Value(Value::float(12.5))));
        let large = Datum::Decimal("9223372036854775807.5".parse().unwrap());
        assert_eq!(large.cast(ColumnType::Int8).unwrap_err().code, ErrorCode::OutOfRange);
        for (infinite, text) in [(f64::INFINITY, "Infinity"), (f64::NEG_INFINITY, "-Infinity")] {
            let value = Value::Number(Number::from_double(infinite).unwrap());
            let written = write(&value, ColumnType::Numeric, binary).unwrap().unwrap();
            assert_eq!(numeric_from_binary(&written).as_deref(), Some(text));
            assert_eq!(write(&value, ColumnType::Numeric, Format::Text), Ok(Some(text.into())));
        }
    }
}
