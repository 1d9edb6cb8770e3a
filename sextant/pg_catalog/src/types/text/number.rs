//! Numbers as text and from text.

use proto::value::{Number, Value};

use crate::error::{Error, Result};
use crate::types::oid::{self, Oid};

/// The names and ranges of the integer types.
pub(super) fn integer_range(ty: Oid) -> Option<(&'static str, i64, i64)> {
    Some(match ty {
        oid::INT2 => ("smallint", i16::MIN.into(), i16::MAX.into()),
        oid::INT4 => ("integer", i32::MIN.into(), i32::MAX.into()),
        oid::INT8 => ("bigint", i64::MIN, i64::MAX),
        oid::OID => ("oid", i32::MIN.into(), u32::MAX.into()),
        oid::XID => ("xid", i32::MIN.into(), u32::MAX.into()),
        oid::CID => ("cid", i32::MIN.into(), u32::MAX.into()),
        _ => return None,
    })
}

/// The error for a text that is no value of a type (22P02).
pub(super) fn invalid(name: &str, text: &str) -> Error {
    Error::new("22P02", format!("invalid input syntax for type {name}: \"{text}\""))
}

/// Parses an integer: decimal, or hexadecimal, octal and binary with `0x`, `0o`, `0b`; digits may be
/// separated by single underscores.
pub(super) fn parse_integer(text: &str, ty: Oid) -> Result<Value> {
    let (name, min, max) = integer_range(ty).unwrap_or(("bigint", i64::MIN, i64::MAX));
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let (negative, digits) = match trimmed.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let prefix = digits.get(..2).unwrap_or_default().to_ascii_lowercase();
    let (radix, digits) = match prefix.as_str() {
        "0x" => (16, &digits[2..]),
        "0o" => (8, &digits[2..]),
        "0b" => (2, &digits[2..]),
        _ => (10, digits),
    };
    let groups: Vec<&str> = digits.split('_').collect();
    let is_group = |group: &&str| !group.is_empty() && group.chars().all(|c| c.is_digit(radix));
    if !groups.iter().all(is_group) {
        return Err(invalid(name, text));
    }
    let too_large =
        || Error::new("22003", format!("value \"{text}\" is out of range for type {name}"));
    let magnitude = i128::from_str_radix(&groups.concat(), radix).map_err(|_| too_large())?;
    let number = if negative { -magnitude } else { magnitude };
    let number = i64::try_from(number).ok().filter(|number| (min..=max).contains(number));
    let number = number.ok_or_else(too_large)?;
    // An OID is unsigned: a negative one wraps around.
    let is_unsigned = matches!(ty, oid::OID | oid::XID | oid::CID);
    Ok(Value::int(if is_unsigned { i64::from(number as u32) } else { number }))
}

/// Parses a number of a floating or decimal type.
pub(super) fn parse_number(text: &str, ty: Oid) -> Result<Value> {
    let name = match ty {
        oid::FLOAT4 => "real",
        oid::FLOAT8 => "double precision",
        _ => "numeric",
    };
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let (negative, word) = match trimmed.strip_prefix('-') {
        Some(word) => (true, word),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    match word.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => {
            let infinity = if negative { f64::NEG_INFINITY } else { f64::INFINITY };
            return Ok(Value::Number(Number::Float(infinity)));
        }
        "nan" => return Err(Error::unsupported(format!("NaN is no value of {name} here"))),
        _ => {}
    }
    let number = Number::parse_sql(trimmed);
    let is_number = proto::value::is_number(trimmed) || number.is_some();
    let out_of_range =
        || Error::new("22003", format!("\"{text}\" is out of range for type {name}"));
    let number = match number {
        Some(number) => number,
        None if is_number => return Err(out_of_range()),
        None => return Err(invalid(name, text)),
    };
    match ty {
        oid::FLOAT4 => single(number.as_f64()).ok_or_else(out_of_range),
        oid::FLOAT8 => Ok(Value::Number(Number::from_f64(number.as_f64()).unwrap_or(number))),
        _ => Ok(Value::Number(number)),
    }
}

/// Returns a number in the precision of `float4`; `None` beyond its range.
pub(crate) fn single(number: f64) -> Option<Value> {
    let single = number as f32;
    if single.is_infinite() && number.is_finite() {
        return None;
    }
    Number::from_double(f64::from(single)).map(Value::Number)
}

/// Returns a double as PostgreSQL prints it: the shortest digits that read back, with an exponent
/// below 1e-4 and from 1e15 on.
pub fn print_double(number: f64) -> String {
    scientific(&format!("{number:e}"), 15)
}

/// Returns a `float4` as PostgreSQL prints it, with an exponent from 1e6 on.
pub fn print_float(number: f64) -> String {
    scientific(&format!("{:e}", number as f32), 6)
}

/// Rewrites Rust's shortest form `d.ddde±x`.
fn scientific(shortest: &str, fixed_below: i32) -> String {
    let Some((digits, exponent)) = shortest.split_once('e') else {
        return match shortest {
            "inf" => "Infinity".to_owned(),
            "-inf" => "-Infinity".to_owned(),
            other => other.to_owned(),
        };
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    if !(-4..fixed_below).contains(&exponent) {
        let mark = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{digits}e{mark}{:02}", exponent.abs());
    }
    let all = digits.replace('.', "");
    let point = exponent + 1;
    if point <= 0 {
        return format!("{sign}0.{}{all}", "0".repeat(point.unsigned_abs() as usize));
    }
    let point = point as usize;
    if all.len() <= point {
        return format!("{sign}{all}{}", "0".repeat(point - all.len()));
    }
    format!("{sign}{}.{}", &all[..point], &all[point..])
}

/// Returns a number as `numeric` prints it: all digits, without an exponent.
pub fn print_numeric(number: Number) -> String {
    match number {
        Number::Float(f64::INFINITY) => "Infinity".to_owned(),
        Number::Float(f64::NEG_INFINITY) => "-Infinity".to_owned(),
        Number::Float(double) => format!("{double}"),
        integer => integer.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_have_an_exponent_where_postgresql_writes_one() {
        for (number, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-300, "1.5e-300"),
            (f64::INFINITY, "Infinity"),
        ] {
            assert_eq!(print_double(number), text);
        }
        assert_eq!(print_float(1e5), "100000");
        assert_eq!(print_float(1e6), "1e+06");
        assert_eq!(print_float(0.1), "0.1");
    }

    #[test]
    fn integers_are_read_in_all_notations_within_their_range() {
        let int = |text, ty| parse_integer(text, ty).map_err(|error| error.sqlstate);
        assert_eq!(int(" 0x1F ", oid::INT4), Ok(Value::int(31)));
        assert_eq!(int("1_000", oid::INT4), Ok(Value::int(1000)));
        assert_eq!(int("-1", oid::OID), Ok(Value::int(4_294_967_295)));
        assert_eq!(int("32768", oid::INT2), Err("22003"));
        for text in ["", "1.5", "1__0", "_1", "x", "- 1", "0x"] {
            assert_eq!(int(text, oid::INT4), Err("22P02"), "{text:?}");
        }
    }
}
