//! Functions that return sets of numbers and elements.

use proto::value::{Number, Value};

use super::arithmetic::binary;
use super::array::{dimension, lower_bound};
use super::context::{Arguments, Context};
use super::signature::SetOf;
use crate::data::{FunctionRow, data};
use crate::error::{Error, Result};
use crate::types::oid;
use crate::types::order::size_bytes;

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<SetOf> {
    Some(match row.name.as_str() {
        "generate_series" => series,
        "generate_subscripts" => subscripts,
        "unnest" => |context, a| {
            let is_row = data().element(a.oid(0)) == Some(oid::RECORD);
            let mut out = Vec::new();
            flat(a.array(0)?, is_row, &mut out);
            store(context, &out)?;
            Ok(out)
        },
        "_pg_expandarray" => |context, a| {
            let items = a.array(0)?.iter().enumerate();
            let pair = |(at, item): (usize, &Value)| {
                Value::Array(vec![item.clone(), Value::int(at as i64 + 1)])
            };
            let rows: Vec<Value> = items.map(pair).collect();
            store(context, &rows)?;
            Ok(rows)
        },
        _ => return None,
    })
}

fn store(context: &mut Context<'_>, values: &[Value]) -> Result<()> {
    let bytes = values.iter().map(size_bytes).sum();
    context.limits.step(values.len() as u64)?;
    context.limits.store(bytes)?;
    context.limits.release(bytes);
    Ok(())
}

/// Adds the elements of all dimensions; an element may be a row, which is an array too.
fn flat(items: &[Value], is_row: bool, out: &mut Vec<Value>) {
    for item in items {
        match item {
            Value::Array(inner) if !is_row => flat(inner, is_row, out),
            item => out.push(item.clone()),
        }
    }
}

/// Returns the numbers from the first argument to the second one, in steps of the third one.
fn series(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Vec<Value>> {
    let step = if a.len() > 2 { a.number(2)? } else { Number::Int(1) };
    let zero = Number::Int(0);
    if step == zero {
        return Err(Error::new("22023", "step size cannot equal zero"));
    }
    let (mut at, to, ty) = (a.number(0)?, a.number(1)?, a.result.oid());
    let mut out = Vec::new();
    let bytes = std::mem::size_of::<Value>();
    while if step > zero { at <= to } else { at >= to } {
        context.limits.step(1)?;
        context.limits.store(bytes)?;
        out.push(Value::Number(at));
        // The end of the type's range ends the series.
        let next = binary("+", at, step, ty).ok().and_then(|value| value.as_number());
        match next {
            Some(next) if next != at => at = next,
            _ => break,
        }
    }
    context.limits.release(bytes * out.len());
    Ok(out)
}

fn subscripts(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Vec<Value>> {
    let Some(length) = dimension(a)? else { return Ok(Vec::new()) };
    let first = lower_bound(a, 0);
    let mut out: Vec<Value> = (first..first + length).map(Value::int).collect();
    if a.len() > 2 && a.truth(2)? {
        out.reverse();
    }
    store(context, &out)?;
    Ok(out)
}
