//! The stages of a SELECT: FROM, grouping, windows, set-returning functions, items.

use std::rc::Rc;
use std::sync::Arc;

use proto::value::Value;

use super::env::{Env, Layout, Piece};
use super::eval::{call_set, evaluate_all, holds, row_of};
use super::group::group;
use super::join_order::{self, FromPlan};
use super::joins::join;
use super::run::Run;
use super::window::add_window;
use crate::error::Result;
use crate::plan::{Distinct, Select};
use crate::relations::Rows;

/// The rows between two stages.
struct Stage {
    rows: Vec<Vec<Piece>>,
    layout: Layout,
    pieces: usize,
}

impl Stage {
    /// Adds columns to all rows: one row of values for each.
    fn add(&mut self, width: usize, columns: usize, values: Vec<Box<[Value]>>) {
        let values: Rows = Arc::new(values);
        for (n, row) in self.rows.iter_mut().enumerate() {
            row.push(Piece::new(&values, n));
        }
        self.layout.set(self.pieces, width, columns);
        self.pieces += 1;
    }
}

/// Runs a SELECT, and returns its items, hidden ones too; no more rows than a number, if one is
/// given and no stage needs all of them.
pub(super) fn run_select<'p>(
    run: &mut Run<'p>,
    select: &'p Select,
    outer: Option<&Env<'_>>,
    rows_max: Option<usize>,
) -> Result<Vec<Box<[Value]>>> {
    let plan = plan_of(run, select);
    let is_plain = select.grouping.is_none()
        && select.windows.is_empty()
        && select.set_returning.is_empty()
        && select.distinct == Distinct::No;
    let rows = join(run, &plan, outer, rows_max.filter(|_| is_plain))?;
    let mut stage = Stage { rows, layout: plan.layout.clone(), pieces: plan.pieces };
    let mut width = select.width;
    if let Some(grouping) = &select.grouping {
        let rows: Rows = Arc::new(group(run, grouping, &stage.rows, &stage.layout, outer)?);
        width = grouping.keys.len() + grouping.aggregates.len();
        let layout = Layout::of_one(width);
        let mut kept = Vec::new();
        for n in 0..rows.len() {
            let row = vec![Piece::new(&rows, n)];
            let is_kept = match &grouping.having {
                Some(having) => holds(run, having, &Env::new(&row, &layout, outer))?,
                None => true,
            };
            kept.extend(is_kept.then_some(row));
        }
        stage = Stage { rows: kept, layout, pieces: 1 };
    }
    for window in &select.windows {
        let values = add_window(run, window, &stage.rows, &stage.layout, outer)?;
        stage.add(width, 1, values);
        width += 1;
    }
    if !select.set_returning.is_empty() {
        stage = add_sets(run, select, stage, width, outer)?;
    }
    let mut rows = Vec::with_capacity(stage.rows.len());
    for row in &stage.rows {
        let items = row_of(run, &select.items, &Env::new(row, &stage.layout, outer))?;
        run.store(&items)?;
        rows.push(items.into_boxed_slice());
    }
    Ok(rows)
}

/// Returns the order of the joins, which is found when the SELECT runs first.
fn plan_of<'p>(run: &mut Run<'p>, select: &'p Select) -> Rc<FromPlan<'p>> {
    let key = std::ptr::from_ref(select) as usize;
    let relations = run.context.relations;
    run.plans.entry(key).or_insert_with(|| Rc::new(join_order::plan(select, relations))).clone()
}

/// Runs the set-returning functions of the select list in step: each row is repeated, and a set
/// that ends before the longest one gives NULL.
fn add_sets<'p>(
    run: &mut Run<'p>,
    select: &'p Select,
    stage: Stage,
    width: usize,
    outer: Option<&Env<'_>>,
) -> Result<Stage> {
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for row in &stage.rows {
        let env = Env::new(row, &stage.layout, outer);
        let mut sets = Vec::new();
        for set in &select.set_returning {
            let arguments = evaluate_all(run, &set.arguments, &env)?;
            sets.push(call_set(run, set.call, &set.arguments, &arguments, &set.ty)?);
        }
        let count = sets.iter().map(Vec::len).max().unwrap_or(0);
        for n in 0..count {
            let value = |set: &Vec<Value>| set.get(n).cloned().unwrap_or(Value::Null);
            let added: Box<[Value]> = sets.iter().map(value).collect();
            run.store(&added)?;
            values.push(added);
            rows.push(row.clone());
        }
    }
    let mut stage = Stage { rows, ..stage };
    stage.add(width, select.set_returning.len(), values);
    Ok(stage)
}
