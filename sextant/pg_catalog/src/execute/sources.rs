//! The rows of the items of FROM that are no relations.

use std::rc::Rc;

use proto::value::Value;

use super::env::Env;
use super::eval::{call, call_set, evaluate_all};
use super::run::{Derived, Run};
use super::subquery::uncorrelated;
use crate::error::{Error, Result};
use crate::plan::{Call, FromFunction, Source, SourceKind};
use crate::types::oid;

/// Makes the rows of a subquery, a common table expression or functions. The surroundings are the
/// row of the SELECT, as far as it is filled.
pub(super) fn derive<'p>(
    run: &mut Run<'p>,
    source: &'p Source,
    env: &Env<'_>,
) -> Result<Rc<Derived>> {
    match &source.kind {
        SourceKind::Cte(number) => Ok(run.cte(*number)?.derived.clone()),
        SourceKind::Subquery { query, is_correlated: false } => uncorrelated(run, query, env),
        SourceKind::Subquery { query, .. } => {
            let rows = run.briefly(|run| (run.query)(run, query, Some(env), None))?;
            Ok(Rc::new(Derived::new(rows)))
        }
        SourceKind::Functions(functions, with_ordinality) => {
            let rows = run.briefly(|run| function_rows(run, functions, *with_ordinality, env))?;
            Ok(Rc::new(Derived::new(rows)))
        }
        SourceKind::Relation(_) | SourceKind::Join(_) => {
            Err(Error::internal("a relation or a join has no derived rows"))
        }
    }
}

/// Runs functions of FROM in step.
fn function_rows<'p>(
    run: &mut Run<'p>,
    functions: &'p [FromFunction],
    with_ordinality: bool,
    env: &Env<'_>,
) -> Result<Vec<Box<[Value]>>> {
    let mut all = Vec::new();
    for function in functions {
        all.push(values_of(run, function, env)?);
    }
    let count = all.iter().map(Vec::len).max().unwrap_or(0);
    let mut rows = Vec::with_capacity(count);
    for n in 0..count {
        let mut row = Vec::new();
        for (function, values) in functions.iter().zip(&mut all) {
            let value = values
                .get_mut(n)
                .map_or(Value::Null, |value| std::mem::replace(value, Value::Null));
            spread(function, value, &mut row);
        }
        if with_ordinality {
            row.push(Value::int(n as i64 + 1));
        }
        run.store(&row)?;
        rows.push(row.into_boxed_slice());
    }
    Ok(rows)
}

/// Returns the values of a function: those of its set, or its only one.
fn values_of<'p>(
    run: &mut Run<'p>,
    function: &'p FromFunction,
    env: &Env<'_>,
) -> Result<Vec<Value>> {
    let values = evaluate_all(run, &function.arguments, env)?;
    let returns_set = match function.call {
        Call::Function { index, .. } => {
            crate::data::data().functions.get(index).is_some_and(|row| row.returns_set)
        }
        Call::Operator(_) => false,
    };
    if returns_set {
        return call_set(run, function.call, &function.arguments, &values, &function.ty);
    }
    Ok(vec![call(run, function.call, &function.arguments, &values, &function.ty)?])
}

/// Adds the columns of a value to a row: the fields of a row, or the value.
fn spread(function: &FromFunction, value: Value, row: &mut Vec<Value>) {
    let width = function.width;
    match value {
        Value::Array(fields) if function.ty.is(oid::RECORD) => {
            let mut fields = fields.into_iter();
            row.extend((0..width).map(|_| fields.next().unwrap_or(Value::Null)));
        }
        Value::Null => row.extend((0..width).map(|_| Value::Null)),
        value => row.push(value),
    }
}
