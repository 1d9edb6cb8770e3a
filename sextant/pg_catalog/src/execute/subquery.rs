//! Subqueries: as expressions, and the rows of uncorrelated ones, which run once.

use std::rc::Rc;

use proto::value::Value;

use super::env::Env;
use super::operators::{compare_rows, truth_value};
use super::references::References;
use super::run::{Derived, Kept, Run};
use crate::data::data;
use crate::error::{Error, Result};
use crate::plan::{Comparison, Query, Subquery, SubqueryKind};
use crate::types::order::row_bytes;

/// Returns the rows of a query that uses no column of its surroundings. They are made once in a
/// statement, or again when an expression of WITH that it reads has other rows.
pub(super) fn uncorrelated<'p>(
    run: &mut Run<'p>,
    query: &'p Query,
    env: &Env<'_>,
) -> Result<Rc<Derived>> {
    let key = std::ptr::from_ref(query) as usize;
    let used = used_ctes(run, query);
    let versions: Vec<(usize, u64)> = used
        .iter()
        .filter_map(|number| Some((*number, run.ctes.get(*number)?.as_ref()?.version)))
        .collect();
    if let Some(kept) = run.kept.get(&key).filter(|kept| kept.versions == versions) {
        return Ok(kept.derived.clone());
    }
    let rows = (run.query)(run, query, Some(env), None)?;
    run.kept_bytes += rows.iter().map(|row| row_bytes(row)).sum::<usize>();
    let derived = Rc::new(Derived::new(rows));
    run.kept.insert(key, Kept { versions, derived: derived.clone() });
    Ok(derived)
}

/// Returns the expressions of WITH that a query uses and does not define.
fn used_ctes(run: &mut Run<'_>, query: &Query) -> Rc<Vec<usize>> {
    let key = std::ptr::from_ref(query) as usize;
    let used = run.used_ctes.entry(key).or_insert_with(|| {
        let mut found = References::of_query(query);
        found.ctes.retain(|number| !found.defined.contains(number));
        found.ctes.sort_unstable();
        found.ctes.dedup();
        Rc::new(found.ctes)
    });
    used.clone()
}

/// Returns the value of a subquery. `left` are the values of the left operands of ANY and ALL.
pub(super) fn value<'p>(
    run: &mut Run<'p>,
    subquery: &'p Subquery,
    left: &[Value],
    env: &Env<'_>,
) -> Result<Value> {
    let rows_max = match subquery.kind {
        SubqueryKind::Scalar => Some(2),
        SubqueryKind::Exists => Some(1),
        SubqueryKind::Array | SubqueryKind::AnyOf { .. } => None,
    };
    let derived = if subquery.is_correlated {
        let query = &subquery.query;
        let rows = run.briefly(|run| (run.query)(run, query, Some(env), rows_max))?;
        Rc::new(Derived::new(rows))
    } else {
        uncorrelated(run, &subquery.query, env)?
    };
    let first = |row: &[Value]| row.first().cloned().unwrap_or(Value::Null);
    match &subquery.kind {
        SubqueryKind::Scalar => match &derived.rows[..] {
            [] => Ok(Value::Null),
            [row] => Ok(first(row)),
            _ => Err(Error::new(
                "21000",
                "more than one row returned by a subquery used as an expression",
            )),
        },
        SubqueryKind::Exists => Ok(Value::Bool(!derived.rows.is_empty())),
        SubqueryKind::Array => {
            let values: Vec<Value> = derived.rows.iter().map(|row| first(row)).collect();
            run.context.check_bytes(values.iter().map(crate::types::order::size_bytes).sum())?;
            Ok(Value::Array(values))
        }
        SubqueryKind::AnyOf { comparisons, all, .. } => {
            any_of(run, &derived, left, comparisons, *all, subquery.is_correlated)
        }
    }
}

/// Returns the value of `left op ANY (rows)` or ALL.
fn any_of(
    run: &mut Run<'_>,
    derived: &Derived,
    left: &[Value],
    comparisons: &[Comparison],
    all: bool,
    is_correlated: bool,
) -> Result<Value> {
    let is_equality = |comparison: &Comparison| {
        let row = data().operators.get(comparison.operator);
        row.is_some_and(|row| row.name == "=" && row.left != crate::types::oid::BPCHAR)
    };
    let has_null = left.iter().any(Value::is_absent);
    if !all && !is_correlated && !has_null && comparisons.iter().all(is_equality) {
        let columns: Vec<usize> = (0..left.len()).collect();
        let index = derived.index(&columns, run)?;
        if index.contains_key(left) {
            return Ok(Value::Bool(true));
        }
        // Without rows that have NULLs, no other row can be unknown.
        if index.values().map(Vec::len).sum::<usize>() == derived.rows.len() {
            return Ok(Value::Bool(false));
        }
    }
    let mut is_unknown = false;
    for row in derived.rows.iter() {
        run.context.limits.step(1)?;
        match compare_rows(&mut run.context, left, row, comparisons)? {
            Some(truth) if truth != all => return Ok(Value::Bool(truth)),
            Some(_) => {}
            None => is_unknown = true,
        }
    }
    Ok(truth_value(if is_unknown { None } else { Some(all) }))
}
