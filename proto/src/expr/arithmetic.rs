//! Arithmetic of numbers: integers are exact, and become doubles only if the result does not fit in
//! 64 bits.

use super::cast::not_a_number;
use crate::expr::ast::ArithmeticOp;
use crate::value::{Number, Value};
use crate::{Error, ErrorCode};

/// The reasons why an operation on two numbers has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoResult {
    DivisionByZero,
    OutOfRange,
    NotANumber,
}

impl From<NoResult> for Error {
    fn from(reason: NoResult) -> Self {
        match reason {
            NoResult::DivisionByZero => Error::new(ErrorCode::DivisionByZero, "division by zero"),
            NoResult::OutOfRange => {
                Error::new(ErrorCode::OutOfRange, "the result of arithmetic is out of range")
            }
            NoResult::NotANumber => not_a_number(),
        }
    }
}

/// Returns the result of an operator. If an operand is MISSING, the result is MISSING; if one is
/// not a number, the result is NULL.
pub(super) fn arithmetic(op: ArithmeticOp, a: &Value, b: &Value) -> Result<Value, NoResult> {
    let (Value::Number(a), Value::Number(b)) = (a, b) else {
        let is_missing = matches!(a, Value::Missing) || matches!(b, Value::Missing);
        return Ok(if is_missing { Value::Missing } else { Value::Null });
    };
    use ArithmeticOp::{Divide, DivideIntegers, Modulo};
    if matches!(op, Divide | DivideIntegers | Modulo) && *b == Number::Int(0) {
        return Err(NoResult::DivisionByZero);
    }
    let exact = a.as_i128().zip(b.as_i128()).and_then(|(a, b)| integer(op, a, b));
    match exact {
        Some(number) => Ok(Value::Number(number)),
        None => double(op, a.as_f64(), b.as_f64()).map(Value::Number),
    }
}

/// Returns the result of integer arithmetic; `None` if only a double can represent it. The divisor
/// must not be 0.
fn integer(op: ArithmeticOp, a: i128, b: i128) -> Option<Number> {
    let result = match op {
        ArithmeticOp::Add => a.checked_add(b)?,
        ArithmeticOp::Subtract => a.checked_sub(b)?,
        ArithmeticOp::Multiply => a.checked_mul(b)?,
        ArithmeticOp::Divide if a % b != 0 => return None,
        ArithmeticOp::Divide | ArithmeticOp::DivideIntegers => a / b,
        ArithmeticOp::Modulo => a % b,
    };
    Some(Number::from_i128(result))
}

fn double(op: ArithmeticOp, a: f64, b: f64) -> Result<Number, NoResult> {
    let result = match op {
        ArithmeticOp::Add => a + b,
        ArithmeticOp::Subtract => a - b,
        ArithmeticOp::Multiply => a * b,
        ArithmeticOp::Divide => a / b,
        ArithmeticOp::DivideIntegers => (a / b).trunc(),
        ArithmeticOp::Modulo => a % b,
    };
    if result.is_infinite() && a.is_finite() && b.is_finite() {
        return Err(NoResult::OutOfRange);
    }
    Number::from_double(result).ok_or(NoResult::NotANumber)
}

/// Returns the number with the opposite sign.
pub(super) fn negated(number: Number) -> Number {
    match number.as_i128() {
        Some(n) => Number::from_i128(-n),
        None => of_double(-number.as_f64(), number),
    }
}

/// Returns the number without its sign.
pub(super) fn absolute(number: Number) -> Number {
    match number.as_i128() {
        Some(n) => Number::from_i128(n.abs()),
        None => of_double(number.as_f64().abs(), number),
    }
}

/// Returns the nearest integer; the even one if two are equally near.
pub(super) fn rounded_to_even(number: Number) -> Number {
    match number {
        Number::Float(float) => of_double(float.round_ties_even(), number),
        integer => integer,
    }
}

/// Converts a double to a number; NaN becomes `otherwise`.
fn of_double(double: f64, otherwise: Number) -> Number {
    Number::from_double(double).unwrap_or(otherwise)
}
