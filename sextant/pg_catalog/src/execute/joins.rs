//! Runs the joins of a SELECT: depth first, one row at a time.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use proto::value::Value;

use super::env::{Env, Layout, Piece};
use super::eval::{eval, holds};
use super::join_order::{FromPlan, Scan, Step, StepKind, Steps};
use super::run::{Derived, Run};
use super::sources::derive;
use crate::error::Result;
use crate::plan::{Expr, SourceKind};
use crate::relations::Rows;

/// A row that is being joined.
struct Frame<'f> {
    pieces: Vec<Piece>,
    layout: &'f Layout,
    outer: Option<&'f Env<'f>>,
    /// The rows of items that depend on no other item, by their pieces.
    derived: Vec<Option<Rc<Derived>>>,
}

impl Frame<'_> {
    fn env(&self) -> Env<'_> {
        Env::new(&self.pieces, self.layout, self.outer)
    }
}

type Flow = ControlFlow<()>;

/// The continuation of each row: the rest of the joins, and at last the output.
type Next<'n, 'p, 'f> = &'n mut dyn FnMut(&mut Run<'p>, &mut Frame<'f>) -> Result<Flow>;

/// Returns the rows of FROM and WHERE, as pieces; no more than a number, if one is given.
pub(super) fn join<'p>(
    run: &mut Run<'p>,
    plan: &FromPlan<'p>,
    outer: Option<&Env<'_>>,
    rows_max: Option<usize>,
) -> Result<Vec<Vec<Piece>>> {
    let mut frame = Frame {
        pieces: vec![Piece::default(); plan.pieces],
        layout: &plan.layout,
        outer,
        derived: vec![None; plan.pieces],
    };
    let mut rows = Vec::new();
    if rows_max == Some(0) {
        return Ok(rows);
    }
    let row_bytes = row_bytes(plan);
    let _flow = run_steps(run, &mut frame, &plan.steps, &mut |run, frame| {
        run.context.limits.store(row_bytes)?;
        rows.push(frame.pieces.clone());
        let is_enough = rows_max.is_some_and(|max| rows.len() >= max);
        Ok(if is_enough { Flow::Break(()) } else { Flow::Continue(()) })
    })?;
    Ok(rows)
}

fn row_bytes(plan: &FromPlan<'_>) -> usize {
    std::mem::size_of::<Vec<Piece>>() + plan.pieces * std::mem::size_of::<Piece>()
}

fn run_steps<'p, 'f>(
    run: &mut Run<'p>,
    frame: &mut Frame<'f>,
    steps: &Steps<'p>,
    next: Next<'_, 'p, 'f>,
) -> Result<Flow> {
    if !all_hold(run, frame, &steps.first)? {
        return Ok(Flow::Continue(()));
    }
    run_from(run, frame, &steps.steps, next)
}

/// Runs the remaining steps for the row of the frame.
fn run_from<'p, 'f>(
    run: &mut Run<'p>,
    frame: &mut Frame<'f>,
    steps: &[Step<'p>],
    next: Next<'_, 'p, 'f>,
) -> Result<Flow> {
    let Some((step, rest)) = steps.split_first() else { return next(run, frame) };
    run.enter()?;
    let mut rest = |run: &mut Run<'p>, frame: &mut Frame<'f>| {
        if !all_hold(run, frame, &step.conditions)? {
            return Ok(Flow::Continue(()));
        }
        run_from(run, frame, rest, &mut *next)
    };
    let flow = match &step.kind {
        StepKind::Scan(scan) => run_scan(run, frame, scan, &mut rest),
        StepKind::Outer(steps) => run_outer(run, frame, steps, &mut rest),
        StepKind::Full { left, right, on } => run_full(run, frame, (left, right), on, &mut rest),
    }?;
    run.leave();
    Ok(flow)
}

fn all_hold<'p>(run: &mut Run<'p>, frame: &Frame<'_>, conditions: &[&'p Expr]) -> Result<bool> {
    for condition in conditions {
        if !holds(run, condition, &frame.env())? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn run_scan<'p, 'f>(
    run: &mut Run<'p>,
    frame: &mut Frame<'f>,
    scan: &Scan<'p>,
    next: Next<'_, 'p, 'f>,
) -> Result<Flow> {
    let (rows, positions) = candidates(run, frame, scan)?;
    for n in 0..positions.len(&rows) {
        run.context.limits.step(1)?;
        frame.pieces[scan.piece] = Piece::new(&rows, positions.at(n));
        if next(run, frame)?.is_break() {
            return Ok(Flow::Break(()));
        }
    }
    frame.pieces[scan.piece] = Piece::default();
    Ok(Flow::Continue(()))
}

/// The positions of an item's rows that may satisfy the conditions.
enum Positions {
    All,
    None,
    Some(Arc<Vec<u32>>),
    Few(Vec<u32>),
}

impl Positions {
    fn len(&self, rows: &Rows) -> usize {
        match self {
            Self::All => rows.len(),
            Self::None => 0,
            Self::Some(list) => list.len(),
            Self::Few(list) => list.len(),
        }
    }

    fn at(&self, n: usize) -> usize {
        match self {
            Self::All | Self::None => n,
            Self::Some(list) => list[n] as usize,
            Self::Few(list) => list[n] as usize,
        }
    }
}

/// The number of rows of a relation up to which an index saves nothing.
const SCANNED_ROWS: usize = 8;

fn candidates<'p>(
    run: &mut Run<'p>,
    frame: &mut Frame<'_>,
    scan: &Scan<'p>,
) -> Result<(Rows, Positions)> {
    if let SourceKind::Relation(relation) = &scan.source.kind {
        let rows = run.context.relations.rows(*relation)?;
        if rows.len() <= SCANNED_ROWS {
            return Ok((rows, Positions::All));
        }
        let mut best: Option<Arc<Vec<u32>>> = None;
        for (column, expr) in &scan.lookups {
            let value = eval(run, expr, &frame.env())?;
            if value.is_absent() {
                return Ok((rows, Positions::None));
            }
            let found = run.context.relations.rows_with(*relation, *column, &value)?;
            if best.as_ref().is_none_or(|best| found.len() < best.len()) {
                best = Some(found);
            }
            if best.as_ref().is_some_and(|best| best.len() <= SCANNED_ROWS) {
                break;
            }
        }
        return Ok((rows, best.map_or(Positions::All, Positions::Some)));
    }
    let kept = frame.derived.get(scan.piece).cloned().flatten().filter(|_| !scan.is_lateral);
    let derived = match kept {
        Some(derived) => derived,
        None => derive(run, scan.source, &frame.env())?,
    };
    if !scan.is_lateral {
        frame.derived[scan.piece] = Some(derived.clone());
    }
    let rows = derived.rows.clone();
    if scan.is_lateral || scan.lookups.is_empty() || rows.len() <= SCANNED_ROWS {
        return Ok((rows, Positions::All));
    }
    let mut key = Vec::new();
    for (_, expr) in &scan.lookups {
        key.push(eval(run, expr, &frame.env())?.into_owned());
    }
    if key.iter().any(Value::is_absent) {
        return Ok((rows, Positions::None));
    }
    let columns: Vec<usize> = scan.lookups.iter().map(|(column, _)| *column).collect();
    let found = derived.index(&columns, run)?.get(&key).cloned().unwrap_or_default();
    Ok((rows, Positions::Few(found)))
}

/// Runs the null-side of an outer join; a row of NULLs follows if it gives none.
fn run_outer<'p, 'f>(
    run: &mut Run<'p>,
    frame: &mut Frame<'f>,
    steps: &Steps<'p>,
    next: Next<'_, 'p, 'f>,
) -> Result<Flow> {
    let mut is_matched = false;
    let flow = run_steps(run, frame, steps, &mut |run, frame| {
        is_matched = true;
        next(run, frame)
    })?;
    // All pieces of the side are NULL again when its steps have ended.
    if is_matched || flow.is_break() { Ok(flow) } else { next(run, frame) }
}

/// Runs a FULL join: the pairs of both sides that satisfy the condition, then the rows of each
/// side that are in no pair.
fn run_full<'p, 'f>(
    run: &mut Run<'p>,
    frame: &mut Frame<'f>,
    (left, right): (&Steps<'p>, &Steps<'p>),
    on: &[&'p Expr],
    next: Next<'_, 'p, 'f>,
) -> Result<Flow> {
    let before = frame.pieces.clone();
    let lefts = side(run, frame, left)?;
    let rights = side(run, frame, right)?;
    let mut is_paired = vec![false; rights.len()];
    for left in &lefts {
        let mut is_matched = false;
        for (n, right) in rights.iter().enumerate() {
            run.context.limits.step(1)?;
            frame.pieces = merged(left, right);
            if all_hold(run, frame, on)? {
                (is_matched, is_paired[n]) = (true, true);
                if next(run, frame)?.is_break() {
                    return Ok(Flow::Break(()));
                }
            }
        }
        frame.pieces.clone_from(left);
        if !is_matched && next(run, frame)?.is_break() {
            return Ok(Flow::Break(()));
        }
    }
    for (right, _) in rights.iter().zip(&is_paired).filter(|(_, is_paired)| !**is_paired) {
        frame.pieces.clone_from(right);
        if next(run, frame)?.is_break() {
            return Ok(Flow::Break(()));
        }
    }
    frame.pieces = before;
    Ok(Flow::Continue(()))
}

/// Returns the rows of one side of a FULL join.
fn side<'p, 'f>(
    run: &mut Run<'p>,
    frame: &mut Frame<'f>,
    steps: &Steps<'p>,
) -> Result<Vec<Vec<Piece>>> {
    let mut rows = Vec::new();
    let bytes = std::mem::size_of::<Piece>() * frame.pieces.len();
    let _flow = run_steps(run, frame, steps, &mut |run, frame| {
        run.context.limits.store(bytes)?;
        rows.push(frame.pieces.clone());
        Ok(Flow::Continue(()))
    })?;
    Ok(rows)
}

/// Joins the pieces of two sides, each of which has rows in other pieces.
fn merged(left: &[Piece], right: &[Piece]) -> Vec<Piece> {
    let piece = |(left, right): (&Piece, &Piece)| {
        if left.row().is_some() { left.clone() } else { right.clone() }
    };
    left.iter().zip(right).map(piece).collect()
}
