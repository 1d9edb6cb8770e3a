//! Arithmetic of integers, doubles and decimals, with the errors of overflow and division by zero.

use std::str::FromStr;

use bigdecimal::{BigDecimal, RoundingMode};
use proto::value::{Number, Value};

use crate::error::{Error, Result};
use crate::types::oid::{self, Oid};
use crate::types::text::print_numeric;

/// The error of a division by zero (22012).
pub(crate) fn division_by_zero() -> Error {
    Error::new("22012", "division by zero")
}

/// The error of a number beyond its type (22003).
pub(crate) fn out_of_range(ty: Oid) -> Error {
    let name = match ty {
        oid::INT2 => "smallint",
        oid::INT4 => "integer",
        oid::INT8 => "bigint",
        oid::OID => "OID",
        oid::FLOAT4 => "real",
        oid::FLOAT8 => "double precision",
        _ => return Error::new("22003", "value overflows numeric format"),
    };
    match ty {
        oid::FLOAT4 | oid::FLOAT8 => Error::new("22003", "value out of range: overflow"),
        _ => Error::new("22003", format!("{name} out of range")),
    }
}

/// Returns an integer of a type. An error beyond its range.
pub(crate) fn integer(number: i128, ty: Oid) -> Result<Value> {
    let (min, max) = match ty {
        oid::INT2 => (i16::MIN.into(), i16::MAX.into()),
        oid::INT4 => (i32::MIN.into(), i32::MAX.into()),
        oid::OID => (0, i64::from(u32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let number = i64::try_from(number).ok().filter(|number| (min..=max).contains(number));
    number.map(Value::int).ok_or_else(|| out_of_range(ty))
}

/// Returns a double of a type. An error if a finite computation gave an infinite one, or none.
pub(crate) fn double(number: f64, ty: Oid) -> Result<Value> {
    if number.is_nan() {
        return Err(Error::unsupported("NaN is no value of the catalogue"));
    }
    if number.is_infinite() {
        return Err(out_of_range(ty));
    }
    let number = if ty == oid::FLOAT4 { f64::from(number as f32) } else { number };
    Number::from_f64(number).map(Value::Number).ok_or_else(|| out_of_range(ty))
}

/// Returns true for an integer type.
pub(crate) fn is_integer(ty: Oid) -> bool {
    matches!(ty, oid::INT2 | oid::INT4 | oid::INT8)
}

/// Computes `left op right` in a type; `op` is one of `+ - * / %`.
pub(crate) fn binary(op: &str, left: Number, right: Number, ty: Oid) -> Result<Value> {
    if let (true, Some(left), Some(right)) = (is_integer(ty), left.as_i128(), right.as_i128()) {
        if right == 0 && matches!(op, "/" | "%") {
            return Err(division_by_zero());
        }
        let number = match op {
            "+" => left + right,
            "-" => left - right,
            "*" => left * right,
            "/" => left / right,
            _ => left % right,
        };
        return integer(number, ty);
    }
    if ty == oid::NUMERIC {
        return decimal(op, left, right);
    }
    let (left, right) = (left.as_f64(), right.as_f64());
    if right == 0.0 && matches!(op, "/" | "%") {
        return Err(division_by_zero());
    }
    double(
        match op {
            "+" => left + right,
            "-" => left - right,
            "*" => left * right,
            "/" => left / right,
            _ => left % right,
        },
        ty,
    )
}

/// Computes with decimals: exactly for sums and products, as far as 64-bit integers and doubles go.
fn decimal(op: &str, left: Number, right: Number) -> Result<Value> {
    if right.as_i128() == Some(0) && matches!(op, "/" | "%") {
        return Err(division_by_zero());
    }
    let (left, right) = (big(left)?, big(right)?);
    let number = match op {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" => (left / right).with_prec(20),
        _ => left % right,
    };
    from_big(&number)
}

/// Returns a number as a decimal.
pub(crate) fn big(number: Number) -> Result<BigDecimal> {
    BigDecimal::from_str(&print_numeric(number))
        .map_err(|_| Error::unsupported("arithmetic with an infinite numeric"))
}

/// Returns a decimal as a value: an integer of 64 bits, or the nearest double.
pub(crate) fn from_big(number: &BigDecimal) -> Result<Value> {
    let text = number.to_scientific_notation();
    Number::parse_sql(&text).map(Value::Number).ok_or_else(|| out_of_range(oid::NUMERIC))
}

/// Rounds a number to a number of decimal places, half away from zero; to tens and hundreds for a
/// negative one.
pub(crate) fn round(number: Number, places: i64) -> Result<Value> {
    rounded(number, places, RoundingMode::HalfUp)
}

/// Cuts a number after a number of decimal places.
pub(crate) fn truncate(number: Number, places: i64) -> Result<Value> {
    rounded(number, places, RoundingMode::Down)
}

fn rounded(number: Number, places: i64, mode: RoundingMode) -> Result<Value> {
    if number.as_i128().is_some() && places >= 0 || number.as_f64().is_infinite() {
        return Ok(Value::Number(number));
    }
    // PostgreSQL's numeric has at most 2000 places here.
    from_big(&big(number)?.with_scale_round(places.clamp(-2000, 2000), mode))
}

/// Converts a number to an integer type: a double is rounded half to even, a decimal half away
/// from zero.
pub(crate) fn to_integer(number: Number, from: Oid, to: Oid) -> Result<Value> {
    if let Some(number) = number.as_i128() {
        return integer(number, to);
    }
    let double = number.as_f64();
    let rounded = match from {
        oid::FLOAT4 | oid::FLOAT8 => double.round_ties_even(),
        _ => double.round(),
    };
    // Beyond this, the conversion to i128 would saturate.
    if rounded.abs() > 1e30 {
        return Err(out_of_range(to));
    }
    integer(rounded as i128, to)
}

/// Returns a count as an `int4`.
pub(crate) fn int4(number: usize) -> Result<Value> {
    integer(number as i128, oid::INT4)
}
