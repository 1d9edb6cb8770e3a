//! Mathematical functions.

use proto::value::{Number, Value};

use super::arithmetic::{binary, double, is_integer, round, truncate};
use super::context::Arguments;
use super::signature::Scalar;
use crate::data::FunctionRow;
use crate::error::{Error, Result};
use crate::types::oid::{self, Oid};

/// Raises a number to a power.
pub(super) fn power(base: Number, exponent: Number, ty: Oid) -> Result<Value> {
    let (x, y) = (base.as_f64(), exponent.as_f64());
    if x == 0.0 && y < 0.0 {
        return Err(Error::new("2201F", "zero raised to a negative power is undefined"));
    }
    if x < 0.0 && y.fract() != 0.0 {
        let what = "a negative number raised to a non-integer power yields a complex result";
        return Err(Error::new("2201F", what));
    }
    // Powers of integers are exact as far as 128 bits go.
    if let (oid::NUMERIC, Some(base), Some(exponent)) = (ty, base.as_i128(), exponent.as_i64())
        && let Ok(exponent) = u32::try_from(exponent)
        && let Some(number) = base.checked_pow(exponent)
    {
        return Ok(Value::Number(Number::from_i128(number)));
    }
    double(x.powf(y), ty)
}

fn logarithm(number: f64) -> Result<f64> {
    if number == 0.0 {
        return Err(Error::new("2201E", "cannot take logarithm of zero"));
    }
    if number < 0.0 {
        return Err(Error::new("2201E", "cannot take logarithm of a negative number"));
    }
    Ok(number)
}

/// Applies a function of doubles.
fn apply(a: &Arguments<'_>, function: impl FnOnce(f64) -> f64) -> Result<Value> {
    double(function(a.double(0)?), a.result.oid())
}

/// Applies a rounding function; an integer is its own result.
fn whole(a: &Arguments<'_>, function: impl FnOnce(f64) -> f64) -> Result<Value> {
    match a.number(0)? {
        Number::Float(number) => double(function(number), oid::FLOAT8),
        integer => Ok(Value::Number(integer)),
    }
}

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    let is_decimal = row.result == oid::NUMERIC;
    Some(match row.name.as_str() {
        "abs" => |_, a| match a.number(0)? < Number::Int(0) {
            true => binary("-", Number::Int(0), a.number(0)?, a.result.oid()),
            false => Ok(a.value(0).clone()),
        },
        "ceil" | "ceiling" => |_, a| whole(a, f64::ceil),
        "floor" => |_, a| whole(a, f64::floor),
        "round" if is_decimal => {
            |_, a| round(a.number(0)?, if a.len() > 1 { a.int(1)? } else { 0 })
        }
        "round" => |_, a| whole(a, f64::round_ties_even),
        "trunc" => |_, a| truncate(a.number(0)?, if a.len() > 1 { a.int(1)? } else { 0 }),
        "sign" => |_, a| Ok(Value::int(a.number(0)?.cmp(&Number::Int(0)) as i64)),
        "mod" => |_, a| binary("%", a.number(0)?, a.number(1)?, a.result.oid()),
        "div" => |_, a| {
            let quotient = binary("/", a.number(0)?, a.number(1)?, oid::NUMERIC)?;
            truncate(quotient.as_number().unwrap_or(Number::Int(0)), 0)
        },
        _ => return find_transcendental(row),
    })
}

/// Powers, roots, logarithms, angles, and what is no arithmetic.
fn find_transcendental(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "power" => |_, a| power(a.number(0)?, a.number(1)?, a.result.oid()),
        "sqrt" => |_, a| {
            if a.double(0)? < 0.0 {
                return Err(Error::new("2201F", "cannot take square root of a negative number"));
            }
            apply(a, f64::sqrt)
        },
        "exp" => |_, a| apply(a, f64::exp),
        "ln" => |_, a| double(logarithm(a.double(0)?)?.ln(), a.result.oid()),
        "log" if row.arguments.len() == 1 => {
            |_, a| double(logarithm(a.double(0)?)?.log10(), a.result.oid())
        }
        "log" => |_, a| {
            let (base, number) = (logarithm(a.double(0)?)?, logarithm(a.double(1)?)?);
            if base == 1.0 {
                return Err(super::arithmetic::division_by_zero());
            }
            double(number.ln() / base.ln(), oid::NUMERIC)
        },
        "degrees" => |_, a| apply(a, f64::to_degrees),
        "radians" => |_, a| apply(a, f64::to_radians),
        "pi" => |_, _| double(std::f64::consts::PI, oid::FLOAT8),
        "random" => |context, _| {
            // 53 bits fill the digits of a double.
            double((context.session.random() >> 11) as f64 / (1u64 << 53) as f64, oid::FLOAT8)
        },
        "to_hex" if is_integer(row.arguments[0]) => |_, a| {
            let number = a.int(0)?;
            Ok(Value::String(match a.oid(0) {
                oid::INT8 => format!("{number:x}"),
                _ => format!("{:x}", number as i32),
            }))
        },
        _ => return None,
    })
}
