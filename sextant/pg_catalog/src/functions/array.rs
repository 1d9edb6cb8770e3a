//! Functions of arrays.

use proto::value::Value;

use super::arithmetic::int4;
use super::context::{Arguments, Context, VALUE_BYTES_MAX};
use super::signature::Scalar;
use crate::data::{FunctionRow, data};
use crate::error::{Error, Result};
use crate::plan::ExprKind;
use crate::types::Type;
use crate::types::oid::{self, Oid};
use crate::types::order::{compare, size_bytes};
use crate::types::text::print;

/// Returns the array with an element more; one element for NULL.
pub(super) fn append(array: &Value, item: Value) -> Value {
    let mut items = items(array).to_vec();
    items.push(item);
    Value::Array(items)
}

/// Returns the array with an element before the others; one element for NULL.
pub(super) fn prepend(item: Value, array: &Value) -> Value {
    let items = std::iter::once(item).chain(items(array).iter().cloned());
    Value::Array(items.collect())
}

/// Returns the elements of both arrays. One array of the dimension below is an element of the other.
pub(super) fn concat(left: &Value, right: &Value) -> Value {
    if left.is_absent() || right.is_absent() {
        return if left.is_absent() { right.clone() } else { left.clone() };
    }
    match dimensions(left).len().cmp(&dimensions(right).len()) {
        _ if items(left).is_empty() => right.clone(),
        _ if items(right).is_empty() => left.clone(),
        std::cmp::Ordering::Greater => append(left, right.clone()),
        std::cmp::Ordering::Less => prepend(left.clone(), right),
        std::cmp::Ordering::Equal => Value::Array([items(left), items(right)].concat()),
    }
}

fn items(array: &Value) -> &[Value] {
    match array {
        Value::Array(items) => items,
        _ => &[],
    }
}

/// Returns all elements, those of inner arrays too.
fn flat<'v>(items: &'v [Value], out: &mut Vec<&'v Value>) {
    for item in items {
        match item {
            Value::Array(inner) => flat(inner, out),
            item => out.push(item),
        }
    }
}

fn elements(items: &[Value]) -> Vec<&Value> {
    let mut out = Vec::new();
    flat(items, &mut out);
    out
}

/// Returns true if each element of one array is in another one; NULL is in none.
pub(super) fn contains(context: &mut Context<'_>, all: &[Value], some: &[Value]) -> Result<Value> {
    let (all, some) = (elements(all), elements(some));
    context.limits.step(all.len() as u64 * some.len() as u64 / 16)?;
    Ok(Value::Bool(some.iter().all(|item| !item.is_absent() && all.contains(item))))
}

/// Returns true if two arrays have an element in common.
pub(super) fn overlaps(context: &mut Context<'_>, a: &[Value], b: &[Value]) -> Result<Value> {
    let (a, b) = (elements(a), elements(b));
    context.limits.step(a.len() as u64 * b.len() as u64 / 16)?;
    Ok(Value::Bool(b.iter().any(|item| !item.is_absent() && a.contains(item))))
}

/// Returns the lengths of the dimensions; none for an empty array.
fn dimensions(array: &Value) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut at = array;
    while let Value::Array(items) = at {
        if items.is_empty() {
            break;
        }
        lengths.push(items.len());
        at = &items[0];
    }
    lengths
}

/// Returns the lengths of the dimensions of an argument, whose elements may be rows.
fn dimensions_of(a: &Arguments<'_>) -> Vec<usize> {
    let mut lengths = dimensions(a.value(0));
    let is_row =
        |ty: Option<Oid>| matches!(ty, Some(oid::RECORD | oid::INT2VECTOR | oid::OIDVECTOR));
    if is_row(data().element(a.oid(0))) {
        lengths.truncate(1);
    }
    lengths
}

/// Returns the subscript of the first element of an argument: 0 for `int2vector` and `oidvector`.
pub(super) fn lower_bound(a: &Arguments<'_>, at: usize) -> i64 {
    let mut expr = a.exprs.get(at);
    while let Some(inner) = expr {
        if inner.ty.is(oid::INT2VECTOR) || inner.ty.is(oid::OIDVECTOR) {
            return 0;
        }
        expr = match &inner.kind {
            ExprKind::Cast { expr, .. } => Some(expr),
            _ => None,
        };
    }
    1
}

/// Returns the length of a dimension, from 1; `None` for one that the array does not have.
pub(super) fn dimension(a: &Arguments<'_>) -> Result<Option<i64>> {
    let at = usize::try_from(a.int(1)? - 1).ok();
    Ok(at.and_then(|at| dimensions_of(a).get(at).map(|length| *length as i64)))
}

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "array_append" => |_, a| Ok(append(a.value(0), a.value(1).clone())),
        "array_prepend" => |_, a| Ok(prepend(a.value(0).clone(), a.value(1))),
        "array_cat" => |_, a| Ok(concat(a.value(0), a.value(1))),
        "array_ndims" => |_, a| match dimensions_of(a).len() {
            0 => Ok(Value::Null),
            count => int4(count),
        },
        "array_length" => |_, a| Ok(dimension(a)?.map_or(Value::Null, Value::int)),
        "array_lower" => {
            |_, a| Ok(dimension(a)?.map_or(Value::Null, |_| Value::int(lower_bound(a, 0))))
        }
        "array_upper" => |_, a| {
            let upper = |length: i64| Value::int(length - 1 + lower_bound(a, 0));
            Ok(dimension(a)?.map_or(Value::Null, upper))
        },
        "cardinality" => |_, a| match dimensions_of(a).is_empty() {
            true => Ok(Value::int(0)),
            false => int4(dimensions_of(a).iter().product()),
        },
        "array_dims" => |_, a| {
            let first = lower_bound(a, 0);
            let dims = dimensions_of(a).into_iter();
            let dims: String =
                dims.map(|length| format!("[{first}:{}]", length as i64 - 1 + first)).collect();
            Ok(if dims.is_empty() { Value::Null } else { Value::String(dims) })
        },
        "array_position" => position,
        "array_fill" => fill,
        "array_to_string" => to_string,
        _ => return find_search(row),
    })
}

/// Functions that search an array, or change elements of it.
fn find_search(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "array_positions" => |context, a| {
            if a.is_null(0) {
                return Ok(Value::Null);
            }
            let first = lower_bound(a, 0);
            let items = a.array(0)?.iter().enumerate();
            context.limits.step(items.len() as u64 / 8)?;
            let found = items.filter(|(_, item)| compare(item, a.value(1)).is_eq());
            Ok(Value::Array(found.map(|(at, _)| Value::int(at as i64 + first)).collect()))
        },
        "array_remove" => |_, a| {
            if a.is_null(0) {
                return Ok(Value::Null);
            }
            let kept = a.array(0)?.iter().filter(|item| compare(item, a.value(1)).is_ne());
            Ok(Value::Array(kept.cloned().collect()))
        },
        "array_replace" => |_, a| {
            if a.is_null(0) {
                return Ok(Value::Null);
            }
            let replaced = |item: &Value| match compare(item, a.value(1)).is_eq() {
                true => a.value(2).clone(),
                false => item.clone(),
            };
            Ok(Value::Array(a.array(0)?.iter().map(replaced).collect()))
        },
        _ => return None,
    })
}

fn position(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    if a.is_null(0) {
        return Ok(Value::Null);
    }
    let first = lower_bound(a, 0);
    let from = if a.len() > 2 && !a.is_null(2) { (a.int(2)? - first).max(0) } else { 0 };
    let items = a.array(0)?;
    context.limits.step(items.len() as u64 / 8)?;
    let mut found = items.iter().enumerate().skip(from as usize);
    let found = found.find(|(_, item)| compare(item, a.value(1)).is_eq());
    Ok(found.map_or(Value::Null, |(at, _)| Value::int(at as i64 + first)))
}

fn fill(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    if a.is_null(1) {
        return Err(Error::new("22004", "dimension array or low bound array cannot be null"));
    }
    let mut count: usize = 1;
    let mut lengths = Vec::new();
    for length in a.array(1)? {
        let length = length.as_number().and_then(|number| number.as_i64());
        let length =
            length.ok_or_else(|| Error::new("22004", "dimension values cannot be null"))?;
        let length = usize::try_from(length).unwrap_or(0);
        count = count.saturating_mul(length);
        lengths.push(length);
    }
    if lengths.is_empty() || count == 0 {
        return Ok(Value::Array(Vec::new()));
    }
    if lengths.len() > 6 {
        return Err(Error::new(
            "54000",
            "number of array dimensions exceeds the maximum allowed (6)",
        ));
    }
    context.check_bytes(count.saturating_mul(size_bytes(a.value(0))))?;
    let filled = |item: Value, length: &usize| Value::Array(vec![item; *length]);
    Ok(lengths.iter().rev().fold(a.value(0).clone(), filled))
}

fn to_string(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    if a.is_null(0) || a.is_null(1) {
        return Ok(Value::Null);
    }
    let ty = Type::Plain(data().element(a.oid(0)).unwrap_or(oid::TEXT));
    let items = match data().element(a.oid(0)) {
        Some(oid::RECORD) => a.array(0)?.iter().collect(),
        _ => elements(a.array(0)?),
    };
    let mut out = String::new();
    let mut is_first = true;
    for item in items {
        let text = match item.is_absent() {
            true if a.is_null(2) => continue,
            true => a.text(2)?.to_owned(),
            false => print(item, &ty, &context.names())?,
        };
        if !is_first {
            out.push_str(a.text(1)?);
        }
        is_first = false;
        out.push_str(&text);
        if out.len() > VALUE_BYTES_MAX {
            context.check_bytes(out.len())?;
        }
    }
    Ok(Value::String(out))
}
