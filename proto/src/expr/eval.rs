//! Evaluation of expressions: SQL's three-valued logic over JSON values.
//!
//! - **Unknown is NULL.** A comparison, `IN`, `BETWEEN` or `LIKE` between values of different types, or
//!   with NULL or MISSING, is unknown. `AND`, `OR` and `NOT` propagate it as SQL does, and treat an operand that is not a
//!   boolean as unknown. A predicate holds only if it is true.
//! - **MISSING stays MISSING** through casts, functions and arithmetic, so that a document without the field is left out
//!   of an index on `lower(field)`, as of an index on `field`. Any other operand of a wrong type gives NULL.
//! - **Numbers**: integers are exact and become doubles only where 64 bits do not hold the result;
//!   division is exact if it divides evenly; division by zero and results that are not finite give NULL.
//!
//! Evaluation recurses as deep as the expression; the parsers bound that (500 operators), and the
//! work of each operator is kept out of the recursing function so that its frames stay small.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::like;
use crate::expr::ast::{ArithmeticOp, ColumnType, CompareOp, Expr, Function};
use crate::value;
use crate::value::Number;
use crate::value::Step;
use crate::value::{MISSING, NULL, Value, compare};

/// The document or index entry for which an expression is evaluated.
pub trait Scope {
    /// The value at the end of a path into the document; MISSING if there is none.
    fn path<'a>(&'a self, steps: &[Step]) -> Cow<'a, Value>;
    /// The document's id.
    fn document_id(&self) -> &str;
    /// Column n of the entry: the key parts first, then the included expressions; MISSING beyond.
    fn column(&self, n: u16) -> Cow<'_, Value>;
}

/// A document as the scope: paths lead into it, and it has no columns.
#[derive(Clone, Copy)]
pub struct DocumentScope<'d> {
    /// The document's id.
    pub id: &'d str,
    /// The document.
    pub doc: &'d Value,
}

impl Scope for DocumentScope<'_> {
    fn path<'a>(&'a self, steps: &[Step]) -> Cow<'a, Value> {
        Cow::Borrowed(self.doc.path(steps))
    }

    fn document_id(&self) -> &str {
        self.id
    }

    fn column(&self, _: u16) -> Cow<'_, Value> {
        Cow::Borrowed(&MISSING)
    }
}

/// The value of an expression.
pub fn eval<'a>(expr: &'a Expr, scope: &'a dyn Scope) -> Cow<'a, Value> {
    match expr {
        Expr::Literal(value) => Cow::Borrowed(value),
        Expr::Path(steps) => scope.path(steps),
        Expr::Column(n) => scope.column(*n),
        Expr::Parameter(_) => Cow::Borrowed(&NULL),
        // The projector makes one key of each element; here an array key has no value.
        Expr::Unnest(inner) => eval(inner, scope),
        Expr::Call(Function::Coalesce, arguments) => coalesce(arguments, scope),
        _ => Cow::Owned(compute(expr, scope)),
    }
}

/// The truth of a predicate; `None` if it is unknown.
pub fn truth(expr: &Expr, scope: &dyn Scope) -> Option<bool> {
    match expr {
        Expr::And(list) => all(list, scope),
        Expr::Or(list) => any(list, scope),
        Expr::Not(inner) => truth(inner, scope).map(|truth| !truth),
        Expr::Compare(op, l, r) => holds(*op, &eval(l, scope), &eval(r, scope)),
        Expr::In { expr, list, negated } => {
            contains(list, &eval(expr, scope), scope).map(|found| found != *negated)
        }
        Expr::Between { expr, low, high, negated } => {
            let value = eval(expr, scope);
            between(&value, &eval(low, scope), &eval(high, scope)).map(|within| within != *negated)
        }
        Expr::Like { expr, pattern, negated } => {
            like(&eval(expr, scope), &eval(pattern, scope)).map(|found| found != *negated)
        }
        Expr::IsNull { expr, negated } => {
            Some(matches!(*eval(expr, scope), Value::Null) != *negated)
        }
        Expr::IsMissing { expr, negated } => {
            Some(matches!(*eval(expr, scope), Value::Missing) != *negated)
        }
        _ => eval(expr, scope).as_bool(),
    }
}

/// Evaluates the operators whose result is a new value.
fn compute(expr: &Expr, scope: &dyn Scope) -> Value {
    match expr {
        Expr::DocumentId => Value::from(scope.document_id()),
        Expr::Negate(inner) => negate(&eval(inner, scope)),
        Expr::Arithmetic(op, l, r) => arithmetic(*op, &eval(l, scope), &eval(r, scope)),
        Expr::Cast(inner, to) => cast(&eval(inner, scope), *to),
        Expr::Call(function, arguments) => match arguments.as_slice() {
            [argument] => call(*function, &eval(argument, scope)),
            _ => Value::Null,
        },
        _ => truth(expr, scope).map_or(Value::Null, Value::Bool),
    }
}

fn all(list: &[Expr], scope: &dyn Scope) -> Option<bool> {
    let mut result = Some(true);
    for expr in list {
        match truth(expr, scope) {
            Some(false) => return Some(false),
            Some(true) => {}
            None => result = None,
        }
    }
    result
}

fn any(list: &[Expr], scope: &dyn Scope) -> Option<bool> {
    let mut result = Some(false);
    for expr in list {
        match truth(expr, scope) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => result = None,
        }
    }
    result
}

/// The order of two values of one type; `None` if their types differ.
pub fn compare_within_type(a: &Value, b: &Value) -> Option<Ordering> {
    (!a.is_absent() && a.type_rank() == b.type_rank()).then(|| compare(a, b))
}

fn holds(op: CompareOp, a: &Value, b: &Value) -> Option<bool> {
    let order = compare_within_type(a, b)?;
    Some(match op {
        CompareOp::Eq => order.is_eq(),
        CompareOp::NotEq => order.is_ne(),
        CompareOp::Less => order.is_lt(),
        CompareOp::LessEq => order.is_le(),
        CompareOp::Greater => order.is_gt(),
        CompareOp::GreaterEq => order.is_ge(),
    })
}

fn contains(list: &[Expr], value: &Value, scope: &dyn Scope) -> Option<bool> {
    let mut result = Some(false);
    for item in list {
        match holds(CompareOp::Eq, value, &eval(item, scope)) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => result = None,
        }
    }
    result
}

/// `low <= value AND value <= high`, so false where one bound excludes it and the other is unknown.
fn between(value: &Value, low: &Value, high: &Value) -> Option<bool> {
    match (holds(CompareOp::LessEq, low, value), holds(CompareOp::LessEq, value, high)) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn like(value: &Value, pattern: &Value) -> Option<bool> {
    Some(like::matches(value.as_str()?, pattern.as_str()?))
}

fn coalesce<'a>(arguments: &'a [Expr], scope: &'a dyn Scope) -> Cow<'a, Value> {
    let mut values = arguments.iter().map(|argument| eval(argument, scope));
    values.find(|value| !value.is_absent()).unwrap_or(Cow::Borrowed(&NULL))
}

/// The result for an operand of a wrong type: MISSING for MISSING, else NULL.
fn unfit(operand: &Value) -> Value {
    if matches!(operand, Value::Missing) { Value::Missing } else { Value::Null }
}

fn call(function: Function, argument: &Value) -> Value {
    match (function, argument) {
        (Function::Lower, Value::String(text)) => Value::String(text.to_lowercase()),
        (Function::Upper, Value::String(text)) => Value::String(text.to_uppercase()),
        (Function::Length, Value::String(text)) => Value::int(text.chars().count() as i64),
        (Function::Abs, Value::Number(n)) => match n.as_i128() {
            Some(n) => Value::Number(Number::from_i128(n.abs())),
            None => Value::float(n.as_f64().abs()),
        },
        (Function::Coalesce, value) if !value.is_absent() => value.clone(),
        (Function::Coalesce, _) => Value::Null,
        _ => unfit(argument),
    }
}

fn negate(operand: &Value) -> Value {
    match operand {
        Value::Number(n) => match n.as_i128() {
            Some(n) => Value::Number(Number::from_i128(-n)),
            None => Value::float(-n.as_f64()),
        },
        other => unfit(other),
    }
}

fn arithmetic(op: ArithmeticOp, a: &Value, b: &Value) -> Value {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let exact = a.as_i128().zip(b.as_i128()).and_then(|(a, b)| integer(op, a, b));
            exact.unwrap_or_else(|| double(op, a.as_f64(), b.as_f64()))
        }
        (Value::Missing, _) | (_, Value::Missing) => Value::Missing,
        _ => Value::Null,
    }
}

/// Integer arithmetic; `None` if only a double can hold the result.
fn integer(op: ArithmeticOp, a: i128, b: i128) -> Option<Value> {
    let result = match op {
        ArithmeticOp::Add => a.checked_add(b)?,
        ArithmeticOp::Subtract => a.checked_sub(b)?,
        ArithmeticOp::Multiply => a.checked_mul(b)?,
        ArithmeticOp::Divide if b != 0 && a % b == 0 => a / b,
        ArithmeticOp::Modulo if b != 0 => a % b,
        _ => return None,
    };
    Some(Value::Number(Number::from_i128(result)))
}

fn double(op: ArithmeticOp, a: f64, b: f64) -> Value {
    Value::float(match op {
        ArithmeticOp::Add => a + b,
        ArithmeticOp::Subtract => a - b,
        ArithmeticOp::Multiply => a * b,
        ArithmeticOp::Divide => a / b,
        ArithmeticOp::Modulo => a % b,
    })
}

/// Converts a value to another type; NULL if that is impossible.
pub fn cast(value: &Value, to: ColumnType) -> Value {
    let cast = match (to, value) {
        (ColumnType::Text, value) => {
            value::text(value).map(|text| Value::String(text.into_owned()))
        }
        (ColumnType::Bool, Value::Bool(truth)) => Some(Value::Bool(*truth)),
        (ColumnType::Bool, Value::String(text)) => parse_bool(text).map(Value::Bool),
        (ColumnType::Int4, value) => {
            to_integer(value).filter(|n| i32::try_from(*n).is_ok()).map(Value::int)
        }
        (ColumnType::Int8, value) => to_integer(value).map(Value::int),
        (ColumnType::Float8, Value::Number(n)) => Some(Value::float(n.as_f64())),
        (ColumnType::Float8, Value::String(text)) => {
            to_number(text).map(|n| Value::float(n.as_f64()))
        }
        (ColumnType::Numeric, Value::Number(n)) => Some(Value::Number(*n)),
        (ColumnType::Numeric, Value::String(text)) => to_number(text).map(Value::Number),
        _ => None,
    };
    cast.unwrap_or_else(|| unfit(value))
}

fn parse_bool(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "t" => Some(true),
        "false" | "f" => Some(false),
        _ => None,
    }
}

fn to_integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(n) => n.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn to_number(text: &str) -> Option<Number> {
    let text = text.trim();
    // JSON's spelling keeps integers exact; SQL's also has `+1`, `.5` and `1.`, but not `inf`.
    Number::parse(text).or_else(|| {
        let numeric = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
        numeric.then(|| text.parse().ok()).flatten().and_then(Number::from_f64)
    })
}

#[cfg(test)]
#[path = "eval_tests.rs"]
mod tests;
