//! Queries: WITH, set operations, VALUES, the order and the limit.

use std::collections::{BTreeMap, BTreeSet};

use proto::value::Value;

use super::env::Env;
use super::eval::{eval, row_of};
use super::run::Run;
use super::select::run_select;
use super::sort::{Direction, compare_keys};
use crate::error::{Error, Result};
use crate::plan::{Body, Cte, CteBody, Distinct, Expr, Query, SetOperation, SetOperator, SortKey};
use crate::types::oid::Oid;
use crate::types::order::comparable;

type Row = Box<[Value]>;

/// Runs a query, and returns its rows without hidden items.
pub(super) fn run_query<'p>(
    run: &mut Run<'p>,
    query: &'p Query,
    outer: Option<&Env<'_>>,
    rows_max: Option<usize>,
) -> Result<Vec<Row>> {
    run.enter()?;
    for cte in &query.ctes {
        run_cte(run, cte, outer)?;
    }
    let limit = bound(run, query.limit.as_ref(), outer, ("2201W", "LIMIT"))?;
    let offset = bound(run, query.offset.as_ref(), outer, ("2201X", "OFFSET"))?.unwrap_or(0);
    let limit = limit.into_iter().chain(rows_max).min();
    let wanted = limit.map(|limit| limit.saturating_add(offset));
    let body_max = wanted.filter(|_| query.order.is_empty());
    let mut rows = match &query.body {
        Body::Select(select) => {
            let body_max = body_max.filter(|_| select.distinct == Distinct::No);
            let rows = run_select(run, select, outer, body_max)?;
            if select.distinct == Distinct::Rows { distinct_rows(run, rows)? } else { rows }
        }
        Body::Values(values) => {
            let env = Env::empty(outer);
            let mut rows = Vec::with_capacity(values.len());
            for exprs in values {
                let row = row_of(run, exprs, &env)?;
                run.store(&row)?;
                rows.push(row.into_boxed_slice());
            }
            rows
        }
        Body::SetOperation(operation) => set_operation(run, operation, outer)?,
    };
    sort(run, &mut rows, &query.order, &item_types(query))?;
    if let Body::Select(select) = &query.body
        && let Distinct::On(items) = &select.distinct
    {
        rows = distinct_on(run, rows, items)?;
    }
    let rows = rows.into_iter().skip(offset).take(limit.unwrap_or(usize::MAX));
    let width = query.columns.len();
    let rows =
        rows.map(|row| if row.len() > width { shortened(row, width) } else { row }).collect();
    run.leave();
    Ok(rows)
}

fn shortened(row: Row, width: usize) -> Row {
    let mut row = row.into_vec();
    row.truncate(width);
    row.into_boxed_slice()
}

/// Returns the types of the items of a query's rows, hidden ones too.
fn item_types(query: &Query) -> Vec<Oid> {
    match &query.body {
        Body::Select(select) => select.items.iter().map(|item| item.ty.oid()).collect(),
        _ => query.columns.iter().map(|column| column.ty.oid()).collect(),
    }
}

/// Returns the number of LIMIT or OFFSET; `None` for NULL, and without one.
fn bound<'p>(
    run: &mut Run<'p>,
    expr: Option<&'p Expr>,
    outer: Option<&Env<'_>>,
    (sqlstate, clause): (&'static str, &str),
) -> Result<Option<usize>> {
    let Some(expr) = expr else { return Ok(None) };
    let value = eval(run, expr, &Env::empty(outer))?;
    let Some(number) = value.as_number() else { return Ok(None) };
    let number = number.as_i64().unwrap_or(i64::MAX);
    let rows = usize::try_from(number);
    rows.map(Some).map_err(|_| Error::new(sqlstate, format!("{clause} must not be negative")))
}

/// Sorts rows by items; the sort is stable.
fn sort(run: &mut Run<'_>, rows: &mut [Row], order: &[SortKey], types: &[Oid]) -> Result<()> {
    if order.is_empty() {
        return Ok(());
    }
    let directions: Vec<Direction> = order
        .iter()
        .map(|key| Direction { descending: key.descending, nulls_first: key.nulls_first })
        .collect();
    let count = rows.len() as u64;
    run.context.limits.step(count * u64::from(count.max(2).ilog2()))?;
    let ty = |key: &SortKey| types.get(key.item).copied().unwrap_or(0);
    let keys = |row: &Row| -> Vec<Value> {
        let key =
            |key: &SortKey| comparable(row.get(key.item).cloned().unwrap_or(Value::Null), ty(key));
        order.iter().map(key).collect()
    };
    let mut keyed: Vec<(Vec<Value>, Row)> = Vec::with_capacity(rows.len());
    for row in rows.iter_mut() {
        let keys = keys(row);
        run.context.limits.store(crate::types::order::row_bytes(&keys))?;
        keyed.push((keys, std::mem::take(row)));
    }
    keyed.sort_by(|a, b| compare_keys(&a.0, &b.0, &directions));
    rows.iter_mut().zip(keyed).for_each(|(row, (_, sorted))| *row = sorted);
    Ok(())
}

/// Returns the first of each set of equal rows.
fn distinct_rows(run: &mut Run<'_>, rows: Vec<Row>) -> Result<Vec<Row>> {
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for row in rows {
        if !seen.contains(&row) {
            run.store(&row)?;
            seen.insert(row.clone());
            kept.push(row);
        }
    }
    Ok(kept)
}

/// Returns the first of the rows that agree in some items.
fn distinct_on(run: &mut Run<'_>, rows: Vec<Row>, items: &[usize]) -> Result<Vec<Row>> {
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for row in rows {
        let key: Vec<Value> =
            items.iter().map(|item| row.get(*item).cloned().unwrap_or(Value::Null)).collect();
        run.store(&key)?;
        if seen.insert(key) {
            kept.push(row);
        }
    }
    Ok(kept)
}

fn set_operation<'p>(
    run: &mut Run<'p>,
    operation: &'p SetOperation,
    outer: Option<&Env<'_>>,
) -> Result<Vec<Row>> {
    let mut left = run_query(run, &operation.left, outer, None)?;
    let right = run_query(run, &operation.right, outer, None)?;
    if operation.operator == SetOperator::Union {
        left.extend(right);
        return if operation.all { Ok(left) } else { distinct_rows(run, left) };
    }
    let keeps_common = operation.operator == SetOperator::Intersect;
    let mut counts: BTreeMap<Row, usize> = BTreeMap::new();
    for row in right {
        run.store(&row)?;
        *counts.entry(row).or_default() += 1;
    }
    if !operation.all {
        left.retain(|row| counts.contains_key(row) == keeps_common);
        return distinct_rows(run, left);
    }
    left.retain(|row| match counts.get_mut(row) {
        Some(count) if *count > 0 => {
            *count -= 1;
            keeps_common
        }
        _ => !keeps_common,
    });
    Ok(left)
}

fn run_cte<'p>(run: &mut Run<'p>, cte: &'p Cte, outer: Option<&Env<'_>>) -> Result<()> {
    match &cte.body {
        CteBody::Query(query) => {
            let rows = run_query(run, query, outer, None)?;
            run.set_cte(cte.number, rows)
        }
        CteBody::Recursive { first, next, all } => {
            run_recursive(run, cte.number, (first, next, *all), outer)
        }
    }
}

fn run_recursive<'p>(
    run: &mut Run<'p>,
    number: usize,
    (first, next, all): (&'p Query, &'p Query, bool),
    outer: Option<&Env<'_>>,
) -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut result = Vec::new();
    let mut round = run_query(run, first, outer, None)?;
    loop {
        if !all {
            round.retain(|row| seen.insert(row.clone()));
        }
        for row in &round {
            run.store(row)?;
        }
        result.extend(round.iter().cloned());
        if round.is_empty() {
            return run.set_cte(number, result);
        }
        run.context.limits.step(1)?;
        run.set_cte(number, round)?;
        round = run_query(run, next, outer, None)?;
    }
}
