//! Calls of functions and operators with values, and the rules of three-valued logic.

use std::borrow::Cow;

use proto::value::Value;

use crate::data::data;
use crate::error::{Error, Result};
use crate::functions::{Arguments, Context, Implementation, function, is_strict, operator};
use crate::plan::{Call, Comparison, Expr};
use crate::types::Type;
use crate::types::order::{compare_all, size_bytes};

/// Returns a truth value as a value: NULL for an unknown one.
pub(super) fn truth_value(truth: Option<bool>) -> Value {
    truth.map_or(Value::Null, Value::Bool)
}

/// Calls a function or an operator that returns one value.
pub(super) fn call(
    context: &mut Context<'_>,
    call: Call,
    exprs: &[Expr],
    values: &[Cow<'_, Value>],
    result: &Type,
) -> Result<Value> {
    context.limits.step(1)?;
    let has_null = values.iter().any(|value| value.is_absent());
    let (implementation, is_array) = match call {
        Call::Function { index, is_array } => (function(index), is_array),
        Call::Operator(index) => (operator(index), false),
    };
    if has_null && is_strict(call) {
        return Ok(Value::Null);
    }
    let arguments = Arguments { values, exprs, result, is_array };
    match implementation {
        Some(Implementation::Scalar(function)) => {
            let value = function(context, &arguments)?;
            if matches!(value, Value::String(_) | Value::Array(_)) {
                context.check_bytes(size_bytes(&value))?;
            }
            Ok(value)
        }
        _ => Err(missing(call)),
    }
}

/// Calls a function that returns a set.
pub(super) fn call_set(
    context: &mut Context<'_>,
    call: Call,
    exprs: &[Expr],
    values: &[Cow<'_, Value>],
    result: &Type,
) -> Result<Vec<Value>> {
    context.limits.step(1)?;
    let Call::Function { index, is_array } = call else { return Err(missing(call)) };
    if is_strict(call) && values.iter().any(|value| value.is_absent()) {
        return Ok(Vec::new());
    }
    match function(index) {
        Some(Implementation::Set(function)) => {
            let rows = function(context, &Arguments { values, exprs, result, is_array })?;
            context.limits.step(rows.len() as u64)?;
            Ok(rows)
        }
        _ => Err(missing(call)),
    }
}

/// The error for a function without an implementation.
pub(super) fn missing(call: Call) -> Error {
    let name = match call {
        Call::Function { index, .. } => data().functions.get(index).map(|row| &row.name),
        Call::Operator(index) => data().operators.get(index).map(|row| &row.name),
    };
    let kind = if matches!(call, Call::Operator(_)) { "operator" } else { "function" };
    let name = name.map_or("?", String::as_str);
    Error::unsupported(format!("{kind} {name} does not run for these types in the catalogue"))
        .with_hint("leave it out, or cast its arguments to text or numbers")
}

/// Compares two values by an operator; `None` if the result is unknown.
pub(super) fn compare_by(
    context: &mut Context<'_>,
    left: &Value,
    right: &Value,
    comparison: Comparison,
) -> Result<Option<bool>> {
    static TYPE: Type = Type::Plain(crate::types::oid::BOOL);
    let values = [Cow::Borrowed(left), Cow::Borrowed(right)];
    let value = call(context, Call::Operator(comparison.operator), &[], &values, &TYPE)?;
    Ok(value.as_bool())
}

/// Compares two rows by one operator for each field. The fields are compared as PostgreSQL does
/// it: all must hold for `=`, one for `<>`; the first fields that differ decide for `<` and others.
pub(super) fn compare_rows(
    context: &mut Context<'_>,
    left: &[Value],
    right: &[Value],
    comparisons: &[Comparison],
) -> Result<Option<bool>> {
    let name = |comparison: &Comparison| {
        data().operators.get(comparison.operator).map_or("", |row| row.name.as_str())
    };
    let is_order = |name: &str| matches!(name, "<" | "<=" | ">" | ">=");
    if comparisons.len() > 1 && comparisons.first().is_some_and(|first| is_order(name(first))) {
        let equal = left.iter().zip(right).take_while(|(a, b)| a == b && !a.is_absent()).count();
        let at = equal.min(comparisons.len() - 1);
        return compare_by(context, &left[at], &right[at], comparisons[at]);
    }
    let is_any =
        comparisons.len() > 1 && comparisons.first().is_some_and(|first| name(first) == "<>");
    let mut is_unknown = false;
    for ((left, right), comparison) in left.iter().zip(right).zip(comparisons) {
        match compare_by(context, left, right, *comparison)? {
            Some(truth) if truth == is_any => return Ok(Some(truth)),
            Some(_) => {}
            None => is_unknown = true,
        }
    }
    Ok(if is_unknown { None } else { Some(!is_any) })
}

/// Returns true if two values are different, where NULL is a value.
pub(super) fn is_distinct(left: &Value, right: &Value) -> bool {
    compare_all(std::slice::from_ref(left), std::slice::from_ref(right)).is_ne()
}
