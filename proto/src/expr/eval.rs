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
//! Each evaluation counts its cost and ends at a limit (`cost`).
//!
//! Evaluation recurses as deep as the expression; the parsers bound that (500 operators), and the
//! work of each operator is kept out of the recursing function so that its frames stay small.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::cost::{CostMeter, NODE_COST, TooCostly, comparison_cost};
use super::like;
use crate::expr::ast::{ArithmeticOp, ColumnType, CompareOp, Expr, Function, InList};
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
    /// The cost of reading column n, or the document's id, where it must be decoded.
    fn column_cost(&self, _: u16) -> u64 {
        1
    }
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

/// The value of an expression; an error if it would cost more than the meter allows.
pub fn eval<'a>(
    expr: &'a Expr,
    scope: &'a dyn Scope,
    cost: &CostMeter,
) -> Result<Cow<'a, Value>, TooCostly> {
    cost.add(NODE_COST)?;
    Ok(match expr {
        Expr::Literal(value) => Cow::Borrowed(value),
        Expr::Path(steps) => {
            cost.add(NODE_COST * steps.len() as u64)?;
            scope.path(steps)
        }
        Expr::Column(n) => {
            cost.add(scope.column_cost(*n))?;
            scope.column(*n)
        }
        Expr::Parameter(_) => Cow::Borrowed(&NULL),
        // The projector makes one key of each element; here an array key has no value.
        Expr::Unnest(inner) => eval(inner, scope, cost)?,
        Expr::Call(Function::Coalesce, arguments) => coalesce(arguments, scope, cost)?,
        _ => Cow::Owned(compute(expr, scope, cost)?),
    })
}

/// The truth of a predicate, `None` if it is unknown; an error if it would cost more than the meter allows.
pub fn truth(expr: &Expr, scope: &dyn Scope, cost: &CostMeter) -> Result<Option<bool>, TooCostly> {
    match expr {
        Expr::And(list) => all(list, scope, cost),
        Expr::Or(list) => any(list, scope, cost),
        Expr::Not(inner) => Ok(truth(inner, scope, cost)?.map(|truth| !truth)),
        Expr::Compare(op, l, r) => {
            let (l, r) = (eval(l, scope, cost)?, eval(r, scope, cost)?);
            holds(*op, &l, &r, cost)
        }
        Expr::In { expr, list, negated } => {
            let value = eval(expr, scope, cost)?;
            Ok(contains(list, &value, scope, cost)?.map(|found| found != *negated))
        }
        Expr::Between { expr, low, high, negated } => {
            let value = eval(expr, scope, cost)?;
            let (low, high) = (eval(low, scope, cost)?, eval(high, scope, cost)?);
            Ok(between(&value, &low, &high, cost)?.map(|within| within != *negated))
        }
        Expr::Like { expr, pattern, negated } => {
            let (text, pattern) = (eval(expr, scope, cost)?, eval(pattern, scope, cost)?);
            Ok(like(&text, &pattern, cost)?.map(|found| found != *negated))
        }
        Expr::IsNull { expr, negated } => {
            Ok(Some(matches!(*eval(expr, scope, cost)?, Value::Null) != *negated))
        }
        Expr::IsMissing { expr, negated } => {
            Ok(Some(matches!(*eval(expr, scope, cost)?, Value::Missing) != *negated))
        }
        _ => Ok(eval(expr, scope, cost)?.as_bool()),
    }
}

/// Evaluates the operators whose result is a new value.
fn compute(expr: &Expr, scope: &dyn Scope, cost: &CostMeter) -> Result<Value, TooCostly> {
    match expr {
        Expr::DocumentId => {
            cost.add(scope.column_cost(u16::MAX))?;
            Ok(Value::from(scope.document_id()))
        }
        Expr::Negate(inner) => Ok(negate(&*eval(inner, scope, cost)?)),
        Expr::Arithmetic(op, l, r) => arithmetic_of(*op, l, r, scope, cost),
        Expr::Cast(inner, to) => cast_of(inner, *to, scope, cost),
        Expr::Call(function, arguments) => match arguments.as_slice() {
            [argument] => call_of(*function, argument, scope, cost),
            _ => Ok(Value::Null),
        },
        _ => Ok(truth(expr, scope, cost)?.map_or(Value::Null, Value::Bool)),
    }
}

fn arithmetic_of(
    op: ArithmeticOp,
    l: &Expr,
    r: &Expr,
    scope: &dyn Scope,
    cost: &CostMeter,
) -> Result<Value, TooCostly> {
    let l = eval(l, scope, cost)?;
    let r = eval(r, scope, cost)?;
    Ok(arithmetic(op, &l, &r))
}

fn cast_of(
    inner: &Expr,
    to: ColumnType,
    scope: &dyn Scope,
    cost: &CostMeter,
) -> Result<Value, TooCostly> {
    let value = eval(inner, scope, cost)?;
    cost.add_value(&value)?;
    Ok(cast(&value, to))
}

fn call_of(
    function: Function,
    argument: &Expr,
    scope: &dyn Scope,
    cost: &CostMeter,
) -> Result<Value, TooCostly> {
    let value = eval(argument, scope, cost)?;
    cost.add_value(&value)?;
    Ok(call(function, &value))
}

fn all(list: &[Expr], scope: &dyn Scope, cost: &CostMeter) -> Result<Option<bool>, TooCostly> {
    let mut result = Some(true);
    for expr in list {
        match truth(expr, scope, cost)? {
            Some(false) => return Ok(Some(false)),
            Some(true) => {}
            None => result = None,
        }
    }
    Ok(result)
}

fn any(list: &[Expr], scope: &dyn Scope, cost: &CostMeter) -> Result<Option<bool>, TooCostly> {
    let mut result = Some(false);
    for expr in list {
        match truth(expr, scope, cost)? {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// The order of two values of one type; `None` if their types differ.
fn compare_within_type(
    a: &Value,
    b: &Value,
    cost: &CostMeter,
) -> Result<Option<Ordering>, TooCostly> {
    if a.is_absent() || a.type_rank() != b.type_rank() {
        return Ok(None);
    }
    cost.add(comparison_cost(a, b))?;
    Ok(Some(compare(a, b)))
}

fn holds(op: CompareOp, a: &Value, b: &Value, cost: &CostMeter) -> Result<Option<bool>, TooCostly> {
    Ok(compare_within_type(a, b, cost)?.map(|order| op.holds(order)))
}

fn contains(
    list: &InList,
    value: &Value,
    scope: &dyn Scope,
    cost: &CostMeter,
) -> Result<Option<bool>, TooCostly> {
    if value.is_absent() {
        return Ok(list.is_empty().then_some(false));
    }
    let mut result = list.has_constant(value, cost)?;
    if result == Some(true) {
        return Ok(result);
    }
    for item in list.others() {
        match holds(CompareOp::Eq, value, &*eval(item, scope, cost)?, cost)? {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// `low <= value AND value <= high`, so false where one bound excludes it and the other is unknown.
fn between(
    value: &Value,
    low: &Value,
    high: &Value,
    cost: &CostMeter,
) -> Result<Option<bool>, TooCostly> {
    let above = holds(CompareOp::LessEq, low, value, cost)?;
    Ok(match (above, holds(CompareOp::LessEq, value, high, cost)?) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    })
}

fn like(value: &Value, pattern: &Value, cost: &CostMeter) -> Result<Option<bool>, TooCostly> {
    match (value.as_str(), pattern.as_str()) {
        (Some(text), Some(pattern)) => like::matches(text, pattern, cost).map(Some),
        _ => Ok(None),
    }
}

fn coalesce<'a>(
    arguments: &'a [Expr],
    scope: &'a dyn Scope,
    cost: &CostMeter,
) -> Result<Cow<'a, Value>, TooCostly> {
    for argument in arguments {
        let value = eval(argument, scope, cost)?;
        if !value.is_absent() {
            return Ok(value);
        }
    }
    Ok(Cow::Borrowed(&NULL))
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
    Number::parse_sql(text.trim())
}

#[cfg(test)]
#[path = "eval_tests.rs"]
mod tests;
