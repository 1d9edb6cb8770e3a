//! The value of an expression for a row.

use std::borrow::Cow;

use proto::value::Value;

use super::elements::{element, slice};
use super::env::Env;
use super::operators::{self, compare_by, is_distinct, truth_value};
use super::run::Run;
use super::subquery;
use crate::error::{Error, Result};
use crate::functions::cast::cast;
use crate::plan::{Call, Comparison, Expr, ExprKind, Subquery, SubqueryKind, Truth};
use crate::types::order::{compare, size_bytes};
use crate::types::{Type, oid};

/// Returns the value of an expression. A constant or a column is borrowed.
pub(super) fn eval<'p: 'e, 'e>(
    run: &mut Run<'p>,
    expr: &'p Expr,
    env: &Env<'e>,
) -> Result<Cow<'e, Value>> {
    match &expr.kind {
        ExprKind::Constant(value) => return Ok(Cow::Borrowed(value)),
        ExprKind::Parameter(number) => return parameter(run, *number).map(Cow::Borrowed),
        ExprKind::Column { level, at } => return env.column(*level, *at).map(Cow::Borrowed),
        _ => {}
    }
    run.context.limits.step(1)?;
    run.enter()?;
    let value = match &expr.kind {
        ExprKind::Call(function, arguments) => {
            let values = evaluate_all(run, arguments, env)?;
            Cow::Owned(call(run, *function, arguments, &values, &expr.ty)?)
        }
        ExprKind::Cast { expr: from, modifier } => {
            let value = eval(run, from, env)?;
            cast(value, &from.ty, &expr.ty, *modifier, &mut run.context)?
        }
        ExprKind::Case { branches, otherwise } => case(run, branches, otherwise.as_deref(), env)?,
        ExprKind::Coalesce(all) => coalesce(run, all, env)?,
        ExprKind::And(all) => Cow::Owned(logic(run, all, env, false)?),
        ExprKind::Or(all) => Cow::Owned(logic(run, all, env, true)?),
        _ => Cow::Owned(eval_other(run, expr, env)?),
    };
    run.leave();
    Ok(value)
}

/// The rest of [`eval`]: nodes whose value is always new.
fn eval_other<'p>(run: &mut Run<'p>, expr: &'p Expr, env: &Env<'_>) -> Result<Value> {
    match &expr.kind {
        ExprKind::Not(inner) => {
            Ok(truth_value(eval(run, inner, env)?.as_bool().map(|truth| !truth)))
        }
        ExprKind::IsNull { expr, negated } => {
            let value = eval(run, expr, env)?;
            Ok(Value::Bool(is_null(&value, &expr.ty, *negated)))
        }
        ExprKind::IsTruth { expr, truth, negated } => {
            let value = eval(run, expr, env)?.as_bool();
            let is_so = match truth {
                Truth::True => value == Some(true),
                Truth::False => value == Some(false),
                Truth::Unknown => value.is_none(),
            };
            Ok(Value::Bool(is_so != *negated))
        }
        ExprKind::IsDistinct { left, right, negated } => {
            let (left, right) = (eval(run, left, env)?, eval(run, right, env)?);
            Ok(Value::Bool(is_distinct(&left, &right) != *negated))
        }
        ExprKind::Extreme { arguments, least } => extreme(run, arguments, *least, env),
        ExprKind::Array(all) | ExprKind::Row(all) => {
            let values: Vec<Value> =
                evaluate_all(run, all, env)?.into_iter().map(Cow::into_owned).collect();
            run.context.check_bytes(values.iter().map(size_bytes).sum())?;
            Ok(Value::Array(values))
        }
        ExprKind::Field(row, at) => Ok(match eval(run, row, env)?.as_ref() {
            Value::Array(fields) => fields.get(*at).cloned().unwrap_or(Value::Null),
            _ => Value::Null,
        }),
        ExprKind::Element(array, subscripts) => {
            let (value, subscripts) = (eval(run, array, env)?, evaluate_all(run, subscripts, env)?);
            Ok(element(&value, first_subscript(array), &subscripts))
        }
        ExprKind::Slice(array, from, to) => {
            eval_slice(run, array, (from.as_deref(), to.as_deref()), env)
        }
        ExprKind::AnyOf { left, comparison, array, all } => {
            let (left, array) = (eval(run, left, env)?, eval(run, array, env)?);
            any_of(run, &left, *comparison, &array, *all)
        }
        ExprKind::Subquery(inner) => eval_subquery(run, inner, env),
        _ => Err(Error::internal("this node has no value")),
    }
}

fn eval_slice<'p>(
    run: &mut Run<'p>,
    array: &'p Expr,
    (from, to): (Option<&'p Expr>, Option<&'p Expr>),
    env: &Env<'_>,
) -> Result<Value> {
    let value = eval(run, array, env)?;
    let mut bound = |expr: Option<&'p Expr>| match expr {
        Some(expr) => eval(run, expr, env).map(|value| Some(value.into_owned())),
        None => Ok(None),
    };
    let (from, to) = (bound(from)?, bound(to)?);
    Ok(slice(&value, first_subscript(array), from, to))
}

/// Evaluates expressions one by one.
pub(super) fn evaluate_all<'p: 'e, 'e>(
    run: &mut Run<'p>,
    exprs: &'p [Expr],
    env: &Env<'e>,
) -> Result<Vec<Cow<'e, Value>>> {
    exprs.iter().map(|expr| eval(run, expr, env)).collect()
}

/// Evaluates expressions into a new row.
pub(super) fn row_of<'p>(
    run: &mut Run<'p>,
    exprs: &'p [Expr],
    env: &Env<'_>,
) -> Result<Vec<Value>> {
    exprs.iter().map(|expr| Ok(eval(run, expr, env)?.into_owned())).collect()
}

/// Returns true if a condition holds for a row; false also if it is unknown.
pub(super) fn holds<'p>(run: &mut Run<'p>, condition: &'p Expr, env: &Env<'_>) -> Result<bool> {
    Ok(eval(run, condition, env)?.as_bool() == Some(true))
}

/// Calls a function or an operator with values.
pub(super) fn call(
    run: &mut Run<'_>,
    function: Call,
    exprs: &[Expr],
    values: &[Cow<'_, Value>],
    result: &Type,
) -> Result<Value> {
    operators::call(&mut run.context, function, exprs, values, result)
}

/// Calls a function that returns a set with values.
pub(super) fn call_set(
    run: &mut Run<'_>,
    function: Call,
    exprs: &[Expr],
    values: &[Cow<'_, Value>],
    result: &Type,
) -> Result<Vec<Value>> {
    operators::call_set(&mut run.context, function, exprs, values, result)
}

/// Returns the truth of a value as IS NULL tests it, or IS NOT NULL if `negated`.
fn is_null(value: &Value, ty: &Type, negated: bool) -> bool {
    match value {
        Value::Array(fields) if ty.is(oid::RECORD) => {
            fields.iter().all(|field| field.is_absent() != negated)
        }
        value => value.is_absent() != negated,
    }
}

fn parameter<'p>(run: &Run<'p>, number: usize) -> Result<&'p Value> {
    let value = run.parameters.get(number);
    value.ok_or_else(|| {
        Error::new("08P01", format!("the statement needs a parameter ${}", number + 1))
            .with_hint("bind a value to each parameter")
    })
}

/// Evaluates AND, or OR if the value that decides is true.
fn logic<'p>(run: &mut Run<'p>, all: &'p [Expr], env: &Env<'_>, decides: bool) -> Result<Value> {
    let mut is_unknown = false;
    for expr in all {
        match eval(run, expr, env)?.as_bool() {
            Some(truth) if truth == decides => return Ok(Value::Bool(truth)),
            Some(_) => {}
            None => is_unknown = true,
        }
    }
    Ok(truth_value(if is_unknown { None } else { Some(!decides) }))
}

fn case<'p: 'e, 'e>(
    run: &mut Run<'p>,
    branches: &'p [(Expr, Expr)],
    otherwise: Option<&'p Expr>,
    env: &Env<'e>,
) -> Result<Cow<'e, Value>> {
    for (condition, value) in branches {
        if holds(run, condition, env)? {
            return eval(run, value, env);
        }
    }
    otherwise.map_or(Ok(Cow::Owned(Value::Null)), |expr| eval(run, expr, env))
}

fn coalesce<'p: 'e, 'e>(
    run: &mut Run<'p>,
    all: &'p [Expr],
    env: &Env<'e>,
) -> Result<Cow<'e, Value>> {
    for expr in all {
        let value = eval(run, expr, env)?;
        if !value.is_absent() {
            return Ok(value);
        }
    }
    Ok(Cow::Owned(Value::Null))
}

fn extreme<'p>(
    run: &mut Run<'p>,
    arguments: &'p [Expr],
    least: bool,
    env: &Env<'_>,
) -> Result<Value> {
    let mut best = Value::Null;
    for expr in arguments {
        let value = eval(run, expr, env)?;
        let is_better = match compare(&value, &best) {
            _ if value.is_absent() => false,
            _ if best.is_absent() => true,
            order => {
                if least {
                    order.is_lt()
                } else {
                    order.is_gt()
                }
            }
        };
        if is_better {
            best = value.into_owned();
        }
    }
    Ok(best)
}

/// Returns the subscript of the first element: 0 for `int2vector` and `oidvector`, also when they
/// were cast to an array; 1 for other arrays.
fn first_subscript(array: &Expr) -> i64 {
    match &array.kind {
        _ if array.ty.is(oid::INT2VECTOR) || array.ty.is(oid::OIDVECTOR) => 0,
        ExprKind::Cast { expr, .. } => first_subscript(expr),
        _ => 1,
    }
}

/// Evaluates `left op ANY (array)` or ALL; the elements of all dimensions count.
fn any_of(
    run: &mut Run<'_>,
    left: &Value,
    comparison: Comparison,
    array: &Value,
    all: bool,
) -> Result<Value> {
    let Value::Array(items) = array else { return Ok(Value::Null) };
    let mut is_unknown = false;
    for item in items {
        let truth = match item {
            Value::Array(_) if !matches!(left, Value::Array(_)) => {
                any_of(run, left, comparison, item, all)?.as_bool()
            }
            item => compare_by(&mut run.context, left, item, comparison)?,
        };
        match truth {
            Some(truth) if truth != all => return Ok(Value::Bool(truth)),
            Some(_) => {}
            None => is_unknown = true,
        }
    }
    Ok(truth_value(if is_unknown { None } else { Some(all) }))
}

fn eval_subquery<'p>(run: &mut Run<'p>, inner: &'p Subquery, env: &Env<'_>) -> Result<Value> {
    let left = match &inner.kind {
        SubqueryKind::AnyOf { left, .. } => row_of(run, left, env)?,
        _ => Vec::new(),
    };
    subquery::value(run, inner, &left, env)
}
